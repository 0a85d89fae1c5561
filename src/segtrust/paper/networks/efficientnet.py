"""EfficientNet-B4 with a first convolution of stride 1: the backbone of Segtran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from monai.networks.nets.efficientnet import MBConvBlock
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

__all__ = ["EfficientNetB4"]

_EPS, _MOMENTUM = 1e-3, 0.01
_DROP_CONNECT = 0.2
_PUBLISHED_SIDE = 190
"""Side of the maps after a first convolution of stride 2 of images of 380 pixels. All paddings are made for
it, and stay as they are for images of other sizes."""


@dataclass(frozen=True)
class _Stage:
    blocks: int
    width: int
    kernel_size: int
    stride: int
    expansion: int = 6


_STAGES = (
    _Stage(2, 24, kernel_size=3, stride=1, expansion=1),
    _Stage(4, 32, kernel_size=3, stride=2),
    _Stage(4, 56, kernel_size=5, stride=2),
    _Stage(6, 112, kernel_size=3, stride=2),
    _Stage(6, 160, kernel_size=5, stride=1),
    _Stage(8, 272, kernel_size=5, stride=2),
    _Stage(2, 448, kernel_size=3, stride=1),
)
_LAST_BLOCKS = (1, 5, 9, 21)
"""Those whose maps are given, beside the last map of all."""


def _blocks(channels: int) -> Iterator[MBConvBlock]:
    side, place = _PUBLISHED_SIDE, 0
    total = sum(stage.blocks for stage in _STAGES)
    for stage in _STAGES:
        for number in range(stage.blocks):
            stride = stage.stride if number == 0 else 1
            yield MBConvBlock(
                spatial_dims=2,
                in_channels=channels,
                out_channels=stage.width,
                kernel_size=stage.kernel_size,
                stride=stride,
                image_size=[side, side],
                expand_ratio=stage.expansion,
                se_ratio=0.25,
                norm=("batch", {"eps": _EPS, "momentum": _MOMENTUM}),
                drop_connect_rate=_DROP_CONNECT * place / total,
            )
            channels, side, place = stage.width, ceil(side / stride), place + 1


class EfficientNetB4(nn.Module):
    """EfficientNet-B4: (N, 3, H, W) to maps of 24, 32, 56, 160 and 1792 channels.

    They have 1, 1/2, 1/4, 1/8 and 1/16 of the side. The classifier ``_fc`` is only there because published
    checkpoints hold it.

    References
    ----------
    Tan and Le, "EfficientNet: Rethinking model scaling for convolutional neural networks", ICML 2019.
    """

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = nn.Conv2d(3, 48, 3, padding=1, bias=False)
        self._bn0 = nn.BatchNorm2d(48, _EPS, _MOMENTUM)
        self._blocks = nn.ModuleList(_blocks(48))
        self._conv_head = nn.Conv2d(448, 1792, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(1792, _EPS, _MOMENTUM)
        self._fc = nn.Linear(1792, 1000)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Give the five maps, the largest first."""
        maps, found = F.silu(self._bn0(self._conv_stem(images))), []
        for place, block in enumerate(self._blocks):
            maps = block(maps)
            if place in _LAST_BLOCKS:
                found.append(maps)
        return [*found, F.silu(self._bn1(self._conv_head(maps)))]
