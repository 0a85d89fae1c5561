"""From prepared images to maps of probabilities, for validation and prediction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.paper.networks.network import Segmenter
from segtrust.paper.tasks.batches import in_channels
from segtrust.paper.tasks.preparing import PreparedCase
from segtrust.paper.tasks.task import Task

__all__ = ["Mapped", "as_input", "map_cases"]

_TOGETHER = 8
"""Pictures that go through the network together."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """A case, its map of probabilities and its labels, of the same shape."""

    case: PreparedCase
    probabilities: Any
    labels: Any


def as_input(task: Task, images: Any, device: torch.device) -> Tensor:
    """Give normalised images on a device, at the size at which the network sees them."""
    found = torch.from_numpy(np.ascontiguousarray(images)).to(device)
    if task.input_size is not None and tuple(found.shape[2:]) != task.input_size:
        found = F.interpolate(found, size=task.input_size, mode="bilinear")
    return found.contiguous(memory_format=torch.channels_last) if found.ndim == 4 else found


def map_cases(
    task: Task,
    model: Segmenter,
    cases: Sequence[PreparedCase],
    *,
    channels: int,
    only: Collection[str] | None = None,
) -> Iterator[Mapped]:
    """Give the maps of cases one after the other; pictures of the same size go through together.

    Parameters
    ----------
    task, model, cases
        What is mapped, and by what.
    channels
        Of the network's images.
    only
        Cases that are wanted; all where it is not given. Their neighbours go through with them all the same:
        so maps do not depend on where a run was stopped, not even in their last digits.
    """
    device = next(model.parameters()).device
    together = _TOGETHER if task.dimensions == 2 else 1
    for group in (cases[at : at + together] for at in range(0, len(cases), together)):
        if only is not None and not any(case.case in only for case in group):
            continue
        loaded = ((case, *case.load()) for case in group)
        for _, alike in groupby(loaded, key=lambda each: each[1].shape[1:]):
            chosen = list(alike)
            images = np.stack([in_channels(image, channels) for _, image, _ in chosen])
            inputs = as_input(task, task.normalise(images), device)
            maps = model.probabilities(inputs, size=images.shape[2:]).float().cpu().numpy()
            for (case, _, labels), p in zip(chosen, maps, strict=True):
                if only is None or case.case in only:
                    yield Mapped(case, p, labels)
