"""Scaling: the likeliest curve to 1e-6, known curves found again, and what it does to a map."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, logit, logsumexp, softmax

import segtrust as st
from segtrust.calibration import (
    MulticlassTemperatureScaling,
    PlattScaling,
    Scaling,
    TemperatureScaling,
)
from segtrust.calibration.reliability import near_boundary
from segtrust.errors import (
    CaseValueError,
    MaskError,
    MaskShapeError,
    NotFittedError,
    NotNormalisedError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
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
    for cases, said in (([], "got no cases"), ([ends], "no pixel to learn from")):
        with pytest.raises(TooFewCasesError, match=said):
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


# The temperature of a softmax


def softmax_cases(temperature=2.0, *, kind="float64", n=6, classes=4, side=20, seed=0):
    """Softmaxes sharpened by a temperature, with labels drawn from the original ones."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        logits = rng.normal(0, 1.5, (classes, side, side + i))
        q = softmax(logits, axis=0)
        labels = (q.cumsum(0) < rng.random((1, *q.shape[1:]))).sum(0).clip(max=classes - 1)
        yield as_type(softmax(logits * temperature, axis=0), kind), labels, f"case {i}"


def plain_nll(cases, beta, *, ends="keep", weigh="pixels"):
    """Minus the mean logarithm of the calibrated probability of the true class, by the formula."""
    total = weights = 0.0
    for p, labels, _ in cases:
        q = floats(p).reshape(p.shape[0], -1)
        if ends == "clip":
            q = np.clip(q, EPSILON[p.dtype.name], 1 - EPSILON[p.dtype.name])
        truth = labels.ravel()
        learned = np.take_along_axis(q, truth[None], 0)[0] > 0
        learned &= (q > 0).sum(0) > 1
        q, truth = q[:, learned], truth[learned]
        with np.errstate(divide="ignore"):
            x = beta * np.log(q)
        losses = logsumexp(x, axis=0) - np.take_along_axis(x, truth[None], 0)[0]
        total += losses.mean() if weigh == "cases" else losses.sum()
        weights += 1 if weigh == "cases" else losses.size
    return total / weights


@pytest.mark.parametrize("weigh", ["pixels", "cases"])
@pytest.mark.parametrize("ends", ["keep", "clip"])
@pytest.mark.parametrize("kind", ["float16", "float32", "uint8", "uint16"])
def test_temperature_of_a_softmax_minimises_the_nll(kind, ends, weigh):
    cases = list(softmax_cases(kind=kind))
    fitted = MulticlassTemperatureScaling(ends=ends, weigh=weigh).fit(iter(cases))
    found = minimize_scalar(
        lambda beta: plain_nll(cases, beta, ends=ends, weigh=weigh),
        bracket=(0.1, 1.0, 5.0),
        options={"xtol": 1e-10},
    )
    assert 1 / fitted.temperature == pytest.approx(found.x, rel=1e-6)
    assert (fitted.n_cases, fitted.used_ids) == (6, {f"case {i}" for i in range(6)})


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_a_known_temperature_of_a_softmax_is_found(temperature):
    cases = softmax_cases(temperature, n=20)
    assert MulticlassTemperatureScaling().fit(cases).temperature == pytest.approx(temperature, rel=0.03)


def test_the_temperature_is_that_of_the_derivative_to_nine_digits():
    cases = list(softmax_cases(1.7, n=3))

    def slope(beta):
        total = 0.0
        for p, labels, _ in cases:
            x = np.log(p)
            weights = softmax(beta * x, axis=0)
            total += (weights * x).sum() - np.take_along_axis(x, labels[None], 0).sum()
        return total

    found = MulticlassTemperatureScaling().fit(cases).temperature
    assert 1 / found == pytest.approx(brentq(slope, 0.1, 5.0, xtol=1e-13), rel=1e-9)


