"""Torch tensors: every public function returns the type, device and gradient that it was given."""

from importlib.util import find_spec

import numpy as np
import pytest

import segtrust as st
from segtrust import MulticlassTemperatureScaling, PlattScaling, TemperatureScaling
from segtrust.confidence import ConfidenceEstimator, Needs
from segtrust.risks import overlap
from tests.references import logit_normal

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch
    from torch.autograd import forward_ad
    from torch.utils._python_dispatch import TorchDispatchMode

    torch.set_num_threads(1)  # several threads a test, and several tests, would wait for each other

    class Operations(TorchDispatchMode):
        """The operations of torch while it is active, by name."""

        def __init__(self):
            super().__init__()
            self.names = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))


MAPS = [logit_normal((30, 40), seed=seed) for seed in range(3)]
SOFTMAX = np.exp(np.random.default_rng(0).normal(0.0, 2.0, (2, 4, 30, 40)))
SOFTMAX /= SOFTMAX.sum(1, keepdims=True)
MASK, TRUTH, WHERE = MAPS[0] > 0.3, MAPS[1] > 0.4, MAPS[2] < 0.9
LABELS = np.random.default_rng(1).integers(0, 4, (30, 40))
NAMES = ["background", "liver", "tumour", "cyst"]

MAP_FUNCTIONS = {
    "fuse": lambda *maps: st.fuse(maps),
    "fuse, weights": lambda *maps: st.fuse(maps, weights=[1, 2, 3]),
    "fuse, logits": lambda *maps: st.fuse(maps, "mean-logit"),
    "temperature": lambda p, *_: TemperatureScaling(2.0).apply(p),
    "platt": lambda p, *_: PlattScaling(slope=0.5, intercept=-1.0, ends="clip").apply(p),
    "soft_dice_loss": lambda p, *_: st.soft_dice_loss(p, TRUTH),
    "soft_dice_loss, where": lambda p, *_: st.soft_dice_loss(p, TRUTH, where=WHERE),
}
RISKS = {
    "dice": st.dice,
    "iou": st.iou,
    "f_beta": lambda truth, mask, **options: st.f_beta(truth, mask, beta=2.0, **options),
    "hamming_loss": st.hamming_loss,
    "hamming risk": lambda truth, mask, where=None: st.RISKS["hamming_risk"].of(truth, mask, where=where),
    "true positives": lambda *masks, where=None: overlap(*masks, where).true_positives,
    "false positives": lambda *masks, where=None: overlap(*masks, where).false_positives,
    "false negatives": lambda *masks, where=None: overlap(*masks, where).false_negatives,
}


class Plain(ConfidenceEstimator):
    """A plug-in that reads the pixels on the host and returns a plain number."""

    name = "plain"
    label = "Plain"

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        return float(summary.pixels.whole.p.mean())


NUMBERS = {
    **{
        name: getattr(st, name)
        for name in (
            *("average_class_probability", "average_max_probability", "average_negative_entropy"),
            *("expected_iou", "ideal_dice_confidence", "median_min_max_confidence", "patch_level_confidence"),
            "soft_dice_confidence",
        )
    },
    "expected_f_beta": lambda p, **options: st.expected_f_beta(p, beta=2.0, **options),
    "expected_tversky": lambda p, **options: st.expected_tversky(p, alpha=0.3, beta=0.6, **options),
    "full_posterior_dice": lambda p: st.full_posterior_dice(p, MASK),
    "pairwise_dice": lambda p: st.pairwise_dice([p, MAPS[1]]),
    "soft_dice_loss": lambda p, **options: st.soft_dice_loss(p, TRUTH, **options),
    "soft_dice_loss without truth": lambda p, **options: st.soft_dice_loss(
        p, np.zeros_like(TRUTH), **options
    ),
    "threshold_level": lambda p, **options: st.threshold_level_confidence(p, tau=0.4, **options),
    "estimator": st.SoftDice(),
    "prediction": lambda p: st.SoftDice().score(st.Prediction(p)),
    "plug-in": Plain(),
    "plug-in, prediction": lambda p: Plain().score(st.Prediction(p)),
    "plug-in, score": lambda p, **options: st.score(p, estimators=Plain(), **options)["plain"],
    "plug-in, assess": lambda p, **options: st.assess(p, estimators=Plain(), **options).scores["plain"],
    "score": lambda p, **options: st.score(p, **options)["sdc"],
    "assess": lambda p, **options: st.assess(p, **options).scores["sdc"],
    "classes": lambda p: st.score_classes(p[None], ["a"], independent=True).classes["a"]["sdc"],
    "plug-in, classes": lambda p: st.score_classes(p[None], ["a"], estimators=Plain(), independent=True).case[
        "plain"
    ],
}
WITHOUT_WHERE = ("full_posterior_dice", "pairwise_dice", "prediction", "plug-in, prediction")
CALLS = [
    *((name, {}) for name in NUMBERS),
    *((name, {"where": WHERE}) for name in NUMBERS if name not in WITHOUT_WHERE and "classes" not in name),
]


