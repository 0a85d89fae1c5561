"""The torch module and metric: what the public functions give, a batch at a time and on several processes."""

import copy
import pickle
import subprocess
import sys
import textwrap
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

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
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from tests.references import logit_normal

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # several threads a test, and several tests, would wait for each other

from segtrust.integrations import torch_metric  # noqa: E402 - only where torch is
from segtrust.integrations.torch import (  # noqa: E402
    CaseConfidences,
    SoftDiceConfidence,
    SoftDiceConfidenceMetric,
)

BASES = ["torchmetrics", "LocalMetric"]

TOLERANCE = 1e-12
NAMES = ["background", "liver", "tumour", "cyst"]


def class_logits(images=3, seed=0):
    """Logits of four classes; the last is nowhere likely."""
    logits = torch.from_numpy(np.random.default_rng(seed).normal(0, 2, (images, 4, 12, 13)))
    logits[:, 3] -= 30.0
    return logits


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


# The module


@pytest.mark.parametrize("shape", [(4, 30), (4, 20, 30), (4, 1, 20, 30), (4, 6, 7, 8)])
def test_one_confidence_an_image(shape):
    logits = torch.from_numpy(np.random.default_rng(0).normal(-1, 3, shape))
    confidence = SoftDiceConfidence(from_logits=True, task="binary")(logits)
    assert confidence.shape == (4,)
    assert confidence.dtype == torch.float64
    np.testing.assert_allclose(confidence, one_by_one(logits.sigmoid()), rtol=TOLERANCE)


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.uint8])
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


@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32])
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
        (ProbabilityRangeError, r"nan at index \(0, 1\).*never ranked", "binary", [[0.5, float("nan")]]),
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
    ("error", "task", "mask"),
    [
        (MaskShapeError, "binary", torch.zeros(2, 5, 4)),
        (MaskShapeError, "multiclass", torch.zeros(2, 3, 4, 5)),
        (MaskShapeError, "multilabel", torch.zeros(2, 4, 5)),
        (NotBinaryError, "multilabel", torch.full((2, 3, 4, 5), 2)),
    ],
)
def test_what_are_no_masks_is_refused(error, task, mask):
    with pytest.raises(error, match="mask: expected"):
        SoftDiceConfidence(from_logits=True, task=task)(torch.randn(2, 3, 4, 5), mask)


LABELS = {
    "beyond the channels": (torch.int64, 7),
    "ignore index": (torch.uint8, 255),
    "negative": (torch.int16, -1),
    "broken": (torch.float32, 0.5),
    "NaN": (torch.float64, float("nan")),
    "wide": (torch.uint16, 300),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_without_a_channel_are_refused(name):
    kind, label = LABELS[name]
    labels = torch.zeros(2, 4, 5, dtype=kind)
    labels[1, 2, 3] = label
    message = rf": expected whole numbers as labels, from 0 to 2, one a channel, got {label:g}\. Renumber"
    logits = torch.randn(2, 3, 4, 5)
    with pytest.raises(MaskError, match=f"^mask{message}"):
        SoftDiceConfidence(from_logits=True, task="multiclass")(logits, labels)
    with pytest.raises(MaskError, match=f"^target{message}.* ignore index such as 255"):
        SoftDiceConfidenceMetric(from_logits=True, task="multiclass").update(logits, labels)
    with pytest.raises(MaskError, match=f"^mask{message}"):
        segtrust.score_classes(logits[1].softmax(0), ["a", "b", "c"], labels[1])


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.uint16, torch.int64, torch.float16])
def test_labels_of_any_type(kind):
    labels = torch.randint(0, 2, (2, 4, 5))
    module, logits = SoftDiceConfidence(from_logits=True, task="multiclass"), torch.randn(2, 3, 4, 5)
    assert torch.equal(module(logits, labels.to(kind)), module(logits, labels))
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


# The metric, on both of its bases


@pytest.fixture(scope="module")
def without_torchmetrics():
    """The metric's module as it is where torchmetrics is not installed."""
    name = "segtrust.integrations.torch_metric_alone"
    spec = spec_from_file_location(name, torch_metric.__file__)
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)  # so that its classes can be pickled
        with pytest.MonkeyPatch.context() as hidden:
            hidden.setitem(sys.modules, "torchmetrics", None)
            spec.loader.exec_module(module)
        yield module


@pytest.fixture(params=BASES)
def make_metric(request):
    """The metric's class on one base."""
    if request.param == "torchmetrics":
        pytest.importorskip("torchmetrics")
        return SoftDiceConfidenceMetric
    return request.getfixturevalue("without_torchmetrics").SoftDiceConfidenceMetric


