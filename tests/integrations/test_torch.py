"""The torch module: what the public functions give, a batch at a time."""

import math
import subprocess
import sys
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

import segtrust
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    NotNormalisedError,
    ParameterError,
    ProbabilityError,
    ProbabilityRangeError,
    ProbabilityTypeError,
    SegtrustWarning,
)
from tests.integrations.batches import class_logits
from tests.references import logit_normal

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.integrations.torch import MeanConfidence, SoftDiceConfidence, SoftDiceConfidenceMetric

    torch.set_num_threads(1)  # several threads a test, and several tests, would wait for each other

TOLERANCE = 1e-12
NAMES = ["background", "liver", "tumour", "cyst"]


def one_by_one(p, **options):
    return [segtrust.soft_dice_confidence(each, **options) for each in p.numpy()]


def of_classes(p, mask=None, *, independent):
    """What `segtrust.score_classes` gives, NaN for None, all classes."""
    names = ["a", "b", "c", "d"]
    rows = []
    for i, each in enumerate(p.numpy()):
        given = None if mask is None else mask[i].numpy()
        found = segtrust.score_classes(each, names, given, ["sdc"], independent=independent).classes
        rows.append([found[name]["sdc"] if found[name] else np.nan for name in names])
    return np.array(rows)


@pytest.fixture
def kind(request):
    """A type of torch, by its name."""
    return getattr(torch, request.param)


@pytest.mark.parametrize("shape", [(4, 30), (4, 20, 30), (4, 1, 20, 30), (4, 6, 7, 8)])
def test_one_confidence_an_image(shape):
    logits = torch.from_numpy(np.random.default_rng(0).normal(-1, 3, shape))
    confidence = SoftDiceConfidence(from_logits=True, task="binary")(logits)
    assert confidence.shape == (4,)
    assert confidence.dtype == torch.float64
    np.testing.assert_allclose(confidence, one_by_one(logits.sigmoid()), rtol=TOLERANCE)


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "uint8"], indirect=True)
def test_types_and_thresholds(kind, threshold):
    p = torch.from_numpy(logit_normal((3, 20, 30), mean=-1.0))
    p[:, :2] = threshold
    stored = (p * 255).round().to(kind) if kind is torch.uint8 else p.to(kind)
    found = SoftDiceConfidence(from_logits=False, task="binary", threshold=threshold)(stored)
    expected = [segtrust.soft_dice_confidence(each, threshold=threshold).item() for each in stored]
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)


@pytest.mark.parametrize("empty", ["paper", "agree"])
def test_empty_masks_follow_the_policy(empty):
    p = torch.from_numpy(logit_normal((4, 20, 30)))
    p[1:3] *= torch.tensor([0.2, 0.0])[:, None, None]
    module = SoftDiceConfidence(from_logits=False, task="binary", empty=empty)
    np.testing.assert_allclose(module(p), one_by_one(p, empty=empty), rtol=TOLERANCE)


def test_classes_of_a_softmax():
    logits = class_logits()
    found = SoftDiceConfidence(from_logits=True, task="multiclass")(logits)
    assert found.shape == (3, 4)
    np.testing.assert_allclose(found, of_classes(logits.softmax(1), independent=False), rtol=TOLERANCE)
    assert torch.isnan(found[:, 3]).all()
    assert not torch.isnan(found[:, :3]).any()


def test_independent_classes():
    logits = class_logits()
    found = SoftDiceConfidence(from_logits=True, task="multilabel")(logits)
    np.testing.assert_allclose(found, of_classes(logits.sigmoid(), independent=True), rtol=TOLERANCE)
    assert torch.isnan(found[:, 3]).all()


def test_probabilities_give_what_their_logits_give():
    logits = class_logits()
    for task, p in [("multiclass", logits.softmax(1)), ("multilabel", logits.sigmoid())]:
        found = SoftDiceConfidence(from_logits=False, task=task)(p)
        torch.testing.assert_close(
            found, SoftDiceConfidence(from_logits=True, task=task)(logits), equal_nan=True
        )


@pytest.mark.parametrize("kind", ["bool", "int64", "float32"], indirect=True)
def test_a_given_mask_wins(kind):
    p = torch.from_numpy(logit_normal((4, 1, 20, 30)))
    mask = torch.from_numpy(np.random.default_rng(1).random(p.shape) < 0.3)
    mask[2] = False
    module = SoftDiceConfidence(from_logits=False, task="binary")
    expected = [segtrust.soft_dice_confidence(*pair) for pair in zip(p.numpy(), mask.numpy(), strict=True)]
    np.testing.assert_allclose(module(p, mask.to(kind)), expected, rtol=TOLERANCE)
    np.testing.assert_allclose(module(p, mask[:, 0].to(kind)), expected, rtol=TOLERANCE)


