"""The transformer of Segtran: tokens are squeezed into a few attractors, then expanded in several modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

__all__ = ["AttentionOptions", "TokenTransformer"]

_MODES = 4
_ATTRACTORS = 256
_DROPOUT = 0.2
_EPS = 1e-12
_LARGEST_SCORE = 500.0


@dataclass(frozen=True)
class AttentionOptions:
    """How queries and keys are made."""

    tied: bool
    """By the same matrix."""
    bias: bool


class TokenTransformer(nn.Module):
    """Layers of squeezing and expanding, on one code of positions.

    Parameters
    ----------
    widths
        Width of the tokens before the first layer, and after each.
    options
        Of the attention.
    """

    def __init__(self, widths: Sequence[int], options: AttentionOptions) -> None:
        super().__init__()
        self.pos_code_layer = _PositionLayer(widths[0])
        self.translayers = nn.ModuleList(_Layer(width, after, options) for width, after in pairwise(widths))
        self.vfeat_norm_layers = nn.ModuleList(nn.LayerNorm(width, eps=_EPS) for width in widths[:-1])
        self.dropout = nn.Dropout(_DROPOUT)
        self._initialise()

    def _initialise(self) -> None:
        """Set random values as published: queries, keys and values begin near the identity."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, _Attention):
                module.lean_to_identity()

    def forward(self, tokens: Tensor, positions: Tensor, present: Tensor) -> Tensor:
        """Give tokens of another width.

        Parameters
        ----------
        tokens
            (N, T, C).
        positions
            Row and column of each, (T, 2).
        present
            (N, T, 1): 0 where an image holds nothing.
        """
        code = self.pos_code_layer(positions)
        for place, (norm, layer) in enumerate(zip(self.vfeat_norm_layers, self.translayers, strict=True)):
            width = tokens.shape[-1]
            placed = F.layer_norm(norm(tokens) + code[:, :width], (width,), eps=_EPS)
            placed = self.dropout(placed) if place == 0 else placed
            tokens = layer(placed * present)
        return tokens


class _PositionLayer(nn.Module):
    """Holds the code of positions under its published name."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pos_coder = _PositionCode(width)

    def forward(self, positions: Tensor) -> Tensor:
        """Give a normalised code for each position."""
        code: Tensor = self.pos_coder(positions)
        return F.layer_norm(code, code.shape[-1:], eps=_EPS)


class _PositionCode(nn.Module):
    """Sines and cosines of learned frequencies, in turns."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pos_fc = nn.Linear(2, width)

    def forward(self, positions: Tensor) -> Tensor:
        """Give a code for each position; the largest coordinate counts as 1."""
        phases = self.pos_fc(positions / positions.max())
        return torch.stack([phases[:, 0::2].sin(), phases[:, 1::2].cos()], dim=-1).flatten(1)


class _Layer(nn.Module):
    def __init__(self, width: int, width_after: int, options: AttentionOptions) -> None:
        super().__init__()
        self.attractors = nn.Parameter(torch.randn(1, _ATTRACTORS, width))
        self.in_ator_trans = _Squeeze(width, width, 1, options)
        self.ator_out_trans = _Expand(width, width_after, _MODES, options)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give tokens of another width, without a residual."""
        expanded: Tensor = self.ator_out_trans(tokens, self.in_ator_trans(self.attractors, tokens))
        return expanded


class _Attention(nn.Module):
    """Attention in one or several modes, each with channels of its own."""

    def __init__(self, width: int, width_after: int, modes: int, options: AttentionOptions) -> None:
        super().__init__()
        self.modes, self.width_after = modes, width_after
        self.query = nn.Linear(width, width, bias=options.bias)
        self.key = self.query if options.tied else nn.Linear(width, width, bias=options.bias)
        self.out_trans = _ModeTransform(width, width_after, modes)
        self.dropout = nn.Dropout(_DROPOUT)

    def lean_to_identity(self) -> None:
        """Move the first mode's part of the matrices towards the identity."""
        width = self.query.in_features
        rows = width // self.modes
        for layer in {self.query, self.key}:
            _lean(layer.weight[:rows], torch.eye(rows).repeat(1, self.modes))
        _lean(
            self.out_trans.first_linear.weight[: self.width_after, : self.width_after],
            torch.eye(self.width_after),
        )

    def seen(self, tokens: Tensor, others: Tensor) -> Tensor:
        """Give what each of the tokens sees of the others, (N, modes, T, C)."""
        queries, keys = self._by_mode(self.query(tokens)), self._by_mode(self.key(others))
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1])
        if scores.max() > _LARGEST_SCORE:
            scores = scores.clamp(-_LARGEST_SCORE, _LARGEST_SCORE)
        found: Tensor = self.dropout(scores.softmax(3)) @ self._by_mode(self.out_trans.first_linear(others))
        return found

    def _by_mode(self, tokens: Tensor) -> Tensor:
        """Turn (N, T, modes · C) into (N, modes, T, C)."""
        return tokens.reshape(*tokens.shape[:2], self.modes, -1).transpose(1, 2)


