"""The part of ``torchmetrics.Metric`` that segtrust uses, for environments without torchmetrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, distributed, nn

from segtrust.errors import ParameterError

__all__ = ["LocalMetric", "joined"]

States = dict[str, list[Tensor] | Tensor]


class LocalMetric(nn.Module):
    """Replacement for ``torchmetrics.Metric`` with the methods that segtrust's metrics need.

    A state is a list of 1-D tensors, which are concatenated over all processes, or one number, of which the
    largest over all processes is used. ``compute`` of a subclass sees the states of all processes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._defaults: States = {}

    def __init_subclass__(cls) -> None:
        """Make ``compute`` gather the states of all processes first."""
        super().__init_subclass__()
        if "compute" in cls.__dict__:
            cls.compute = _over_all_processes(cls.compute)  # type: ignore[attr-defined]

    def add_state(self, name: str, default: list[Tensor] | Tensor, dist_reduce_fx: str) -> None:
        """Declare a state: ``[]`` with ``"cat"``, or a number with ``"max"``."""
        if (dist_reduce_fx, isinstance(default, list)) not in (("cat", True), ("max", False)):
            raise ParameterError(f"dist_reduce_fx: {dist_reduce_fx!r} does not fit the state {name!r}.")
        self._defaults[name] = default
        if isinstance(default, Tensor):
            self.register_buffer(name, default.clone(), persistent=False)
        else:
            setattr(self, name, [])

    def set_dtype(self, dtype: torch.dtype) -> LocalMetric:
        """Return the metric unchanged: states keep the type in which they were added."""
        return self

    def reset(self) -> None:
        """Forget all batches."""
        for name, default in self._defaults.items():
            setattr(self, name, default.to(self.device) if isinstance(default, Tensor) else [])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and return the result for this batch alone, without other processes."""
        before = self._states()
        self.reset()
        try:
            self.update(*args, **kwargs)
            return type(self).compute.__wrapped__(self)  # type: ignore[attr-defined]
        finally:  # keep the earlier batches if this one is rejected
            for name, state in before.items():
                here = getattr(self, name)
                setattr(self, name, state + here if isinstance(state, list) else torch.maximum(state, here))

    @property
    def device(self) -> torch.device:
        """Device of the module, where states are gathered."""
        return next(self.buffers()).device

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def _states(self) -> States:
        return {name: getattr(self, name) for name in self._defaults}


def _over_all_processes(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``compute`` with the states of all processes in place while it runs."""

    @wraps(compute)
    def gathered(self: LocalMetric) -> Any:
        if not (distributed.is_available() and distributed.is_initialized()):
            return compute(self)
        own = self._states()
        try:
            for name, state in own.items():
                setattr(self, name, _gather(state, self.device))
            return compute(self)
        finally:
            for name, state in own.items():
                setattr(self, name, state)

    return gathered


def _gather(state: list[Tensor] | Tensor, device: torch.device) -> list[Tensor] | Tensor:
    """Return one state of all processes, which may hold different numbers of cases, or none."""
    if isinstance(state, Tensor):
        return torch.stack(_all_gather(state)).amax(0)
    own = joined(state).to(device)
    sizes = [int(size) for size in _all_gather(torch.tensor(own.shape[0], device=device))]
    padded = torch.cat([own, own.new_zeros(max(sizes) - own.shape[0])])
    return [values[:size] for values, size in zip(_all_gather(padded), sizes, strict=True)]


def _all_gather(values: Tensor) -> list[Tensor]:
    parts = [torch.empty_like(values) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, values)
    return parts


def joined(state: list[Tensor] | Tensor) -> Tensor:
    """Return a state as one tensor; torchmetrics holds a list before it gathers and a tensor afterwards."""
    if isinstance(state, Tensor):
        return state
    return torch.cat(state) if state else torch.empty(0, dtype=torch.float64)
