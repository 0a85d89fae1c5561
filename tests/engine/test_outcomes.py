"""Outcomes survive the way through JSON."""

import json

import pytest

from segtrust.engine.outcomes import Outcome
from segtrust.io import Failure

FAILURE = Failure("a", "maps/a.npy", "DamagedFileError", "maps/a.npy: truncated")


@pytest.mark.parametrize(
    "outcome", [Outcome("a", ({"sdc": 0.1 + 0.2, "k": 3, "mask": None},)), Outcome("a", failure=FAILURE)]
)
def test_what_is_saved_comes_back(outcome):
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


def test_compact_outcomes_are_equal_and_share_the_names_of_columns():
    texts = [
        json.dumps(Outcome(case, ({"case": case, "mask": "threshold", "sdc": 0.5},)).to_dict())
        for case in "ab"
    ]
    outcomes = [Outcome.from_dict(json.loads(text)) for text in texts]
    first, second = (outcome.compact() for outcome in outcomes)
    assert [first, second] == outcomes
    assert all(a is b for a, b in zip(first.rows[0], second.rows[0], strict=True))
    assert first.rows[0]["mask"] is second.rows[0]["mask"]
