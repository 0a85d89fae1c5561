"""How long the torch module takes for a forward and backward pass, compared with the plain torch formula."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.timing import Ratio, shortest_times
from segtrust.integrations.torch import SoftDiceConfidence

__all__ = ["module_ratio", "plain_soft_dice"]

IMAGES, SIDE = 8, 256


def plain_soft_dice(p: Tensor) -> Tensor:
    """Return the SDC of each image of a batch by the formula alone, without checks, in the type of ``p``."""
    axes = tuple(range(1, p.ndim))
    mask = p >= 0.5
    return 2.0 * (p * mask).sum(axes) / (mask.sum(axes) + p.sum(axes))


def module_ratio(*, rounds: int = 30, threads: int = 1) -> Ratio:
    """Time the module with all its checks on a batch of 8 × 256² float32 probabilities.

    Parameters
    ----------
    rounds
        Number of turns of both candidates.
    threads
        Number of threads that torch uses.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        generator = torch.Generator().manual_seed(0)
        p = torch.rand(IMAGES, SIDE, SIDE, generator=generator).pow(3).requires_grad_()
        module = SoftDiceConfidence(from_logits=False, task="binary")

        def run(score: object) -> None:
            p.grad = None
            score(p).sum().backward()  # type: ignore[operator]

        times = shortest_times(
            {"module": lambda: run(module), "formula": lambda: run(plain_soft_dice)}, rounds=rounds
        )
    finally:
        torch.set_num_threads(before)
    return Ratio(
        "torch module, forward and backward",
        "plain torch formula",
        f"{IMAGES}×{SIDE}² float32, mask p >= 0.5, {threads} thread{'s' * (threads > 1)}",
        times["module"],
        times["module"] / times["formula"],
        "<= 1.5",
    )
