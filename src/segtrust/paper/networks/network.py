"""What the networks have in common: images in, one map of foreground probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.errors import ParameterError

__all__ = ["Ensemble", "Network", "Segmenter", "stretched"]

_LINEAR = {2: "bilinear", 3: "trilinear"}


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and the like off, and afterwards to what it was."""
    were_training = [each for each in model.modules() if each.training]
    model.eval()
    try:
        yield
    finally:
        for each in were_training:  # one by one: some layers may be frozen
            each.training = True


class Segmenter(nn.Module, ABC):
    """Whatever gives one map of foreground probabilities an image."""

    @abstractmethod
    def probabilities(self, images: Tensor, *, size: tuple[int, ...] | None = None) -> Tensor:
        """Give the foreground probabilities of a batch, (N, *spatial), without gradients, in evaluation mode.

        Parameters
        ----------
        images
            (N, C, *spatial), normalised as the network was trained.
        size
            Spatial size of the maps, where it is not that of the images. Logits are interpolated, not
            probabilities.
        """


class Network(Segmenter):
    """A network of the paper."""

    name: ClassVar[str]
    """Of the registry."""
    channels: ClassVar[int] = 3
    """Channels of an image."""
    dimensions: ClassVar[int] = 2
    """Spatial axes of an image."""
    divisor: ClassVar[int] = 32
    """The sides of an image are multiples of it."""
    backbone_extras: ClassVar[tuple[str, ...]] = ()
    """How the names of a published backbone's tensors begin that have no place here."""

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Give logits, as the training loss takes them."""

    @abstractmethod
    def foreground(self, images: Tensor) -> Tensor:
        """Give the logits of the foreground, (N, 1, *spatial)."""

    def probabilities(self, images: Tensor, *, size: tuple[int, ...] | None = None) -> Tensor:
        """See `Segmenter.probabilities`."""
        with torch.no_grad(), _evaluating(self):
            logits = self.foreground(images)
            if size is not None and tuple(size) != tuple(logits.shape[2:]):
                logits = F.interpolate(logits, size=tuple(size), mode=_LINEAR[self.dimensions])
            return logits[:, 0].sigmoid()

    def check_images(self, images: Tensor) -> None:
        """Refuse a batch of another layout, or with sides that do not come out even."""
        shape = tuple(images.shape)
        spatial = shape[2:]
        fits = len(spatial) == self.dimensions and shape[1] == self.channels
        if not fits or any(side % self.divisor for side in spatial):
            sides = "DHW"[-self.dimensions :]
            raise ParameterError(
                f"images: expected (N, {self.channels}, {', '.join(sides)}) with sides that are multiples of "
                f"{self.divisor}, got {shape}. Resize or pad them first."
            )

    def advice(self, missing: Collection[str], unexpected: Collection[str]) -> str:
        """Say what may help where a checkpoint has other names; empty: nothing known."""
        return ""

    def check_weights(self, weights: Mapping[str, Tensor], source: str) -> None:
        """Refuse weights that have the right names and shapes, and wrong values."""


class Ensemble(Segmenter):
    """Several networks as one: the mean of their probabilities, pixel by pixel.

    Parameters
    ----------
    members
        Networks for the same images, at least one.
    """

    def __init__(self, members: Iterable[Segmenter]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if not self.members:
            raise ParameterError("members: expected at least one network, got none.")

    @property
    def channels(self) -> int:
        """Channels of an image, as of the first member."""
        return int(next(iter(self.members)).channels)  # type: ignore[arg-type]

    def probabilities(self, images: Tensor, *, size: tuple[int, ...] | None = None) -> Tensor:
        """See `Segmenter.probabilities`; one member after the other."""
        first, *others = cast(Iterable[Segmenter], self.members)
        total = first.probabilities(images, size=size)
        for member in others:
            total += member.probabilities(images, size=size)
        return total / len(self.members)


def stretched(p: Tensor) -> Tensor:
    """Stretch each map (N, *spatial) to [0, 1], as the published maps of Polyp-PVT are.

    A stretched map is no longer made of probabilities: one pixel of every image is certain.

    Examples
    --------
    >>> stretched(torch.tensor([[0.25, 0.5, 0.75]]))
    tensor([[0.0000, 0.5000, 1.0000]])
    """
    flat = p.flatten(1)
    low, high = (each.reshape(-1, *[1] * (p.ndim - 1)) for each in (flat.amin(1), flat.amax(1)))
    return (p - low) / (high - low + 1e-8)
