"""Commands that are killed and given again end as if nothing had happened."""

from pathlib import Path

import pytest

from tools.reliability.killing import COMMANDS, kill_often, prepare
from tools.reliability.without_times import contents, differences

LINUX = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="asks Linux for its processes")

QUICK = [each for each in COMMANDS if each.name != "reproduce medical"]


def test_times_are_left_away_and_nothing_else(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, seconds, risk in ((one, 1.5, 0.25), (other, 2.5, 0.25)):
        folder.mkdir()
        (folder / "a.csv").write_text(f"risk,seconds\n{risk},{seconds}\n")
        (folder / "run.json").write_text(f'{{"finished": "{seconds}", "risk": {risk}}}')
        (folder / "page.html").write_text(f"<p>2026-01-0{int(seconds)}T12:00:00+00:00</p> {risk}")
        (folder / ".lock").write_text(str(seconds))
    assert differences(contents(one), contents(other)) == []
    (other / "a.csv").write_text("risk,seconds\n0.250000001,2.5\n")
    (other / "page.html").write_text("<p></p> 0.26")
    (other / "more.csv").write_text("risk\n")
    assert differences(contents(one), contents(other)) == ["a.csv", "page.html", "more.csv"]


@pytest.mark.slow
@LINUX
@pytest.mark.needs("matplotlib", "pyarrow", "PIL", "torch")
@pytest.mark.parametrize("command", QUICK, ids=lambda command: command.name)
def test_killed_at_random_moments(tmp_path, command, record_property):
    prepare(command, tmp_path / "run")
    found = kill_often(command, tmp_path / "run", kills=3, seed=1)
    record_property("killed", found.row(command.name))
    assert found.is_equal, (found.unequal, found.drafts)
    assert found.kills == 3
    assert found.runs >= 1
