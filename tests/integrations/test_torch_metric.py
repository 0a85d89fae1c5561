"""The torch metric, with torchmetrics and without: what the functions give, over batches and processes."""

import copy
import pickle
import subprocess
import sys
import textwrap
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType

import numpy as np
import pytest

import segtrust
from segtrust import ThresholdLevel, TunedSoftDice
from segtrust.errors import (
    CaseLengthError,
    MaskError,
    MaskShapeError,
    NotFittedError,
    ParameterError,
    ProbabilityRangeError,
    SegtrustWarning,
    UnknownNameError,
)
from tests.integrations.batches import batches

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.integrations import torch_metric
    from segtrust.integrations.torch import CaseConfidences, SoftDiceConfidence, SoftDiceConfidenceMetric

    torch.set_num_threads(1)  # several threads a test, and several tests, would wait for each other

TOLERANCE = 1e-12
BASES = [pytest.param("torchmetrics", marks=pytest.mark.needs("torchmetrics")), "LocalMetric"]


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
        return SoftDiceConfidenceMetric
    return request.getfixturevalue("without_torchmetrics").SoftDiceConfidenceMetric


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
        truths = module.masks(truth, logits.shape, "truth")[0].numpy()
        pairs = zip(truths.reshape(-1, truths.shape[2]), masks.reshape(-1, masks.shape[2]), strict=True)
        risks += [segtrust.RISKS["dice_risk"].of(*pair, empty=empty) for pair in pairs]
    found = metric.compute()
    torch.testing.assert_close(found.confidences, torch.cat(confidences), equal_nan=True, rtol=0, atol=0)
    np.testing.assert_allclose(found.risks.reshape(-1), risks, rtol=TOLERANCE)
    assert found.confidences.shape == found.risks.shape == ((9,) if task == "binary" else (9, 4))
    torch.testing.assert_close(found.mean, torch.cat(confidences).nanmean(0), equal_nan=True)
    counted = ~found.confidences.isnan() | found.in_truth
    means = (found.risks * counted).sum(0) / counted.sum(0)
    torch.testing.assert_close(found.mean_risk, means, equal_nan=True)


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


# Cases by their ids, curves and single numbers


def with_ids(metric, task="multiclass", order=(0, 1, 2)):
    """The batches in some order, with the places of their cases in the whole."""
    found = list(batches(task))
    for i in order:
        begin = sum(logits.shape[0] for logits, _ in found[:i])
        metric.update(*found[i], torch.arange(begin, begin + found[i][0].shape[0]))
    return metric.compute()


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_each_case_counts_once_and_in_the_order_of_ids(task, make_metric):
    plain = make_metric(from_logits=True, task=task)
    for logits, truth in batches(task):
        plain.update(logits, truth)
    expected = plain.compute()
    found = with_ids(make_metric(from_logits=True, task=task), task, (2, 0, 0, 1, 2))
    assert found.ids.tolist() == list(range(9))
    assert expected.ids is None
    for name in ("confidences", "risks", "in_truth"):
        one, other = getattr(found, name), getattr(expected, name)
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("error", "message", "ids"),
    [
        (ParameterError, "ids: expected one whole number per case", ["a", "b"]),
        (ParameterError, "ids: expected one whole number per case", [0.5, 1.0]),
        (ParameterError, "ids: expected one whole number per case", [[0, 1]]),
        (ParameterError, "ids: expected whole numbers up to 2", [1 << 60, (1 << 60) + 1]),
        (CaseLengthError, "ids: expected 2, one per case, got 3", [0, 1, 2]),
    ],
)
def test_what_are_no_ids_is_refused(error, message, ids, make_metric):
    metric = make_metric(from_logits=True, task="binary")
    with pytest.raises(error, match=message):
        metric.update(torch.randn(2, 8, 8), torch.zeros(2, 8, 8), ids)
    metric.update(torch.randn(2, 8, 8), torch.zeros(2, 8, 8), [1 << 40, 3])
    metric.update(torch.randn(2, 8, 8), torch.zeros(2, 8, 8), np.array([5, 4], "u4"))
    assert metric.compute().ids.tolist() == [3, 4, 5, 1 << 40]
    with pytest.raises(ParameterError, match="ids: expected with every batch or with none"):
        metric.update(torch.randn(2, 8, 8), torch.zeros(2, 8, 8))