def test_given_masks_of_classes_win():
    p = class_logits().softmax(1)
    labels = torch.randint(0, 2, (3, 12, 13))
    found = SoftDiceConfidence(from_logits=False, task="multiclass")(p, labels)
    np.testing.assert_allclose(found, of_classes(p, labels, independent=False), rtol=TOLERANCE)
    assert (found[:, 2] == 0.0).all()  # probable somewhere, but not in the mask
    masks = torch.rand(p.shape) < 0.3
    found = SoftDiceConfidence(from_logits=False, task="multilabel")(p, masks)
    np.testing.assert_allclose(found, of_classes(p, masks, independent=True), rtol=TOLERANCE)


def test_half_precision_logits_are_widened():
    logits = torch.randn(2, 40, 50, dtype=torch.float16)
    module = SoftDiceConfidence(from_logits=True, task="binary")
    assert torch.equal(module(logits), module(logits.float()))


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_derivatives_are_right(task):
    logits = class_logits(images=2)[:, :, :3, :2].clone().requires_grad_()
    module = SoftDiceConfidence(from_logits=True, task=task, empty="agree")
    assert torch.autograd.gradcheck(lambda values: module(values).nan_to_num(0.0), logits)


@pytest.mark.parametrize("empty", ["paper", "agree"])
@pytest.mark.parametrize("values", [[0.0] * 4, [1.0] * 4, [0.0, 1.0, 0.3, 0.8], [0.1, 0.2, 0.0, 0.3]])
def test_derivatives_at_the_ends_are_numbers(values, empty):
    p = torch.tensor([values], dtype=torch.float64, requires_grad=True)
    SoftDiceConfidence(from_logits=False, task="binary", empty=empty)(p).sum().backward()
    assert torch.isfinite(p.grad).all()


def test_derivatives_of_absent_classes_are_numbers():
    logits = class_logits().requires_grad_()
    SoftDiceConfidence(from_logits=True, task="multiclass")(logits).nanmean().backward()
    assert torch.isfinite(logits.grad).all()


def test_a_module_without_parameters_shows_its_settings():
    module = SoftDiceConfidence(from_logits=True, task="binary", threshold=0.3)
    assert not list(module.parameters())
    assert not module.state_dict()
    assert repr(module) == "SoftDiceConfidence(from_logits=True, task='binary', threshold=0.3)"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_can_be_exported(task):
    module, logits = SoftDiceConfidence(from_logits=True, task=task), class_logits()
    exported = torch.export.export(module, (logits,)).module()
    other = class_logits(seed=1)
    torch.testing.assert_close(exported(other), module(other), equal_nan=True)


@pytest.mark.parametrize(
    ("error", "message", "task", "values"),
    [
        (ProbabilityRangeError, r"got -2 at index \(0, 0\).*look like logits", "binary", [[-2.0, 3.0]]),
        (ProbabilityRangeError, r"nan at index \(0, 1\).*cannot be scored", "binary", [[0.5, float("nan")]]),
        (ProbabilityTypeError, "Signed integers", "binary", [[0, 1]]),
        (NotNormalisedError, "sums run from 1.2 to 1.2", "multiclass", [[[0.6], [0.6]]]),
        (EmptyArrayError, r"a batch \(N, ...\)", "binary", [0.5]),
        (EmptyArrayError, r"classes \(N, C, ...\)", "multilabel", [[0.5, 0.5]]),
        (EmptyArrayError, "got shape", "binary", [[]]),
    ],
)
def test_what_are_no_probabilities_is_refused(error, message, task, values):
    with pytest.raises(error, match=message):
        SoftDiceConfidence(from_logits=False, task=task)(torch.tensor(values))


def test_a_network_that_gives_nan_is_refused():
    logits = torch.tensor([[0.5, float("nan")]])
    with pytest.raises(ProbabilityRangeError, match=r"probabilities of the logits.*nan at index \(0, 1\)"):
        SoftDiceConfidence(from_logits=True, task="binary")(logits)


