"""Several estimators of one map, or of a batch of them."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import (
    PatchLevel,
    SoftDice,
    ThresholdLevel,
    assess,
    dice_bounds,
    score,
    score_batch,
    soft_dice_confidence,
)
from segtrust.errors import (
    CaseValueError,
    EmptyArrayError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
    UnknownNameError,
)
from segtrust.kernels import host_maps
from segtrust.maps import EmptyPolicy, Prediction
from tests.references import close, logit_normal, pla, scores, tla

EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(0.3), PatchLevel(4)]
NAMES = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "tla", "pla"]


class TestScore:
    @pytest.mark.parametrize(
        ("shape", "threshold"), [((1,), 0.5), ((7, 9), 0.35), ((5, 6, 7), 0.5), ((40, 50, 30), 0.35)]
    )
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
        for name in ("count_map", "dice_statistics", "measure_map", "measure_with_patches"):
            original = getattr(host_maps, name)
            monkeypatch.setattr(
                host_maps, name, lambda *a, o=original, n=name, **k: passes.append(n) or o(*a, **k)
            )
        score(logit_normal((30, 40)), estimators=EVERYTHING)
        assert sorted(passes) == ["dice_statistics", "measure_with_patches"]

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
        with pytest.raises(UnknownNameError, match="Unknown estimator 'sdk'; available: aef, aef-sdc, amsp"):
            score(np.zeros(3), estimators=["sdk"])

    def test_results_of_one_name_would_hide_each_other(self):
        with pytest.raises(ParameterError, match="expected each name once"):
            score(np.zeros(3), estimators=[PatchLevel(3), PatchLevel(5)])


class TestInvariance:
    P = logit_normal((12, 14, 9))
    MASK = np.random.default_rng(2).random(P.shape) < 0.2

    @classmethod
    def setup_class(cls):
        cls.WHOLE = score(cls.P, cls.MASK, EVERYTHING)

    def assert_unchanged(self, p, mask, but=()):
        found = score(p, mask, EVERYTHING)
        changed = [
            name for name in NAMES if name not in but and not close(found[name], self.WHOLE[name], 1e-13)
        ]
        assert changed == []

    @pytest.mark.parametrize("seed", range(2))
    def test_permutations_change_patches_only(self, seed):
        places = np.random.default_rng(seed).permutation(self.P.size)
        self.assert_unchanged(self.P.ravel()[places], self.MASK.ravel()[places], but={"pla"})

    @pytest.mark.parametrize("axes", [(0,), (2,), (0, 1, 2)])
    def test_flips_change_nothing(self, axes):
        self.assert_unchanged(np.flip(self.P, axes), np.flip(self.MASK, axes))

    @pytest.mark.parametrize("axes", [(2, 1, 0), (1, 2, 0)])
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
    with pytest.raises(FrozenInstanceError):
        found.foreground_ratio = 0.5


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

    @pytest.mark.parametrize("p", [np.ma.masked_less(P, 0.1), None, ["a", "b"]])
    def test_what_is_no_batch_of_pixels(self, p):
        with pytest.raises(ParameterError, match="p: expected an array"):
            score_batch(p)

    def test_lists_are_arrays(self):
        found = score_batch(self.P.tolist(), (self.P > 0.3).tolist(), where=(self.P < 0.9).tolist())
        for name, values in score_batch(self.P, self.P > 0.3, where=self.P < 0.9).items():
            assert np.array_equal(found[name], values)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_confidence_without_rank_is_rejected(self, value):
        class Odd(SoftDice):
            name = "odd"

            def read(self, summary):
                return value

            def read_counts(self, counts):
                return counts.s * value

        calls = (
            lambda: score(self.P[0], estimators=Odd()),
            lambda: assess(self.P[0], estimators=Odd()),
            lambda: Odd()(self.P[0]),
            lambda: Odd().score(Prediction(self.P[0])),
            lambda: score_batch(self.P, estimators=Odd()),
        )
        for call in calls:
            with pytest.raises(CaseValueError, match="odd: expected a finite confidence from this estimator"):
                call()

    def test_mask_of_another_shape(self):
        with pytest.raises(MaskShapeError, match=r"expected the batch's shape \(5, 9, 8\), got \(9, 8\)"):
            score_batch(self.P, np.zeros((9, 8)))

    def test_one_bad_map_is_refused(self):
        p = self.P.copy()
        p[3, 2, 1] = 2
        with pytest.raises(ProbabilityRangeError, match=r"^p\[3\]: .* got 2 at index \(2, 1\)"):
            score_batch(p, estimators=["amsp"])

    def test_one_bad_mask_is_refused(self):
        masks = np.zeros((4, 3), int)
        masks[2, 1] = 7
        with pytest.raises(NotBinaryError, match=r"^mask\[2\]: expected only 0 and 1, got the values 7"):
            score_batch(np.full((4, 3), 0.5), masks)

    def test_a_wrong_type_is_that_of_the_whole_batch(self):
        with pytest.raises(ProbabilityTypeError, match=r"^p: expected float16, .* got int64"):
            score_batch(np.zeros((4, 3), int))


class TestBatchCountedTogether:
    """Batches that are counted in one call, compared with one map at a time."""

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "bool", ">f8"])
    @pytest.mark.parametrize("shape", [(1, 1), (9, 5), (5, 70, 65), (3, 4, 5, 6)])
    def test_equals_one_map_at_a_time(self, shape, dtype):
        rng = np.random.default_rng(len(shape))
        p = (rng.random(shape) ** 3 * (255 if dtype == "uint8" else 1)).astype(dtype)
        p[0] = 0
        drawn = rng.random(shape) < 0.3
        for mask in (None, drawn, drawn.astype(np.uint8), drawn.astype(np.float32)):
            found = st.score_batch(p, mask, ["sdc", "apc", "amsp"], threshold=0.3)
            for i in range(shape[0]):
                one = st.score(p[i], None if mask is None else mask[i], ["sdc", "apc", "amsp"], threshold=0.3)
                assert {name: values[i] for name, values in found.items()} == one

    @pytest.mark.parametrize("threads", [1, 2])
    def test_large_maps_and_other_layouts(self, threads):
        p = np.random.default_rng(0).random((3, 760, 700))
        with st.use_threads(threads):
            for batch in (p, p[:, ::2], np.asfortranarray(p[:, :50])):
                found = st.score_batch(batch, estimators=["sdc"])["sdc"]
                assert found.tolist() == [st.soft_dice_confidence(one) for one in batch]

    def test_empty_masks_that_agree(self):
        p = np.array([[0.1, 0.2], [0.9, 0.3]])
        found = st.score_batch(p, estimators=[st.SoftDice(empty="agree")])["sdc"]
        assert found.tolist() == [st.soft_dice_confidence(one, empty="agree") for one in p]

    @pytest.mark.parametrize("bad", [np.nan, 1.5, -1.0])
    def test_bad_values_name_the_map(self, bad):
        p = np.full((4, 3, 3), 0.5, np.float32)
        p[2, 1, 0] = bad
        with pytest.raises(st.errors.ProbabilityRangeError, match=r"^p\[2\]: .* at index \(1, 0\)"):
            st.score_batch(p, estimators=["sdc"])

    def test_bad_masks_name_the_map(self):
        mask = np.zeros((4, 3), np.uint8)
        mask[3, 1] = 2
        with pytest.raises(st.errors.NotBinaryError, match=r"^mask\[3\]: "):
            st.score_batch(np.full((4, 3), 0.5), mask, ["sdc"])
