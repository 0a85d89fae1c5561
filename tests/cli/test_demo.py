"""``segtrust demo``: the whole job on embedded cases, told to people and to machines."""

import json
import re

import pytest

from segtrust.io import read_table
from tests.commands import segtrust, segtrust_process

pytestmark = [pytest.mark.slow, pytest.mark.needs("PIL", "matplotlib")]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A demo in a process of its own, and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "out [bold]x[/a]"  # no name of a folder is markup
    return segtrust_process("demo", "--output", str(folder)), folder


def test_it_tells_the_promise_and_what_became_of_it(done):
    told, folder = done
    assert told.returncode == 0, told.stderr
    guarantee = "(certified): accept cases with a confidence (sdc) of at least"
    assert guarantee in " ".join(told.stdout.split())  # lines end where the terminal does
    assert re.search(r"of that kind .* 30 .* at most 20% .* silent", told.stdout)
    assert re.search(r"of another kind .* 40 .* void .* 100% \(91% to 100%\) .* RINGS", told.stdout)
    assert str(folder / "report.html") in told.stdout


def test_all_that_a_run_has_is_there(done):
    _, folder = done
    for name in ("scores.csv", "policy.json", "run.json", "report.html", "tables/areas.csv"):
        assert (folder / name).stat().st_size, name
    assert (folder / "figures/risk_coverage.pdf").stat().st_size
    rows = read_table(folder / "scores.csv").rows
    assert [sum(row["set"] == name for row in rows) for name in ("ID", "bright")] == [60, 40]


def test_the_report_tells_calibration_cases_from_new_ones(done):
    page = (done[1] / "report.html").read_text(encoding="utf-8")
    told = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "What the threshold promises: certified, but in doubt for bright" in told
    assert "calibrated with 30 of them, which are no test of it. Of the other 30, 27 are accepted" in told
    assert "bright: drift alarm. The new cases are not like those of the calibration" in told
    assert "Commands segtrust demo" in told


def test_somebodys_own_files_are_not_replaced(tmp_path):
    (tmp_path / "policy.json").write_text("mine")
    told = segtrust("demo", "--output", str(tmp_path))
    assert told.returncode == 2
    assert "expected a folder that is new, empty or of an earlier demo" in told.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("policy.json", "mine")]


def test_paragraphs_flow_to_the_width_of_the_terminal(done):
    told, _ = done
    assert all(len(line) <= 110 for line in told.stdout.splitlines() if "/" not in line)
    assert "over all shares that could be accepted. The gap is that" in told.stdout


def test_a_second_one_gives_the_same_for_machines(done):
    _, folder = done
    before = (folder / "scores.csv").read_bytes()
    again = segtrust("demo", "--output", str(folder), "--json")
    assert again.returncode == 0, again.stderr
    values = json.loads(again.stdout)
    assert [(each["set"], each["kept"], each["alarm"]) for each in values["triaged"]] == [
        ("ID", True, False),
        ("bright", False, True),
    ]
    assert (folder / "scores.csv").read_bytes() == before  # which does not show the seconds


def test_a_folder_of_another_command_is_left_alone(tmp_path):
    (tmp_path / "run.json").write_text('{"command": "evaluate"}')
    done = segtrust("demo", "--output", str(tmp_path))
    assert done.returncode == 2
    assert "evaluate" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
