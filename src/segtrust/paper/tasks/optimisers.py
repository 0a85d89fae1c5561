"""Optimisers and learning rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from segtrust.paper.tasks.task import Recipe

__all__ = ["BertAdam", "clip_gradients", "new_optimiser", "rate_at"]

_WARM_UP = 500
"""Steps."""
_POWER = 0.9


class BertAdam(torch.optim.Optimizer):
    """Adam without the correction of its first steps, and with weight decay apart from the gradient.

    Parameters
    ----------
    parameters
        As for any optimiser.
    lr, weight_decay
        The decay is multiplied by the rate.
    """

    def __init__(self, parameters: Any, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Change the weights."""
        for group, weight in self._weights():
            state = self.state[weight]
            if not state:
                state |= {"mean": torch.zeros_like(weight), "square": torch.zeros_like(weight)}
            state["mean"].mul_(0.9).add_(weight.grad, alpha=0.1)
            state["square"].mul_(0.999).addcmul_(weight.grad, weight.grad, value=0.001)
            change = state["mean"] / (state["square"].sqrt() + 1e-6) + group["weight_decay"] * weight
            weight.sub_(change, alpha=group["lr"])

    def _weights(self) -> Iterator[tuple[dict[str, Any], Tensor]]:
        for group in self.param_groups:
            yield from ((group, weight) for weight in group["params"] if weight.grad is not None)


def new_optimiser(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """Make the optimiser of a recipe, with a weight decay of its own for a backbone."""
    decays: dict[float, list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        has_own = recipe.backbone_decay is not None and "backbone" in name
        decays.setdefault(recipe.backbone_decay if has_own else recipe.weight_decay, []).append(weight)  # type: ignore[arg-type]
    groups = [{"params": weights, "weight_decay": decay} for decay, weights in decays.items()]
    kinds: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "bert-adam": BertAdam}
    return kinds[recipe.optimiser](groups, lr=recipe.learning_rate)  # type: ignore[no-any-return]


def rate_at(recipe: Recipe, step: int, *, steps: int, epochs: int) -> float:
    """Give the learning rate of a step, counted from 0, of ``steps`` an epoch.

    Examples
    --------
    >>> recipe = Recipe(learning_rate=1e-4, schedule="cosine", final_rate=1e-5)
    >>> f"{rate_at(recipe, 0, steps=10, epochs=4):.2g}, {rate_at(recipe, 20, steps=10, epochs=4):.2g}"
    '0.0001, 5.5e-05'
    """
    total = steps * epochs
    share = step / total
    if recipe.schedule == "cosine":
        turn = (1.0 + math.cos(math.pi * (step // steps) / epochs)) / 2.0
        return recipe.final_rate + (recipe.learning_rate - recipe.final_rate) * turn
    if recipe.schedule == "polynomial":
        return float(recipe.learning_rate * (1.0 - share) ** _POWER)
    if recipe.schedule == "warmup-linear":
        # Up to the full rate, and from there down; a training that is shorter than that never gets there.
        return recipe.learning_rate * (
            step / _WARM_UP if step < _WARM_UP else (total - step) / (total - _WARM_UP)
        )
    return recipe.learning_rate


def clip_gradients(recipe: Recipe, model: nn.Module) -> None:
    """Keep gradients within the limits of a recipe."""
    weights = [weight for weight in model.parameters() if weight.grad is not None]
    if recipe.clip_value:
        nn.utils.clip_grad_value_(weights, recipe.clip_value)
    if recipe.clip_norm:
        nn.utils.clip_grad_norm_(weights, recipe.clip_norm)
    if recipe.clip_tensor_norm:
        for weight in weights:
            nn.utils.clip_grad_norm_([weight], recipe.clip_tensor_norm)