def test_curves_of_cases_and_of_classes(make_metric):
    metric = make_metric(from_logits=True, task="binary")
    for logits, truth in batches("binary"):
        metric.update(logits, truth)
    found = metric.compute()
    expected = segtrust.risk_coverage_curve(found.confidences.numpy(), found.risks.numpy())
    assert found.curve().aurc == found.aurc.item() == expected.aurc


def test_a_class_that_is_nowhere_counts_for_nothing_and_a_missed_one_counts(make_metric):
    metric = make_metric(from_logits=False, task="multilabel")
    p = torch.tensor([[[0.9, 0.1], [0.1, 0.0]], [[0.8, 0.2], [0.9, 0.0]], [[0.7, 0.0], [0.1, 0.2]]])
    truth = torch.tensor([[[1, 0], [0, 0]], [[1, 1], [1, 0]], [[0, 1], [1, 0]]])
    metric.update(p, truth)
    found = metric.compute()
    assert found.confidences[:, 1].isnan().tolist() == [True, False, True]
    second = segtrust.risk_coverage_curve([found.confidences[1, 1].item(), 0.0], [0.0, 1.0])
    assert found.curve(1).aurc == second.aurc
    assert found.aurc.tolist() == [found.curve(0).aurc, second.aurc]
    assert found.mean_risk.tolist() == [found.curve(0).full_risk, second.full_risk]


@pytest.mark.parametrize("name", ["sdc", "idc", "amsp", "ane", "pla", "mmmc"])
def test_a_missed_class_ranks_as_in_a_score_table(name, home):
    """Zero, which the metric used to give it, is the most confident value of some estimators."""
    from segtrust.integrations.channels import ChannelScorer

    generator = torch.Generator().manual_seed(0)
    p = torch.full((12, 2, 16, 16), 0.05)
    for image in range(8):  # the class is missed in the others
        p[image, 1, 4:12, 4:12] = 0.6 + 0.4 * torch.rand(8, 8, generator=generator)
    p[:, 0] = 1.0 - p[:, 1]
    truth = torch.zeros(12, 16, 16, dtype=torch.int64)
    truth[:, 5:13, 4:12] = 1
    metric = home.ConfidenceMetric(name, from_logits=False, task="multiclass")
    metric.update(p, truth)
    found = metric.compute()
    scorer = ChannelScorer(
        from_logits=False, task="multiclass", names=["background", "organ"], estimators=name
    )
    rows = [scorer.rows(p[i], truth=truth[i][None])[0] for i in range(12)]
    curve = segtrust.risk_coverage_curve([row[name] for row in rows], [1.0 - row["dice"] for row in rows])
    assert found.curve(1).aurc == pytest.approx(curve.aurc, rel=TOLERANCE)
    assert found.confidences[8:, 1].isnan().all()
    assert found.empty_mask[:, 1].tolist() == [row["k"] == 0 for row in rows]


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("ids", [None, [7, 3]])
def test_cases_are_a_table(ids, make_metric):
    metric = make_metric(from_logits=False, task="multilabel")
    p = torch.zeros(2, 3, 4, 4)
    p[0, 1, :2] = 0.9
    metric.update(p, (p > 0.5), ids)
    frame = metric.compute().to_dataframe()
    assert list(frame) == ["case", "class", "confidence", "empty_mask", "risk", "in_truth", "ranked"]
    assert frame["case"].tolist() == ([0, 0, 0, 1, 1, 1] if ids is None else [3, 3, 3, 7, 7, 7])
    found = frame[frame["in_truth"]]
    assert (found["class"].item(), found["risk"].item(), found["empty_mask"].item()) == (1, 0.0, False)
    html = metric.compute()._repr_html_()
    assert "Cases: 2" in html
    assert "class 2" in html
    binary = make_metric(from_logits=False, task="binary")
    binary.update(p[:, 0])
    assert list(binary.compute().to_dataframe()) == ["case", "confidence", "empty_mask"]
    assert "<td>" in binary.compute()._repr_html_()


def test_a_class_that_never_occurs_has_no_mean_risk(make_metric):
    metric = make_metric(from_logits=False, task="multilabel")
    metric.update(torch.tensor([[[0.9], [0.1]]]), torch.tensor([[[1], [0]]]))
    found = metric.compute()
    assert found.mean_risk[0] == 0
    assert found.mean_risk[1].isnan()
    assert found.mean[1].isnan()


