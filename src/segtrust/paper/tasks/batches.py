"""Batches of prepared cases.

Random numbers depend on seed, epoch and place only, so any epoch can be made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.paper.tasks.preparing import PreparedCase
from segtrust.paper.tasks.task import Recipe, Task

__all__ = ["Batches", "in_channels"]


def in_channels(image: Any, channels: int) -> Any:
    """Repeat a grey image as often as the network has channels.

    Examples
    --------
    >>> in_channels(np.zeros((1, 2, 2)), 3).shape
    (3, 2, 2)
    """
    return image if image.shape[0] == channels else np.broadcast_to(image, (channels, *image.shape[1:]))


@dataclass(frozen=True)
class Batches:
    """The training cases of a task, in another order and changed otherwise in each epoch.

    Attributes
    ----------
    task, recipe, cases
        What is trained on.
    channels
        Of the network's images.
    seed
        Of order and augmentation.
    """

    task: Task
    recipe: Recipe
    cases: Sequence[PreparedCase]
    channels: int
    seed: int

    def __len__(self) -> int:
        """Batches of an epoch; the last is left out where it would be smaller than the others."""
        return max(1, len(self.cases) * self.recipe.patches // self.recipe.batch)

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        """Give normalised images (N, C, *spatial) and targets of one epoch, float32."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.cases) * self.recipe.patches)
        for at in range(len(self)):
            chosen = range(at * self.recipe.batch, min((at + 1) * self.recipe.batch, len(order)))
            pairs = [self._pair(order[place], number, place) for place in chosen]
            images = np.stack([image for image, _ in pairs])
            labels = np.stack([labels for _, labels in pairs])
            yield self.task.normalise(images), self.task.target(labels)

    def _pair(self, index: int, epoch: int, place: int) -> tuple[Any, Any]:
        image, labels = self.cases[index % len(self.cases)].load()
        rng = np.random.default_rng([self.seed, epoch, place])
        image, labels = self.recipe.augment(image, labels, self.task.size, rng)
        return in_channels(image, self.channels), labels
