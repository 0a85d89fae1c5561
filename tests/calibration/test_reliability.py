"""The reliability table: against a plain computation, and on real maps before and after scaling."""

import json

import numpy as np
import pytest

import segtrust as st
from segtrust.calibration.pixels import near_boundary
from segtrust.calibration.reliability import reliability
from segtrust.errors import ParameterError, TooFewCasesError
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


def test_refusals():
    for bins in (0, [0.5, 1], [0, 0.5], [0, 0.5, 0.5, 1], []):
        with pytest.raises(ParameterError, match="bins"):
            reliability(simulated("float32"), bins=bins)
    for epsilon in (0.0, 0.5, -1):
        with pytest.raises(ParameterError, match="epsilon"):
            reliability(simulated("float32"), epsilon=epsilon)
    with pytest.raises(TooFewCasesError):
        reliability([])
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
