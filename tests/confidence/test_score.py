"""Several estimators of one map, of a batch, of classes."""

import math

import numpy as np
import pytest

from segtrust.confidence import (
    PatchLevel,
    SoftDice,
    ThresholdLevel,
    assess,
    dice_bounds,
    score,
    score_batch,
    score_classes,
    soft_dice_confidence,
)
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    NotNormalisedError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
    UnknownNameError,
)
from segtrust.kernels import sweep
from segtrust.maps import EmptyPolicy
from tests.references import close, logit_normal, pla, scores, tla

EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(0.3), PatchLevel(4)]
NAMES = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "tla", "pla"]


class TestScore:
    @pytest.mark.parametrize("shape", [(1,), (7, 9), (5, 6, 7), (40, 50, 30)])
    @pytest.mark.parametrize("threshold", [0.35, 0.5])
    def test_equals_the_formulas(self, shape, threshold):
        p = np.round(logit_normal(shape), 3)
        found = score(p, estimators=EVERYTHING, threshold=threshold)
        reference = scores(p, p >= threshold, 0.3, 4)
        assert list(found) == NAMES
        assert [name for name in NAMES if not close(found[name], reference[name])] == []
        assert {type(value) for value in found.values()} == {float}

    @pytest.mark.parametrize("alone", NAMES)
    def test_company_does_not_change_a_number(self, alone):
        p = logit_normal((30, 40, 35))
        (estimator,) = (each for each in EVERYTHING if alone in (each, getattr(each, "name", None)))
        assert close(score(p, estimators=[estimator])[alone], score(p, estimators=EVERYTHING)[alone], 1e-14)

    def test_takes_one_pass_for_the_dice_family_and_one_for_the_rest(self, monkeypatch):
        passes = []
        for name in ("count", "dice_statistics", "measure"):
            original = getattr(sweep, name)
            monkeypatch.setattr(sweep, name, lambda *a, o=original, n=name: passes.append(n) or o(*a))
        score(logit_normal((30, 40)), estimators=EVERYTHING)
        assert sorted(passes) == ["dice_statistics", "measure"]

    def test_two_sides_and_two_thresholds_in_one_call(self):
        class OtherPatch(PatchLevel):
            name = "other pla"

        class OtherThreshold(ThresholdLevel):
            name = "other tla"

        p = logit_normal((30, 40))
        found = score(p, estimators=[*EVERYTHING, OtherPatch(7), OtherThreshold(0.8)])
        assert close(found["other pla"], pla(p, 7))
        assert close(found["other tla"], tla(p, 0.8))
        assert close(found["pla"], pla(p, 4))
        assert close(found["tla"], tla(p, 0.3))

    def test_the_usual_two(self):
        assert list(score(np.array([0.2, 0.7]))) == ["sdc", "amsp"]

    def test_settings_of_their_own(self):
        p = logit_normal((9, 9), mean=-8)
        assert score(p, estimators=[SoftDice(EmptyPolicy.AGREE)])["sdc"] == soft_dice_confidence(
            p, empty="agree"
        )

    def test_unknown_names_list_the_known(self):
        with pytest.raises(UnknownNameError, match="Unknown estimator 'sdk'; available: amsp, ane, apc, idc"):
            score(np.zeros(3), estimators=["sdk"])

    def test_text_is_no_list(self):
        with pytest.raises(ParameterError, match="expected a list of names, got the text 'sdc'"):
            score(np.zeros(3), estimators="sdc")

    def test_results_of_one_name_would_hide_each_other(self):
        with pytest.raises(ParameterError, match="each is given once"):
            score(np.zeros(3), estimators=[PatchLevel(3), PatchLevel(5)])


