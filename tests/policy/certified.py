"""A certified threshold, and policies made from it."""

from datetime import UTC, datetime

import numpy as np

from segtrust.policy import Policy, Scoring
from segtrust.selective import CalibrationCases, Target, certify

GRID = np.linspace(0, 1, 400)
REFERENCE = np.linspace(0, 0.99, 50)
IDS = [f"patient {i}" for i in range(400)]
CASES = CalibrationCases(GRID, (1 - GRID) / 2, ids=IDS, reference=REFERENCE)
CERTIFICATE = certify(CASES, [Target(0.2), Target(0.1, below_dice=0.6)])
MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def policy(**scoring):
    return Policy.from_certificate(CERTIFICATE, Scoring(**{"estimator": "sdc", **scoring}), made=MADE)
