"""The torch module against the plain formula: the same numbers, in about the same time."""

from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from benchmarks.torch_module import module_ratio, plain_soft_dice
    from segtrust.integrations.torch import SoftDiceConfidence


def test_the_yardstick_is_the_module_without_checks():
    p = torch.rand(4, 20, 30, dtype=torch.float64, requires_grad=True)
    module = SoftDiceConfidence(from_logits=False, task="binary")
    torch.testing.assert_close(module(p), plain_soft_dice(p), rtol=1e-14, atol=0)
    derivatives = [torch.autograd.grad(score(p).sum(), p)[0] for score in (module, plain_soft_dice)]
    torch.testing.assert_close(*derivatives, rtol=1e-12, atol=0)


def test_the_ratio_is_measured():
    ratio = module_ratio(rounds=3)
    assert ratio.target == "<= 1.5"
    assert 0.0 < ratio.ratio < 6.0  # a noisy machine; `make bench` says whether the target is met
