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