@pytest.mark.parametrize(("name", "options"), CALLS)
def test_a_number_has_the_type_of_the_map(name, options):
    """A float for NumPy; a scalar tensor for a tensor, with or without gradient, or under no_grad."""
    function, p = NUMBERS[name], torch.from_numpy(MAPS[0])
    expected = function(MAPS[0], **options)
    assert type(expected) is float
    followed = p.clone().requires_grad_()
    with torch.no_grad():
        unfollowed = function(followed, **options)
    for found in (function(p, **options), function(followed, **options), unfollowed):
        assert type(found) is torch.Tensor
        assert (found.shape, found.dtype) == ((), torch.float64)
        assert found.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("estimator", ["sdc", "pla", Plain()])
def test_a_batch_has_the_type_of_the_maps(estimator):
    p = np.stack(MAPS)
    for where in (None, np.stack([WHERE] * 3)):
        (expected,) = st.score_batch(p, estimators=estimator, where=where).values()
        assert type(expected) is np.ndarray
        for tensor in (torch.from_numpy(p), torch.from_numpy(p).requires_grad_()):
            (found,) = st.score_batch(tensor, estimators=estimator, where=where).values()
            assert type(found) is torch.Tensor
            assert found.dtype == torch.float64
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("followed", [False, True])
def test_tables_and_representations_show_numbers(followed):
    p, softmax = (torch.from_numpy(values).requires_grad_(followed) for values in (MAPS[0], SOFTMAX))
    assessment, classes = st.assess(p), st.score_classes(softmax[0], NAMES)
    batch = st.score_classes(softmax, NAMES, batch=True)
    for result in (assessment, classes, batch):
        assert "tensor" not in repr(result) + result._repr_html_()
        assert result.to_dataframe()["sdc"].dtype == np.float64
    assert repr(assessment) == repr(st.assess(MAPS[0]))


def stored_as(p, kind):
    """Return a map in a type of NumPy."""
    levels = {"uint8": 255, "uint16": 65535}.get(kind)
    return np.round(p * levels).astype(kind) if levels else p.astype(kind)


def assert_is_tensor_of(found, expected):
    """Check type, numbers and the type of the numbers; plain numbers become doubles."""
    assert type(found) is torch.Tensor
    assert found.device.type == "cpu"
    assert not found.requires_grad
    assert found.dtype == getattr(torch, str(getattr(expected, "dtype", "float64")))
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8", "uint16"])
@pytest.mark.parametrize("name", MAP_FUNCTIONS)
def test_maps_give_exactly_the_numbers_of_numpy(name, kind):
    maps = [stored_as(p, kind) for p in MAPS]
    assert_is_tensor_of(MAP_FUNCTIONS[name](*map(torch.from_numpy, maps)), MAP_FUNCTIONS[name](*maps))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8", "uint16"])
def test_a_softmax_gives_exactly_the_numbers_of_numpy(kind):
    p = stored_as(SOFTMAX, kind)
    scaling, tensor = MulticlassTemperatureScaling(2.0, ends="clip"), torch.from_numpy(p)
    assert_is_tensor_of(scaling.apply(tensor, class_axis=1), scaling.apply(p, class_axis=1))
    fused = st.fuse(list(p), "mean-logit", class_axis=0)
    assert_is_tensor_of(st.fuse(list(tensor), "mean-logit", class_axis=0), fused)


@pytest.mark.parametrize("name", ["fuse", "fuse, logits", "temperature", "platt"])
@pytest.mark.parametrize("change", [lambda p: p.T, lambda p: p[:, ::3], lambda p: p[2, 5]])
def test_layout_does_not_matter(name, change):
    maps = [np.asarray(change(p)) for p in MAPS]
    tensors = [change(torch.from_numpy(p)) for p in MAPS]
    assert_is_tensor_of(MAP_FUNCTIONS[name](*tensors), MAP_FUNCTIONS[name](*maps))