def batches(task, count=3, seed=0):
    """Batches of logits and truths."""
    generator = np.random.default_rng(seed)
    for i in range(count):
        logits = class_logits(images=2 + i, seed=seed + i)
        shape = (2 + i, 12, 13) if task == "multiclass" else logits.shape
        yield logits, torch.from_numpy(generator.integers(0, 3 if task == "multiclass" else 2, shape))


@pytest.mark.parametrize("empty", ["paper", "agree"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_the_metric_gathers_what_the_functions_give(task, empty, make_metric):
    metric = make_metric(from_logits=True, task=task, empty=empty)
    module = SoftDiceConfidence(from_logits=True, task=task, empty=empty)
    confidences, risks = [], []
    for logits, truth in batches(task):
        truth[0] = 0
        metric.update(logits, truth)
        confidences.append(module(logits))
        masks = module.maps(logits).mask.numpy()
        truths = module.masks(truth, logits.shape, "truth").numpy()
        pairs = zip(truths.reshape(-1, truths.shape[2]), masks.reshape(-1, masks.shape[2]), strict=True)
        risks += [segtrust.RISKS["dice_risk"].of(*pair, empty=empty) for pair in pairs]
    found = metric.compute()
    torch.testing.assert_close(found.confidences, torch.cat(confidences), equal_nan=True, rtol=0, atol=0)
    np.testing.assert_allclose(found.risks.reshape(-1), risks, rtol=TOLERANCE)
    assert found.confidences.shape == found.risks.shape == ((9,) if task == "binary" else (9, 4))
    torch.testing.assert_close(found.mean, torch.cat(confidences).nanmean(0), equal_nan=True)
    torch.testing.assert_close(found.mean_risk, found.risks.mean(0))


def test_the_truth_may_be_unknown(make_metric):
    metric = make_metric(from_logits=True, task="binary")
    metric.update(torch.randn(2, 8, 8, requires_grad=True))
    found = metric.compute()
    assert found.confidences.shape == (2,)
    assert not found.confidences.requires_grad
    assert found.risks is found.mean_risk is None
    assert "shape=(2,)" in repr(found)
    assert "not known" in repr(found)


def test_the_truth_is_known_always_or_never(make_metric):
    metric = make_metric(from_logits=True, task="binary")
    logits, truth = torch.randn(2, 8, 8), torch.zeros(2, 8, 8)
    metric.update(logits, truth)
    with pytest.raises(ParameterError, match="with every batch or with none"):
        metric.update(logits)
    metric.reset()
    metric.update(logits)
    with pytest.raises(ParameterError, match="with every batch or with none"):
        metric.update(logits, truth)


def test_a_refused_batch_leaves_no_trace(make_metric):
    metric = make_metric(from_logits=False, task="binary")
    with pytest.raises(ProbabilityRangeError):
        metric.update(torch.full((2, 3), 2.0), torch.zeros(2, 3))
    with pytest.raises(MaskShapeError, match="target"):
        metric.update(torch.rand(2, 3), torch.zeros(2, 4))
    metric.update(torch.rand(2, 3), torch.zeros(2, 3))
    with pytest.raises(ProbabilityRangeError):
        metric(torch.full((2, 3), 2.0), torch.zeros(2, 3))
    if make_metric is not SoftDiceConfidenceMetric:  # torchmetrics loses the batches before
        assert metric.compute().risks.shape == metric.compute().confidences.shape == (2,)


def test_forward_adds_a_batch_and_gives_its_result(make_metric):
    metric = make_metric(from_logits=True, task="multiclass")
    results = [metric(*batch) for batch in batches("multiclass")]
    assert [result.confidences.shape for result in results] == [(2, 4), (3, 4), (4, 4)]
    found = metric.compute()
    torch.testing.assert_close(
        found.confidences, torch.cat([result.confidences for result in results]), equal_nan=True
    )
    assert found.risks.shape == (9, 4)


def test_reset_forgets(make_metric):
    metric = make_metric(from_logits=True, task="binary")
    metric.update(torch.randn(2, 8, 8))
    metric.reset()
    metric.update(torch.randn(1, 8, 8))
    assert metric.compute().confidences.shape == (1,)


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric")
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_nothing_gathered_is_nothing(task, make_metric):
    found = make_metric(from_logits=True, task=task).compute()
    assert found.confidences.shape[0] == 0
    assert found.risks is None


def test_can_be_copied_and_stored(make_metric):
    metric = make_metric(from_logits=True, task="binary")
    metric.update(torch.randn(2, 8, 8))
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert torch.equal(twin.compute().confidences, metric.compute().confidences)
        twin.update(torch.randn(2, 8, 8))
        assert twin.compute().confidences.shape == (4,)
        assert metric.compute().confidences.shape == (2,)


def test_says_which_way_is_better(make_metric):
    assert make_metric.higher_is_better is True


def test_moves_with_its_model(make_metric):
    metric = make_metric(from_logits=True, task="binary").to("meta")
    assert metric.device.type == "meta"


# With torchmetrics, and without


def test_torchmetrics_is_the_base_where_it_is_installed(monkeypatch):
    stub = ModuleType("torchmetrics")
    stub.Metric = type("Metric", (), {})
    monkeypatch.setitem(sys.modules, "torchmetrics", stub)
    assert torch_metric._base() is stub.Metric
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    assert torch_metric._base() is torch_metric.LocalMetric


def test_a_torchmetrics_that_does_not_import_is_left_alone(monkeypatch, tmp_path):
    (tmp_path / "torchmetrics.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    monkeypatch.delitem(sys.modules, "torchmetrics", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert torch_metric._base() is torch_metric.LocalMetric


@pytest.mark.needs("torchmetrics")
def test_enters_a_metric_collection():
    import torchmetrics

    collection = torchmetrics.MetricCollection(
        {
            "sdc": SoftDiceConfidenceMetric(from_logits=True, task="binary"),
            "accuracy": torchmetrics.classification.BinaryAccuracy(),
        }
    )
    logits, truth = torch.randn(1, 8, 8), torch.randint(0, 2, (1, 8, 8))
    collection.update(logits, truth)
    found = collection.compute()
    assert isinstance(found["sdc"], CaseConfidences)
    assert found["sdc"].confidences.shape == found["sdc"].risks.shape == (1,)
    collection.update(preds=logits, target=truth)
    assert collection.compute()["sdc"].confidences.shape == (2,)
    assert collection.clone().compute()["sdc"].confidences.shape == (2,)
    collection.reset()
    assert collection(logits, truth)["sdc"].confidences.shape == (1,)


def test_a_state_that_processes_cannot_join_is_refused():
    metric = torch_metric.LocalMetric()
    with pytest.raises(ParameterError, match="does not fit the state"):
        metric.add_state("total", default=torch.tensor(0), dist_reduce_fx="cat")


def test_names_of_the_module_are_its_own():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        segtrust.integrations.torch.nothing  # noqa: B018


def test_a_missing_torch_names_the_extra():
    code = "import sys; sys.modules['torch'] = None; import segtrust.integrations.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'segtrust[models]'" in done.stderr


PROCESS = """
    import os, sys, torch, torch.distributed as distributed
    rank, store, task, base = int(sys.argv[1]), *sys.argv[2:]
    if base == "LocalMetric":
        sys.modules["torchmetrics"] = None
    from segtrust.integrations.torch import SoftDiceConfidenceMetric
    assert base in [parent.__name__ for parent in SoftDiceConfidenceMetric.__mro__]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

    def batch(images):
        generator = torch.Generator().manual_seed(images)
        shape = (images, 3, 6, 7) if task == "multiclass" else (images, 6, 7)
        truth = torch.randint(0, 2, (images, 6, 7), generator=generator)
        return torch.randn(*shape, generator=generator), truth

    def check(shares):
        metric = SoftDiceConfidenceMetric(from_logits=True, task=task)
        for images in shares[rank]:
            metric.update(*batch(images))
        found = metric.compute()
        alone = SoftDiceConfidenceMetric(from_logits=True, task=task)
        expected = [alone(*batch(images)) for share in shares for images in share]
        for name in ("confidences", "risks"):
            values = torch.cat([getattr(each, name) for each in expected])
            torch.testing.assert_close(getattr(found, name), values, equal_nan=True, rtol=0, atol=0)
        own = sum(map(len, metric.confidences))
        assert own == sum(shares[rank]) * (3 if task == "multiclass" else 1), "not left as they were"
        metric.update(*batch(1))
        assert metric.compute().confidences.shape[0] == sum(map(sum, shares)) + 2

    check([[2, 3], [4, 5]])
    check([[2], [3, 4, 5]])
    check([[], [2, 3]])
    distributed.barrier()
    distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize("base", ["Metric", "LocalMetric"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_processes_see_the_cases_of_all(task, base, tmp_path):
    if base == "Metric":
        pytest.importorskip("torchmetrics")
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROCESS)]
    runs = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store"), task, base], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    results = [(run.communicate(timeout=120)[1], run.returncode) for run in runs]
    assert [code for _, code in results] == [0, 0], "\n".join(error.decode() for error, _ in results)