def test_too_few_cases_have_no_curve(make_metric):
    metric = make_metric(from_logits=True, task="binary")
    metric.update(torch.randn(1, 8, 8), torch.ones(1, 8, 8))
    found = metric.compute()
    assert found.curve() is None
    assert found.aurc.isnan()
    metric.reset()
    metric.update(torch.randn(2, 8, 8))
    assert metric.compute().aurc is None
    with pytest.raises(ParameterError, match="risks: the curve needs the ground truth"):
        metric.compute().curve()


def test_a_reversed_ranking_has_a_curve_and_no_warning(make_metric):
    """The metric computes the risk itself, so a model that is confident and wrong is a result."""
    metric = make_metric(from_logits=False, task="binary")
    p = torch.linspace(0.6, 0.9, 30)[:, None].expand(30, 40)
    truth = (torch.arange(40) >= torch.arange(30)[:, None]).long()  # less of it the more confident
    metric.update(p, truth)
    found = metric.compute()
    assert found.aurc > found.mean_risk
    with pytest.warns(SegtrustWarning, match="more confident cases have a higher loss"):
        expected = segtrust.risk_coverage_curve(found.confidences, found.risks)
    assert found.aurc == expected.aurc


@pytest.fixture(params=BASES)
def home(request):
    """The module of the metrics on one base."""
    return (
        torch_metric if request.param == "torchmetrics" else request.getfixturevalue("without_torchmetrics")
    )


def test_single_numbers(home):
    settings = {"from_logits": True, "task": "multiclass"}
    cases = with_ids(home.SoftDiceConfidenceMetric(**settings))
    area = with_ids(home.SoftDiceConfidenceAURC(classes=[1, 2], **settings), order=(1, 2, 0, 0))
    mean = with_ids(home.MeanSoftDiceConfidence(classes=[1, 2], **settings), order=(1, 2, 0, 0))
    assert area.item() == pytest.approx(cases.aurc[1:3].mean().item(), rel=TOLERANCE)
    assert mean.item() == pytest.approx(cases.mean[1:3].mean().item(), rel=TOLERANCE)
    assert area.shape == mean.shape == ()
    assert home.SoftDiceConfidenceAURC.higher_is_better is False
    every = with_ids(home.MeanSoftDiceConfidence(**settings))
    assert every.item() == pytest.approx(cases.mean.nanmean().item(), rel=TOLERANCE)
    for wrong in (5, -1):
        metric = home.SoftDiceConfidenceAURC(classes=[wrong], **settings)
        with pytest.raises(ParameterError, match=f"classes: expected numbers from 0 to .*, got {wrong}"):
            metric.update(*next(iter(batches("multiclass"))))


def test_single_numbers_without_truths(home):
    metric = home.SoftDiceConfidenceAURC(from_logits=True, task="binary")
    with pytest.raises(ParameterError, match="target: the area needs the ground truth"):
        metric.update(torch.randn(2, 8, 8))
    assert metric.compute().isnan()


@pytest.mark.needs("torchmetrics")
def test_single_numbers_in_a_collection():
    import torchmetrics

    settings = {"from_logits": True, "task": "binary"}
    collection = torchmetrics.MetricCollection(
        {
            "aurc": torch_metric.SoftDiceConfidenceAURC(**settings),
            "mean": torch_metric.MeanSoftDiceConfidence(**settings),
            "accuracy": torchmetrics.classification.BinaryAccuracy(),
        }
    )
    for i, (logits, truth) in enumerate(batches("binary")):
        collection.update(preds=logits, target=truth, ids=torch.arange(logits.shape[0]) + 100 * i)
    assert {name: value.shape for name, value in collection.compute().items()} == dict.fromkeys(
        ("aurc", "mean", "accuracy"), torch.Size([])
    )


# Other estimators, ignored pixels, and figures