class TestInvariance:
    P = logit_normal((12, 14, 9))
    MASK = np.random.default_rng(2).random(P.shape) < 0.2
    WHOLE = score(P, MASK, EVERYTHING)

    def assert_unchanged(self, p, mask, but=()):
        found = score(p, mask, EVERYTHING)
        changed = [
            name for name in NAMES if name not in but and not close(found[name], self.WHOLE[name], 1e-13)
        ]
        assert changed == []

    @pytest.mark.parametrize("seed", range(5))
    def test_permutations_change_patches_only(self, seed):
        places = np.random.default_rng(seed).permutation(self.P.size)
        self.assert_unchanged(self.P.ravel()[places], self.MASK.ravel()[places], but={"pla"})

    @pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
    def test_flips_change_nothing(self, axes):
        self.assert_unchanged(np.flip(self.P, axes), np.flip(self.MASK, axes))

    @pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
    def test_the_order_of_axes_changes_nothing(self, axes):
        self.assert_unchanged(self.P.transpose(axes), self.MASK.transpose(axes))

    @pytest.mark.parametrize("times", [(3, 1, 1), (1, 2, 2)])
    def test_tiling_changes_expectations_and_patches_only(self, times):
        self.assert_unchanged(np.tile(self.P, times), np.tile(self.MASK, times), but={"idc", "pla"})

    def test_a_new_axis_changes_nothing(self):
        self.assert_unchanged(self.P[None, :, :, :, None], self.MASK[None, :, :, :, None])


def test_assess_adds_bounds_and_size():
    p = logit_normal((30, 20))
    found = assess(p, p > 0.3, EVERYTHING)
    assert found.scores == score(p, p > 0.3, EVERYTHING)
    assert close(found.bounds.relative_error, dice_bounds(p, p > 0.3).relative_error)
    assert found.foreground_ratio == np.mean(p > 0.3)


class TestBatch:
    P = logit_normal((5, 9, 8))

    @pytest.mark.parametrize("mask", [None, np.random.default_rng(0).random((5, 9, 8)) < 0.3])
    def test_equals_one_map_after_the_other(self, mask):
        found = score_batch(self.P, mask, EVERYTHING, threshold=0.4)
        for i, p in enumerate(self.P):
            alone = score(p, None if mask is None else mask[i], EVERYTHING, threshold=0.4)
            assert {name: values[i] for name, values in found.items()} == alone
        assert {values.dtype for values in found.values()} == {np.dtype(float)}

    @pytest.mark.parametrize("shape", [(3,), (), (0, 4, 4)])
    def test_needs_a_batch_axis_and_a_map(self, shape):
        with pytest.raises(EmptyArrayError, match="expected a batch axis and at least one map, got shape"):
            score_batch(np.zeros(shape))

    def test_mask_of_another_shape(self):
        with pytest.raises(MaskShapeError, match=r"expected the batch's shape \(5, 9, 8\), got \(9, 8\)"):
            score_batch(self.P, np.zeros((9, 8)))

    def test_one_bad_map_is_refused(self):
        p = self.P.copy()
        p[3, 2, 1] = 2
        with pytest.raises(ProbabilityRangeError, match=r"got 2 at index \(2, 1\)"):
            score_batch(p, estimators=["amsp"])


ORGANS = ["background", "liver", "tumour", "spleen"]


def softmax_of(shape, seed=0):
    logits = np.random.default_rng(seed).normal(0, 3, (4, *shape))
    logits[3] = -9  # the spleen is nowhere
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum(0)