@pytest.mark.parametrize("kind", ["bool", "uint8", "int64", "float32"])
@pytest.mark.parametrize("where", [None, WHERE])
@pytest.mark.parametrize("name", RISKS)
def test_risks_give_exactly_the_numbers_of_numpy(name, where, kind):
    truth, mask = TRUTH.astype(kind), MASK.astype(kind)
    tensors = torch.from_numpy(truth), torch.from_numpy(mask)
    selected = None if where is None else torch.from_numpy(where)
    expected = float(RISKS[name](truth, mask, where=where))
    assert_is_tensor_of(RISKS[name](*tensors, where=selected), expected)
    assert_is_tensor_of(RISKS[name](truth, tensors[1], where=where), expected)
    assert isinstance(RISKS[name](tensors[0], mask, where=where), float | int)  # the mask decides


@pytest.mark.parametrize("empty", ["paper", "agree"])
def test_risks_of_empty_masks(empty):
    nothing = torch.zeros(3, 4)
    for risk in (st.dice, st.iou):
        assert_is_tensor_of(risk(nothing, nothing, empty=empty), float(empty == "agree"))
    assert_is_tensor_of(st.soft_dice_loss(nothing, nothing), 1.0)


@pytest.mark.parametrize("mask", [None, LABELS, LABELS.astype(np.uint8), LABELS.astype(np.float32)])
@pytest.mark.parametrize("where", [None, WHERE])
def test_classes_give_exactly_the_numbers_of_numpy(mask, where):
    def scored(convert, batch):
        labels, selected = (
            None if values is None else convert(np.stack([values] * 2) if batch else values)
            for values in (mask, where)
        )
        p = convert(SOFTMAX if batch else SOFTMAX[0])
        return st.score_classes(p, NAMES, labels, ["sdc", "idc", "pla"], where=selected, batch=batch)

    for batch in (False, True):
        found, expected = scored(torch.from_numpy, batch), scored(np.asarray, batch)
        for ours, theirs in zip(*((found, expected) if batch else ([found], [expected])), strict=True):
            assert ours.predicted == theirs.predicted
            for name in theirs.predicted:
                for label, value in theirs.classes[name].items():
                    assert_is_tensor_of(ours.classes[name][label], value)
            for label, value in theirs.case.items():
                assert_is_tensor_of(ours.case[label], value)


def test_an_absent_class_has_no_confidence():
    p = torch.from_numpy(np.array([[0.9, 0.8], [0.1, 0.2]]))
    assert st.score_classes(p, ["background", "liver"]).classes == {"liver": None}


def test_nothing_is_summed_by_torch():
    maps = [torch.from_numpy(p) for p in MAPS]
    mask, truth = torch.from_numpy(MASK), torch.from_numpy(TRUTH)
    with Operations() as operations:
        for function in MAP_FUNCTIONS.values():
            function(*maps)
        for risk in RISKS.values():
            risk(truth, mask)
        st.score_classes(torch.from_numpy(SOFTMAX[0]), NAMES)
        MulticlassTemperatureScaling(2.0).apply(torch.from_numpy(SOFTMAX[0]))
    assert operations.names <= {"add", "detach", "div", "lift_fresh"}  # the mean over the classes


# Gradients, and other devices


@pytest.mark.parametrize("name", MAP_FUNCTIONS)
@pytest.mark.parametrize("number", [0, 2])
def test_a_gradient_is_kept(name, number):
    tensors = [torch.from_numpy(p) for p in MAPS]
    if not name.startswith("fuse"):
        number = 0
    tensors[number] = tensors[number].clone().requires_grad_()
    found = MAP_FUNCTIONS[name](*tensors)
    assert found.requires_grad
    np.testing.assert_allclose(found.detach().numpy(), MAP_FUNCTIONS[name](*MAPS), rtol=1e-12)
    found.sum().backward()
    assert bool(tensors[number].grad.any())
    with torch.no_grad():
        assert_is_tensor_of(MAP_FUNCTIONS[name](*tensors), MAP_FUNCTIONS[name](*MAPS))


def test_the_first_member_decides_the_library():
    tensors = [torch.from_numpy(p) for p in MAPS]
    assert_is_tensor_of(st.fuse([tensors[0], *MAPS[1:]]), st.fuse(MAPS))
    assert isinstance(st.fuse([MAPS[0], *tensors[1:]]), np.ndarray)
    mixed = st.fuse([tensors[0].float(), tensors[1].bfloat16()])  # NumPy has no bfloat16
    assert mixed.dtype == torch.float32
    np.testing.assert_allclose(mixed.numpy(), st.fuse(MAPS[:2]), atol=2e-3)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "bool"])
