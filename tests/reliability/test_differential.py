"""Random cases against slow references: a sample of those that a whole run compares."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.reliability import compared, random_cases, refused
from tools.reliability.differential import BLOCK, Checked, Journal, Worst, check_case, check_cases, run, tell
from tools.reliability.limits import LIMITS, TOLERANCES
from tools.reliability.random_cases import InChunks, draw_map, draw_table, rng_of

SEED = 1
CASES = 2000


@pytest.fixture(scope="module")
def worst():
    return check_cases(SEED, 0, CASES)


def test_no_error_is_too_large(worst):
    assert worst.cases == CASES
    assert worst.faults == []


def test_every_quantity_was_compared(worst):
    assert set(TOLERANCES) <= {quantity for quantity, _, _ in worst.errors}


def test_every_row_of_the_table_is_printed_with_its_limit(worst, capsys):
    tell(worst)
    printed = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert {row: float(allowed) for row, _, _, allowed, *_ in printed[:-1]} == {
        limit.row: limit.allowed for limit in LIMITS
    }
    assert printed[-1][0] == "refusals, of 20 kinds"
    assert sum(len(limit.quantities) for limit in LIMITS) == len(TOLERANCES), "each has one limit"


def test_the_page_of_results_has_the_same_rows_and_limits():
    page = (Path(__file__).parents[2] / "docs/results/reliability.md").read_text()
    table = page.partition("| quantity | compared | largest error | allowed |\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[1:-1]]
    assert [(row, float(allowed)) for row, _, _, allowed in rows] == [
        (each.row, each.allowed) for each in LIMITS
    ]


def test_every_type_and_way_was_compared(worst):
    seen = {(dtype, path) for quantity, dtype, path in worst.errors if quantity == "sdc"}
    assert seen == {(dtype, path) for dtype in random_cases.DTYPES for path in random_cases.PATHS}


def test_every_family_and_layout_is_drawn():
    drawn = [draw_map(rng_of(SEED, number)) for number in range(600)]
    assert {each.family for each in drawn} == set(random_cases.FAMILIES)
    assert {each.layout for each in drawn} == set(random_cases.LAYOUTS)
    assert {len(each.p.shape) for each in drawn} == {0, 1, 2, 3}
    tables = [draw_table(rng_of(SEED, number)) for number in range(200)]
    assert {each.family for each in tables} == set(random_cases.CONFIDENCES)


@pytest.mark.parametrize("layout", random_cases.LAYOUTS)
@pytest.mark.parametrize("dtype", random_cases.DTYPES)
def test_layouts_hold_the_values_of_the_map(layout, dtype):
    p = (np.arange(24).reshape(2, 3, 4) % 7 * 0.125).astype(dtype)
    held = random_cases.LAYOUTS[layout](p)
    np.testing.assert_array_equal(held, p)
    assert held.shape == p.shape


def test_a_case_is_the_same_whenever_it_is_drawn():
    one, other = (draw_map(rng_of(SEED, 7)) for _ in range(2))
    np.testing.assert_array_equal(one.p, other.p)
    assert (one.tau, one.sides, one.path) == (other.tau, other.sides, other.path)


def test_chunks_cover_the_map():
    drawn = next(
        each for number in range(99) if isinstance((each := draw_map(rng_of(2, number))).p, InChunks)
    )
    for length, chunk in zip(drawn.p.shape, drawn.p.chunks, strict=True):
        assert chunk >= 1 if isinstance(chunk, int) else sum(chunk) == length


@pytest.mark.parametrize(
    ("found", "reference", "error"),
    [
        (1.0, 1.0, 0),
        (1.1, 1.0, 0.1),
        (0.0, 0.0, 0),
        (np.nan, np.nan, 0),
        (np.nan, 1.0, np.inf),
        (0.0, 2.0, 1),
    ],
)
def test_errors_are_relative(found, reference, error):
    assert compared.off(found, np.longdouble(reference)) == pytest.approx(error)


def test_a_number_where_there_is_none_is_far_off():
    assert compared.off(1e-200, np.longdouble(0)) > 1e80


@pytest.mark.parametrize(("name", "spoil"), [("sdc", 1e-12), ("pla", 1e-11), ("apc", 1e-12)])
def test_a_wrong_estimator_is_found(monkeypatch, name, spoil):
    right = compared.assess_map

    def wrong(source, estimators):
        found = right(source, estimators)
        found.scores[name] += spoil
        return found

    monkeypatch.setattr(compared, "assess_map", wrong)
    found = check_cases(SEED, 0, 20)
    assert found.faults
    assert all(name in quantity for _, quantity, _ in found.faults)


def test_an_error_that_is_not_raised_is_found(monkeypatch):
    monkeypatch.setattr(refused, "assess_map", lambda *_: None)
    found = check_cases(SEED, 0, 200)
    assert found.faulty
    assert all(quantity.startswith("refused: ") for _, quantity, _ in found.faults)


def test_an_exception_is_a_fault_of_its_case(monkeypatch):
    monkeypatch.setattr(compared, "assess_map", lambda *_: 1 / 0)
    (only,) = check_case(SEED, 0)
    assert only.is_fault
    assert only.quantity.startswith("raised ZeroDivisionError")


def test_blocks_add_up_in_any_order():
    checks = [Checked("sdc", "float64", "memory", error) for error in (1e-16, 3e-16, 3e-16, 0.5)]
    blocks = []
    for number, check in enumerate(checks):
        block = Worst()
        block.add_case(number, [check])
        blocks.append(Worst.from_json(block.to_json()))
    totals = [Worst(), Worst()]
    for forward, backward in zip(blocks, reversed(blocks), strict=True):
        totals[0].add(forward)
        totals[1].add(backward)
    assert totals[0] == totals[1]
    assert totals[0].errors == {("sdc", "float64", "memory"): (0.5, 3, 4)}
    assert totals[0].faults == [(3, "sdc", 0.5)]


def test_a_line_that_was_broken_off_is_taken_away(tmp_path):
    Journal(tmp_path, SEED).read()
    Journal(tmp_path, SEED).add(0, Worst(cases=BLOCK))
    with (tmp_path / "blocks.jsonl").open("a") as file:
        file.write('{"first": 1000, "err')
    assert set(Journal(tmp_path, SEED).read()) == {0}
    Journal(tmp_path, SEED).add(2 * BLOCK, Worst(cases=BLOCK))
    assert set(Journal(tmp_path, SEED).read()) == {0, 2 * BLOCK}


@pytest.mark.slow
def test_workers_change_nothing_and_a_run_goes_on(tmp_path):
    cases = 2 * BLOCK
    whole = run(cases, SEED, 2, tmp_path / "two")
    begun = run(BLOCK, SEED, 1, tmp_path / "one")
    assert begun.cases == BLOCK
    lines = (tmp_path / "one/blocks.jsonl").read_text()
    (tmp_path / "one/blocks.jsonl").write_text(lines + '{"first": 1000, "err')  # broken off while writing
    assert run(cases, SEED, 1, tmp_path / "one") == whole
    assert run(cases, SEED, 1, tmp_path / "one") == whole  # of the journal alone
    with pytest.raises(SystemExit, match="another seed"):
        run(cases, SEED + 1, 1, tmp_path / "one")


@pytest.mark.slow
def test_one_case_can_be_repeated():
    command = [sys.executable, "-m", "tools.reliability.differential", "--seed", "0", "--only", "6"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "area: paper" in done.stdout