ESTIMATORS = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla"]


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_every_estimator(name, task, home):
    estimator = segtrust.get_estimator(name)
    metric = home.ConfidenceMetric(name, from_logits=True, task=task)
    module = SoftDiceConfidence(from_logits=True, task=task)
    for logits, truth in batches(task, count=1):
        metric.update(logits, truth)
        p, absent = module.probabilities(logits), module(logits).isnan()
    found = metric.compute()
    for image in range(p.shape[0]):
        maps = p[image][None] if task == "binary" else p[image]
        labels = p[image].argmax(0)
        for number, values in enumerate(maps):
            given = labels == number if task == "multiclass" else values >= 0.5
            expected = estimator.score(segtrust.Prediction(values.numpy(), given.numpy()))
            here = found.confidences[image] if task == "binary" else found.confidences[image, number]
            if task != "binary" and absent[image, number]:
                assert here.isnan()
            else:
                assert here.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    single = home.MeanConfidence(name, from_logits=True, task=task)
    area = home.ConfidenceAURC(name, from_logits=True, task=task)
    for logits, truth in batches(task, count=1):
        single.update(logits, truth)
        area.update(logits, truth)
    assert single.compute().item() == pytest.approx(found.mean.nanmean().item())
    assert area.compute().item() == pytest.approx(found.aurc.nanmean().item())


def test_estimators_with_settings_and_fitted_ones():
    p, truth = torch.rand(4, 1, 30, 31), torch.randint(0, 2, (4, 1, 30, 31))
    sizes = {
        size: torch_metric.ConfidenceMetric(segtrust.PatchLevel(size), from_logits=False, task="binary")
        for size in (2, 9)
    }
    for size, metric in sizes.items():
        metric.update(p, truth)
        expected = [segtrust.patch_level_confidence(image[0].numpy(), size=size) for image in p]
        np.testing.assert_allclose(metric.compute().confidences, expected, rtol=1e-9)
    cases = [segtrust.Prediction(image[0].numpy()) for image in p]
    fitted = segtrust.ThresholdLevel().fit(cases)
    metric = torch_metric.ConfidenceMetric(fitted, from_logits=False, task="binary")
    metric.update(p)
    np.testing.assert_allclose(
        metric.compute().confidences, [fitted.score(case) for case in cases], rtol=1e-9
    )


def test_the_policy_for_empty_masks_reaches_other_estimators():
    p = torch.full((1, 5, 6), 0.1)
    for empty in ("paper", "agree"):
        metric = torch_metric.ConfidenceMetric("idc", from_logits=False, task="binary", empty=empty)
        metric.update(p)
        expected = segtrust.ideal_dice_confidence(p[0].numpy(), empty=empty)
        assert metric.compute().confidences.item() == pytest.approx(expected)


def test_estimators_that_cannot_be_used():
    settings = {"from_logits": True, "task": "binary"}
    with pytest.raises(NotFittedError, match=r"estimator: tla learns.*ThresholdLevel\(\)\.fit\(cases\)"):
        torch_metric.ConfidenceMetric("tla", **settings)
    with pytest.raises(ParameterError, match="estimator: pairwise-dice compares the members"):
        torch_metric.ConfidenceMetric("pairwise-dice", **settings)
    with pytest.raises(UnknownNameError, match="Unknown estimator 'sdk'"):
        torch_metric.ConfidenceMetric("sdk", **settings)
    with pytest.raises(ParameterError, match="expected names or estimators, got int 3"):
        torch_metric.ConfidenceMetric(3, **settings)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_ignored_pixels_count_for_neither_confidence_nor_risk(name, home):
    metric = home.ConfidenceMetric(name, from_logits=False, task="binary", ignore_index=255)
    cropped = home.ConfidenceMetric(name, from_logits=False, task="binary")
    p, truth = torch.rand(3, 1, 12, 14), torch.randint(0, 2, (3, 1, 12, 14))
    beyond = torch.full((3, 1, 20, 14), 0.0)
    if name != "pla":  # whose patches reach beyond the pixels that count
        beyond = torch.rand(3, 1, 20, 14)
    metric.update(torch.cat([p, beyond], 2), torch.cat([truth, torch.full(beyond.shape, 255)], 2))
    cropped.update(p, truth)
    torch.testing.assert_close(metric.compute().confidences, cropped.compute().confidences)
    torch.testing.assert_close(metric.compute().risks, cropped.compute().risks)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, ThresholdLevel(tau=0.3), TunedSoftDice(weight=0.8)])
def test_ignored_pixels_are_those_that_where_does_not_select(estimator, home):
    p, truth = torch.rand(2, 12, 14), torch.randint(0, 2, (2, 12, 14))
    truth[:, 3:9, 2:5] = 255
    metric = home.ConfidenceMetric(estimator, from_logits=False, task="binary", ignore_index=255)
    metric.update(p, truth)
    expected = segtrust.score_batch(p, None, [estimator], where=truth != 255)
    torch.testing.assert_close(metric.compute().confidences, next(iter(expected.values())))


