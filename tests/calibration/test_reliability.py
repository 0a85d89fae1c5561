"""The reliability table compared with a plain computation, on real maps, and the pixels it is made of."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies
from hypothesis.extra.numpy import array_shapes, arrays

import segtrust as st
from segtrust.calibration import reliability
from segtrust.calibration.reliability import (
    case_on_host,
    delivered_mask,
    labelled_pixels,
    map_on_host,
    near_boundary,
)
from segtrust.errors import (
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
    TooFewCasesError,
)
from segtrust.maps import Case, Prediction


def simulated(kind, n=3):
    rng = np.random.default_rng(0)
    for i in range(n):
        q = rng.beta(0.5, 1, (50, 60 + i))
        p = q.astype(kind) if kind.startswith("f") else np.rint(q * np.iinfo(kind).max).astype(kind)
        yield Case(Prediction(p), rng.random(q.shape) < q**1.3)


def floats(p):
    return p.astype(np.float64) / (1 if p.dtype.kind == "f" else np.iinfo(p.dtype).max)


@pytest.mark.parametrize("band_px", [None, 1.0])
@pytest.mark.parametrize("kind", ["float32", "uint8"])
def test_table(kind, band_px):
    cases = list(simulated(kind))
    maps = [floats(case.prediction.probabilities) for case in cases]
    near = [np.ones(p.shape, bool) if band_px is None else near_boundary(p >= 0.5, band_px) for p in maps]
    p = np.concatenate([each[chosen] for each, chosen in zip(maps, near, strict=True)])
    y = np.concatenate([case.truth[chosen] for case, chosen in zip(cases, near, strict=True)])
    table = reliability(cases, bins=4, band_px=band_px, epsilon=1e-3)
    place = np.minimum((p * 4).astype(int), 3)
    assert table.counts.tolist() == np.bincount(place).tolist()
    assert table.n == p.size
    assert table.mean_probability == pytest.approx([p[place == i].mean() for i in range(4)])
    assert table.frequency == pytest.approx([y[place == i].mean() for i in range(4)])
    gaps = np.array([abs(p[place == i].mean() - y[place == i].mean()) for i in range(4)])
    assert table.ece == pytest.approx(gaps @ np.bincount(place) / p.size)
    assert table.largest_gap == pytest.approx(gaps.max())
    assert table.brier == pytest.approx(np.mean((p - y) ** 2))
    clipped = np.clip(p, 1e-3, 1 - 1e-3)
    assert table.nll == pytest.approx(-np.log(np.where(y, clipped, 1 - clipped)).mean())


def test_edges_may_be_given():
    table = reliability(simulated("float32"), bins=[0, 0.01, 0.99, 1])
    assert table.counts.size == 3
    assert table.edges.tolist() == [0, 0.01, 0.99, 1]


def test_empty_bins():
    table = reliability([Case(Prediction(np.array([0.0, 1.0])), np.array([0, 1]))], bins=3)
    assert np.isnan(table.frequency[1])
    assert table.ece == 0.0
    assert json.loads(json.dumps(table.to_dict()))["frequency"] == [0.0, None, 1.0]
    assert 0 < table.nll < 1e-15


def test_perfect_calibration_has_no_error():
    rng = np.random.default_rng(0)
    p = rng.random((200, 200))
    assert reliability([Case(Prediction(p), rng.random(p.shape) < p)]).ece < 0.01


@pytest.mark.needs("matplotlib")
def test_plot():
    import matplotlib as mpl

    mpl.use("Agg")
    table = reliability(simulated("float32"))
    axes = table.plot(label="before")
    assert table.plot(axes) is axes
    assert len(axes.lines) == 3
    mpl.pyplot.close("all")


def test_the_number_of_bins_may_be_a_number_of_numpy():
    assert reliability(simulated("float32"), bins=np.int64(3)).counts.size == 3


def test_the_delivered_mask_is_that_of_the_estimators():
    p = np.array([0.7, 0.6], np.float32)
    assert delivered_mask(Prediction(p, threshold=np.float64(0.7))).tolist() == [True, False]


@pytest.mark.needs("torch")
def test_a_tensor_of_integers_is_no_map():
    import torch

    with pytest.raises(ProbabilityTypeError, match="int32"):
        map_on_host(torch.ones(3, dtype=torch.int32))


def test_refusals():
    for bins in (0, True, 2.0, [0.5, 1], [0, 0.5], [0, 0.5, 0.5, 1], []):
        with pytest.raises(ParameterError, match="bins"):
            reliability(simulated("float32"), bins=bins)
    for epsilon in (0.0, 0.5, -1):
        with pytest.raises(ParameterError, match="epsilon"):
            reliability(simulated("float32"), epsilon=epsilon)
    with pytest.raises(TooFewCasesError):
        reliability([])
    with pytest.raises(ParameterError, match=r"cases\[0\]: expected .* with ground truth, got"):
        reliability([Case(Prediction(np.zeros(4)), None)])
    with pytest.raises(TooFewCasesError, match="no predicted boundary"):
        reliability([Case(Prediction(np.zeros(4)), np.zeros(4))], band_px=2)


def busi_cases(folder, model):
    from PIL import Image

    def read(path):
        return np.array(Image.open(path).convert("L"))

    pairs = [
        (path, read(folder / "masks" / path.name) > 127) for path in sorted((folder / model).glob("*.png"))
    ]
    return [Case(Prediction(read(path), id=path.stem), truth) for path, truth in pairs if truth.any()]


@pytest.mark.needs("data:busi-predictions", "PIL")
def test_breast_ultrasound(data):
    """The saturated maps: clipped ends make pixels reliable and spoil the ranking, kept ends do neither."""
    cases = busi_cases(data("busi-predictions"), "dice_plain")
    learn, check = cases[::2], cases[1::2]
    before = reliability(check, epsilon=1 / 1020)
    for ends, ece, nll in (("keep", 0.048, 0.325), ("clip", 0.016, 0.180)):
        scaling = st.PlattScaling(ends=ends).fit(learn)
        assert not scaling.used_ids & {case.id for case in check}
        scaled = [Case(scaling.calibrate(case.prediction), case.truth) for case in check]
        after = reliability(scaled, epsilon=1 / 1020)
        assert (after.ece, after.nll) == (pytest.approx(ece, abs=0.001), pytest.approx(nll, abs=0.001))
        assert after.ece < before.ece
        assert after.nll < before.nll


masks = array_shapes(min_dims=1, max_dims=3, max_side=6).flatmap(lambda shape: arrays(bool, shape))


def brute_force_band(mask, distance):
    """Each pixel's distance to every pixel of the other side."""
    near = np.zeros(mask.shape, bool)
    places = list(np.ndindex(mask.shape))
    for here in places:
        others = [np.subtract(here, there) for there in places if mask[there] != mask[here]]
        near[here] = any(np.hypot.reduce(offset.astype(float)) <= distance for offset in others)
    return near