@pytest.mark.parametrize(
    ("error", "task", "shape"),
    [
        (MaskShapeError, "binary", (2, 5, 4)),
        (MaskShapeError, "multiclass", (2, 2, 4, 5)),
        (NotBinaryError, "multiclass", (2, 3, 4, 5)),
        (MaskShapeError, "multilabel", (2, 4, 5)),
        (NotBinaryError, "multilabel", (2, 3, 4, 5)),
    ],
)
def test_what_are_no_masks_is_refused(error, task, shape):
    with pytest.raises(error, match="mask: expected"):
        SoftDiceConfidence(from_logits=True, task=task)(torch.randn(2, 3, 4, 5), torch.full(shape, 2))


@pytest.mark.parametrize(
    ("kind", "label"),
    [("int64", 7), ("uint8", 255), ("int16", -1), ("uint16", 300), ("float32", 0.5), ("float64", math.nan)],
    indirect=["kind"],
)
def test_labels_without_a_channel_are_refused(kind, label):
    labels = torch.zeros(2, 4, 5, dtype=kind)
    labels[1, 2, 3] = label
    message = rf": expected whole numbers as labels, from 0 to 2, one per channel, got {label:g}\. Renumber"
    logits = torch.randn(2, 3, 4, 5)
    with pytest.raises(MaskError, match=f"^mask{message}"):
        SoftDiceConfidence(from_logits=True, task="multiclass")(logits, labels)
    with pytest.raises(MaskError, match=f"^target{message}.* ignore index such as 255"):
        SoftDiceConfidenceMetric(from_logits=True, task="multiclass").update(logits, labels)
    with pytest.raises(MaskError, match=f"^mask{message}"):
        segtrust.score_classes(logits[1].softmax(0), ["a", "b", "c"], labels[1])


@pytest.mark.parametrize("kind", ["bool", "uint8", "uint16", "int64", "float16"], indirect=True)
def test_labels_of_any_type(kind):
    labels = torch.randint(0, 2, (2, 4, 5))
    module, logits = SoftDiceConfidence(from_logits=True, task="multiclass"), torch.randn(2, 3, 4, 5)
    found, expected = module(logits, labels.to(kind)), module(logits, labels)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)  # a class may be absent
    p, names = logits[0].softmax(0), ["a", "b", "c"]
    assert segtrust.score_classes(p, names, labels[0].to(kind)) == segtrust.score_classes(p, names, labels[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_labels_are_not_looked_at_in_an_export():
    module, logits = SoftDiceConfidence(from_logits=True, task="multiclass"), class_logits()
    labels = torch.randint(0, 3, (3, 12, 13))
    exported = torch.export.export(module, (logits, labels)).module()
    torch.testing.assert_close(exported(logits, labels), module(logits, labels), equal_nan=True)


def test_eight_bit_softmax_of_many_classes_counts_as_normalised():
    p = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(100), size=50).T[None])
    levels = (p * 255).round().to(torch.uint8)
    assert SoftDiceConfidence(from_logits=False, task="multiclass")(levels).shape == (1, 100)


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="task: expected one of binary, multiclass, multilabel"):
        SoftDiceConfidence(from_logits=True, task="softmax")
    with pytest.raises(ParameterError, match="threshold"):
        SoftDiceConfidence(from_logits=True, task="binary", threshold=2.0)
    with pytest.raises(ParameterError, match="empty"):
        SoftDiceConfidence(from_logits=True, task="binary", empty="maybe")
    with pytest.raises(ParameterError, match="threshold: expected a number"):
        SoftDiceConfidence(from_logits=True, task="binary", threshold="0.5")
    for make in (SoftDiceConfidence, SoftDiceConfidenceMetric):
        with pytest.raises(TypeError, match="'from_logits' and 'task'"):
            make()
        with pytest.raises(TypeError, match="unexpected keyword argument 'logits'"):
            make(from_logits=True, task="binary", logits=True)


def test_names_of_the_module_are_its_own():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        segtrust.integrations.torch.nothing  # noqa: B018


def test_a_missing_torch_names_the_extra():
    code = "import sys; sys.modules['torch'] = None; import segtrust.integrations.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'segtrust[torch]'" in done.stderr


