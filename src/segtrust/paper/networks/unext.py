"""UNeXt: convolutions outside, shifted multilayer perceptrons inside."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.paper.networks.blocks import (
    DepthwiseConv,
    PatchEmbedding,
    initialise,
    maps_of,
    tokens_of,
    upsampled,
)
from segtrust.paper.networks.network import Network

__all__ = ["UNeXt"]

_GROUPS = 5
_REACH = _GROUPS // 2
_PADDINGS = {1: (0, 0, 0, 0, _REACH, _REACH), 2: (0, 0, _REACH, _REACH)}


def _shifted(tokens: Tensor, axis: int) -> Tensor:
    """Move five groups of channels by -2 to 2 places along an axis; zeros come in from outside."""
    groups = F.pad(tokens, _PADDINGS[axis]).chunk(_GROUPS, dim=-1)
    length = tokens.shape[axis]
    moved = [group.narrow(axis, 2 * _REACH - place, length) for place, group in enumerate(groups)]
    return torch.cat(moved, dim=-1)


class _ShiftedMLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, width)
        self.dwconv = DepthwiseConv(width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Mix rows, then columns."""
        tokens = F.gelu(self.dwconv(self.fc1(_shifted(tokens, 1))))
        mixed: Tensor = self.fc2(_shifted(tokens, 2))
        return mixed


class _ShiftedBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm2 = nn.LayerNorm(width)
        self.mlp = _ShiftedMLP(width)
        self.apply(initialise)

    def forward(self, tokens: Tensor) -> Tensor:
        """Add what the perceptron makes of the normalised tokens."""
        mixed: Tensor = self.mlp(self.norm2(tokens))
        return tokens + mixed


def _stage(width: int) -> nn.Sequential:
    return nn.Sequential(_ShiftedBlock(width))


def _patches(channels: int, width: int) -> PatchEmbedding:
    embedding = PatchEmbedding(channels, width, kernel_size=3, stride=2)
    embedding.apply(initialise)
    return embedding


def _conv(channels: int, width: int) -> nn.Conv2d:
    return nn.Conv2d(channels, width, 3, padding=1)


class UNeXt(Network):
    """UNeXt of 1.5 million parameters: (N, 3, H, W) to logits (N, 1, H, W).

    References
    ----------
    Valanarasu and Patel, "UNeXt: MLP-based rapid medical image segmentation network", MICCAI 2022.
    """

    name = "unext"

    def __init__(self) -> None:
        super().__init__()
        self._add_encoder()
        self._add_decoder()

    def _add_encoder(self) -> None:
        self.encoder1, self.ebn1 = _conv(3, 16), nn.BatchNorm2d(16)
        self.encoder2, self.ebn2 = _conv(16, 32), nn.BatchNorm2d(32)
        self.encoder3, self.ebn3 = _conv(32, 128), nn.BatchNorm2d(128)
        self.patch_embed3, self.block1, self.norm3 = _patches(128, 160), _stage(160), nn.LayerNorm(160)
        self.patch_embed4, self.block2, self.norm4 = _patches(160, 256), _stage(256), nn.LayerNorm(256)

    def _add_decoder(self) -> None:
        self.decoder1, self.dbn1 = _conv(256, 160), nn.BatchNorm2d(160)
        self.dblock1, self.dnorm3 = _stage(160), nn.LayerNorm(160)
        self.decoder2, self.dbn2 = _conv(160, 128), nn.BatchNorm2d(128)
        self.dblock2, self.dnorm4 = _stage(128), nn.LayerNorm(128)
        self.decoder3, self.dbn3 = _conv(128, 32), nn.BatchNorm2d(32)
        self.decoder4, self.dbn4 = _conv(32, 16), nn.BatchNorm2d(16)
        self.decoder5 = _conv(16, 16)
        self.final = nn.Conv2d(16, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Give logits (N, 1, H, W)."""
        self.check_images(images)
        *skips, deepest = self._encoded(images)
        logits: Tensor = self.final(self._decoded(deepest, skips))
        return logits

    def foreground(self, images: Tensor) -> Tensor:
        """Give the logits themselves."""
        return self(images)  # type: ignore[no-any-return]

    def _encoded(self, images: Tensor) -> list[Tensor]:
        """Give maps of 1/2 to 1/32 of the side."""
        maps = [images]
        for conv, norm in (
            (self.encoder1, self.ebn1),
            (self.encoder2, self.ebn2),
            (self.encoder3, self.ebn3),
        ):
            maps.append(F.relu(F.max_pool2d(norm(conv(maps[-1])), 2)))
        for embedding, block, layer_norm in (
            (self.patch_embed3, self.block1, self.norm3),
            (self.patch_embed4, self.block2, self.norm4),
        ):
            maps.append(maps_of(layer_norm(block(embedding(maps[-1])))))
        return maps[1:]

    def _decoded(self, maps: Tensor, skips: list[Tensor]) -> Tensor:
        eighth, quarter, half = skips[2::-1]
        maps = skips[3] + F.relu(upsampled(self.dbn1(self.decoder1(maps)), 2))
        maps = maps_of(self.dnorm3(self.dblock1(tokens_of(maps))))
        maps = eighth + F.relu(upsampled(self.dbn2(self.decoder2(maps)), 2))
        maps = maps_of(self.dnorm4(self.dblock2(tokens_of(maps))))
        maps = quarter + F.relu(upsampled(self.dbn3(self.decoder3(maps)), 2))
        maps = half + F.relu(upsampled(self.dbn4(self.decoder4(maps)), 2))
        return F.relu(upsampled(self.decoder5(maps), 2))