@pytest.mark.parametrize("form", ["labels", "channel", "one-hot"])
def test_forms_of_the_target(form, home):
    logits, truth = next(iter(batches("multiclass")))
    truth[0, :4] = 255
    hot = torch.stack([truth == number for number in range(4)], 1).long()
    target = {"labels": truth, "channel": truth[:, None], "one-hot": hot}[form]
    metric = home.ConfidenceMetric(from_logits=True, task="multiclass", ignore_index=255)
    metric.update(logits, target)
    found = metric.compute()
    kept = truth[0] != 255
    mask, truth_of_1 = logits[0].argmax(0) == 1, truth[0] == 1
    expected = segtrust.RISKS["dice_risk"].of(truth_of_1[kept].numpy(), mask[kept].numpy())
    assert found.risks[0, 1].item() == pytest.approx(expected)
    with pytest.raises(MaskError, match="target: expected whole numbers as labels"):
        home.ConfidenceMetric(from_logits=True, task="multiclass").update(logits, truth)


def test_a_case_without_a_pixel_that_counts_is_left_out(home):
    metric = home.ConfidenceMetric("sdc", from_logits=False, task="binary", ignore_index=255)
    p, truth = torch.rand(3, 8, 9), torch.randint(0, 2, (3, 8, 9))
    truth[1] = 255
    metric.update(p, truth)
    found = metric.compute()
    assert found.confidences.isnan().tolist() == [False, True, False]
    pairs = found.confidences[[0, 2]].tolist(), found.risks[[0, 2]].tolist()
    assert found.aurc.item() == segtrust.risk_coverage_curve(*pairs).aurc
    assert found.mean.item() == pytest.approx(sum(pairs[0]) / 2)


@pytest.mark.needs("matplotlib")
class TestFigures:
    @pytest.fixture(autouse=True)
    def _on_no_screen(self):
        import matplotlib

        matplotlib.use("Agg")
        yield
        matplotlib.pyplot.close("all")

    @pytest.mark.parametrize("task", ["binary", "multiclass"])
    @pytest.mark.parametrize("name", ["sdc", "ane"])
    def test_distributions(self, name, task, home):
        for made in (home.ConfidenceMetric, home.MeanConfidence):
            metric = made(name, from_logits=True, task=task)
            for batch in batches(task):
                metric.update(*batch)
            fig, ax = metric.plot()
            assert ax.figure is fig
            cases = metric._cases()
            counts = sum(polygon.get_xy()[:, 1].max() > 0 for polygon in ax.patches)
            assert counts == (1 if task == "binary" else 3)  # the last class is absent
            assert cases.confidences.shape[0] == 9
            again = made(name, from_logits=True, task=task)
            assert again.plot(cases if made is home.ConfidenceMetric else 0.5, ax)[1] is ax

    @pytest.mark.parametrize("task", ["binary", "multiclass"])
    def test_curves(self, task, home):
        metric = home.ConfidenceAURC(from_logits=True, task=task)
        for batch in batches(task):
            metric.update(*batch)
        _, ax = metric.plot()
        curves = 1 if task == "binary" else 3
        assert len(ax.lines) == curves + 2  # with the oracle and a random ranking
        cases = metric._cases()
        curve = cases.curve(None if task == "binary" else 0)
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve.risks)

    def test_numbers_of_several_epochs(self, home):
        metric = home.ConfidenceAURC(from_logits=True, task="binary")
        _, ax = metric.plot([torch.tensor(0.3), torch.tensor(0.2), 0.1])
        assert ax.lines[0].get_ydata() == pytest.approx([0.3, 0.2, 0.1])
        metric.plot(torch.tensor(0.3), ax=ax)
        assert len(ax.lines) == 2


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


