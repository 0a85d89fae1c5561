"""Outcomes survive the way through JSON."""

import json

import pytest

from segtrust.engine.outcomes import Failure, Outcome
from segtrust.io.cases import Unpaired

FAILURE = Failure("a", "maps/a.npy", "DamagedFileError", "maps/a.npy: truncated")


@pytest.mark.parametrize(
    "outcome", [Outcome("a", ({"sdc": 0.1 + 0.2, "k": 3, "mask": None},)), Outcome("a", failure=FAILURE)]
)
def test_what_is_saved_comes_back(outcome):
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


def test_a_file_without_a_partner_is_a_failure_that_says_why():
    found = Failure.of_unpaired(Unpaired("b", "labels/b.png", "a truth without a probability map"))
    assert found.row() == {
        "case": "b",
        "kind": "Unpaired",
        "reason": "a truth without a probability map",
        "file": "labels/b.png",
    }