@torch.no_grad()
def _lean(weight: Tensor, identity: Tensor) -> None:
    weight.mul_(0.5).add_(identity, alpha=0.2)


class _Squeeze(_Attention):
    def forward(self, attractors: Tensor, tokens: Tensor) -> Tensor:
        """Give attractors (N, A, C) that have seen the tokens."""
        squeezed: Tensor = self.out_trans.first_norm_layer(self.seen(attractors, tokens)[:, 0])
        return squeezed


class _Expand(_Attention):
    def forward(self, tokens: Tensor, attractors: Tensor) -> Tensor:
        """Give tokens (N, T, C) that have seen the attractors."""
        expanded: Tensor = self.out_trans(self.seen(tokens, attractors))
        return expanded


class _ModeTransform(nn.Module):
    """Makes one set of tokens of those of several modes.

    Where tokens are squeezed only ``first_linear`` and ``first_norm_layer`` are used, where they are expanded
    all others; checkpoints hold all of them in both places.
    """

    def __init__(self, width: int, width_after: int, modes: int) -> None:
        super().__init__()
        self.first_linear = nn.Linear(width, modes * width_after, bias=False)
        self.first_norm_layer = nn.LayerNorm(width_after, eps=_EPS)
        self.intermediate = _Intermediate(width_after)
        self.output = _Output(width_after, modes)
        self.feat_softaggr = _ModePooling(width_after)

    def forward(self, tokens: Tensor) -> Tensor:
        """Turn (N, modes, T, C) into (N, T, C)."""
        pooled: Tensor = self.feat_softaggr(self.output(self.intermediate(tokens)))
        return pooled


class _Intermediate(nn.Module):
    """A layer that the modes share."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shared_linear = nn.Linear(width, width)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give tokens as they came."""
        mixed: Tensor = self.dropout(F.gelu(self.shared_linear(tokens)))
        return mixed


class _Output(nn.Module):
    """A layer of each mode's own, and a norm that they share; no residual."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.group_linear = nn.Conv1d(modes * width, modes * width, 1, groups=modes)
        self.resout_norm_layer = nn.LayerNorm(width, eps=_EPS)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give tokens (N, modes, T, C) as they came; the convolution is one product a mode."""
        layer, width = self.group_linear, tokens.shape[-1]
        weight = layer.weight.reshape(self.modes, width, width).transpose(1, 2)
        bias = layer.get_parameter("bias").reshape(self.modes, 1, width)
        normed: Tensor = self.resout_norm_layer(self.dropout(tokens @ weight + bias))
        return normed


class _ModePooling(nn.Module):
    """A mean of the modes, weighted anew for each token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.feat2score = nn.Linear(width, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Turn (N, modes, T, C) into (N, T, C)."""
        weights: Tensor = self.feat2score(tokens).softmax(1)
        return (weights * tokens).sum(1)