NO_TENSORS = {
    r"list \[\[0.9, 0.2, 0.6\]\]": [[0.9, 0.2, 0.6]],
    r"ndarray of shape \(1, 3\)": np.array([[0.9, 0.2, 0.6]]),
    "dict {}": {},
}


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
class TestTheDoor:
    VALUES = np.full((2, 2, 3), 0.5, np.float32)

    def module(self, task, from_logits):
        return SoftDiceConfidence(from_logits=from_logits, task=task)

    @pytest.mark.parametrize("shown", ["None", *NO_TENSORS])
    def test_what_is_no_tensor(self, task, from_logits, shown):
        message = rf"expected a torch tensor, got {shown}\. Convert .*: torch\.as_tensor\(values\)"
        module = self.module(task, from_logits)
        with pytest.raises(ParameterError, match=f"^values: {message}"):
            module(NO_TENSORS.get(shown))
        if shown in NO_TENSORS:
            with pytest.raises(ParameterError, match=f"^mask: {message}"):
                module(torch.tensor(self.VALUES), NO_TENSORS[shown])

    @pytest.mark.filterwarnings("ignore:Sparse")
    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
    @pytest.mark.parametrize("kind", ["sparse", "meta", "nested"])
    def test_tensors_that_cannot_be_read(self, task, from_logits, kind):
        values = torch.tensor(self.VALUES)
        bad, message = {
            "sparse": (values.to_sparse(), r"got a sparse Tensor.*values\.to_dense\(\)"),
            "meta": (values.to("meta"), "on the device 'meta'.* Run the model"),
            "nested": (torch.nested.nested_tensor([values[0], values[0, :1]]), "got a nested tensor"),
        }[kind]
        module = self.module(task, from_logits)
        with pytest.raises(ParameterError, match=f"^values: expected .*{message}"):
            module(bad)
        with pytest.raises(ParameterError, match=f"^mask: expected .*{message}"):
            module(values, bad)

    @pytest.mark.parametrize("dtype", ["float8_e4m3fn", "complex64"])
    def test_types_that_cannot_be_read(self, task, from_logits, dtype):
        expected = "logits as float16" if from_logits else "float16"
        with pytest.raises(ProbabilityTypeError, match=f"^values: expected {expected}, .* got torch.{dtype}"):
            self.module(task, from_logits)(torch.tensor(self.VALUES).to(getattr(torch, dtype)))


def test_labels_in_eight_bit_floats():
    values, labels = torch.full((2, 2, 3), 0.5), torch.zeros(2, 3).to(torch.float8_e4m3fn)
    with pytest.raises(MaskError, match=r"mask: expected whole numbers .* got the type torch\.float8_e4m3fn"):
        SoftDiceConfidence(from_logits=False, task="multiclass")(values, labels)


def test_a_threshold_too_large_for_a_float():
    with pytest.raises(ParameterError, match=r"threshold: .* too large for a float"):
        SoftDiceConfidence(from_logits=False, task="binary", threshold=10**400)


# Two channels, labels with a channel axis, one-hot masks, and pixels that do not count


@pytest.mark.parametrize("from_logits", [True, False])
def test_a_binary_task_rejects_two_channels(from_logits):
    logits = torch.randn(3, 2, 8, 9)
    values = logits if from_logits else logits.softmax(1)
    module = SoftDiceConfidence(from_logits=from_logits, task="binary")
    with pytest.raises(ParameterError, match=r"got 2 in shape \(3, 2, 8, 9\).*task='multiclass'") as raised:
        module(values)
    foreground = {True: "values[:, 1] - values[:, 0]", False: "values[:, 1]"}[from_logits]
    assert f"pass the foreground channel {foreground}, or" in str(raised.value)
    of_classes = SoftDiceConfidence(from_logits=from_logits, task="multiclass")(values)
    torch.testing.assert_close(module(eval(foreground)), of_classes[:, 1], rtol=1e-5, atol=1e-7)
    assert module(values[:, None]).shape == (3,)  # volumes of two slices


def test_a_binary_task_rejects_a_softmax_of_many_channels_but_no_volume():
    module = SoftDiceConfidence(from_logits=False, task="binary")
    volumes = torch.rand(3, 5, 8, 9)
    assert module(volumes).shape == (3,)
    with pytest.raises(ParameterError, match="expected one channel for task='binary', got 5"):
        module(volumes.softmax(1))
    assert module(volumes.softmax(1)[:, None]).shape == (3,)
    assert module(volumes[:, 0]).shape == (3,)  # images of two rows would be fine too
    assert module(torch.rand(3, 2, 9)).shape == (3,)


def one_hot(labels, classes):
    return torch.stack([labels == number for number in range(classes)], 1)


