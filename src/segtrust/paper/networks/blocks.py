"""Blocks that several networks share; their attributes carry the names of published checkpoints.

Maps of tokens are channels-last, (N, H, W, C), so that linear and norm layers act on them as they are.
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

__all__ = ["DepthwiseConv", "PatchEmbedding", "initialise", "maps_of", "tokens_of", "upsampled"]


def tokens_of(maps: Tensor) -> Tensor:
    """Turn maps (N, C, H, W) into tokens (N, H, W, C)."""
    return maps.permute(0, 2, 3, 1)


def maps_of(tokens: Tensor) -> Tensor:
    """Turn tokens (N, H, W, C) into maps (N, C, H, W)."""
    return tokens.permute(0, 3, 1, 2)


def upsampled(maps: Tensor, factor: float, *, align_corners: bool = False) -> Tensor:
    """Scale maps (N, C, H, W) bilinearly."""
    return F.interpolate(maps, scale_factor=factor, mode="bilinear", align_corners=align_corners)


class PatchEmbedding(nn.Module):
    """Overlapping patches of a map (N, C, H, W) as tokens."""

    def __init__(self, channels: int, width: int, *, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, kernel_size, stride, padding=kernel_size // 2)
        self.norm = nn.LayerNorm(width)

    def forward(self, maps: Tensor) -> Tensor:
        """Give tokens of a ``stride``-th of the side."""
        tokens: Tensor = self.norm(tokens_of(self.proj(maps)))
        return tokens


class DepthwiseConv(nn.Module):
    """A 3 × 3 convolution of each channel by itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Convolve tokens, which stay tokens."""
        return tokens_of(self.dwconv(maps_of(tokens)))


def initialise(module: nn.Module) -> None:
    """Set random values as vision transformers have them; for ``nn.Module.apply``."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
    elif isinstance(module, nn.Conv2d):
        fan_out = math.prod(module.kernel_size) * module.out_channels // module.groups
        nn.init.normal_(module.weight, std=math.sqrt(2.0 / fan_out))
    if isinstance(module, nn.Linear | nn.Conv2d) and module.bias is not None:
        nn.init.zeros_(module.bias)
