"""Segtran for images: EfficientNet-B4, and a transformer between two pyramids of its maps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.errors import ParameterError, WrongContentError
from segtrust.paper.networks.efficientnet import EfficientNetB4
from segtrust.paper.networks.network import Network
from segtrust.paper.networks.squeeze_expand import AttentionOptions, TokenTransformer

__all__ = ["Segtran", "Structure"]

Structure = Literal["disc", "cup"]
"""Which foreground: the optic disc with the cup in it, or the cup."""

_CHANNELS = {"disc": 1, "cup": 2}
_WIDTHS = (1792, 1792, 896, 448)
_CELL = 8
"""Side of a token in pixels."""
_BIASES = (".query.bias", ".key.bias")


class Segtran(Network):
    """Segtran of 99 million parameters: (N, 3, H, W) to logits of background, disc and cup, (N, 3, H, W).

    The disc holds the cup: each channel has a sigmoid of its own.

    Parameters
    ----------
    structure
        Of which `probabilities` are given.
    tied
        Whether queries and keys are made by the same matrices, as in the published training.
    qk_bias
        Whether these have biases. The authors' weights for REFUGE have none.

    References
    ----------
    Li et al., "Medical image segmentation using squeeze-and-expansion transformers", IJCAI 2021.
    """

    name = "segtran"

    def __init__(self, *, structure: Structure = "cup", tied: bool = True, qk_bias: bool = True) -> None:
        super().__init__()
        if structure not in _CHANNELS:
            raise ParameterError(
                f"structure: expected one of {', '.join(get_args(Structure))}, got {structure!r}."
            )
        self.structure, self.tied = structure, tied
        self.voxel_fusion = TokenTransformer(_WIDTHS, AttentionOptions(tied, qk_bias))
        self.backbone = EfficientNetB4()
        self._add_pyramids()
        self._add_unused()

    def _add_pyramids(self) -> None:
        self.in_fpn34_conv, self.in_gn4b = nn.Conv2d(160, 1792, 1), nn.GroupNorm(8, 1792)
        self.out_fpn12_conv, self.out_gn2b = nn.Conv2d(32, 56, 1), nn.GroupNorm(8, 56)
        self.out_fpn23_conv, self.out_gn3b = nn.Conv2d(56, 160, 1), nn.GroupNorm(8, 160)
        self.out_fpn_bridgeconv = nn.Conv2d(160, 448, 1)
        self.out_conv = nn.Conv2d(448, 3, 1)

    def _add_unused(self) -> None:
        """Add what is in every checkpoint and has no effect."""
        self.in_fpn23_conv, self.in_gn3b = nn.Conv2d(56, 160, 1), nn.GroupNorm(8, 160)
        self.out_fpn34_conv, self.out_gn4b = nn.Conv2d(160, 1792, 1), nn.GroupNorm(8, 1792)

    def forward(self, images: Tensor) -> Tensor:
        """Give logits (N, 3, H, W)."""
        self.check_images(images)
        _, *maps = self.backbone(images)
        context = self._context(images, maps)
        logits = self.out_conv(self.out_fpn_bridgeconv(self._details(maps)) + _resized(context, maps[0]))
        return _resized(logits, images)

    def foreground(self, images: Tensor) -> Tensor:
        """Give the logits of the structure."""
        channel = _CHANNELS[self.structure]
        return self(images)[:, channel : channel + 1]  # type: ignore[no-any-return]

    def _context(self, images: Tensor, maps: list[Tensor]) -> Tensor:
        """Give what the transformer finds, at an eighth of the side."""
        *_, middle, deepest = maps
        grid = self.in_gn4b(self.in_fpn34_conv(middle) + _resized(deepest, middle))
        present = F.avg_pool2d(images.abs(), _CELL).sum(1).flatten(1).unsqueeze(2) > 0
        tokens = self.voxel_fusion(grid.flatten(2).transpose(1, 2), _positions(grid), present)
        return tokens.transpose(1, 2).unflatten(2, grid.shape[2:])  # type: ignore[no-any-return]

    def _details(self, maps: list[Tensor]) -> Tensor:
        """Join the maps at half to an eighth of the side, at half of it."""
        half, quarter, eighth, _ = maps
        joined = self.out_gn2b(self.out_fpn12_conv(half) + _resized(quarter, half))
        details: Tensor = self.out_gn3b(self.out_fpn23_conv(joined) + _resized(eighth, half))
        return details

    def advice(self, missing: Collection[str], unexpected: Collection[str]) -> str:
        """Tell weights with and without biases of queries and keys apart."""
        differing = [*missing, *unexpected]
        if not all(name.endswith(_BIASES) for name in differing) or (missing and unexpected):
            return ""
        return f"They fit another option: create('segtran', qk_bias={not missing})."

    def check_weights(self, weights: Mapping[str, Tensor], source: str) -> None:
        """Refuse queries and keys that differ, where they are to be the same."""
        for name in [each for each in weights if ".key." in each] if self.tied else ():
            query = name.replace(".key.", ".query.")
            if not torch.equal(weights[name], weights[query]):
                raise WrongContentError(
                    f"{source}: expected queries and keys of the same weights, got others in {name}. They "
                    "fit another option: create('segtran', tied=False)."
                )


def _resized(maps: Tensor, like: Tensor) -> Tensor:
    return F.interpolate(maps, size=like.shape[2:], mode="bilinear")


def _positions(grid: Tensor) -> Tensor:
    """Give the row and column of each token in pixels, (T, 2)."""
    sides = (torch.arange(side, dtype=grid.dtype, device=grid.device) for side in grid.shape[2:])
    return _CELL * torch.cartesian_prod(*sides)
