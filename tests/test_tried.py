"""The Python section of the list of what stopped new users, tried again line by line.

Speed is measured by ``make bench``, not here; types are checked by ``make lint`` (tests/typing/user_code.py).
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import CaseLengthError, ParameterError, SegtrustWarning

RNG = np.random.default_rng(0)
DICE = np.clip(RNG.beta(8, 2, 400), 0, 1)
CONFIDENCE = np.clip(DICE + RNG.normal(0, 0.03, 400), 0, 1)
Y, X = np.ogrid[-32:32, -32:32]
MAP = (1 / (1 + np.exp(np.hypot(Y, X) - 15))).astype(np.float32)


@pytest.fixture(scope="module")
def policy():
    certificate = st.certify_threshold(CONFIDENCE[:300], dice=DICE[:300], target_risk=0.2)
    return st.Policy.from_certificate(certificate, st.Scoring("sdc"))


class TestFromAMapToADecision:
    """'There is no way from a map to a decision; Policy.decide takes one float from anywhere'."""

    def test_a_map_is_scored_as_the_policy_specifies(self, policy):
        result = policy.decide_map(MAP)
        assert result == "accept"
        assert result.confidence == st.soft_dice_confidence(MAP)
        assert policy.estimator() == st.SoftDice()

    def test_arrays_lists_and_columns(self, policy):
        expected = ["accept" if value >= policy.threshold else "defer" for value in CONFIDENCE[300:]]
        assert policy.decide(CONFIDENCE[300:]).tolist() == expected
        assert policy.decide(CONFIDENCE[300:].tolist()).tolist() == expected

    @pytest.mark.needs("pandas")
    def test_a_column_keeps_its_index(self, policy):
        import pandas

        column = pandas.Series([0.99, 0.01], index=["a", "b"], name="sdc")
        assert policy.decide(column).to_dict() == {"a": "accept", "b": "defer"}

    @pytest.mark.needs("torch")
    def test_the_librarys_own_tensor_result(self, policy):
        import torch

        assert policy.decide(st.soft_dice_confidence(torch.from_numpy(MAP))) == "accept"
        scores = st.score_batch(torch.from_numpy(np.stack([MAP, MAP * 0.0])), estimators="sdc")
        assert policy.decide(scores["sdc"]).tolist() == ["accept", "defer"]

    def test_what_does_not_fit_raises(self, policy):
        with pytest.raises(CaseLengthError, match="1-D"):
            policy.decide(CONFIDENCE[:, None])


@pytest.mark.needs("torch")
class TestTensors:
    """'CPU tensors take the slow path; fuse and Scaling.apply lose gradient and device'."""

    def test_the_compiled_path_gives_the_same_bits_as_a_tensor(self):
        import torch

        for function in (st.soft_dice_confidence, st.ideal_dice_confidence, st.patch_level_confidence):
            found = function(torch.from_numpy(MAP))
            assert isinstance(found, torch.Tensor)
            assert found.item() == function(MAP)

    def test_fuse_and_apply_keep_the_gradient(self):
        import torch

        p = torch.from_numpy(MAP).clamp(0.01, 0.99).requires_grad_()
        for fused in (st.fuse([p, p * 0.5]), st.TemperatureScaling(2.0).apply(p)):
            (gradient,) = torch.autograd.grad(fused.sum(), p)
            assert bool((gradient > 0).all())

    def test_binary_rejects_a_softmax_of_two_channels(self):
        import torch

        from segtrust.integrations.torch import SoftDiceConfidence

        module = SoftDiceConfidence(from_logits=False, task="binary")
        p = torch.from_numpy(MAP)
        with pytest.raises(ParameterError, match="multiclass"):
            module(torch.stack([1 - p, p])[None])

    def test_metrics_take_labels_with_a_channel_and_an_ignore_index(self):
        import torch

        from segtrust.integrations.torch import ConfidenceMetric

        p, truth = torch.from_numpy(MAP)[None, None], torch.from_numpy(MAP > 0.5).long()[None, None]
        truth[..., :5] = 255
        metric = ConfidenceMetric("pla", from_logits=False, task="multiclass", ignore_index=255)
        metric.update(torch.cat([1 - p, p], 1), truth)
        assert metric.compute().confidences.shape == (1, 2)


def test_a_mask_as_uint8_warns():
    """'A 0/1 mask scores 0.0 as uint8, without a warning, but 1.0 as bool or float'."""
    mask = MAP > 0.5
    with pytest.warns(SegtrustWarning, match="looks like a 0/1 mask"):
        assert st.soft_dice_confidence(mask.astype(np.uint8)) == 0.0
    assert st.soft_dice_confidence(mask) == 1.0


class TestLossOrDice:
    """'Half of the API takes a loss, the other half a Dice'."""

    def test_intervals_from_losses(self):
        right = st.ConformalDice().fit(CONFIDENCE, DICE)
        assert st.ConformalDice().fit(CONFIDENCE, loss=1 - DICE).to_dict() == right.to_dict()
        with pytest.warns(SegtrustWarning, match="less confident|more confident"):
            st.ConformalDice().fit(CONFIDENCE, 1 - DICE)

    def test_exactly_one_of_them(self):
        with pytest.raises(ParameterError, match="exactly one"):
            st.risk_coverage_curve(CONFIDENCE)
        with pytest.raises(ParameterError, match="exactly one"):
            st.risk_coverage_curve(CONFIDENCE, 1 - DICE, dice=DICE)

    def test_a_drift_test_names_its_samples(self):
        with pytest.raises(TypeError):
            st.drift_test(CONFIDENCE[:50], CONFIDENCE)
        assert not st.drift_test(reference=CONFIDENCE, new=CONFIDENCE[:50]).alarm


class TestSmallThings:
    """'Rejected: estimators="sdc", a single Target, two settings of one estimator. Missing: …'."""

    def test_estimators(self):
        assert st.score(MAP, estimators="sdc") == {"sdc": st.soft_dice_confidence(MAP)}
        two = st.score(MAP, estimators={"small": st.PatchLevel(5), "large": st.PatchLevel(20)})
        assert two["large"] < two["small"] < 0
        assert st.score(np.zeros((4, 4)), estimators="sdc", empty="agree") == {"sdc": 1.0}
        assert "sdc" in st.estimators()
        assert st.SoftDice()(MAP) == st.soft_dice_confidence(MAP)

    def test_a_single_target(self):
        cases = st.CalibrationCases(CONFIDENCE, dice=DICE)
        assert st.certify(cases, st.Target(0.3)) == st.certify(cases, [st.Target(0.3)])

    def test_pixels_that_do_not_count(self):
        p, where = MAP.copy(), np.ones(MAP.shape, bool)
        p[:5], where[:5] = np.nan, False
        assert st.soft_dice_confidence(p, where=where) == pytest.approx(st.soft_dice_confidence(p[5:]))

    @pytest.mark.needs("pandas")
    def test_batches_of_classes(self):
        p = np.stack([1 - MAP, MAP])
        scores = st.score_classes(np.stack([p, p]), ["Background", "lesion"], batch=True)
        assert len(scores.to_dataframe()) == 2

    @pytest.mark.needs("pandas")
    def test_results_show_themselves_briefly(self, policy):
        curve = st.risk_coverage_curve(CONFIDENCE, dice=DICE)
        for result in (curve, policy, st.drift_test(reference=CONFIDENCE, new=CONFIDENCE[:50])):
            assert len(repr(result)) < 400
            assert "<table>" in result._repr_html_()
        assert len(curve.to_dataframe()) == curve.coverages.size

    def test_one_way_of_saving(self, policy, tmp_path):
        for stored in (policy, st.TemperatureScaling(2.0), st.PatchLevel(7)):
            stored.save(tmp_path / "stored.json")
            assert st.load(tmp_path / "stored.json") == stored

    def test_odd_names_have_left_the_top_level(self):
        assert not {"Need", "Operation", "Standing", "Step", "Evidence", "HashedIds"} & set(st.__all__)
        with pytest.warns(DeprecationWarning, match="CalibrationPlan"):
            assert st.Need is st.CalibrationPlan

    def test_a_delta_of_95_per_cent_warns(self):
        with pytest.warns(SegtrustWarning, match=r"delta=0\.05"):
            st.certify_threshold(CONFIDENCE, dice=DICE, target_risk=0.3, delta=0.95)

    @pytest.mark.slow
    def test_warming_up_leaves_nothing_to_compile(self, tmp_path):
        code = (
            "import numpy as np, segtrust as st; from numba.core import event\n"
            "st.warm_up()\n"
            "with event.install_timer('numba:compile', lambda seconds: None) as timer:\n"
            "    p = np.eye(9, dtype=np.float32)\n"
            "    st.soft_dice_confidence(p); st.soft_dice_confidence(p, p > 0); st.ideal_dice_confidence(p)\n"
            "    st.score(p); st.score_batch(p[None]); st.score_classes(np.stack([1 - p, p]), ['a', 'b'])\n"
            "assert not timer.done, timer.duration"
        )
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
