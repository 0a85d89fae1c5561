"""Metrics for torch that collect confidences and Dice risks over the batches of a validation.

If torchmetrics is installed, they are ``torchmetrics.Metric`` and can be part of a ``MetricCollection`` or be
logged by Lightning. Otherwise `LocalMetric` provides the same methods, so that segtrust does not depend on
torchmetrics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from segtrust._arguments import describe
from segtrust._display import html_table
from segtrust._optional import require
from segtrust.confidence import (
    ConfidenceEstimator,
    SoftDice,
    get_estimator,
    get_estimators,
    has_empty_setting,
    learns,
)
from segtrust.errors import CaseLengthError, NotFittedError, ParameterError
from segtrust.integrations.local_metric import LocalMetric, joined
from segtrust.integrations.torch import MaskedMaps, Settings, SoftDiceConfidence, check_tensor
from segtrust.maps import EmptyPolicy
from segtrust.selective import RiskCoverageCurve, trace_curve

__all__ = [
    "CaseConfidences",
    "ConfidenceAURC",
    "ConfidenceMetric",
    "LocalMetric",
    "MeanConfidence",
    "MeanSoftDiceConfidence",
    "SoftDiceConfidenceAURC",
    "SoftDiceConfidenceMetric",
    "ready_estimator",
]

_LARGEST_ID = 1 << 53
_HISTOGRAM_BINS = 20


def _base() -> type[Any]:
    try:
        from torchmetrics import Metric
    except (ImportError, RuntimeError):  # missing, or installed with a torchvision that does not fit torch
        return LocalMetric
    base: type[Any] = Metric
    return base


if TYPE_CHECKING:
    from pandas import DataFrame

    Base = LocalMetric
else:
    Base = _base()


class CaseConfidences:
    """Result of a validation: the confidence of each case and, if the ground truth is known, its risk.

    Attributes
    ----------
    confidences
        Shape (cases,) or (cases, classes); NaN for a class that is absent from a case.
    risks
        One minus the Dice coefficient, in the same shape; ``None`` without ground truth.
    in_truth
        Whether the ground truth is not empty, in the same shape; ``None`` without ground truth.
    ids
        Ids of the cases in increasing order; ``None`` if none were passed.
    empty_mask
        Whether the predicted mask is empty, in the same shape. `segtrust.Policy.decide` takes it too.
    ranked
        Confidences that the curve ranks, with ground truth only: those above and, for a class that is absent
        but in the ground truth, the confidence of its empty mask, as in a score table.

    Notes
    -----
    This is neither a tuple nor a dataclass, because torchmetrics would take it apart and drop the axis of a
    single case.
    """

    __slots__ = ("confidences", "empty_mask", "ids", "in_truth", "ranked", "risks")

    def __init__(
        self,
        confidences: Tensor,
        *,
        empty_mask: Tensor,
        risks: Tensor | None = None,
        in_truth: Tensor | None = None,
        ranked: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> None:
        self.confidences = confidences
        self.empty_mask = empty_mask
        self.risks = risks
        self.in_truth = in_truth
        self.ranked = ranked
        self.ids = ids

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table with one row per case, or per case and class."""
        n, classes = self.confidences.shape[0], self.confidences.shape[1:].numel()
        case = np.arange(n) if self.ids is None else self.ids.cpu().numpy()
        columns = {"case": np.repeat(case, classes)}
        if self.confidences.ndim > 1:
            columns["class"] = np.tile(np.arange(classes), n)
        for name, values in {
            "confidence": self.confidences,
            "empty_mask": self.empty_mask,
            "risk": self.risks,
            "in_truth": self.in_truth,
            "ranked": self.ranked,
        }.items():
            if values is not None:
                columns[name] = values.cpu().numpy().reshape(-1)
        frame: DataFrame = require("pandas", extra="tables").DataFrame(columns)
        return frame

    def _repr_html_(self) -> str:
        """Return a table for a notebook: mean confidence and risk, and the area, per class."""
        shown = {"mean confidence": self.mean, "mean risk": self.mean_risk, "AURC": self.aurc}
        rows = {name: values.reshape(-1).tolist() for name, values in shown.items() if values is not None}
        classes = [""] if self.confidences.ndim == 1 else [f"class {i}" for i in range(self.mean.numel())]
        table = [[name, *values] for name, values in rows.items()]
        return html_table(f"Cases: {self.confidences.shape[0]}", table, header=["", *classes])

    def __repr__(self) -> str:
        """Return shape and mean."""
        shape, known = tuple(self.confidences.shape), "known" if self.risks is not None else "not known"
        return f"CaseConfidences(shape={shape}, mean={self.mean.tolist()}, risks {known})"

    @property
    def mean(self) -> Tensor:
        """Mean confidence over the cases, per class; NaN if there is none."""
        return self.confidences.nanmean(0)

    @property
    def mean_risk(self) -> Tensor | None:
        """Mean risk over the cases, per class, over the same cases as `curve`."""
        if self.risks is None or self.in_truth is None:
            return None
        counted = ~self.confidences.isnan() | self.in_truth
        return self.risks.where(counted, math.nan).nanmean(0)

    @property
    def aurc(self) -> Tensor | None:
        """Area under the risk-coverage curve, per class; NaN for fewer than two cases."""
        if self.risks is None:
            return None
        numbers = [None] if self.confidences.ndim == 1 else range(self.confidences.shape[1])
        curves = [self.curve(number) for number in numbers]
        areas = [math.nan if curve is None else curve.aurc for curve in curves]
        found = areas[0] if self.confidences.ndim == 1 else areas
        return torch.tensor(found, dtype=torch.float64, device=self.risks.device)

    def curve(self, number: int | None = None) -> RiskCoverageCurve | None:
        """Return the risk-coverage curve, or ``None`` for fewer than two cases.

        A case in which a class is neither predicted nor in the ground truth does not count for this class. A
        case in which it is missed counts with the confidence of its empty mask, as in a score table.

        Parameters
        ----------
        number
            Number of the class; ``None`` if there are no classes.
        """
        if self.risks is None or self.ranked is None:
            raise ParameterError(
                "risks: the curve needs the ground truth. Pass it as target with every batch."
            )
        confidence, risk = (
            (values if number is None else values[:, number]).cpu().numpy()
            for values in (self.ranked, self.risks)
        )
        counted = ~np.isnan(confidence)
        return trace_curve(confidence[counted], risk[counted]) if counted.sum() > 1 else None


