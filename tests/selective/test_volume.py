"""Volumes in ml and their conformal intervals: by definition, by simulation, and on hippocampi."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import segtrust
from segtrust import ConformalVolume, volume_ml
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    GeometryError,
    MaskError,
    NotFittedError,
    ParameterError,
    SavedStateError,
    SeenCasesError,
)


def draw(rng, n, *, missed=0.0):
    """Errors that grow with the volume and as confidence falls; some masks are empty and miss everything."""
    confidence, truth = rng.beta(6, 2, n), rng.lognormal(1, 0.7, n)
    volume = np.maximum(truth * (1 + (1 - confidence) * rng.normal(0.1, 0.5, n)), 0.01)
    return confidence, np.where(rng.random(n) < missed, 0.0, volume), truth


def within(pair, truth):
    return (pair.lower <= truth) & (truth <= pair.upper)


# Volumes of masks


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("spacing_mm", [(1, 1, 1), (3.0, 0.7, 0.7), np.array([0.5, 2, 1], np.float32)])
def test_volume_is_that_of_all_voxels(kind, spacing_mm):
    mask = np.random.default_rng(0).random((5, 6, 7)) < 0.3
    step_z, step_y, step_x = map(float, spacing_mm)
    slow = sum(step_z * step_y * step_x for voxel in mask.ravel() if voxel) / 1000
    assert volume_ml(mask.astype(kind), spacing_mm) == pytest.approx(slow)
    assert volume_ml(mask.astype(kind).transpose(2, 0, 1), (step_x, step_z, step_y)) == pytest.approx(slow)
    assert volume_ml(np.zeros((5, 6, 7), kind), spacing_mm) == 0


@pytest.mark.needs("torch")
def test_volume_of_a_tensor():
    import torch

    assert volume_ml(torch.ones(10, 10, 10, dtype=torch.bool), (1, 1, 2)) == 2.0


def test_what_has_no_volume():
    with pytest.raises(GeometryError, match=r"mask: expected a volume with 3 axes, got shape \(4, 4\)"):
        volume_ml(np.ones((4, 4), bool), (1, 1))
    for spacing_mm in ((1, 1), (1, 1, 0), (1, 1, math.nan), 1.0):
        with pytest.raises(GeometryError, match="spacing_mm: expected 3 positive numbers"):
            volume_ml(np.ones((4, 4, 4), bool), spacing_mm)
    with pytest.raises(MaskError, match="2"):
        volume_ml(np.full((4, 4, 4), 2), (1, 1, 1))


# Intervals


def slow_interval(confidence, volume, truth, new, level, floor_ml):
    """Rank the errors of the cases of the same kind, empty or not, one by one."""
    like = [i for i in range(volume.size) if (volume[i] == 0) == (new[1] == 0)]
    scale = [volume[i] * (1 - confidence[i] + 0.02) + floor_ml for i in like]
    rank = math.ceil((len(like) + 1) * (1 + Fraction(str(level))) / 2)
    if rank > len(like):
        return 0.0, math.inf
    errors = [(volume[i] - truth[i]) / s for i, s in zip(like, scale, strict=True)]
    below, above = sorted(errors)[rank - 1], sorted(-error for error in errors)[rank - 1]
    new_scale = new[1] * (1 - new[0] + 0.02) + floor_ml
    return max(new[1] - below * new_scale, 0), max(new[1] + above * new_scale, 0)


volumes = st.just(0.0) | st.floats(0.001, 1000)
cases = st.lists(st.tuples(st.floats(0, 1), volumes, volumes), min_size=2, max_size=60)


@given(
    cases, st.tuples(st.floats(0, 1), volumes), st.sampled_from([0.5, 0.8]), st.sampled_from([0.01, 0.1, 5])
)
@settings(deadline=None)
def test_intervals_by_definition(known, new, level, floor_ml):
    confidence, volume, truth = np.array(known).T
    pair = (
        ConformalVolume(level, floor_ml=floor_ml).fit(confidence, volume, truth).interval([new[0]], [new[1]])
    )
    slow = slow_interval(confidence, volume, truth, new, level, floor_ml)
    assert (pair.lower[0], pair.upper[0]) == pytest.approx(slow, rel=1e-9, abs=1e-6)
    assert 0 <= pair.lower[0] <= pair.upper[0]
    assert pair.trivial[0] == math.isinf(pair.upper[0])
    assert pair.predicted[0] >= 0


def test_coverage_by_simulation():
    """Accepted, deferred and empty masks each reach the level on average, within three standard errors."""
    rng, level, hits = np.random.default_rng(0), 0.8, {"accepted": [], "deferred": [], "empty": []}
    for _ in range(250):
        bounds = ConformalVolume(level, threshold=0.75).fit(*draw(rng, 100, missed=0.2))
        confidence, volume, truth = draw(rng, 300, missed=0.2)
        right = np.stack(
            [
                within(bounds.interval(confidence, volume), truth),
                truth >= bounds.lower_bound(confidence, volume).lower,
            ]
        )
        parts = ((confidence >= 0.75) & (volume > 0), (confidence < 0.75) & (volume > 0), volume == 0)
        for name, part in zip(hits, parts, strict=True):
            hits[name].append(right[:, part].mean(axis=1))
    for shares in hits.values():
        error = np.std(shares, axis=0) / math.sqrt(len(shares))
        assert (np.mean(shares, axis=0) >= level - 3 * error).all()
        assert (np.mean(shares, axis=0) <= level + 0.12).all()


def test_missed_objects_do_not_widen_the_others():
    rng = np.random.default_rng(0)
    confidence, volume, truth = draw(rng, 300)
    alone = ConformalVolume().fit(confidence, volume, truth)
    missed = ConformalVolume().fit(
        np.append(confidence, np.zeros(30)),
        np.append(volume, np.zeros(30)),
        np.append(truth, np.linspace(0, 50, 30)),
    )
    pairs = [bounds.interval([0.9], [3.0]) for bounds in (alone, missed)]
    assert pairs[0].upper == pairs[1].upper
    assert {cell.decision: cell.n for cell in missed.cells} == {"all": 300, "empty": 30}
    empty = missed.interval([0.0], [0.0])
    assert empty.lower[0] == 0
    assert empty.upper[0] == pytest.approx(50)
    assert alone.interval([0.0], [0.0]).trivial.tolist() == [True]


def test_the_prediction_removes_the_mean_error():
    confidence, _, truth = draw(np.random.default_rng(0), 400)
    pair = ConformalVolume().fit(confidence, 1.2 * truth, truth).interval(confidence, 1.2 * truth)
    assert (pair.predicted > 0).all(), "none is cut off at 0"
    assert pair.predicted.mean() == pytest.approx(truth.mean())


def test_few_cases_and_groups():
    confidence, volume, truth = draw(np.random.default_rng(0), 100)
    bounds = ConformalVolume().fit(confidence, volume, truth, groups=["small"] * 5 + ["large"] * 95)
    pair = bounds.interval([0.9] * 3, [2.0] * 3, ["small", "new", "large"])
    assert pair.trivial.tolist() == [True, True, False]
    assert (pair.lower[:2].tolist(), pair.upper[:2].tolist()) == ([0, 0], [math.inf, math.inf])
    assert pair.n.tolist() == [5, 0, 95]
    assert (pair.cases_needed, bounds.cases_needed(two_sided=False)) == (19, 9)
    assert bounds.lower_bound([0.9], [2.0], "large").upper.tolist() == [math.inf]
    with pytest.raises(ParameterError, match="group: expected the group of each case"):
        bounds.interval([0.9], [2.0])


def test_saved_and_loaded(tmp_path):
    confidence, volume, truth = draw(np.random.default_rng(0), 200, missed=0.2)
    unfit = ConformalVolume(0.8, threshold=0.7, floor_ml=0.5)
    bounds = unfit.fit(confidence, volume, truth, ids=range(200))
    for made in (unfit, bounds):
        made.save(tmp_path / "volume.json")
        assert (
            segtrust.load(tmp_path / "volume.json") == ConformalVolume.load(tmp_path / "volume.json") == made
        )
    assert (bounds.interval(confidence, volume).upper >= bounds.interval(confidence, volume).lower).all()
    saved = json.loads(json.dumps(bounds.to_dict()))
    for change, words in (
        ({"floor_ml": 0}, "floor_ml: expected a volume above 0"),
        ({"level": 2}, "level: expected"),
        ({"correction": "a"}, "correction: expected a finite number"),
        ({"more": 1}, "'more' is unknown"),
        ({"cells": [{}]}, "'decision' is missing"),
    ):
        with pytest.raises(SavedStateError, match=words):
            ConformalVolume.from_dict({**saved, **change})


@pytest.mark.needs("pandas")
def test_tables_and_displays():
    confidence, volume, truth = draw(np.random.default_rng(0), 60)
    bounds = ConformalVolume(threshold=0.7, floor_ml=0.2).fit(confidence, volume, truth)
    shown = "ConformalVolume(level=0.9, threshold=0.7, floor_ml=0.2, fitted=True, cells=2, ranked_cases=60)"
    assert repr(bounds) == shown
    assert len(bounds.to_dataframe()) == 2
    pair = bounds.interval([0.8, 0.9], [2.0, 3.0])
    table = pair.to_dataframe(index=["a", "b"])
    assert list(table) == ["lower_ml", "predicted_ml", "upper_ml", "trivial", "n"]
    assert list(table.index) == ["a", "b"]
    assert "lower_ml" in pair._repr_html_()
    assert bounds.set_params(level=0.8) == ConformalVolume(0.8, 0.7, 0.2)


def test_used_cases_are_rejected():
    confidence, volume, truth = draw(np.random.default_rng(0), 40)
    with pytest.raises(SeenCasesError, match="'7'"):
        ConformalVolume().fit(confidence, volume, truth, ids=range(40), used_ids=[7])
    bounds = ConformalVolume().fit(confidence, volume, truth, ids=range(40), used_ids=[99])
    with pytest.raises(SeenCasesError):
        bounds.interval([0.5], [1.0], ids=["39"])
    assert bounds.interval([0.5], [1.0], ids=["40"]).lower.size == 1


def test_invalid_arguments():
    with pytest.raises(NotFittedError, match="ConformalVolume: call fit"):
        ConformalVolume().interval([0.5], [1.0])
    with pytest.raises(CaseLengthError, match="true_volume_ml: expected 2 values"):
        ConformalVolume().fit([0.5, 0.6], [1.0, 2.0], [1.0])
    with pytest.raises(
        CaseValueError, match=r"volume_ml: expected numbers of at least 0, got -1\.0 for case 'b'"
    ):
        ConformalVolume().fit([0.5, 0.6], [1.0, -1.0], [1.0, 2.0], ids=["a", "b"])
    with pytest.raises(CaseValueError, match="true_volume_ml: expected a finite number"):
        ConformalVolume().fit([0.5, 0.6], [1.0, 1.0], [1.0, math.inf])
    for options in ({"level": 1.0}, {"threshold": math.nan}, {"floor_ml": 0.0}, {"floor_ml": -1}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            ConformalVolume(**options)


@pytest.mark.needs("data:hippocampus", "nibabel", "scipy")
def test_on_hippocampi_the_level_holds(data):
    """Blurred labels of real scans, half of them with thick slices: 60 draws of half the cases, 90 %."""
    from docs.results.scripts.volume_intervals import hippocampi

    confidence, volume, truth = hippocampi(data("hippocampus") / "labels")
    assert (truth > 1).all()
    assert (truth < 10).all()
    threshold, hits = float(np.median(confidence)), []
    for seed in range(60):
        known, new = np.array_split(np.random.default_rng(seed).permutation(truth.size), 2)
        bounds = ConformalVolume(threshold=threshold).fit(confidence[known], volume[known], truth[known])
        right, accepted = (
            within(bounds.interval(confidence[new], volume[new]), truth[new]),
            confidence[new] >= threshold,
        )
        hits.append((right.mean(), right[accepted].mean(), right[~accepted].mean()))
    assert (np.mean(hits, axis=0) >= 0.885).all()
    assert (np.mean(hits, axis=0) <= 0.935).all()
