"""PVTv2-B2, a pyramid of transformers: the backbone of Polyp-PVT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from monai.networks.layers.drop_path import DropPath
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.paper.networks.blocks import DepthwiseConv, PatchEmbedding, initialise, maps_of, tokens_of

__all__ = ["PyramidTransformer"]

_HEAD_WIDTH = 64
_EPS = 1e-6
"""Of the norms before and after blocks; the others have torch's 1e-5."""


@dataclass(frozen=True)
class _Stage:
    width: int
    blocks: int
    expansion: int
    """Width inside the perceptron, over that outside."""
    reduction: int
    """Keys and values are taken from patches of this side."""


_STAGES = (
    _Stage(64, blocks=3, expansion=8, reduction=8),
    _Stage(128, blocks=4, expansion=8, reduction=4),
    _Stage(320, blocks=6, expansion=4, reduction=2),
    _Stage(512, blocks=3, expansion=4, reduction=1),
)


class _Attention(nn.Module):
    """Attention of all tokens to those of a smaller map."""

    def __init__(self, width: int, reduction: int) -> None:
        super().__init__()
        self.heads = width // _HEAD_WIDTH
        self.reduction = reduction
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.proj = nn.Linear(width, width)
        if reduction > 1:
            self.sr = nn.Conv2d(width, width, reduction, reduction)
            self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give tokens (N, H, W, C) as they came."""
        queries = self._by_head(self.q(tokens), parts=1)
        keys, values = self._by_head(self.kv(self._reduced(tokens)), parts=2)
        seen = F.scaled_dot_product_attention(queries[0], keys, values)
        mixed: Tensor = self.proj(seen.transpose(1, 2).reshape(tokens.shape))
        return mixed

    def _reduced(self, tokens: Tensor) -> Tensor:
        return self.norm(tokens_of(self.sr(maps_of(tokens)))) if self.reduction > 1 else tokens

    def _by_head(self, tokens: Tensor, *, parts: int) -> Tensor:
        """Turn (N, H, W, parts · C) into (parts, N, heads, tokens, head width)."""
        flat = tokens.flatten(1, 2)
        return flat.reshape(*flat.shape[:2], parts, self.heads, _HEAD_WIDTH).permute(2, 0, 3, 1, 4)


class _Perceptron(nn.Module):
    def __init__(self, width: int, expansion: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, expansion * width)
        self.dwconv = DepthwiseConv(expansion * width)
        self.fc2 = nn.Linear(expansion * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Mix channels, and neighbours inside."""
        mixed: Tensor = self.fc2(F.gelu(self.dwconv(self.fc1(tokens))))
        return mixed


class _Block(nn.Module):
    def __init__(self, stage: _Stage, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(stage.width, eps=_EPS)
        self.attn = _Attention(stage.width, stage.reduction)
        self.norm2 = nn.LayerNorm(stage.width, eps=_EPS)
        self.mlp = _Perceptron(stage.width, stage.expansion)
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """Add what attention and perceptron find; in training a case may go without."""
        for norm, branch in ((self.norm1, self.attn), (self.norm2, self.mlp)):
            tokens = tokens + self.drop_path(branch(norm(tokens)))
        return tokens


class PyramidTransformer(nn.Module):
    """PVTv2-B2: (N, 3, H, W) to maps of 64, 128, 320 and 512 channels at 1/4, 1/8, 1/16 and 1/32 of the side.

    Parameters
    ----------
    drop_path
        In training, how often the last block leaves out each of its branches; it grows linearly from 0.

    References
    ----------
    Wang et al., "PVT v2: Improved baselines with pyramid vision transformer", 2022.
    """

    def __init__(self, *, drop_path: float = 0.1) -> None:
        super().__init__()
        total = sum(stage.blocks for stage in _STAGES)
        rates = [drop_path * place / (total - 1) for place in range(total)]
        starts = accumulate((stage.blocks for stage in _STAGES), initial=0)
        channels = 3
        for number, (stage, start) in enumerate(zip(_STAGES, starts, strict=False), start=1):
            self._add_stage(number, channels, stage, rates[start : start + stage.blocks])
            channels = stage.width
        self.apply(initialise)

    def _add_stage(self, number: int, channels: int, stage: _Stage, rates: Sequence[float]) -> None:
        kernel_size, stride = (7, 4) if number == 1 else (3, 2)
        embedding = PatchEmbedding(channels, stage.width, kernel_size=kernel_size, stride=stride)
        setattr(self, f"patch_embed{number}", embedding)
        setattr(self, f"block{number}", nn.Sequential(*(_Block(stage, rate) for rate in rates)))
        setattr(self, f"norm{number}", nn.LayerNorm(stage.width, eps=_EPS))

    def forward(self, images: Tensor) -> list[Tensor]:
        """Give the maps of the four stages."""
        maps = [images]
        for number in range(1, len(_STAGES) + 1):
            embedding, blocks, norm = (
                getattr(self, f"{part}{number}") for part in ("patch_embed", "block", "norm")
            )
            maps.append(maps_of(norm(blocks(embedding(maps[-1])))))
        return maps[1:]
