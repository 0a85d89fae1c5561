"""Scaling: the likeliest curve to 1e-6, known curves found again, and what it does to a map."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

import segtrust as st
from segtrust.calibration import PlattScaling, Scaling, TemperatureScaling, near_boundary
from segtrust.errors import (
    CaseValueError,
    NotFittedError,
    ParameterError,
    ProbabilityRangeError,
    SavedStateError,
    TooFewCasesError,
)
from segtrust.maps import Case, Prediction

EPSILON = {"uint8": 1 / 1020, "uint16": 1 / (4 * 65535), "float16": 2**-13, "float32": 2**-26}


def as_type(p, kind):
    return p.astype(kind) if kind.startswith("float") else np.rint(p * np.iinfo(kind).max).astype(kind)


def floats(p):
    return p.astype(np.float64) / (1 if p.dtype.kind == "f" else np.iinfo(p.dtype).max)


def simulated(kind="float32", *, slope=2.0, shift=0.7, n=6, side=40):
    """Maps whose true probabilities have logits (z - shift) / slope."""
    rng = np.random.default_rng(0)
    cases = []
    for i in range(n):
        z = rng.normal(-1, 3, (side, side + 3 * i))
        truth = rng.random(z.shape) < expit((z - shift) / slope)
        cases.append(Case(Prediction(as_type(expit(z), kind), id=f"case {i}"), truth))
    return cases


def brute_force(cases, *, ends, intercept, band_px=None, weigh="pixels"):
    """Every pixel, and a general optimiser."""
    parts = []
    for case in cases:
        p = floats(case.prediction.probabilities)
        epsilon = EPSILON[case.prediction.probabilities.dtype.name]
        chosen = np.ones(p.shape, bool) if band_px is None else near_boundary(p >= 0.5, band_px)
        if ends == "keep":
            chosen &= (p > 0) & (p < 1)
        z = logit(np.clip(p, epsilon, 1 - epsilon)[chosen] if ends == "clip" else p[chosen])
        weight = np.full(z.size, 1 / z.size if weigh == "cases" else 1.0)
        parts.append((z, case.truth[chosen], weight))
    z, y, w = (np.concatenate(each) for each in zip(*parts, strict=True))

    def loss(curve):
        x = curve[0] * z + (curve[1] if intercept else 0.0)
        return w @ np.logaddexp(0, np.where(y, -x, x)) / w.sum()

    found = minimize(loss, [1.0, 0.0] if intercept else [1.0], method="BFGS", options={"gtol": 1e-9})
    return found.x if intercept else np.array([found.x[0], 0.0])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ends", ["keep", "clip"])
@pytest.mark.parametrize("kind", EPSILON)
def test_fit_is_that_of_all_pixels(kind, ends, intercept):
    cases = simulated(kind)
    fitted = (PlattScaling if intercept else TemperatureScaling)(ends=ends).fit(cases)
    assert fitted.curve == pytest.approx(brute_force(cases, ends=ends, intercept=intercept), abs=1e-6)


@pytest.mark.parametrize(
    "options", [{"band_px": 1.0}, {"weigh": "cases"}, {"band_px": 1.0, "weigh": "cases"}]
)
@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_fit_in_a_band_and_by_cases(kind, options):
    cases = simulated(kind)
    fitted = PlattScaling(**options).fit(cases)
    assert fitted.curve == pytest.approx(brute_force(cases, ends="keep", intercept=True, **options), abs=1e-6)


def test_types_may_be_mixed():
    cases = [*simulated("uint8", n=3), *simulated("float32", n=3)]
    assert PlattScaling().fit(cases).curve == pytest.approx(
        brute_force(cases, ends="keep", intercept=True), abs=1e-6
    )


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_found(temperature):
    cases = simulated(slope=temperature, shift=0.0, n=20)
    assert TemperatureScaling().fit(cases).temperature == pytest.approx(temperature, rel=0.03)


def test_a_known_curve_is_found():
    assert PlattScaling().fit(simulated(n=30)).curve == pytest.approx((0.5, -0.35), abs=0.02)


def test_it_remembers_whom_it_has_seen():
    cases = simulated(n=3)
    nameless = Case(Prediction(cases[0].prediction.probabilities), cases[0].truth)
    fitted = TemperatureScaling().fit(iter([*cases, nameless]))
    assert (fitted.used_ids, fitted.n_cases) == ({"case 0", "case 1", "case 2"}, 4)


@pytest.mark.parametrize("saved", [{}, None, [], {"name": "forest"}, {"name": ["platt"]}])
def test_what_is_no_scaling(saved):
    with pytest.raises(SavedStateError, match="policy: name: expected one of temperature, platt, got"):
        Scaling.from_dict(saved, source="policy")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": ...}, "'temperature' is missing"),
        ({"slope": 1.0}, "'slope' is unknown"),
        ({"temperature": "2"}, "temperature: expected a number above 0"),
        ({"temperature": True}, "temperature: expected a number above 0"),
        ({"band_px": "5"}, "band_px: expected at least 1 pixel"),
        ({"ends": "cut"}, "ends: expected one of"),
        ({"used_ids": None}, "used_ids: expected a collection"),
        ({"n_cases": -1}, "n_cases: expected a whole number"),
    ],
)
def test_a_damaged_scaling(change, words):
    saved = {**TemperatureScaling(2.0).to_dict(), **change}
    with pytest.raises(SavedStateError, match=f"scaling: {words}"):
        Scaling.from_dict({name: value for name, value in saved.items() if value is not ...})


@pytest.mark.parametrize("kind", [*EPSILON, "float64", ">f4"])
@pytest.mark.parametrize("ends", ["keep", "clip"])
def test_apply(kind, ends):
    p = np.concatenate([[0.0, 1.0, 0.5], np.random.default_rng(0).random(199_998)]).reshape(3, -1)
    p = as_type(p, kind) if kind != ">f4" else p.astype(kind)
    q = floats(p)
    scaled = PlattScaling(slope=0.5, intercept=-1.0, ends=ends).apply(p)
    assert scaled.dtype == (np.float64 if kind == "float64" else np.float32)
    epsilon = EPSILON.get(kind, 2**-55 if kind == "float64" else 2**-26)
    top = 55 * np.log(2) if ends == "keep" else np.log1p(-epsilon) - np.log(epsilon)
    with np.errstate(divide="ignore"):
        expected = expit(0.5 * np.clip(logit(q), -top, top) - 1.0)
    expected = np.where((q == 0) | (q == 1), q, expected) if ends == "keep" else expected
    limit = 1e-15 if kind == "float64" else 1e-7
    np.testing.assert_allclose(scaled, expected, rtol=0, atol=limit, equal_nan=False)


def test_apply_grows_and_keeps_the_layout():
    p = np.linspace(0, 1, 60).reshape(3, 4, 5)
    for ends in ("keep", "clip"):
        scaled = TemperatureScaling(3.0, ends=ends).apply(p)
        assert (np.diff(scaled.ravel()) >= 0).all()
        assert (TemperatureScaling(3.0, ends=ends).apply(p.T) == scaled.T).all()
        assert (TemperatureScaling(3.0, ends=ends).apply(p[:, ::2]) == scaled[:, ::2]).all()


def test_a_temperature_of_one_changes_nothing():
    p = np.random.default_rng(0).random(1000)
    assert TemperatureScaling(1.0).apply(p) == pytest.approx(p, rel=1e-14)


def test_an_absurd_temperature_makes_all_pixels_certain():
    assert TemperatureScaling(1e-307).apply(np.array([1e-9, 0.4, 0.5, 0.6])).tolist() == [0.0, 0.0, 0.5, 1.0]


def test_no_double_copy_of_a_map():
    p = np.random.default_rng(0).random((64, 256, 256), dtype=np.float32)
    scaling = TemperatureScaling(2.0)
    scaling.apply(p[:1])  # imports SciPy
    tracemalloc.start()
    scaling.apply(p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * p.nbytes, "the answer, and blocks"


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_the_delivered_mask_is_kept(kind):
    p = as_type(np.array([0.2, 0.6, 0.9]), kind)
    scaling = PlattScaling(slope=1.0, intercept=-2.0)
    before = Prediction(p, id="a", spacing_mm=(1.0,))
    after = scaling.calibrate(before)
    assert after.mask.tolist() == [False, True, True]
    assert (after.id, after.spacing_mm, after.threshold) == ("a", (1.0,), 0.5)
    anew = scaling.calibrate(before, keep_mask=False)
    assert anew.mask is None
    assert (anew.probabilities >= 0.5).tolist() == [False, False, True]
    given = scaling.calibrate(Prediction(p, mask=np.array([1, 0, 0])), keep_mask=False)
    assert given.mask.tolist() == [1, 0, 0]
    assert st.SoftDice().score(after) == pytest.approx(
        st.soft_dice_confidence(after.probabilities, np.array([0, 1, 1]))
    )


@pytest.mark.parametrize(
    "scaling", [TemperatureScaling(ends="clip"), PlattScaling(band_px=2.0, weigh="cases")]
)
def test_survives_json(scaling):
    fitted = scaling.fit(simulated(n=3))
    assert Scaling.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted


def test_no_finite_scaling():
    p = np.random.default_rng(0).random(500)
    for truth in (p >= 0.5, np.ones(500, bool)):
        with pytest.raises(CaseValueError, match="no finite maximum"):
            PlattScaling().fit([Case(Prediction(p), truth)])
    with pytest.raises(CaseValueError, match="foreground is rarer where the maps say it is more likely"):
        TemperatureScaling().fit([Case(Prediction(p), np.random.default_rng(1).random(500) > p)])


def test_nothing_to_learn_from():
    ends = Case(Prediction(np.array([0.0, 1.0])), np.array([0, 1]))
    for cases in ([], [ends]):
        with pytest.raises(TooFewCasesError, match="no pixel to learn from"):
            TemperatureScaling().fit(cases)
    with pytest.raises(TooFewCasesError):
        TemperatureScaling(band_px=3.0).fit([Case(Prediction(np.full(9, 0.1)), np.zeros(9))])


def test_refusals():
    for make in (TemperatureScaling, PlattScaling):
        with pytest.raises(NotFittedError):
            make().apply(np.ones(3))
    for scaling, options in (
        (TemperatureScaling, {"temperature": 0.0}),
        (TemperatureScaling, {"temperature": 1e-310}),
        (PlattScaling, {"slope": -1.0}),
        (PlattScaling, {"intercept": np.nan}),
        (PlattScaling, {"ends": "round"}),
        (PlattScaling, {"weigh": "classes"}),
        (PlattScaling, {"band_px": 0.5}),
    ):
        with pytest.raises(ParameterError, match=next(iter(options))):
            scaling(**options)
    with pytest.raises(ProbabilityRangeError, match=r"p: .* got 1\.5 at index \(0, 1\)"):
        TemperatureScaling(2.0).apply(np.array([[0.5, 1.5]]))


def test_saved_scalings_are_read_with_and_without_a_format(tmp_path):
    scaling, path = PlattScaling(1.5, -0.25, used_ids=frozenset(["a"])), tmp_path / "scaling.json"
    scaling.save(path)
    assert Scaling.load(path) == scaling
    path.write_text(json.dumps(scaling.to_dict()))
    assert Scaling.load(path) == scaling
    path.write_text(json.dumps({"format": "segtrust-scaling-9", **scaling.to_dict()}))
    with pytest.raises(SavedStateError, match=r"scaling\.json: expected format 'segtrust-scaling-1', got"):
        Scaling.load(path)
