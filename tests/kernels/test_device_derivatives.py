"""Derivatives of the confidences with respect to the probabilities of a torch map."""

from importlib.util import find_spec

import numpy as np
import pytest

import segtrust
from tests.references import logit_normal

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    torch.set_num_threads(1)  # several threads a test, and several tests, would wait for each other

DIFFERENTIABLE = {
    "soft_dice_confidence": segtrust.soft_dice_confidence,
    "ideal_dice_confidence": segtrust.ideal_dice_confidence,
    "expected_iou": segtrust.expected_iou,
    "expected_f_beta": lambda p: segtrust.expected_f_beta(p, beta=2.0),
    "average_max_probability": segtrust.average_max_probability,
    "average_class_probability": segtrust.average_class_probability,
    "average_negative_entropy": segtrust.average_negative_entropy,
    "patch_level_confidence": lambda p: segtrust.patch_level_confidence(p, size=2),
    "threshold_level_confidence": lambda p: segtrust.threshold_level_confidence(p, tau=0.5),
    "median_min_max_confidence": segtrust.median_min_max_confidence,
    "full_posterior_dice": lambda p: segtrust.full_posterior_dice(p, p.detach() >= 0.5),
    "sdc of an empty mask, agree": lambda p: segtrust.soft_dice_confidence(
        p, torch.zeros_like(p), empty="agree"
    ),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_are_right(name):
    generator = torch.Generator().manual_seed(2)
    p = torch.rand(4, 5, dtype=torch.float64, generator=generator) * 0.4 + 0.05
    p[1:3, 1:4] += 0.5
    assert torch.autograd.gradcheck(DIFFERENTIABLE[name], p.requires_grad_())


@pytest.mark.parametrize("name", ["soft_dice_confidence", "ideal_dice_confidence", "expected_iou"])
@pytest.mark.parametrize("mean", [-5.0, 0.0])
def test_derivatives_of_a_large_map_are_right(name, mean):
    p, direction = logit_normal((300, 301), mean=mean), np.random.default_rng(1).normal(size=(300, 301))
    direction *= p * (1 - p)
    mask, step = p >= 0.5, 1e-4
    confidence = getattr(segtrust, name)
    tensor = torch.from_numpy(p).requires_grad_()
    confidence(tensor, mask).backward()
    ahead, behind = (confidence(p + sign * step * direction, mask) for sign in (1, -1))
    assert float((tensor.grad.numpy() * direction).sum()) == pytest.approx(
        (ahead - behind) / (2 * step), rel=1e-6
    )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_at_the_ends_are_numbers(name):
    for values in ([0.0, 1.0, 0.3, 1.0, 0.0, 0.8], [0.0] * 6, [1.0] * 6, [0.5] * 6):
        p = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        confidence = DIFFERENTIABLE[name](p.reshape(2, 3))
        confidence.backward()
        # a confidence is NaN if the ground truth is certainly empty: then there is no posterior
        assert torch.isfinite(p.grad).all() or torch.isnan(confidence)


def test_derivatives_go_through_a_network():
    logits = torch.randn(30, 30, requires_grad=True)
    segtrust.soft_dice_confidence(torch.sigmoid(2.0 * logits)).backward()
    assert logits.grad.dtype == torch.float32
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad != 0).any()
