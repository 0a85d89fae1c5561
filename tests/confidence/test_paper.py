"""Numbers that the authors' notebooks print, and those of an independent computation on real maps."""

import numpy as np
import pytest

from segtrust.confidence import (
    PatchLevel,
    ThresholdLevel,
    dice_bounds,
    full_posterior_dice,
    score,
    score_batch,
)
from segtrust.maps import Prediction
from segtrust.risks import RISKS

# One of the real maps has no value above 1.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:p. the largest value of this uint8 map is 1"),
]


def area_of_means(confidence, errors):
    """AURC of the simulations: cumulative means from coverage 1/N to 1, ties in any order."""
    means = np.cumsum(errors[np.argsort(-confidence, kind="stable")]) / np.arange(1, errors.size + 1)
    return np.trapezoid(means, np.arange(1, errors.size + 1) / errors.size)


def area_of_tie_blocks(confidence, errors):
    """AURC of the tables: one point a tie block, and the first risk again at coverage 0."""
    order = np.argsort(-confidence, kind="stable")
    last = np.append(np.diff(confidence[order]) != 0, True)
    coverage = np.flatnonzero(last) + 1
    risks = np.cumsum(errors[order])[last] / coverage
    return np.trapezoid(np.append(risks[0], risks), np.append(0, coverage) / errors.size)


class Simulation:
    """Section 6.1: logit-normal posteriors of ten pixels, conditioned on a truth that is not empty."""

    def __init__(self, images=5000):
        legacy = np.random.RandomState  # the generator whose seeds the authors give
        logits = np.array([legacy(seed).normal(-3.698, 5, 10) for seed in range(images)])
        self.q = 1 / (1 + np.exp(-logits))
        self.p = np.minimum(self.q / (1 - np.prod(1 - self.q, axis=1, keepdims=True)), 1)
        self.mask = self.p >= 0.5
        self.full = np.array([full_posterior_dice(q, y) for q, y in zip(self.q, self.mask, strict=True)])
        self.scores = score_batch(self.p, self.mask, ["idc", "sdc", "amsp"])


@pytest.fixture(scope="module")
def simulation():
    return Simulation()


AREAS = {
    "full": 0.10535938820682154,
    "idc": 0.10546919248799505,
    "sdc": 0.10631229727306651,
    "amsp": 0.12287692577838152,
}


class TestSimulation:
    @pytest.mark.parametrize("name", AREAS)
    def test_areas(self, simulation, name):
        confidence = simulation.full if name == "full" else simulation.scores[name]
        assert area_of_means(confidence, 1 - simulation.full) == pytest.approx(AREAS[name], abs=1e-12)

    def test_mean_error_bound(self, simulation):
        bounds = [dice_bounds(p, y) for p, y in zip(simulation.p, simulation.mask, strict=True)]
        errors = np.array([each.relative_error for each in bounds])
        assert np.isnan(errors).sum() == 76
        assert np.nanmean(errors) == pytest.approx(0.045292283752955, abs=1e-12)
        assert np.nanmedian(errors) == pytest.approx(0.033306, abs=5e-7)
        assert np.nanmax(errors) == pytest.approx(0.241523, abs=5e-7)

    def test_risk_and_foreground(self, simulation):
        assert simulation.p.mean() == pytest.approx(0.2495975, abs=5e-8)
        assert (1 - simulation.full).mean() == pytest.approx(0.1974259, abs=5e-8)

    @pytest.mark.parametrize(
        ("reference", "mean", "largest"), [("full", 0.015814, 0.087113), ("idc", 0.020558, 0.170938)]
    )
    def test_distance_of_soft_from_ideal(self, simulation, reference, mean, largest):
        ideal = simulation.full if reference == "full" else simulation.scores["idc"]
        some = simulation.mask.any(1)
        errors = np.abs(simulation.scores["sdc"] - ideal)[some] / ideal[some]
        assert errors.mean() == pytest.approx(mean, abs=5e-7)
        assert errors.max() == pytest.approx(largest, abs=5e-7)


def read_png(path):
    from PIL import Image

    return np.array(Image.open(path).convert("L"))


def pairs_of(folder, predictions):
    """(map, truth) of each image whose truth is not empty."""
    for path in sorted((folder / predictions).glob("*.png")):
        truth = read_png(folder / "masks" / path.name) > 127
        if truth.any():
            yield read_png(path), truth


class RealSet:
    """Confidences by name, errors, and error bounds of a set of maps."""

    def __init__(self, pairs):
        maps, truths = zip(*pairs, strict=True)
        tla = ThresholdLevel().fit([Prediction(p) for p in maps])
        estimators = ["sdc", "amsp", "ane", "mmmc", PatchLevel(), tla]
        rows = [score(p, estimators=estimators) for p in maps]
        self.confidence = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        risk = RISKS["dice_risk"]
        self.errors = np.array([risk.of(truth, p >= 127.5) for p, truth in zip(maps, truths, strict=True)])
        self.bounds = np.array([dice_bounds(p).relative_error for p in maps])

    def area(self, name):
        return area_of_tie_blocks(self.confidence[name], self.errors)


POLYP_ID, POLYP_OOD = ("Kvasir", "CVC-ClinicDB"), ("CVC-300", "CVC-ColonDB", "ETIS-LaribPolypDB")
ESTIMATORS = ("sdc", "amsp", "ane", "mmmc", "pla", "tla")
# n, areas of the estimators, full-coverage risk, largest and mean error bound
REAL = {
    "polyp in": (
        162,
        (0.035290, 0.066684, 0.066675, 0.078392, 0.054027, 0.130004),
        0.078392,
        "2.8e-05",
        "1.4e-06",
    ),
    "polyp out": (
        636,
        (0.078558, 0.138772, 0.137689, 0.186170, 0.104124, 0.299306),
        0.201406,
        "2.6e-03",
        "1.8e-05",
    ),
    "BCE_plain": (
        124,
        (0.238831, 0.399238, 0.391348, 0.409063, 0.392172, 0.449413),
        0.391646,
        "2.0e-04",
        "1.9e-05",
    ),
    "dice_plain": (
        124,
        (0.175707, 0.300250, 0.300259, 0.326067, 0.290952, 0.342506),
        0.326067,
        "2.7e-02",
        "2.2e-04",
    ),
}


def check(real, name):
    n, areas, risk, largest, mean = REAL[name]
    assert real.errors.size == n
    assert {each: round(real.area(each), 6) for each in ESTIMATORS} == dict(
        zip(ESTIMATORS, areas, strict=True)
    )
    assert round(real.errors.mean(), 6) == risk
    assert (f"{np.nanmax(real.bounds):.1e}", f"{np.nanmean(real.bounds):.1e}") == (largest, mean)


@pytest.mark.needs("data:polyp", "PIL")
@pytest.mark.parametrize(("name", "sets"), [("polyp in", POLYP_ID), ("polyp out", POLYP_OOD)])
def test_polyps(name, sets, data):
    check(RealSet(pair for each in sets for pair in pairs_of(data("polyp") / each, "predictions")), name)


@pytest.mark.needs("data:busi-predictions", "PIL")
@pytest.mark.parametrize("name", ["BCE_plain", "dice_plain"])
def test_breast_ultrasound(name, data):
    check(RealSet(pairs_of(data("busi-predictions"), name)), name)