@pytest.mark.parametrize("kind", ["bool", "uint8", "int64", "float32"], indirect=True)
def test_labels_with_a_channel_and_one_hot_masks_are_labels(kind):
    logits, labels = class_logits(), torch.randint(0, 3, (3, 12, 13))
    module = SoftDiceConfidence(from_logits=True, task="multiclass")
    expected = module(logits, labels)
    for mask in (labels[:, None].to(torch.int64), one_hot(labels, 4).to(kind)):
        torch.testing.assert_close(module(logits, mask), expected, rtol=0, atol=0, equal_nan=True)
    binary = SoftDiceConfidence(from_logits=True, task="binary")
    mask = labels > 0
    assert torch.equal(binary(logits[:, 0], mask[:, None]), binary(logits[:, 0], mask))


@pytest.mark.parametrize("change", ["none", "two"])
def test_masks_that_are_not_one_hot(change):
    mask = one_hot(torch.randint(0, 3, (3, 12, 13)), 4)
    mask[0, :, 0, 0] = False
    if change == "two":
        mask[0, :2, 0, 0] = True
    with pytest.raises(NotBinaryError, match=r"mask: expected one-hot masks.*got .* classes per pixel"):
        SoftDiceConfidence(from_logits=True, task="multiclass")(class_logits(), mask)


def by_hand(p, mask, where):
    """The soft Dice confidence of the chosen pixels of one map."""
    chosen = p[where].double()
    inside = mask[where].bool()
    if not inside.any():
        return 0.0
    return float(2 * chosen[inside].sum() / (inside.sum() + chosen.sum()))


@pytest.mark.parametrize("ignored", [255, -1, 2])
def test_ignored_labels_do_not_count(ignored):
    logits = class_logits()
    labels = torch.randint(0, 2, (3, 12, 13))
    labels[torch.rand(labels.shape) < 0.3] = ignored
    module = SoftDiceConfidence(from_logits=True, task="multiclass", ignore_index=ignored)
    p, where = logits.softmax(1), labels != ignored
    expected = torch.tensor(
        [[by_hand(p[i, c], labels[i] == c, where[i]) for c in range(3)] for i in range(3)]
    )
    torch.testing.assert_close(module(logits, labels)[:, :3].float(), expected)
    hot = one_hot(labels, 4)
    torch.testing.assert_close(module(logits, hot), module(logits, labels), equal_nan=True)
    if ignored == 255:
        filled = hot.long().where(where[:, None], 255)
        torch.testing.assert_close(module(logits, filled), module(logits, labels), equal_nan=True)
    elsewhere = SoftDiceConfidence(from_logits=True, task="multiclass")(logits, labels.where(where, 0), where)
    torch.testing.assert_close(module(logits, labels), elsewhere, equal_nan=True)
    assert f"ignore_index={ignored}" in repr(module)


@pytest.mark.parametrize("task", ["binary", "multilabel"])
def test_ignored_pixels_of_masks(task):
    p = torch.rand(3, 4, 12, 13) if task == "multilabel" else torch.rand(3, 1, 12, 13)
    mask = (torch.rand(p.shape) < 0.5).long()
    mask[torch.rand(p.shape) < 0.3] = 255
    found = SoftDiceConfidence(from_logits=False, task=task, ignore_index=255)(p, mask)
    expected = [
        [by_hand(p[i, c], mask[i, c] == 1, mask[i, c] != 255) for c in range(p.shape[1])] for i in range(3)
    ]
    torch.testing.assert_close(found.reshape(3, -1).float(), torch.tensor(expected))


def test_where_takes_the_forms_of_a_mask():
    p = torch.rand(2, 3, 6, 7)
    where = torch.rand(2, 6, 7) < 0.6
    module = SoftDiceConfidence(from_logits=False, task="multilabel")
    expected = module(p, None, where[:, None].expand_as(p))
    for given in (where, where[:, None], where.long()):
        assert torch.equal(module(p, where=given), expected)
    with pytest.raises(MaskShapeError, match="where: expected shape"):
        module(p, where=where[:, :3])
    nothing = module(p, where=torch.zeros_like(where))
    assert nothing.isnan().all()
    binary = SoftDiceConfidence(from_logits=False, task="binary", empty="agree")
    kept = torch.rand(2, 3, 6, 7) < 0.5
    kept[1] = False
    found = binary(0.1 * p, where=kept)
    assert found[0] == pytest.approx(float((1 - 0.1 * p[0][kept[0]].double()).prod()), rel=1e-6)
    assert found[1].isnan()


def test_derivatives_with_pixels_that_do_not_count():
    p = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    where = torch.rand(2, 3, 4) < 0.7
    module = SoftDiceConfidence(from_logits=False, task="binary", threshold=0.0)
    assert torch.autograd.gradcheck(lambda values: module(values, where=where), p)
    module(p, where=where).sum().backward()
    assert (p.grad[~where] == 0).all()