class ConfidenceMetric(Base):
    """Metric that collects the confidence and the Dice risk of every case of a validation.

    It is used like any metric of torchmetrics: ``update`` with each batch, ``compute`` at the end, ``reset``
    before the next epoch. With several processes ``compute`` returns the cases of all of them.

    Parameters
    ----------
    estimator
        Name of an estimator such as ``"sdc"`` or ``"pla"``, or an estimator with its own settings. An
        estimator that learns must be fitted first.
    **settings
        ``from_logits``, ``task``, ``threshold``, ``empty`` and ``ignore_index``, see
        `segtrust.integrations.torch.SoftDiceConfidence`. ``empty`` also sets the Dice of two empty masks.

    Notes
    -----
    ``torch.utils.data.DistributedSampler``, which Lightning uses too, repeats cases so that all processes get
    equally many. Pass ``ids`` to count each case once; the result is then the same for any number of
    processes, to the last bit. Without ids, repeated cases count twice.

    With ``ignore_index``, the pixels whose target equals it count neither for the confidence nor for the
    risk. A case in which no pixel counts has a confidence of NaN and is left out of means and curves.

    Examples
    --------
    >>> metric = ConfidenceMetric("sdc", from_logits=False, task="binary")
    >>> for p, truth in [(torch.tensor([[0.9, 0.8, 0.1]]), torch.tensor([[1, 1, 0]]))] * 2:
    ...     metric.update(p, truth)
    >>> cases = metric.compute()
    >>> cases.confidences, cases.risks
    (tensor([0.8947, 0.8947], dtype=torch.float64), tensor([0., 0.], dtype=torch.float64))
    """

    higher_is_better: bool = True
    is_differentiable = False
    full_state_update = False

    confidences: list[Tensor]
    empty_mask: list[Tensor]
    risks: list[Tensor]
    in_truth: list[Tensor]
    ranked: list[Tensor]
    ids: list[Tensor]
    columns: Tensor

    def __init__(self, estimator: str | ConfidenceEstimator = "sdc", **settings: Unpack[Settings]) -> None:
        super().__init__()
        self.set_dtype(torch.float64)
        self.confidence = SoftDiceConfidence(**settings)
        self.estimator = ready_estimator(estimator, self.confidence.empty, "estimator")
        # Kept flat, with the number of columns, so that the states of a process without cases can be joined
        # with those of others; all as float64, the type that such a process has for its empty states.
        for name in ("confidences", "empty_mask", "risks", "in_truth", "ranked", "ids"):
            self.add_state(name, default=[], dist_reduce_fx="cat")
        self.add_state("columns", default=torch.tensor(0), dist_reduce_fx="max")
        # A MetricCollection updates metrics whose states are equal after the first batch as one.
        about = repr((self.estimator, self.confidence.extra_repr(), self.confidence.empty))
        self.add_state("settings", default=torch.tensor(crc32(about.encode())), dist_reduce_fx="max")

    def update(self, preds: Tensor, target: Tensor | None = None, ids: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds
            Logits or probabilities, (N, ...) or with classes (N, C, ...).
        target
            The ground truth: masks of 0 and 1 in the shape of ``preds``, or for ``"multiclass"`` labels,
            (N, ...) or (N, 1, ...), or one-hot masks (N, C, ...). Pass it with every batch, or with none.
        ids
            Whole numbers that identify the cases, such as their positions in the data set. Pass them with
            every batch, or with none. Each case then counts once, and cases are sorted by id.
        """
        check_tensor(preds, "preds")
        for name, values, before in (("target", target, self.risks), ("ids", ids, self.ids)):
            if len(self.confidences) and (values is None) == bool(len(before)):
                raise ParameterError(f"{name}: expected with every batch or with none, got it with some.")
        with torch.no_grad():
            self.confidence.check_layout(preds)
            truth, counted = None, None
            if target is not None:
                truth, counted = self.confidence.masks(target, preds.shape, "target")
            maps = self.confidence.maps(preds, counted=counted)
            confidences = self._confidences(maps, preds.shape)
            numbers = None if ids is None else _ids(ids, preds)
            mask = maps.mask.bool()
            if maps.where is not None:
                mask = mask & maps.where
            if truth is not None:
                if maps.where is not None:
                    truth = truth & maps.where
                in_truth, ranked = truth.any(2), confidences.clone()
                self._score(maps, preds.shape, confidences.isnan() & in_truth, ranked)
                self.risks.append(_dice_risks(mask, truth, self.confidence.empty).reshape(-1))
                self.in_truth.append(in_truth.double().reshape(-1))
                self.ranked.append(ranked.reshape(-1))
            self.empty_mask.append((~mask.any(2)).double().reshape(-1))
        if numbers is not None:
            self.ids.append(numbers)
        self.confidences.append(confidences.reshape(-1))
        self.columns = torch.tensor(confidences.shape[1], device=confidences.device)

    def _confidences(self, maps: MaskedMaps, shape: torch.Size) -> Tensor:
        """Return the confidence of each map, (images, classes): the SDC at once, others map by map."""
        soft_dice = self.confidence.confidences(maps)
        if type(self.estimator) is SoftDice and self.estimator.empty is self.confidence.empty:
            return soft_dice
        found = torch.full_like(soft_dice, math.nan)
        self._score(maps, shape, ~soft_dice.isnan(), found)  # the SDC of absent classes is NaN
        return found

    def _score(self, maps: MaskedMaps, shape: torch.Size, chosen: Tensor, out: Tensor) -> None:
        """Store the confidences of the chosen maps, one at a time."""
        # A single channel is no axis of pixels.
        grid = (
            shape[2:] if self.confidence.task != "binary" or (shape[1] == 1 and len(shape) > 2) else shape[1:]
        )
        where = None if maps.where is None else maps.where.expand_as(maps.p)
        for image, number in chosen.nonzero().tolist():
            p, mask = maps.p[image, number].reshape(grid), maps.mask[image, number].bool().reshape(grid)
            counted = None if where is None else where[image, number].reshape(grid)
            out[image, number] = self.estimator(p, mask, where=counted)

    def compute(self) -> CaseConfidences:
        """Return the confidences and risks of all cases so far, as `CaseConfidences`."""
        return self._cases()

    def _cases(self) -> CaseConfidences:
        """Join the states. Not part of `compute`, which first gathers those of all processes."""
        states = (self.confidences, self.empty_mask, self.risks, self.in_truth, self.ranked)
        tables = [self._table(state) for state in states]
        ids = joined(self.ids).long()
        if ids.numel():  # sorted, and each once
            first = np.unique(ids.cpu().numpy(), return_index=True)[1]
            chosen = torch.from_numpy(first).to(ids.device)
            tables = [table[chosen] if table.numel() else table for table in tables]
            ids = ids[chosen]
        confidences, empty_mask, risks, in_truth, ranked = tables
        is_known = risks.numel() > 0
        return CaseConfidences(
            confidences,
            empty_mask=empty_mask.bool(),
            risks=risks if is_known else None,
            in_truth=in_truth.bool() if is_known else None,
            ranked=ranked if is_known else None,
            ids=ids if ids.numel() else None,
        )

    def _table(self, state: list[Tensor] | Tensor) -> Tensor:
        values = joined(state)
        return values if self.confidence.task == "binary" else values.reshape(-1, max(1, int(self.columns)))

    def plot(self, val: Any = None, ax: Any = None) -> tuple[Any, Any]:
        """Draw the distribution of the confidences with Matplotlib, one histogram per class.

        Parameters
        ----------
        val
            Result of `compute`; computed if ``None``.
        ax
            Matplotlib axes; new ones are created if ``None``.

        Returns
        -------
        tuple
            Figure and axes.
        """
        cases = self.compute() if val is None else val
        fig, ax = _axes(ax)
        _draw_distribution(ax, cases, None, self.estimator.label)
        return fig, ax


class _OneNumber(ConfidenceMetric):
    """Base class for metrics that return one number, for a logger."""

    def __init__(
        self,
        estimator: str | ConfidenceEstimator = "sdc",
        *,
        classes: Sequence[int] | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(estimator, **settings)
        self.classes = None if classes is None else list(classes)
        self._computed_from: CaseConfidences | None = None

    def update(self, preds: Tensor, target: Tensor | None = None, ids: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds
            Logits or probabilities, (N, ...) or with classes (N, C, ...).
        target
            The ground truth: masks of 0 and 1 in the shape of ``preds``, or for ``"multiclass"`` labels,
            (N, ...) or (N, 1, ...), or one-hot masks (N, C, ...). Pass it with every batch, or with none.
        ids
            Whole numbers that identify the cases, such as their positions in the data set. Pass them with
            every batch, or with none. Each case then counts once.
        """
        super().update(preds, target, ids)
        count = max(1, int(self.columns))
        wrong = [number for number in self.classes or () if not 0 <= number < count]
        if wrong and self.confidence.task != "binary":
            raise ParameterError(f"classes: expected numbers from 0 to {count - 1}, got {wrong[0]}.")

    def _mean_over_classes(self, values: Tensor) -> Tensor:
        chosen = values if self.classes is None or values.ndim == 0 else values[self.classes]
        return chosen.nanmean()

    def _draw(self, ax: Any, cases: CaseConfidences) -> None:
        raise NotImplementedError

    def plot(self, val: Any = None, ax: Any = None) -> tuple[Any, Any]:
        """Draw the cases that the number was computed from, or numbers of several epochs, with Matplotlib.

        Parameters
        ----------
        val
            One result of `compute` or a list of results, drawn as a line over their positions. ``None`` draws
            the cases: their risk-coverage curves for an area, the distribution of their confidences for a
            mean.
        ax
            Matplotlib axes; new ones are created if ``None``.

        Returns
        -------
        tuple
            Figure and axes.
        """
        fig, ax = _axes(ax)
        if val is None:
            self.compute()  # all processes' cases, kept by compute
            if self._computed_from is not None:
                self._draw(ax, self._computed_from)
        else:
            values = [float(value) for value in (val if isinstance(val, list | tuple) else [val])]
            ax.plot(range(len(values)), values, marker="o")
            ax.set(xlabel="step", ylabel=type(self).__name__)
        return fig, ax


class MeanConfidence(_OneNumber):
    """Mean confidence over the cases of a validation: one number, for a logger.

    Parameters
    ----------
    estimator
        Name of an estimator such as ``"sdc"`` or ``"pla"``, or an estimator with its own settings.
    classes
        Numbers of the classes to average over, such as ``[1, 2]`` without the background; all if ``None``.
    **settings
        ``from_logits``, ``task``, ``threshold``, ``empty`` and ``ignore_index``, see
        `segtrust.integrations.torch.SoftDiceConfidence`.

    Examples
    --------
    >>> metric = MeanConfidence("sdc", from_logits=False, task="binary")
    >>> metric.update(torch.tensor([[0.9, 0.8, 0.1], [0.6, 0.1, 0.0]]))
    >>> metric.compute()
    tensor(0.8003, dtype=torch.float64)
    """

    def compute(self) -> Tensor:  # type: ignore[override]
        """Return the mean over the cases and then over the classes; NaN if there are none."""
        self._computed_from = self._cases()
        return self._mean_over_classes(self._computed_from.mean)

    def _draw(self, ax: Any, cases: CaseConfidences) -> None:
        _draw_distribution(ax, cases, self.classes, self.estimator.label)


class ConfidenceAURC(_OneNumber):
    """Area under the risk-coverage curve of a confidence: one number, for a logger.

    It is low if the segmentations are good and the confidence ranks them by their Dice.

    Parameters
    ----------
    estimator
        Name of an estimator such as ``"sdc"`` or ``"pla"``, or an estimator with its own settings.
    classes
        Numbers of the classes to average over, such as ``[1, 2]`` without the background; all if ``None``.
    **settings
        ``from_logits``, ``task``, ``threshold``, ``empty`` and ``ignore_index``, see
        `segtrust.integrations.torch.SoftDiceConfidence`. The target is needed with every batch.

    Examples
    --------
    >>> metric = ConfidenceAURC("sdc", from_logits=False, task="binary")
    >>> metric.update(torch.tensor([[0.9, 0.8, 0.1], [0.6, 0.1, 0.0]]), torch.tensor([[1, 1, 0], [0, 1, 1]]))
    >>> metric.compute()
    tensor(0.1250, dtype=torch.float64)
    """

    higher_is_better = False

    def update(self, preds: Tensor, target: Tensor | None = None, ids: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds
            Logits or probabilities, (N, ...) or with classes (N, C, ...).
        target
            The ground truth, which is needed: masks of 0 and 1 in the shape of ``preds``, or for
            ``"multiclass"`` labels, (N, ...) or (N, 1, ...), or one-hot masks (N, C, ...).
        ids
            Whole numbers that identify the cases, such as their positions in the data set. Pass them with
            every batch, or with none. Each case then counts once.
        """
        if target is None:
            raise ParameterError("target: the area needs the ground truth. Pass it with every batch.")
        super().update(preds, target, ids)

    def compute(self) -> Tensor:  # type: ignore[override]
        """Return the area, averaged over the classes; NaN for fewer than two cases."""
        self._computed_from = self._cases()
        area = self._computed_from.aurc
        return torch.tensor(math.nan, dtype=torch.float64) if area is None else self._mean_over_classes(area)

    def _draw(self, ax: Any, cases: CaseConfidences) -> None:
        is_first = True
        for number in _class_numbers(cases, self.classes):
            curve = cases.curve(number)
            if curve is not None:
                label = self.estimator.label if number is None else f"class {number}"
                curve.plot(ax, label=label, references=is_first)
                is_first = False


SoftDiceConfidenceMetric = ConfidenceMetric
"""Name of `ConfidenceMetric` in release 0.1."""
MeanSoftDiceConfidence = MeanConfidence
"""Name of `MeanConfidence` in release 0.1."""
SoftDiceConfidenceAURC = ConfidenceAURC
"""Name of `ConfidenceAURC` in release 0.1."""


def ready_estimator(
    estimator: str | ConfidenceEstimator, empty: EmptyPolicy, name: str
) -> ConfidenceEstimator:
    """Return an estimator that can score maps now.

    Parameters
    ----------
    estimator
        Name of an estimator, or an estimator, which is returned as it is.
    empty
        Policy for empty masks, for an estimator that has one and is given by name.
    name
        Name of the argument in errors.
    """
    if not isinstance(estimator, str):
        return get_estimators([estimator])[0]
    made = get_estimator(estimator)
    if made.needs.members:
        raise ParameterError(
            f"{name}: {estimator} compares the members of an ensemble, but there is only one map per case. "
            "Choose another estimator, or use segtrust.pairwise_dice(maps)."
        )
    if learns(estimator):
        raise NotFittedError(
            f"{name}: {estimator} learns from cases and is not fitted. "
            f"Fit it first and pass the result: {type(made).__name__}().fit(cases)."
        )
    return made.set_params(empty=empty) if has_empty_setting(made) else made


def _ids(ids: Any, preds: Tensor) -> Tensor:
    """Return ids as float64, which holds whole numbers up to 2**53 exactly; larger ones are rejected."""
    try:
        numbers = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError):
        numbers = torch.empty(0)
    if numbers.is_floating_point() or numbers.is_complex() or numbers.ndim != 1:
        raise ParameterError(
            "ids: expected one whole number per case, such as its position in the data set, "
            f"got {describe(ids)}."
        )
    largest = max((abs(int(number)) for number in numbers.tolist()), default=0)
    if largest > _LARGEST_ID:
        raise ParameterError(
            f"ids: expected whole numbers up to 2**53, such as positions in the data set, got {largest}."
        )
    if numbers.shape[0] != preds.shape[0]:
        raise CaseLengthError(f"ids: expected {preds.shape[0]}, one per case, got {numbers.shape[0]}.")
    return numbers.to(preds.device, torch.float64)


def _dice_risks(mask: Tensor, truth: Tensor, empty: EmptyPolicy) -> Tensor:
    """Return one minus the Dice coefficient of each pair of masks (images, classes, pixels)."""
    both_sum, either = (mask & truth).sum(2).double(), mask.sum(2) + truth.sum(2)
    return torch.where(
        either > 0, 1.0 - 2.0 * both_sum / either.clamp(min=1), 1.0 - empty.dice_of_empty_masks
    )


# Figures


def _axes(ax: Any) -> tuple[Any, Any]:
    if ax is not None:
        return ax.figure, ax
    pyplot = require("matplotlib.pyplot", extra="plots")
    figure, axes = pyplot.subplots(figsize=(4.8, 3.4), layout="constrained")
    return figure, axes


def _class_numbers(cases: CaseConfidences, classes: Sequence[int] | None) -> Sequence[int | None]:
    if cases.confidences.ndim == 1:
        return [None]
    return range(cases.confidences.shape[1]) if classes is None else classes


def _draw_distribution(ax: Any, cases: CaseConfidences, classes: Sequence[int] | None, label: str) -> None:
    """Draw one histogram per class on the same bins; confidences of absent classes are left out."""
    columns = {
        label if number is None else f"class {number}": (
            cases.confidences if number is None else cases.confidences[:, number]
        )
        for number in _class_numbers(cases, classes)
    }
    known = {name: column[~column.isnan()].cpu().numpy() for name, column in columns.items()}
    values = np.concatenate(list(known.values()))
    is_negative = values.size > 0 and values.min() < 0.0  # minus an entropy, without a common scale
    bins = np.linspace(values.min() if is_negative else 0.0, 0.0 if is_negative else 1.0, _HISTOGRAM_BINS + 1)
    for name, column in known.items():
        ax.hist(column, bins=bins, histtype="step", label=name)
    ax.set(xlabel=f"confidence ({label})", ylabel="cases")
    ax.spines[["top", "right"]].set_visible(False)
    if len(known) > 1:
        ax.legend(fontsize="small", framealpha=0.9, edgecolor="none")