@given(masks, strategies.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_band(mask, distance):
    assert (near_boundary(mask, distance) == brute_force_band(mask, distance)).all()


def test_band_of_a_small_object_in_a_large_map():
    mask = np.zeros((200, 300), bool)
    mask[50, 60] = True
    near = near_boundary(mask, 2.0)
    assert near.sum() == 13
    assert near[48, 60]


@pytest.mark.parametrize(
    ("p", "threshold"),
    [
        (np.array([0.1, 0.35, 0.9], np.float32), 0.35),
        (np.array([127, 128, 0], np.uint8), 0.5),
        (np.array([32767, 32768, 0], np.uint16), 0.5),
    ],
)
def test_mask_is_that_of_the_threshold(p, threshold):
    as_floats = p if p.dtype.kind == "f" else p / np.iinfo(p.dtype).max
    assert delivered_mask(Prediction(p, threshold=threshold)).tolist() == (as_floats >= threshold).tolist()


def test_a_given_mask_wins():
    assert delivered_mask(Prediction(np.zeros(3), mask=np.array([0, 1, 0]))).tolist() == [False, True, False]


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]])
def test_pixels_keep_their_truth_in_any_layout(layout):
    rng = np.random.default_rng(0)
    p, truth = rng.random((30, 40, 70)), rng.random((30, 40, 70)) < 0.5
    case = Case(Prediction(layout(p)), truth)
    values, labels = (
        np.concatenate([part.copy() for part in parts])
        for parts in zip(
            *[(a.copy(), b.copy()) for a, b in labelled_pixels(case_on_host(case), None)], strict=True
        )
    )
    assert set(zip(values, labels, strict=True)) == set(
        zip(p.ravel(), truth.ravel().astype(int), strict=True)
    )


def test_tiles_of_a_band():
    p = np.array([0.1, 0.2, 0.7, 0.8])
    ((values, labels),) = list(
        labelled_pixels(case_on_host(Case(Prediction(p), np.array([0, 1, 0, 1]))), 1.0)
    )
    assert (values.tolist(), labels.tolist()) == ([0.2, 0.7], [1, 0])


@pytest.mark.needs("torch")
def test_tensors_come_to_the_host():
    import torch

    case = Case(Prediction(torch.rand(4, 4), mask=torch.ones(4, 4)), torch.ones(4, 4, dtype=torch.bool))
    assert isinstance(case_on_host(case).prediction.probabilities, np.ndarray)
    assert sum(len(values) for values, _ in labelled_pixels(case_on_host(case), None)) == 16


def test_bad_pixels_are_rejected():
    with pytest.raises(ProbabilityTypeError, match="got bool"):
        map_on_host(np.ones(3, bool))
    with pytest.raises(ProbabilityTypeError, match="got int64"):
        map_on_host(np.ones(3, np.int64))
    with pytest.raises(ProbabilityRangeError, match=r"case 7: .* got nan at index \(1,\)"):
        list(
            labelled_pixels(
                case_on_host(Case(Prediction(np.array([0.5, np.nan]), id="case 7"), np.ones(2))), None
            )
        )
    with pytest.raises(NotBinaryError, match="case 7: truth"):
        list(labelled_pixels(case_on_host(Case(Prediction(np.ones(2), id="case 7"), np.array([0, 2]))), None))