def test_second_derivatives():
    p = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(2, 3, 4) < 0.5
    module = SoftDiceConfidence(from_logits=False, task="binary")
    assert torch.autograd.gradgradcheck(lambda values: module(values, mask), p)


def test_sums_in_parts_are_sums(monkeypatch):
    p = torch.rand(3, 40, 50).requires_grad_()
    module = SoftDiceConfidence(from_logits=False, task="binary")
    whole = module(p)
    monkeypatch.setattr("segtrust.integrations.torch._SUMMED_AT_ONCE", 700)
    torch.testing.assert_close(module(p), whole, rtol=1e-14, atol=0)


@pytest.mark.parametrize("wrong", [1.5, "255", True])
def test_an_ignore_index_is_a_whole_number(wrong):
    with pytest.raises(ParameterError, match="ignore_index: expected a whole number"):
        SoftDiceConfidence(from_logits=True, task="multiclass", ignore_index=wrong)


# Transformations of torch.func, and pixels that do not count


@pytest.mark.parametrize("task", ["binary", "multilabel"])
def test_transformations_of_functions(task):
    module = SoftDiceConfidence(from_logits=False, task=task)
    p = torch.rand(3, 2, 8, dtype=torch.float64)
    expected = p.clone().requires_grad_()
    module(expected).sum().backward()
    total = torch.func.grad(lambda values: module(values).sum())(p)
    assert torch.allclose(total, expected.grad)
    for differentiate in (torch.func.jacrev, torch.func.jacfwd):
        jacobian = differentiate(module)(p)
        axes = tuple(range(jacobian.ndim - p.ndim))
        assert torch.allclose(jacobian.sum(axes), expected.grad)
    mapped = torch.func.vmap(lambda image: module(image[None])[0])(p)
    assert torch.allclose(mapped, module(p))
    gradients = torch.func.vmap(torch.func.grad(lambda image: module(image[None]).sum()))(p)
    assert torch.allclose(gradients, expected.grad)


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("task", ["binary", "multilabel", "multiclass"])
def test_pixels_that_do_not_count_may_hold_anything(task, from_logits):
    torch.manual_seed(0)
    p = (5.0 * torch.rand(2, 3, 8, 9)).softmax(1) if task != "binary" else torch.rand(2, 8, 9)
    values = p.logit() if from_logits else p
    where = torch.rand(2, 8, 9) < 0.7
    spoiled = values.where(where[:, None] if task != "binary" else where, math.nan)
    module = SoftDiceConfidence(from_logits=from_logits, task=task, ignore_index=255)
    same = partial(torch.testing.assert_close, rtol=0, atol=0, equal_nan=True)  # an absent class has NaN
    same(module(spoiled, where=where), module(values, where=where))
    with pytest.raises(ProbabilityRangeError, match="nan"):
        module(spoiled)
    labels = torch.zeros(p.shape if task == "multilabel" else where.shape, dtype=torch.long)
    labels = labels.masked_fill(~(where[:, None] if task == "multilabel" else where), 255)
    same(module(spoiled, labels), module(values, labels))
    metric = MeanConfidence("sdc", from_logits=from_logits, task=task, ignore_index=255)
    metric.update(spoiled, labels)
    assert metric.compute().isfinite()


class TestInputThatLooksWrong:
    """Integer maps on another scale, and signals of two channels, as `segtrust.score` sees them."""

    def test_a_mask_of_integers(self):
        module = SoftDiceConfidence(from_logits=False, task="binary")
        mask = torch.zeros(1, 64, 64, dtype=torch.uint8)
        mask[:, 20:40, 20:40] = 1
        with pytest.warns(SegtrustWarning, match=r"values: .* looks like a 0/1 mask"):
            module(mask)

    def test_per_cent(self):
        module = SoftDiceConfidence(from_logits=False, task="binary")
        p = torch.zeros(1, 64, 64, dtype=torch.uint8)
        p[:, 20:40, 20:40] = 100
        with pytest.raises(ProbabilityError, match=r"values: .* per cent"):
            module(p)

    def test_signals_of_two_channels(self):
        module = SoftDiceConfidence(from_logits=False, task="binary")
        p = torch.rand(3, 1, 40)
        with pytest.raises(ParameterError, match="expected one channel for task='binary', got 2"):
            module(torch.cat([1.0 - p, p], 1))
        module(torch.rand(3, 2, 40))  # images of two rows
