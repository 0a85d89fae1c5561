"""What the authors' notebooks do, each from its description."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.confidence import FeatureAggregation, MedianMinMax
from segtrust.errors import EmptyArrayError, NotFittedError
from segtrust.maps import Case, Prediction
from segtrust.paper.medical.published import (
    PublishedFeatureAggregation,
    PublishedMedianMinMax,
    PublishedSoftDiceFeatureAggregation,
    PublishedThresholdLevel,
    Stretched,
    interpolated,
    published_sizes,
)
from tests.paper.medical import folders


def entropy(p):
    p = np.asarray(p, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nan_to_num(p * np.log2(p)) - np.nan_to_num((1 - p) * np.log2(1 - p))


def test_tla_has_a_threshold_of_each_image_and_divides_by_all_pixels():
    maps, _ = folders.maps_and_truths(4)
    predictions = [Prediction(p) for p in maps]
    fitted = PublishedThresholdLevel().fit(predictions)
    alpha = np.mean([(p >= 0.5).mean() for p in maps])
    assert fitted.alpha == pytest.approx(alpha)
    for p, prediction in zip(maps, predictions, strict=True):
        u = entropy(p)
        tau = np.quantile(u, 1 - alpha)
        assert fitted.score(prediction) == pytest.approx(-u[u > tau].sum() / u.size)


def test_tla_must_learn_first():
    with pytest.raises(NotFittedError):
        PublishedThresholdLevel().score(Prediction(np.array([0.5])))
    with pytest.raises(EmptyArrayError):
        PublishedThresholdLevel().fit([])


def test_mmmc_ranks_certain_maps_first():
    certain, doubtful = Prediction(np.zeros((3, 3))), Prediction(np.array([[0.1, 0.4], [0.0, 0.0]]))
    published, usual = PublishedMedianMinMax(), MedianMinMax()
    assert published.score(certain) > published.score(doubtful)
    assert published.score(doubtful) == usual.score(doubtful)
    assert usual.score(certain) == 0.0


def overlaps(case, tau):
    errors = (case.prediction.probabilities >= 0.5) != case.truth
    uncertain = entropy(case.prediction.probabilities) >= tau
    total = errors.sum() + uncertain.sum()
    return 2 * (errors & uncertain).sum() / total if total else np.nan


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("kind", [PublishedFeatureAggregation, PublishedSoftDiceFeatureAggregation])
def test_aef_takes_the_threshold_that_looks_least_like_the_errors(kind):
    maps, truths = folders.maps_and_truths(5)
    cases = [Case(Prediction(p), truth) for p, truth in zip(maps, truths, strict=True)]
    taus = [step / 20 for step in range(1, 20)]
    means = [np.mean([overlaps(case, tau) for case in cases]) for tau in taus]
    fitted = kind(trees=3).fit(cases)
    assert fitted.tau == taus[int(np.argmin(means))]
    assert FeatureAggregation(trees=3).fit(cases).tau != fitted.tau
    estimator = kind(trees=3)
    seen = [estimator.observe(case) for case in cases]
    losses = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert estimator.fit_observations(seen, losses).tau == fitted.tau


@pytest.mark.needs("sklearn")
def test_aef_takes_the_first_threshold_that_is_no_number():
    p = np.full((6, 6), 0.001)
    p[2:4, 2:4] = 0.8
    sure = np.where(p > 0.5, 0.999, 0.001)
    cases = [Case(Prediction(p), p < 2), Case(Prediction(sure), sure > 0.5)]
    assert PublishedFeatureAggregation(trees=2).fit(cases).tau == 0.05


def test_stretched_maps_reach_both_ends_and_are_cut_anew():
    p = np.array([[0.1, 0.2], [0.3, 0.4]])
    found = Stretched().calibrate(Prediction(p))
    assert found.probabilities.min() == 0.0
    assert found.probabilities.max() == pytest.approx(1.0)
    assert found.mask is None
    levels = (255 * p).astype(np.uint8)
    assert Stretched().calibrate(Prediction(levels)).probabilities.max() == pytest.approx(1.0)
    flat = Stretched().calibrate(replace(Prediction(np.full((2, 2), 0.7)), id="flat"))
    assert not flat.probabilities.any()


def test_sizes_are_those_between_which_the_paper_interpolated():
    between = {25: (2, 2), 33: (3, 3), 73: (7, 8), 98: (9, 10), 240: (23, 28), 636: (50, 63), 1000: (84, 108)}
    for n, pair in between.items():
        grid = published_sizes(n)
        above = next(at for at, (share, _) in enumerate(grid) if share > 0.1)
        assert (grid[above - 1][1], grid[above][1]) == pair
        assert len(grid) == 25


def test_columns_lie_on_the_line_between_two_sizes():
    n = 98
    summary = [
        {"estimator": "aef", "size": size, "cases": n, "aurc": size / n, "aurc_std": 0.1, "share": None}
        | {"coverage": None, "coverage_std": None, "not_reached": None}
        for size in sorted({size for _, size in published_sizes(n)})
    ]
    (row,) = interpolated(summary, 0.1)
    grid = published_sizes(n)
    expected = np.interp(0.1, [share for share, _ in grid], [size / n for _, size in grid])
    assert row["aurc"] == pytest.approx(expected)
    assert row["aurc_std"] == pytest.approx(0.1)
    assert row["share"] == 0.1
    assert row["coverage"] is None
