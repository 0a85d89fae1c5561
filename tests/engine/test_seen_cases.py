"""Calibration cases are recognised by name and confidence: names recur from one data set to the next."""

import numpy as np
import pytest

from segtrust.engine.calibration import (
    Calibration,
    calibrate_table,
    read_reference,
    reference_beside,
    save_policies,
)
from segtrust.engine.decisions import load_policies
from segtrust.engine.seen_cases import are_calibration_cases
from segtrust.io.tables import Table
from segtrust.selective import Target

COUNT = 300
RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(COUNT)
NAMES = [str(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A policy, and the confidences that are kept beside it."""
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    rows = [
        {"case": name, "structure": "organ", "sdc": c, "dice": (1 + c) / 2}
        for name, c in zip(NAMES, CONFIDENCE.tolist(), strict=True)
    ]
    table = Table.of(rows)
    save_policies(path, calibrate_table(table, Calibration("sdc", (Target(0.3),))), table)
    policies = load_policies(path)
    return policies["organ"], read_reference(reference_beside(path), policies)["organ"]


def test_the_very_cases_are_recognised(made):
    policy, reference = made
    assert are_calibration_cases(NAMES, CONFIDENCE, policy, reference).all()
    rounded = np.array([float(f"{each:.12g}") for each in CONFIDENCE])
    assert are_calibration_cases(NAMES, rounded, policy, reference).all(), "a table may have fewer digits"


def test_others_of_the_same_names_are_new(made):
    policy, reference = made
    other = np.random.default_rng(1).random(COUNT)
    assert not are_calibration_cases(NAMES, other, policy, reference).any()
    near = CONFIDENCE * (1 + 1e-6)
    assert not are_calibration_cases(NAMES, near, policy, reference).any()


def test_others_of_the_same_confidence_are_new(made):
    policy, reference = made
    assert not are_calibration_cases([f"new {name}" for name in NAMES], CONFIDENCE, policy, reference).any()


def test_names_alone_where_no_confidences_are_known(made):
    policy, _ = made
    found = are_calibration_cases(["0", "new", "299"], [0.5, 0.5, np.nan], policy)
    assert found.tolist() == [True, False, True]


def test_no_cases_and_no_numbers(made):
    policy, reference = made
    assert are_calibration_cases([], [], policy, reference).size == 0
    assert not are_calibration_cases(["0"], [np.nan], policy, reference).any()


def test_zero_and_negative_confidences(made):
    policy, _ = made
    found = are_calibration_cases(["0", "1", "2"], [0.0, -0.25, 0.25], policy, [-0.25, 0.0])
    assert found.tolist() == [True, True, False]