def test_pairwise_dice_is_a_scalar_of_the_library(kind):
    tensors = [torch.from_numpy(p > 0.5 if kind == "bool" else p).to(getattr(torch, kind)) for p in MAPS]
    expected = st.pairwise_dice([p.double().numpy() for p in tensors])
    assert type(expected) is float
    assert_is_tensor_of(st.pairwise_dice(tensors), expected)
    assert_is_tensor_of(st.pairwise_dice(p for p in [tensors[0], *tensors[1:]]), expected)
    floats = [p.double().requires_grad_() for p in tensors]
    assert_is_tensor_of(st.pairwise_dice(floats), expected)
    assert type(st.pairwise_dice([tensors[0].double().numpy(), *tensors[1:]])) is float


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_the_dice_optimal_mask_lies_beside_the_map(kind):
    p = torch.from_numpy(MAPS[0]).to(getattr(torch, kind))
    best = st.dice_optimal_mask(p)
    assert best.mask.dtype == torch.bool
    assert best.mask.device == p.device
    assert bool((best.mask == (p >= torch.tensor(best.threshold, dtype=p.dtype))).all())


# What torch follows: derivatives forwards, transformations, graphs


@pytest.fixture
def direction():
    return torch.from_numpy(np.random.default_rng(2).normal(size=MAPS[0].shape))


@pytest.fixture
def slope(direction):
    """Derivative of the SDC of the first map in that direction, by the backward mode."""
    p = torch.from_numpy(MAPS[0]).clone().requires_grad_()
    st.soft_dice_confidence(p).backward()
    return (p.grad * direction).sum().item()


@pytest.mark.parametrize("with_gradients", [True, False])
@pytest.mark.parametrize("requires_gradient", [True, False])
def test_a_tangent_is_kept(direction, slope, with_gradients, requires_gradient):
    p = torch.from_numpy(MAPS[0]).clone().requires_grad_(requires_gradient)
    with forward_ad.dual_level(), torch.set_grad_enabled(with_gradients):
        dual = forward_ad.make_dual(p, direction)
        tangent = forward_ad.unpack_dual(st.soft_dice_confidence(dual)).tangent
        assert tangent.item() == pytest.approx(slope, rel=1e-12)
        fused = forward_ad.unpack_dual(st.fuse([torch.from_numpy(MAPS[1]), dual])).tangent
        assert torch.allclose(fused, direction / 2)
        assert_is_tensor_of(st.soft_dice_confidence(p.detach()), st.soft_dice_confidence(MAPS[0]))


def test_transformations_of_functions(direction, slope):
    p = torch.from_numpy(MAPS[0])
    value, tangent = torch.func.jvp(st.soft_dice_confidence, (p,), (direction,))
    assert value.item() == pytest.approx(st.soft_dice_confidence(MAPS[0]), rel=1e-12)
    assert tangent.item() == pytest.approx(slope, rel=1e-12)
    for differentiate in (torch.func.grad, torch.func.jacrev, torch.func.jacfwd):
        gradient = differentiate(st.soft_dice_confidence)(p[:4, :5])
        assert gradient.shape == (4, 5)
    assert (torch.func.grad(st.soft_dice_confidence)(p) * direction).sum().item() == pytest.approx(slope)


def test_a_functionalised_tensor_has_no_memory_of_its_own():
    p = torch.from_numpy(MAPS[0])
    found = torch.func.functionalize(st.soft_dice_confidence)(p)
    assert found.item() == pytest.approx(st.soft_dice_confidence(MAPS[0]), rel=1e-12)


def test_vmap_says_what_it_cannot_do():
    with pytest.raises(RuntimeError, match="vmap"):
        torch.func.vmap(st.soft_dice_confidence)(torch.rand(3, 4, 5))


@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python", "ignore:`torch.jit:DeprecationWarning")
def test_a_traced_function_is_no_constant():
    p = torch.from_numpy(MAPS[0])
    traced = torch.jit.trace(lambda q: TemperatureScaling(2.0).apply(q), (p,))
    other = torch.from_numpy(MAPS[1])
    assert torch.allclose(traced(other), TemperatureScaling(2.0).apply(other), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call")  # to a function with a cache
def test_a_compiled_function_gives_the_same_numbers():
    compiled = torch.compile(lambda p: 2.0 * st.soft_dice_confidence(p), backend="eager")
    for p in MAPS[:2]:
        found = compiled(torch.from_numpy(p))
        assert found.item() == pytest.approx(2.0 * st.soft_dice_confidence(p), rel=1e-12)