PROCESS = """
    import os, sys, torch, torch.distributed as distributed
    rank, store, task, base = int(sys.argv[1]), *sys.argv[2:]
    if base == "LocalMetric":
        sys.modules["torchmetrics"] = None
    from segtrust.integrations.torch import SoftDiceConfidenceAURC, SoftDiceConfidenceMetric
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

    def check_ids():
        # Five cases, of which the second process sees one that the first has seen.
        logits, truth = batch(5)
        places = [[0, 2, 4], [1, 3, 0]][rank]
        for made in (SoftDiceConfidenceMetric, SoftDiceConfidenceAURC):
            metric, alone = made(from_logits=True, task=task), made(from_logits=True, task=task)
            for i in places:
                metric.update(logits[i : i + 1], truth[i : i + 1], [i])
            for i in range(5):  # one by one as well: a softmax of several rounds otherwise
                alone.update(logits[i : i + 1], truth[i : i + 1], [i])
            own = type(alone)._cases(alone)
            found = metric.compute()
            if made is SoftDiceConfidenceAURC:
                assert found.item() == own.aurc.nanmean().item()
            else:
                assert torch.equal(found.confidences.nan_to_num(-1), own.confidences.nan_to_num(-1))
                assert torch.equal(found.risks, own.risks) and found.ids.tolist() == [0, 1, 2, 3, 4]

    check_ids()
    check([[2, 3], [4, 5]])
    check([[2], [3, 4, 5]])
    check([[], [2, 3]])
    distributed.barrier()
    distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "base", [pytest.param("Metric", marks=pytest.mark.needs("torchmetrics")), "LocalMetric"]
)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_processes_see_the_cases_of_all(task, base, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROCESS)]
    runs = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store"), task, base], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    results = [(run.communicate(timeout=120)[1], run.returncode) for run in runs]
    assert [code for _, code in results] == [0, 0], "\n".join(error.decode() for error, _ in results)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("shown", ["list", "None", "ndarray", "sparse"])
def test_what_is_no_dense_tensor_is_named(shown, make_metric):
    preds = torch.tensor([[0.9, 0.2, 0.6]])
    kinds = {"list": preds.tolist(), "None": None, "ndarray": preds.numpy(), "sparse": preds.to_sparse()}
    bad = kinds[shown]
    metric = make_metric(from_logits=True, task="binary")
    for call in (metric.update, metric):
        with pytest.raises(ParameterError, match=f"^preds: expected a .* got .*{shown}"):
            call(bad)
        if bad is not None:
            with pytest.raises(ParameterError, match=f"^target: expected a .* got .*{shown}"):
                call(preds, bad)
    metric.reset()
    metric.update(preds, preds > 0.5)  # what was refused has left nothing behind
    assert metric.compute().confidences.shape == (1,)


def test_estimators_of_a_generator_are_all_scored():
    from segtrust.integrations.channels import ChannelScorer

    scorer = ChannelScorer(from_logits=False, task="binary", estimators=(name for name in ("sdc", "amsp")))
    assert scorer.estimators == ("sdc", "amsp")


@pytest.mark.needs("torchmetrics")
def test_a_collection_keeps_metrics_with_different_settings_apart():
    """torchmetrics updates metrics as one if their states are equal after the first batch."""
    from torchmetrics import MetricCollection

    metrics = {
        "ane": torch_metric.MeanConfidence("ane", from_logits=False, task="binary"),
        "pla": torch_metric.MeanConfidence("pla", from_logits=False, task="binary"),
        "small": torch_metric.MeanConfidence(segtrust.PatchLevel(2), from_logits=False, task="binary"),
        "sdc": torch_metric.MeanConfidence("sdc", from_logits=False, task="binary"),
        "low": torch_metric.MeanConfidence("sdc", from_logits=False, task="binary", threshold=0.3),
    }
    p = torch.rand(4, 16, 16, generator=torch.Generator().manual_seed(0))
    batches = torch.zeros(2, 16, 16), p
    alone = {}
    for name, metric in metrics.items():
        for batch in batches:
            metric.update(batch)
        alone[name] = float(metric.compute())
        metric.reset()
    together = MetricCollection(metrics)
    for batch in batches:
        together.update(batch)
    assert {name: float(value) for name, value in together.compute().items()} == alone
    assert len(set(alone.values())) == len(alone)


def test_a_class_that_is_probable_but_not_predicted_follows_the_empty_policy():
    p = torch.tensor([[[0.6, 0.6], [0.4, 0.1], [0.0, 0.3]]])
    settings = {"from_logits": False, "task": "multiclass", "threshold": 0.3, "empty": "agree"}
    metric = torch_metric.ConfidenceMetric("sdc", **settings)
    metric.update(p)
    expected = segtrust.score_classes(
        p[0].numpy(), ["a", "b", "c"], estimators="sdc", threshold=0.3, empty="agree", background=None
    )
    found = metric.compute().confidences[0].tolist()
    assert found == pytest.approx([scores["sdc"] for scores in expected.classes.values()], rel=1e-6)
