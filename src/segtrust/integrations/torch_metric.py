"""A metric in the manner of torchmetrics that gathers confidences and risks over the batches of a validation.

Where torchmetrics is installed the metric is a ``torchmetrics.Metric``, because only those may enter a
``MetricCollection`` or be logged by Lightning. Where it is not, `LocalMetric` stands in with the part of the
interface that is needed, so that segtrust does not depend on torchmetrics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Unpack

import torch
from torch import Tensor, distributed, nn

from segtrust.errors import ParameterError
from segtrust.integrations.torch import Settings, SoftDiceConfidence, check_tensor
from segtrust.maps import EmptyPolicy

__all__ = ["CaseConfidences", "LocalMetric", "SoftDiceConfidenceMetric"]

States = dict[str, list[Tensor] | Tensor]


class LocalMetric(nn.Module):
    """The part of ``torchmetrics.Metric`` that is used here.

    A state is a list of one-dimensional tensors that processes concatenate, or one number of which they take
    the largest. `compute` of a subclass sees the states of all processes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._defaults: States = {}

    def __init_subclass__(cls) -> None:
        """Let ``compute`` gather the states first."""
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
        """Do nothing: states keep the type that they came in."""
        return self

    def reset(self) -> None:
        """Forget all batches."""
        for name, default in self._defaults.items():
            setattr(self, name, default.to(self.device) if isinstance(default, Tensor) else [])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and give the result of that batch alone, of this process."""
        before = self._states()
        self.reset()
        try:
            self.update(*args, **kwargs)
            return type(self).compute.__wrapped__(self)  # type: ignore[attr-defined]
        finally:  # a batch that is refused must not take the others with it
            for name, state in before.items():
                here = getattr(self, name)
                setattr(self, name, state + here if isinstance(state, list) else torch.maximum(state, here))

    @property
    def device(self) -> torch.device:
        """Where numbers are gathered: where the module is."""
        return next(self.buffers()).device

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def _states(self) -> States:
        return {name: getattr(self, name) for name in self._defaults}


def _over_all_processes(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
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
    """Bring one state of all processes together; they may hold different numbers of cases, or none."""
    if isinstance(state, Tensor):
        return torch.stack(_all_gather(state)).amax(0)
    own = _joined(state).to(device)
    sizes = [int(size) for size in _all_gather(torch.tensor(own.shape[0], device=device))]
    padded = torch.cat([own, own.new_zeros(max(sizes) - own.shape[0])])
    return [values[:size] for values, size in zip(_all_gather(padded), sizes, strict=True)]


def _all_gather(values: Tensor) -> list[Tensor]:
    parts = [torch.empty_like(values) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, values)
    return parts


def _joined(state: list[Tensor] | Tensor) -> Tensor:
    """Give a state as one tensor; torchmetrics leaves a list before it gathers and a tensor after."""
    if isinstance(state, Tensor):
        return state
    return torch.cat(state) if state else torch.empty(0, dtype=torch.float64)


def _base() -> type[Any]:
    try:
        from torchmetrics import Metric
    except (ImportError, RuntimeError):  # missing, or beside a torchvision that does not fit its torch
        return LocalMetric
    base: type[Any] = Metric
    return base


if TYPE_CHECKING:
    Base = LocalMetric
else:
    Base = _base()


class CaseConfidences:
    """What a validation has gathered: one confidence, and where the truth was given one risk, a case.

    Attributes
    ----------
    confidences
        (cases,) or (cases, classes); NaN for a class that is absent from a case.
    risks
        One minus the Dice coefficient, in the same shape; ``None`` where no truth was given.

    Notes
    -----
    Not a tuple and not a dataclass: torchmetrics would take it apart and drop the axis of a single case.
    """

    __slots__ = ("confidences", "risks")

    def __init__(self, confidences: Tensor, risks: Tensor | None) -> None:
        self.confidences = confidences
        self.risks = risks

    def __repr__(self) -> str:
        """Show shape and mean."""
        shape, known = tuple(self.confidences.shape), "known" if self.risks is not None else "not known"
        return f"CaseConfidences(shape={shape}, mean={self.mean.tolist()}, risks {known})"

    @property
    def mean(self) -> Tensor:
        """Mean confidence over the cases, of each class; NaN where there is none."""
        return self.confidences.nanmean(0)

    @property
    def mean_risk(self) -> Tensor | None:
        """Mean risk over the cases, of each class."""
        return None if self.risks is None else self.risks.mean(0)


class SoftDiceConfidenceMetric(Base):
    """Gathers the soft Dice confidence, and the Dice risk, of every case of a validation.

    Used as a metric of torchmetrics: ``update`` with each batch, ``compute`` at the end, ``reset`` before the
    next epoch; on several processes ``compute`` gives all of them the cases of all. Where torchmetrics is
    installed it is one of its metrics and fits into a ``MetricCollection``.

    Parameters
    ----------
    from_logits, task, threshold, empty
        As for `segtrust.integrations.torch.SoftDiceConfidence`; ``empty`` also says what
        two empty masks score.

    Notes
    -----
    ``torch.utils.data.DistributedSampler`` repeats cases so that all processes get as many; the repeated
    ones are gathered too.

    Examples
    --------
    >>> metric = SoftDiceConfidenceMetric(from_logits=False, task="binary")
    >>> for p, truth in [(torch.tensor([[0.9, 0.8, 0.1]]), torch.tensor([[1, 1, 0]]))] * 2:
    ...     metric.update(p, truth)
    >>> found = metric.compute()
    >>> found.confidences, found.risks
    (tensor([0.8947, 0.8947], dtype=torch.float64), tensor([0., 0.], dtype=torch.float64))
    """

    higher_is_better = True
    is_differentiable = False
    full_state_update = False

    confidences: list[Tensor]
    risks: list[Tensor]
    columns: Tensor

    def __init__(self, **settings: Unpack[Settings]) -> None:
        super().__init__()
        self.set_dtype(torch.float64)
        self.confidence = SoftDiceConfidence(**settings)
        # Kept flat, beside the number of columns, so that a process that saw no case fits to the others.
        self.add_state("confidences", default=[], dist_reduce_fx="cat")
        self.add_state("risks", default=[], dist_reduce_fx="cat")
        self.add_state("columns", default=torch.tensor(0), dist_reduce_fx="max")

    def update(self, preds: Tensor, target: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds
            Logits or probabilities, as for `SoftDiceConfidence`.
        target
            The truth: binary masks in the shape of ``preds``, or for ``"multiclass"`` labels (N, ...). Given
            with every batch, or with none.
        """
        check_tensor(preds, "preds")
        if self.confidences and (target is None) == bool(self.risks):
            raise ParameterError("target: expected with every batch or with none, got it with some.")
        with torch.no_grad():
            maps = self.confidence.maps(preds)
            confidences = self.confidence.confidences(maps)
            if target is not None:
                truth = self.confidence.masks(target, preds.shape, "target")
                self.risks.append(_dice_risks(maps.mask, truth, self.confidence.empty).reshape(-1))
        self.confidences.append(confidences.reshape(-1))
        self.columns = torch.tensor(confidences.shape[1], device=confidences.device)

    def compute(self) -> CaseConfidences:
        """Give the confidences and risks of all cases so far."""
        confidences, risks = self._table(self.confidences), self._table(self.risks)
        return CaseConfidences(confidences, risks if risks.numel() else None)

    def _table(self, state: list[Tensor] | Tensor) -> Tensor:
        values = _joined(state)
        return values if self.confidence.task == "binary" else values.reshape(-1, max(1, int(self.columns)))


def _dice_risks(mask: Tensor, truth: Tensor, empty: EmptyPolicy) -> Tensor:
    """Give one minus the Dice coefficient of each pair of masks (images, classes, pixels)."""
    both, either = (mask & truth).sum(2).double(), mask.sum(2) + truth.sum(2)
    of_two_empty = 0.0 if empty is EmptyPolicy.AGREE else 1.0
    return torch.where(either > 0, 1.0 - 2.0 * both / either.clamp(min=1), of_two_empty)