@pytest.mark.parametrize("ends", ["keep", "clip"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_two_classes_are_one_structure(kind, ends):
    cases = [
        (
            np.stack([1 - case.prediction.probabilities, case.prediction.probabilities]).astype(kind),
            case.truth,
        )
        for case in simulated("float64")
    ]
    one = [Case(Prediction(p[1]), truth) for p, truth in cases]
    fitted = MulticlassTemperatureScaling(ends=ends).fit(cases)
    binary = TemperatureScaling(ends=ends).fit(one)
    assert fitted.temperature == pytest.approx(binary.temperature, rel=1e-6)
    p = cases[0][0]
    np.testing.assert_allclose(fitted.apply(p)[1], binary.apply(p[1]), atol=1e-6)
    band = MulticlassTemperatureScaling(ends=ends, band_px=2.0).fit(cases).temperature
    assert band == pytest.approx(TemperatureScaling(ends=ends, band_px=2.0).fit(one).temperature, rel=1e-6)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8", "uint16"])
@pytest.mark.parametrize("ends", ["keep", "clip"])
def test_a_calibrated_softmax_is_normalised(kind, ends):
    p, _, _ = next(softmax_cases(4.0, kind=kind))
    p[:, 0, 0] = as_type(np.array([1.0, 0.0, 0.0, 0.0]), kind)
    scaling = MulticlassTemperatureScaling(2.5, ends=ends)
    scaled = scaling.apply(p)
    assert scaled.dtype == (np.float64 if kind == "float64" else np.float32)
    np.testing.assert_allclose(scaled.sum(0), 1.0, rtol=1e-6)
    assert (scaled.argmax(0) == p.argmax(0)).all()
    q = floats(p)
    if ends == "keep":
        assert scaled[:, 0, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
        expected = q**0.4 / (q**0.4).sum(0)
        np.testing.assert_allclose(scaled, expected, rtol=1e-6 if kind != "float64" else 1e-13)
    else:
        assert scaled.min() > 0.0
    moved = scaling.apply(np.moveaxis(p, 0, -1), class_axis=-1)
    np.testing.assert_array_equal(np.moveaxis(moved, -1, 0), scaled)


def test_a_temperature_of_one_keeps_a_softmax():
    p, _, _ = next(softmax_cases())
    np.testing.assert_allclose(MulticlassTemperatureScaling(1.0).apply(p), p, rtol=1e-13)


def test_a_softmax_scaling_survives_json_and_files(tmp_path):
    fitted = MulticlassTemperatureScaling(weigh="cases").fit(softmax_cases(n=3))
    fitted.save(tmp_path / "scaling.json")
    assert MulticlassTemperatureScaling.load(tmp_path / "scaling.json") == fitted
    assert st.load(tmp_path / "scaling.json") == fitted
    assert MulticlassTemperatureScaling.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted
    with pytest.raises(SavedStateError, match="expected format 'segtrust-scaling-1', got"):
        Scaling.load(tmp_path / "scaling.json")
    with pytest.raises(SavedStateError, match="expected one of temperature, platt, got 'multiclass-temp"):
        Scaling.from_dict(fitted.to_dict())
    with pytest.raises(SavedStateError, match="expected one of multiclass-temperature, got 'platt'"):
        MulticlassTemperatureScaling.from_dict(PlattScaling(1.0, 0.0).to_dict())


def test_what_is_no_softmax():
    p, labels, _ = next(softmax_cases())
    fit = MulticlassTemperatureScaling().fit
    with pytest.raises(NotFittedError):
        MulticlassTemperatureScaling().apply(p)
    with pytest.raises(NotNormalisedError, match=r"cases\[0\]: expected a softmax over axis 0"):
        fit([(p * 0.5, labels)])
    with pytest.raises(MaskShapeError, match=r"cases\[0\]: labels: expected the shape of one class"):
        fit([(p, labels[1:])])
    with pytest.raises(MaskError, match=r"cases\[0\]: labels: expected whole numbers .* from 0 to 3"):
        fit([(p, labels + 1)])
    with pytest.raises(ParameterError, match=r"cases\[0\]: expected a tuple \(p, labels\)"):
        fit([p])
    with pytest.raises(TooFewCasesError, match="got no cases"):
        fit([])
    with pytest.raises(ParameterError, match=r"class_axis: .* got True"):
        MulticlassTemperatureScaling(2.0).apply(p, class_axis=True)
    with pytest.raises(TooFewCasesError, match="no pixel to learn from"):
        fit([(np.eye(3), np.arange(3))])
    with pytest.raises(CaseValueError, match="no finite maximum"):
        fit([(p, p.argmax(0))])
    with pytest.raises(CaseValueError, match="the true class is rarer"):
        fit([(p, p.argmin(0))])
    with pytest.raises(ParameterError, match="class_axis: expected an axis of p"):
        MulticlassTemperatureScaling(2.0).apply(p, class_axis=3)
    with pytest.raises(ParameterError, match="temperature: expected a number above 0"):
        MulticlassTemperatureScaling(0.0)
    bad = p.copy()
    bad[:, 3, 7] = [1.2, -0.4, 0.1, 0.1]
    with pytest.raises(ProbabilityRangeError, match=r"got 1\.2 at index \(0, 3, 7\)"):
        fit([(bad, labels)])


# Maps of other libraries


@pytest.mark.needs("torch")
class TestTorch:
    SCALINGS = (
        TemperatureScaling(2.5),
        TemperatureScaling(2.5, ends="clip"),
        PlattScaling(0.5, -1.0),
        PlattScaling(1.5, 0.5, ends="clip"),
    )

    @pytest.mark.parametrize("scaling", SCALINGS)
    @pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8"])
    def test_a_tensor_stays_a_tensor(self, scaling, kind):
        import torch

        p = as_type(np.concatenate([[0.0, 1.0, 0.5, 1e-30], np.random.default_rng(0).random(996)]), kind)
        scaled = scaling.apply(torch.from_numpy(p))
        assert isinstance(scaled, torch.Tensor)
        expected = scaling.apply(p)
        assert scaled.dtype == getattr(torch, expected.dtype.name)
        np.testing.assert_allclose(scaled.numpy(), expected, rtol=1e-6 if kind != "float64" else 1e-12)

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_derivatives(self, scaling):
        import torch

        p = torch.rand(3, 4, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(scaling.apply, p)
        ends = torch.tensor([0.0, 1.0, 0.3], requires_grad=True)
        scaling.apply(ends).sum().backward()
        assert torch.isfinite(ends.grad).all()

    def test_predictions_keep_their_mask_on_the_device(self):
        import torch

        p = torch.tensor([0.2, 0.6, 0.9])
        after = PlattScaling(slope=1.0, intercept=-2.0).calibrate(Prediction(p))
        assert isinstance(after.mask, torch.Tensor)
        assert after.mask.tolist() == [False, True, True]
        levels = torch.tensor([127, 128], dtype=torch.uint8)
        assert TemperatureScaling(2.0).calibrate(Prediction(levels)).mask.tolist() == [False, True]
        with pytest.raises(ProbabilityRangeError, match=r"p: .* got 1\.5 at index"):
            TemperatureScaling(2.0).apply(torch.tensor([1.5]))
        with pytest.raises(ProbabilityTypeError, match="got bool"):
            TemperatureScaling(2.0).apply(p > 0.5)

    @pytest.mark.parametrize("ends", ["keep", "clip"])
    @pytest.mark.parametrize("kind", ["float32", "float64", "uint8"])
    def test_a_softmax(self, kind, ends):
        import torch

        p, _, _ = next(softmax_cases(4.0, kind=kind))
        p[:, 0, 0] = as_type(np.array([1.0, 0.0, 0.0, 0.0]), kind)
        scaling = MulticlassTemperatureScaling(2.5, ends=ends)
        scaled = scaling.apply(torch.from_numpy(p))
        np.testing.assert_allclose(
            scaled.numpy(), scaling.apply(p), rtol=1e-5 if kind != "float64" else 1e-12
        )
        values = torch.rand(2, 3, 4, dtype=torch.float64).softmax(1).requires_grad_()
        assert torch.autograd.gradcheck(
            lambda q: scaling.apply(q / q.sum(1, keepdim=True), class_axis=1), values
        )
        certain = torch.eye(3, requires_grad=True)
        scaling.apply(certain).square().sum().backward()
        assert torch.isfinite(certain.grad).all()

    def test_fit_takes_tensors(self):
        import torch

        cases = list(softmax_cases(n=3))
        tensors = [(torch.from_numpy(p), torch.from_numpy(labels), name) for p, labels, name in cases]
        assert MulticlassTemperatureScaling().fit(tensors) == MulticlassTemperatureScaling().fit(cases)


@pytest.mark.needs("jax")
def test_jax_arrays_stay_jax_arrays():
    import jax.numpy as jnp

    p = np.random.default_rng(0).random((5, 6)).astype(np.float32)
    for scaling in TestTorch.SCALINGS:
        scaled = scaling.apply(jnp.asarray(p))
        assert type(scaled) is type(jnp.asarray(p))
        np.testing.assert_allclose(np.asarray(scaled), scaling.apply(p), rtol=1e-4)
