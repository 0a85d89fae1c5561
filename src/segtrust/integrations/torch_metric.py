"""Metrics in the manner of torchmetrics that gather confidences and risks over the batches of a validation.

Where torchmetrics is installed they are ``torchmetrics.Metric``, because only those may enter a
``MetricCollection`` or be logged by Lightning. Where it is not, `LocalMetric` stands in with the part of the
interface that is needed, so that segtrust does not depend on torchmetrics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from torch import Tensor

from segtrust._arguments import describe
from segtrust.errors import CaseLengthError, ParameterError
from segtrust.integrations.local_metric import LocalMetric, joined
from segtrust.integrations.torch import Settings, SoftDiceConfidence, check_tensor
from segtrust.maps import EmptyPolicy
from segtrust.selective import RiskCoverageCurve, risk_coverage_curve

__all__ = [
    "CaseConfidences",
    "LocalMetric",
    "MeanSoftDiceConfidence",
    "SoftDiceConfidenceAURC",
    "SoftDiceConfidenceMetric",
]


_LARGEST_ID = 1 << 53


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
    in_truth
        Whether the truth is not empty, in the same shape; ``None`` where none was given.
    ids
        Of the cases, where they were given; rising.

    Notes
    -----
    Not a tuple and not a dataclass: torchmetrics would take it apart and drop the axis of a single case.
    """

    __slots__ = ("confidences", "ids", "in_truth", "risks")

    def __init__(
        self,
        confidences: Tensor,
        risks: Tensor | None,
        in_truth: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> None:
        self.confidences = confidences
        self.risks = risks
        self.in_truth = in_truth
        self.ids = ids

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
        """Mean risk over the cases, of each class; as in `curve` where a class is absent does not count."""
        if self.risks is None or self.in_truth is None:
            return None
        counted = ~self.confidences.isnan() | self.in_truth
        return self.risks.where(counted, math.nan).nanmean(0)

    @property
    def aurc(self) -> Tensor | None:
        """Area under the risk-coverage curve, of each class; NaN where there are less than two cases."""
        if self.risks is None:
            return None
        one = self.confidences.ndim == 1
        curves = [self.curve(None if one else i) for i in range(1 if one else self.confidences.shape[1])]
        found = [math.nan if curve is None else curve.aurc for curve in curves]
        return torch.tensor(found[0] if one else found, dtype=torch.float64, device=self.risks.device)

    def curve(self, number: int | None = None) -> RiskCoverageCurve | None:
        """Give the risk-coverage curve, of a class where there are classes; ``None`` below two cases.

        A case in which a class is neither found nor in the truth does not count for it. One in which it is
        missed counts with the confidence 0, that of an empty mask in a score table.
        """
        if self.risks is None or self.in_truth is None:
            raise ParameterError("risks: expected the truth with every batch, got it with none.")
        every = (self.confidences, self.risks, self.in_truth)
        confidence, risk, in_truth = (
            (each if number is None else each[:, number]).cpu().numpy() for each in every
        )
        absent = np.isnan(confidence)
        counted = ~absent | in_truth
        if counted.sum() < 2:
            return None
        return risk_coverage_curve(np.where(absent, 0.0, confidence)[counted], risk[counted])


class SoftDiceConfidenceMetric(Base):
    """Gathers the soft Dice confidence, and the Dice risk, of every case of a validation.

    Used as a metric of torchmetrics: ``update`` with each batch, ``compute`` at the end, ``reset`` before the
    next epoch; on several processes ``compute`` gives all of them the cases of all. Where torchmetrics is
    installed it is one of its metrics and fits into a ``MetricCollection``.

    Parameters
    ----------
    **settings
        ``from_logits``, ``task``, ``threshold`` and ``empty``, as for
        `segtrust.integrations.torch.SoftDiceConfidence`; ``empty`` also says what two empty masks score.

    Notes
    -----
    ``torch.utils.data.DistributedSampler``, which Lightning uses too, repeats cases so that all processes get
    as many. Only ``ids`` tell that: with them each case counts once, and the result on any number of
    processes is that of one, to the last bit. Without them repeated cases count twice.

    Examples
    --------
    >>> metric = SoftDiceConfidenceMetric(from_logits=False, task="binary")
    >>> for p, truth in [(torch.tensor([[0.9, 0.8, 0.1]]), torch.tensor([[1, 1, 0]]))] * 2:
    ...     metric.update(p, truth)
    >>> found = metric.compute()
    >>> found.confidences, found.risks
    (tensor([0.8947, 0.8947], dtype=torch.float64), tensor([0., 0.], dtype=torch.float64))
    """

    higher_is_better: bool = True
    is_differentiable = False
    full_state_update = False

    confidences: list[Tensor]
    risks: list[Tensor]
    in_truth: list[Tensor]
    ids: list[Tensor]
    columns: Tensor

    def __init__(self, **settings: Unpack[Settings]) -> None:
        super().__init__()
        self.set_dtype(torch.float64)
        self.confidence = SoftDiceConfidence(**settings)
        # Kept flat, beside the number of columns, so that a process that saw no case fits to the others; and
        # all as float64, the type that such a process has for what it lacks.
        for name in ("confidences", "risks", "in_truth", "ids"):
            self.add_state(name, default=[], dist_reduce_fx="cat")
        self.add_state("columns", default=torch.tensor(0), dist_reduce_fx="max")

    def update(self, preds: Tensor, target: Tensor | None = None, ids: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds
            Logits or probabilities, as for `SoftDiceConfidence`.
        target
            The truth: binary masks in the shape of ``preds``, or for ``"multiclass"`` labels (N, ...). Given
            with every batch, or with none.
        ids
            Whole numbers that name the cases, such as their places in the data set; given with every batch,
            or with none. Each case then counts once, and they are in the order of their ids.
        """
        check_tensor(preds, "preds")
        self._check_given(target, self.risks, "target")
        self._check_given(ids, self.ids, "ids")
        with torch.no_grad():
            maps = self.confidence.maps(preds)
            confidences = self.confidence.confidences(maps)
            numbers = None if ids is None else _numbers(ids, preds)
            if target is not None:
                truth = self.confidence.masks(target, preds.shape, "target")
                self.risks.append(_dice_risks(maps.mask, truth, self.confidence.empty).reshape(-1))
                self.in_truth.append(truth.any(2).double().reshape(-1))
        if numbers is not None:
            self.ids.append(numbers)
        self.confidences.append(confidences.reshape(-1))
        self.columns = torch.tensor(confidences.shape[1], device=confidences.device)

    def _check_given(self, values: Any, before: Any, name: str) -> None:
        if len(self.confidences) and (values is None) == bool(len(before)):
            raise ParameterError(f"{name}: expected with every batch or with none, got it with some.")

    def compute(self) -> Any:
        """Give the confidences and risks of all cases so far, as `CaseConfidences`."""
        return self._cases()

    def _cases(self) -> CaseConfidences:
        """Put the states together; apart from `compute`, which gathers those of all processes first."""
        tables = [self._table(each) for each in (self.confidences, self.risks, self.in_truth)]
        ids = joined(self.ids).long()
        if ids.numel():  # in their order, and each once
            first = np.unique(ids.cpu().numpy(), return_index=True)[1]
            chosen = torch.from_numpy(first).to(ids.device)
            tables = [each[chosen] if each.numel() else each for each in tables]
            ids = ids[chosen]
        confidences, risks, in_truth = tables
        known = risks.numel() > 0
        return CaseConfidences(
            confidences,
            risks if known else None,
            in_truth.bool() if known else None,
            ids if ids.numel() else None,
        )

    def _table(self, state: list[Tensor] | Tensor) -> Tensor:
        values = joined(state)
        return values if self.confidence.task == "binary" else values.reshape(-1, max(1, int(self.columns)))


class _OneNumber(SoftDiceConfidenceMetric):
    """Gives one number, as a logger wants it."""

    def __init__(self, *, classes: Sequence[int] | None = None, **settings: Unpack[Settings]) -> None:
        super().__init__(**settings)
        self.classes = None if classes is None else list(classes)

    def update(self, preds: Tensor, target: Tensor | None = None, ids: Any = None) -> None:
        """Add a batch, as `SoftDiceConfidenceMetric` does."""
        super().update(preds, target, ids)
        there = max(1, int(self.columns))
        wrong = [each for each in self.classes or () if not 0 <= each < there]
        if wrong and self.confidence.task != "binary":
            raise ParameterError(f"classes: expected numbers from 0 to {there - 1}, got {wrong[0]}.")

    def _mean_over_classes(self, values: Tensor) -> Tensor:
        chosen = values if self.classes is None or values.ndim == 0 else values[self.classes]
        return chosen.nanmean()


class MeanSoftDiceConfidence(_OneNumber):
    """Mean soft Dice confidence of the cases of a validation: one number, for a logger.

    Parameters
    ----------
    classes
        Numbers of the classes whose mean is given, as ``[1, 2]`` to leave out the background; all unless
        given.
    settings
        As for `SoftDiceConfidenceMetric`.

    Examples
    --------
    >>> metric = MeanSoftDiceConfidence(from_logits=False, task="binary")
    >>> metric.update(torch.tensor([[0.9, 0.8, 0.1], [0.6, 0.1, 0.0]]))
    >>> metric.compute()
    tensor(0.8003, dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        """Give the mean over cases, and then over classes; NaN where there are none."""
        return self._mean_over_classes(self._cases().mean)


class SoftDiceConfidenceAURC(_OneNumber):
    """Area under the risk-coverage curve of the soft Dice confidence: one number, for a logger.

    Low where the confidence ranks the cases by their Dice, and where these are good.

    Parameters
    ----------
    classes, settings
        As for `MeanSoftDiceConfidence`; the truth must be given with every batch.

    Examples
    --------
    >>> metric = SoftDiceConfidenceAURC(from_logits=False, task="binary")
    >>> metric.update(torch.tensor([[0.9, 0.8, 0.1], [0.6, 0.1, 0.0]]), torch.tensor([[1, 1, 0], [0, 1, 1]]))
    >>> metric.compute()
    tensor(0.1250, dtype=torch.float64)
    """

    higher_is_better = False

    def compute(self) -> Tensor:
        """Give the area, of several classes their mean; NaN where there are less than two cases."""
        area = self._cases().aurc
        return torch.tensor(math.nan, dtype=torch.float64) if area is None else self._mean_over_classes(area)


def _numbers(ids: Any, preds: Tensor) -> Tensor:
    """Give ids as float64, which holds whole numbers up to 2**53 exactly; larger ones are refused."""
    try:
        found = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError):
        found = torch.empty(0)
    if found.is_floating_point() or found.is_complex() or found.ndim != 1:
        raise ParameterError(
            f"ids: expected a whole number for each case, such as its place in the data set, "
            f"got {describe(ids)}."
        )
    largest = max((abs(int(each)) for each in found.tolist()), default=0)
    if largest > _LARGEST_ID:
        raise ParameterError(
            f"ids: expected whole numbers up to 2**53, such as places in the data set, got {largest}."
        )
    if found.shape[0] != preds.shape[0]:
        raise CaseLengthError(f"ids: expected {preds.shape[0]}, one a case, got {found.shape[0]}.")
    return found.to(preds.device, torch.float64)


def _dice_risks(mask: Tensor, truth: Tensor, empty: EmptyPolicy) -> Tensor:
    """Give one minus the Dice coefficient of each pair of masks (images, classes, pixels)."""
    both, either = (mask & truth).sum(2).double(), mask.sum(2) + truth.sum(2)
    of_two_empty = 0.0 if empty is EmptyPolicy.AGREE else 1.0
    return torch.where(either > 0, 1.0 - 2.0 * both / either.clamp(min=1), of_two_empty)
