"""The page that compares: what it says of segtrust is what segtrust gives now."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from hypothesis import given, strategies

import segtrust as st
from docs.results.scripts import neighbours
from docs.results.scripts.peers import own, rules
from docs.results.scripts.peers.tables import Table, find_table
from segtrust.cli import app

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/results/neighbours.md").read_text()
MARKS = {"yes", "part", "–", "n/a"}


def held_against_page(made: Table) -> None:
    """Every row that is made here stands in the page, cell by cell."""
    shown = find_table(PAGE, made.name)
    assert shown.header == made.header
    rows = {row[0]: row for row in shown.rows}
    assert {row[0]: rows.get(row[0]) for row in made.rows} == {row[0]: row for row in made.rows}


@pytest.mark.parametrize("table", [own.areas, own.failures, own.ties, own.empty_masks])
def test_the_page_shows_what_segtrust_gives(table):
    held_against_page(table())


@pytest.mark.slow
def test_the_page_shows_how_promises_are_kept():
    held_against_page(own.promises())


def test_promises_are_looked_up_in_a_population():
    target = st.Target(0.25, below_dice=0.85)
    always = {("all", name): lambda *_: 0.0 for name, each in own.TARGETS.items() if each == target}
    ((_, answers, coverage, broken),) = own.promises(always, draws=2).rows
    assert (answers, coverage, broken) == ("1.000", "1.000", "1.000")


def test_the_command_prints_what_the_page_needs(capsys, monkeypatch):
    monkeypatch.setattr(own, "tables", lambda: [own.empty_masks()])
    neighbours.main(["own"])
    assert find_table(capsys.readouterr().out, "empties") == own.empty_masks()


def test_unknown_words_are_refused():
    with pytest.raises(SystemExit, match="own, one NAME"):
        neighbours.main(["alone"])


def test_each_neighbour_has_its_version_and_its_part():
    for name, each in neighbours.NEIGHBOURS.items():
        if name != "segtrust":
            assert each.requirement.partition("==")[2] in PAGE
            assert (ROOT / f"docs/results/scripts/peers/with_{name}.py").exists()


def named_in_the_page() -> dict[str, list[str]]:
    """What the column of segtrust names, by feature."""
    return {row[0]: re.findall(r"`([^`]+)`", row[1]) for row in find_table(PAGE, "features").rows}


def test_each_feature_of_segtrust_names_what_does_it():
    claims = {row[0]: row[1] for row in find_table(PAGE, "features").rows}
    assert {feature for feature, names in named_in_the_page().items() if not names} == {
        feature for feature, claim in claims.items() if claim == "–"
    }


def test_what_the_page_names_exists():
    commands = {each.name or each.callback.__name__ for each in app.registered_commands}
    commands |= {each.name for each in app.registered_groups}
    names = {name for each in named_in_the_page().values() for name in each}
    assert {name.split()[1] for name in names if " " in name} <= commands
    for name in names:
        if " " not in name and not name.startswith("integrations."):
            assert reduce(getattr, name.split("."), st) is not None


@pytest.mark.needs("torch")
def test_what_the_page_names_of_torch_exists():
    names = [
        name for each in named_in_the_page().values() for name in each if name.startswith("integrations.")
    ]
    assert names
    assert all(resolve_name("segtrust." + name) for name in names)


def test_marks_of_neighbours_are_the_four_that_are_explained():
    assert {cell.split(",")[0] for row in find_table(PAGE, "features").rows for cell in row[2:]} <= MARKS


def test_a_table_is_found_again():
    made = Table("t", ("a", "b"), (("1", ""), ("x", "–")))
    assert find_table("before\n\n" + made.markdown() + "\nafter", "t") == made
    with pytest.raises(LookupError, match="no table"):
        find_table("", "t")


losses = strategies.lists(strategies.integers(0, 10), min_size=2, max_size=12)


@given(losses, strategies.integers(1, 5), strategies.randoms(use_true_random=False))
def test_rule_of_fd_shifts_is_segtrust_s_default(loss, levels, random):
    loss = np.array(loss) / 10.0
    confidence = np.array([random.randrange(levels) for _ in loss], float)
    curve = st.risk_coverage_curve(confidence, loss)
    assert rules.fd_shifts_areas(confidence, loss) == pytest.approx((curve.aurc, curve.augrc))


@given(losses)
def test_rule_of_values_without_ties_is_the_trapezoid_from_the_first(loss):
    loss, confidence = np.array(loss) / 10.0, np.arange(len(loss)) * 1.0
    area = st.risk_coverage_curve(confidence, loss).area("trapezoid-from-first")
    assert rules.values_aurc(confidence, loss) == pytest.approx(area)


def slow_values_aurc(confidence, loss):
    """One case after the other leaves; a point where the one that left differs from the one before it."""
    order, left, total = np.argsort(confidence), len(loss), loss.sum()
    risks, stretches, waiting = [total / left], [], 0
    for i, case in enumerate(order[:-1]):
        left, total, waiting = left - 1, total - loss[case], waiting + 1
        if i == 0 or confidence[case] != confidence[order[i - 1]]:
            risks.append(total / left)
            stretches.append(waiting / len(loss))
            waiting = 0
    if waiting:
        risks.append(risks[-1])
        stretches.append(waiting / len(loss))
    return sum((a + b) / 2 * width for a, b, width in zip(risks, risks[1:], stretches, strict=False))


@given(losses, strategies.integers(1, 5), strategies.randoms(use_true_random=False))
def test_rule_of_values_with_ties_is_the_slow_one(loss, levels, random):
    loss = np.array(loss) / 10.0
    confidence = np.array([random.randrange(levels) for _ in loss], float)
    assert rules.values_aurc(confidence, loss) == pytest.approx(slow_values_aurc(confidence, loss))


def test_shared_parts_import_without_neighbours():
    assert all(import_module(f"docs.results.scripts.peers.{name}") for name in ("inputs", "timed", "empties"))


def test_a_neighbour_that_cannot_be_installed_says_why(tmp_path, monkeypatch):
    def refuse(folder, name):
        raise RuntimeError("No matching distribution found for values")

    monkeypatch.setattr(neighbours, "prepare", refuse)
    assert "No matching distribution" in neighbours.compared(tmp_path, "mapie")
