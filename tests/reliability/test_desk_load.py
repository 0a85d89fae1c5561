"""The desk under many reviewers for some seconds, and that what goes wrong would be seen."""

from dataclasses import replace
from pathlib import Path

import pytest

LINUX = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="asks Linux for its processes")
pytestmark = pytest.mark.needs("fastapi", "uvicorn", "sqlalchemy", "httpx", "PIL")


def entry(number, reviewer="ann", **more):
    names = ("policy", "digest", "confidence", "decision", "set", "structure")
    said = {"verdict": "accept", "comment": f"no. {number}", "undoes": None, "holds": True, "time": ""}
    return {
        **dict.fromkeys(names, ""),
        "id": number,
        "case": f"case {number}",
        "reviewer": reviewer,
        **said,
        **more,
    }


def kept(*entries):
    from tools.reliability.desk_log import _TRIGGERS, Kept

    table = [{name: str(each[name]) for name in ("id", "reviewer", "comment")} for each in entries]
    return Kept(entries, table, entries, ["('ok',)"], frozenset(_TRIGGERS))


def faults(kept, *answered, unanswered=()):
    from tools.reliability.desk_log import Heard, faults

    return [each.partition(":")[0] for each in faults([Heard("ann", list(answered), list(unanswered))], kept)]


def test_what_is_lost_doubled_altered_or_foreign_is_seen():
    one, two = entry(1), entry(2)
    whole = kept(one, two)
    assert faults(whole, one, two) == []
    assert faults(kept(one), one, two) == ["lost"]
    assert faults(whole, one, {**two, "comment": "other"}) == ["altered"]
    assert faults(whole, two, one) == ["another order"]
    assert faults(whole, one) == ["never sent, or not answered"]
    assert faults(whole, one, unanswered=[two]) == []
    assert faults(kept(one, entry(2, comment="no. 1")), one, unanswered=[one]) == ["doubled"]
    assert faults(kept(one, {**two, "holds": False}), one, two) == ["holds or not"]
    third = entry(3, verdict=None, comment="", undoes=1, holds=False)
    assert faults(kept({**one, "holds": False}, two, third), one, two, third) == []


def test_a_database_that_is_not_as_it_must_be_is_seen():
    one = entry(1)
    whole = kept(one)
    for change in (
        {"rows": []},
        {"table": []},
        {"integrity": ["('row 1 missing from index',)"]},
        {"triggers": frozenset()},
    ):
        assert len(faults(replace(whole, **change), one)) == 1
    assert faults(kept(entry(2)), entry(2)) == ["the numbers have holes"]


@pytest.mark.slow
@LINUX
def test_many_reviewers_at_once_lose_nothing(tmp_path, record_property):
    from tools.reliability.desk_load import load

    found = load(tmp_path, clients=20, seconds=5.0, cases=100)
    record_property("requests", found.timings.count)
    assert found.is_well, (found.timings.errors, found.wrong)
    assert sum(len(each.answered) for each in found.heard) >= 20
    assert {"worklist", "case", "tile", "verdict", "log"} <= {row["request"] for row in found.timings.rows()}
    assert min(found.memory) > 10
