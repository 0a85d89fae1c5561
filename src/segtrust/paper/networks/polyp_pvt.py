"""Polyp-PVT: a pyramid of transformers, and a decoder that joins its stages."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.paper.networks.blocks import upsampled
from segtrust.paper.networks.network import Network
from segtrust.paper.networks.pvt import PyramidTransformer

__all__ = ["PolypPVT"]

_WIDTH = 32
_STATES = 16
_NODES = 4
"""Nodes of the graph along a side."""


class PolypPVT(Network):
    """Polyp-PVT of 25 million parameters: (N, 3, H, W) to two maps of logits, (N, 1, H, W) each.

    Parameters
    ----------
    drop_path
        See `segtrust.paper.networks.pvt.PyramidTransformer`.

    References
    ----------
    Dong et al., "Polyp-PVT: Polyp segmentation with pyramid vision transformers", 2023.
    """

    name = "polyp-pvt"
    backbone_extras = ("head.",)

    def __init__(self, *, drop_path: float = 0.1) -> None:
        super().__init__()
        self.backbone = PyramidTransformer(drop_path=drop_path)
        self.Translayer2_0 = _ConvNorm(64, _WIDTH, 1)
        self.Translayer2_1 = _ConvNorm(128, _WIDTH, 1)
        self.Translayer3_1 = _ConvNorm(320, _WIDTH, 1)
        self.Translayer4_1 = _ConvNorm(512, _WIDTH, 1)
        self.CFM = _CascadedFusion()
        self.ca = _ChannelAttention(64)
        self.sa = _SpatialAttention()
        self.SAM = _SimilarityAggregation()
        self.out_SAM = nn.Conv2d(_WIDTH, 1, 1)
        self.out_CFM = nn.Conv2d(_WIDTH, 1, 1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Give the logits of the fused map, and of the same with what the first stage adds to it."""
        self.check_images(images)
        first, second, third, fourth = self.backbone(images)
        fused = self.CFM(self.Translayer4_1(fourth), self.Translayer3_1(third), self.Translayer2_1(second))
        details = upsampled(self.Translayer2_0(self._camouflaged(first)), 0.5, align_corners=True)
        refined = self.SAM(fused, details)
        return upsampled(self.out_CFM(fused), 8), upsampled(self.out_SAM(refined), 8)

    def foreground(self, images: Tensor) -> Tensor:
        """Give the sum of both."""
        fused, refined = self(images)
        return fused + refined  # type: ignore[no-any-return]

    def _camouflaged(self, maps: Tensor) -> Tensor:
        """Weigh the channels, then the places, of the first stage."""
        maps = maps * self.ca(maps)
        return maps * self.sa(maps)  # type: ignore[no-any-return]


class _ConvNorm(nn.Module):
    """A convolution that keeps the size, and a norm; no activation."""

    def __init__(self, channels: int, width: int, kernel_size: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, width, kernel_size, padding=kernel_size // 2, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, maps: Tensor) -> Tensor:
        """Give maps of another width."""
        normed: Tensor = self.bn(self.conv(maps))
        return normed


class _ChannelAttention(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // 16, 1, bias=False)
        self.fc2 = nn.Conv2d(channels // 16, channels, 1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        """Give a weight for each channel, from its mean and its largest value."""
        of_mean, of_most = (
            self.fc2(F.relu(self.fc1(pooled)))
            for pooled in (maps.mean((2, 3), keepdim=True), maps.amax((2, 3), keepdim=True))
        )
        return torch.sigmoid(of_mean + of_most)


class _SpatialAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        """Give a weight for each place, from the mean and the largest of its channels."""
        pooled = torch.cat([maps.mean(1, keepdim=True), maps.amax(1, keepdim=True)], dim=1)
        return torch.sigmoid(self.conv1(pooled))


class _CascadedFusion(nn.Module):
    """Joins three stages, the deepest first."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_upsample1 = _ConvNorm(_WIDTH, _WIDTH)
        self.conv_upsample2 = _ConvNorm(_WIDTH, _WIDTH)
        self.conv_upsample3 = _ConvNorm(_WIDTH, _WIDTH)
        self.conv_upsample4 = _ConvNorm(_WIDTH, _WIDTH)
        self.conv_upsample5 = _ConvNorm(2 * _WIDTH, 2 * _WIDTH)
        self.conv_concat2 = _ConvNorm(2 * _WIDTH, 2 * _WIDTH)
        self.conv_concat3 = _ConvNorm(3 * _WIDTH, 3 * _WIDTH)
        self.conv4 = _ConvNorm(3 * _WIDTH, _WIDTH)

    def forward(self, deep: Tensor, middle: Tensor, shallow: Tensor) -> Tensor:
        """Give one map of the shallow one's size."""
        raised = _doubled(deep)
        product = self.conv_upsample1(raised) * middle
        products = self.conv_upsample2(_doubled(raised)) * self.conv_upsample3(_doubled(middle)) * shallow
        joined = self.conv_concat2(torch.cat([product, self.conv_upsample4(raised)], dim=1))
        joined = self.conv_concat3(torch.cat([products, self.conv_upsample5(_doubled(joined))], dim=1))
        fused: Tensor = self.conv4(joined)
        return fused


def _doubled(maps: Tensor) -> Tensor:
    return upsampled(maps, 2, align_corners=True)


class _Graph(nn.Module):
    """One step between the nodes of a graph, then between the states of each node."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(_NODES**2, _NODES**2, 1)
        self.conv2 = nn.Conv1d(_STATES, _STATES, 1, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        """Give states (N, states, nodes) as they came."""
        mixed = self.conv1(states.transpose(1, 2)).transpose(1, 2) - states
        return F.relu(self.conv2(mixed))


class _SimilarityAggregation(nn.Module):
    """Adds to a map what a graph makes of its regions, which a second map leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_state = nn.Conv2d(_WIDTH, _STATES, 1)
        self.conv_proj = nn.Conv2d(_WIDTH, _STATES, 1)
        self.gcn = _Graph()
        self.conv_extend = nn.Conv2d(_STATES, _WIDTH, 1, bias=False)

    def forward(self, maps: Tensor, details: Tensor) -> Tensor:
        """Give maps as they came."""
        weights = self._weights(self.conv_proj(maps), details)
        states = self.conv_state(maps).flatten(2) @ weights.transpose(1, 2)
        spread = (self.gcn(states) @ weights).unflatten(2, maps.shape[2:])
        return maps + self.conv_extend(spread)  # type: ignore[no-any-return]

    def _weights(self, projected: Tensor, details: Tensor) -> Tensor:
        """Give the share of each node in each place, (N, nodes, places)."""
        edge = F.interpolate(details, size=projected.shape[2:]).softmax(1)[:, 1:2]
        cells = F.adaptive_avg_pool2d(projected * edge, _NODES + 2)
        anchors = cells[:, :, 1:-1, 1:-1].flatten(2)  # without the margin
        return (anchors.transpose(1, 2) @ projected.flatten(2)).softmax(1)