class TestSoftmaxClasses:
    P = softmax_of((12, 13))

    def test_each_class_is_scored_with_its_part_of_the_labels(self):
        found = score_classes(self.P, ORGANS, estimators=EVERYTHING)
        labels = self.P.argmax(0)
        assert found.predicted == ("liver", "tumour")
        assert list(found.classes) == ["liver", "tumour", "spleen"]
        for channel, name in ((1, "liver"), (2, "tumour")):
            assert found.classes[name] == score(self.P[channel], labels == channel, EVERYTHING)

    def test_a_class_neither_predicted_nor_probable_is_absent(self):
        assert score_classes(self.P, ORGANS).classes["spleen"] is None

    def test_a_class_that_is_probable_but_not_predicted_is_present(self):
        found = score_classes(self.P, ORGANS, mask=np.zeros((12, 13), int), threshold=0.2)
        assert found.classes["liver"]["sdc"] == 0
        assert found.predicted == ()
        assert found.case is None

    def test_the_case_is_the_mean_over_predicted_classes(self):
        found = score_classes(self.P, ORGANS, estimators=["sdc", "ane"])
        for name in ("sdc", "ane"):
            mean = np.mean([found.classes[organ][name] for organ in ("liver", "tumour")])
            assert math.isclose(found.case[name], mean, rel_tol=1e-15)

    @pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
    def test_labels_that_are_given_win(self, dtype):
        labels = np.random.default_rng(1).integers(0, 3, (12, 13)).astype(dtype)
        found = score_classes(self.P, ORGANS, labels, ["sdc"])
        assert found.classes["tumour"] == score(self.P[2], labels == 2, ["sdc"])

    @pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
    def test_types(self, dtype):
        p = (255 * self.P).round().astype(dtype) if dtype == "uint8" else self.P.astype(dtype)
        found = score_classes(p, ORGANS, estimators=["sdc"])
        assert found.classes["liver"] == score(p[1], p.argmax(0) == 1, ["sdc"])

    def test_a_one_hot_map_is_a_softmax(self):
        p = np.arange(4)[:, None] == np.array([0, 1, 1, 2, 2, 2])
        found = score_classes(p, ORGANS)
        assert (found.case["sdc"], found.predicted) == (1, ("liver", "tumour"))

    @pytest.mark.parametrize("p", [P.transpose(1, 2, 0)[:4], P * 0.9, P + 0.1 * (P < 0.8), np.zeros((4, 3))])
    def test_sums_other_than_1(self, p):
        with pytest.raises(
            NotNormalisedError, match=r"sums run from .* Move the class axis to the front.*independent=True"
        ):
            score_classes(p, ORGANS)

    @pytest.mark.parametrize("names", [ORGANS[:3], [*ORGANS, "kidney"], ["background", "a", "a", "b"], []])
    def test_as_many_names_as_channels(self, names):
        with pytest.raises(ParameterError, match="names: expected 4 different names, got"):
            score_classes(self.P, names)

    def test_labels_of_another_shape(self):
        with pytest.raises(MaskShapeError, match=r"expected labels of shape \(12, 13\)"):
            score_classes(self.P, ORGANS, np.zeros((13, 12)))

    @pytest.mark.parametrize("channel", range(4))
    @pytest.mark.parametrize("value", [np.nan, -3.0, np.inf])
    def test_bad_values_in_any_channel(self, channel, value):
        p = softmax_of((70, 80))
        p[channel, 41, 43] = value
        with pytest.raises(ProbabilityRangeError, match=r"at index \(41, 43\)"):
            score_classes(p, ORGANS)

    def test_signed_integers(self):
        with pytest.raises(ProbabilityTypeError):
            score_classes(np.ones((4, 3), int), ORGANS)


class TestIndependentClasses:
    P = logit_normal((3, 10, 11))
    REGIONS = ("whole", "core", "rim")

    def test_regions_may_overlap(self):
        found = score_classes(self.P, self.REGIONS, independent=True, estimators=EVERYTHING, threshold=0.3)
        for channel, name in enumerate(self.REGIONS):
            assert found.classes[name] == score(self.P[channel], estimators=EVERYTHING, threshold=0.3)
        assert found.predicted == self.REGIONS

    def test_masks_that_are_given_win(self):
        masks = np.random.default_rng(0).random(self.P.shape) < 0.2
        found = score_classes(self.P, self.REGIONS, masks, ["sdc"], independent=True)
        assert found.classes["rim"] == score(self.P[2], masks[2], ["sdc"])

    def test_masks_of_another_shape(self):
        with pytest.raises(MaskShapeError, match="expected one mask a channel"):
            score_classes(self.P, self.REGIONS, np.zeros((10, 11)), independent=True)

    def test_labels_are_not_masks(self):
        with pytest.raises(NotBinaryError):
            score_classes(self.P, self.REGIONS, np.full(self.P.shape, 2), independent=True)

    def test_absent_regions_do_not_count(self):
        p = self.P.copy()
        p[1] = 0.01
        found = score_classes(p, self.REGIONS, independent=True)
        assert found.classes["core"] is None
        assert found.predicted == ("whole", "rim")
        mean = (found.classes["whole"]["sdc"] + found.classes["rim"]["sdc"]) / 2
        assert math.isclose(found.case["sdc"], mean, rel_tol=1e-15)


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_without_a_channel_are_refused(label):
    p = np.full((3, 4), 1 / 3)
    with pytest.raises(MaskError, match="from 0 to 2"):
        score_classes(p, ["background", "liver", "tumour"], np.array([0, 1, 2, label]))


def test_eight_bit_softmax_of_many_classes_counts_as_normalised():
    p = np.random.default_rng(0).dirichlet(np.ones(100), size=50).T
    levels = np.round(p * 255).astype(np.uint8)
    assert score_classes(levels, [str(i) for i in range(100)]).predicted
