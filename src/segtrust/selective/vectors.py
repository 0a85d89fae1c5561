"""Vectors with one value per case: confidences, losses, weights, labels. They are checked once, here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from segtrust._arguments import describe, warn_caller
from segtrust._types import FloatArray
from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, TooFewCasesError

FEWEST_REFERENCES = 10
"""Smallest number of reference confidences from which candidate thresholds are taken."""

_DICE_ROUNDING = 1e-12
"""A case whose Dice is exactly at the cutoff is not a failure, however its loss was rounded."""

_DISTINCT_COPIES = 10
"""Number of distinct values that two sets of confidences share only if one was copied from the other."""

_FEWEST_RANKED = 10
"""Number of cases from which on a reversed ranking is noticed."""

_FEWEST_DISTINCT = 3
"""Number of different confidences from which on a reversed ranking is noticed."""

_MOST_RANKED = 1000
"""Number of cases that are enough to notice it; of more, every second, third, … is ranked."""

_REVERSED = -3.0
"""Fisher z of the rank correlation from which on a ranking is hardly reversed by chance."""

_ALMOST_1 = 1.0 - 1e-12

_CHANCE = 1e-6
"""Probability below which an agreement of two sets of confidences is not a coincidence."""

_ROUNDED_COPY = 1e-6
"""Distance of a value to its copy in single precision or with six decimals, relative to the largest value."""


def check_vector(
    values: Any, name: str, *, ids: Sequence[Any] | None = None, fewest: int = 1, n: int | None = None
) -> FloatArray:
    """Return one finite float64 number per case; the array is copied only if its type has to change.

    Parameters
    ----------
    values
        A sequence, array, or pandas column.
    name
        Name of the vector in errors.
    ids
        Names of the cases in errors; without them a case is named by its index, counted from 0.
    fewest
        Smallest number of cases that is accepted.
    n
        Expected number of cases, if it is known.

    Examples
    --------
    >>> check_vector([1, 0.5], "confidence").tolist()
    [1.0, 0.5]
    """
    if np.ma.is_masked(values):
        raise CaseValueError(f"{name}: expected a number for every case, got masked values. Drop them first.")
    try:
        numbers = np.asarray(without_tensors(values))
        if numbers.dtype.kind not in "biufO":
            raise TypeError("text, dates and complex numbers have no rank")
        numbers = numbers.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise CaseValueError(f"{name}: expected numbers, got {describe(values)}.") from error
    if numbers.ndim != 1:
        raise CaseLengthError(
            f"{name}: expected one value per case (1-D), got shape {numbers.shape}. "
            'Use frame["column"] or .ravel().'
        )
    if numbers.size < fewest:
        raise TooFewCasesError(f"{name}: expected at least {fewest} cases, got {numbers.size}.")
    if n is not None:
        check_length(numbers, n, name)
    if ids is not None:
        check_length(ids, numbers.size, "ids")
    _check_values(np.isfinite(numbers), numbers, name, "a finite number", ids)
    return numbers


def without_tensors(values: Any) -> Any:
    """Return a tensor, or a list with some, as NumPy can read it; anything else as it is.

    NumPy reads no tensor that has a gradient, that is on another device, or that is in bfloat16.

    Examples
    --------
    >>> without_tensors([0.9, 0.2])
    [0.9, 0.2]
    """
    if isinstance(values, list | tuple):
        has_tensors = any(hasattr(value, "detach") for value in values)
        return [without_tensors(value) for value in values] if has_tensors else values
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # a type that NumPy does not have
        return tensor.double().numpy()


def check_same_index(**columns: Any) -> None:
    """Raise if some of the arguments are pandas columns with different indices.

    Columns are read by position, so that the values of one case would be taken for those of another. Lists,
    arrays and columns with the same index pass.

    Parameters
    ----------
    **columns
        The arguments by name, before they are checked.
    """
    indices = {
        name: values.index
        for name, values in columns.items()
        if hasattr(values, "to_numpy") and hasattr(getattr(values, "index", None), "equals")
    }
    for name, index in list(indices.items())[1:]:
        first = next(iter(indices))
        if not indices[first].equals(index):
            raise ParameterError(
                f"{first}, {name}: expected pandas columns with the same index, got different ones, so their "
                f"cases may not match. Align them, {name}.reindex({first}.index); or, if the rows are in the "
                f"same order, pass {name}.to_numpy()."
            )


def _check_values(
    valid: Any, values: Any, name: str, expected: str, ids: Sequence[Any] | None = None
) -> None:
    """Raise if a value is invalid: name the first such case and say how many there are."""
    if valid.all():
        return
    invalid = np.flatnonzero(~valid)
    case = invalid[0] if ids is None else repr(ids[int(invalid[0])])
    more = f" and {invalid.size - 1} more" if invalid.size > 1 else ""
    raise CaseValueError(
        f"{name}: expected {expected}, got {values[invalid[0]]!s} for case {case}{more}. "
        "Such cases cannot be ranked: fix or drop them first."
    )


def check_length(values: Any, n: int, name: str) -> None:
    """Raise if a vector does not have one value for each of ``n`` cases."""
    if len(values) != n:
        raise CaseLengthError(f"{name}: expected {n} values, one for each confidence, got {len(values)}.")


def check_sum(values: Any, name: str) -> None:
    """Raise if the sum of the values is not finite."""
    with np.errstate(over="ignore"):
        total = values.sum()
    if not np.isfinite(total):
        raise CaseValueError(
            f"{name}: expected a finite sum, got numbers up to {values.max():g} whose sum overflows. "
            "Divide all of them by the same number."
        )


def check_confidences(values: Any, *, ids: Sequence[Any] | None = None, fewest: int = 1) -> FloatArray:
    """Return confidences as float64 numbers: finite, on any scale."""
    return check_vector(values, "confidence", ids=ids, fewest=fewest)


def check_losses(values: Any, n: int, *, ids: Sequence[Any] | None = None, unit: bool = False) -> FloatArray:
    """Return the losses of ``n`` cases as float64 numbers: at least 0, and with ``unit`` at most 1."""
    loss = check_vector(values, "loss", ids=ids, n=n)
    valid = (loss >= 0.0) & (loss <= (1.0 if unit else np.inf))
    _check_values(valid, loss, "loss", "a loss in [0, 1]" if unit else "a loss of at least 0", ids)
    check_sum(loss, "loss")
    return loss


def check_dice(values: Any, n: int, *, ids: Sequence[Any] | None = None) -> FloatArray:
    """Return the Dice coefficients, or other scores in [0, 1] with 1 as the best, of ``n`` cases."""
    dice = check_vector(values, "dice", ids=ids, n=n)
    _check_values((dice >= 0.0) & (dice <= 1.0), dice, "dice", "a number in [0, 1]", ids)
    return dice


def check_outcomes(
    confidence: Any,
    loss: Any,
    dice: Any,
    *,
    ids: Sequence[Any] | None = None,
    unit: bool = False,
    as_dice: bool = False,
) -> FloatArray:
    """Return the losses of cases (or their Dice) from whichever of the two was passed.

    The public functions that take a loss or a Dice call it with both arguments. It warns if the confidence
    ranks the cases the wrong way round, as it does when one was passed for the other.

    Parameters
    ----------
    confidence
        Confidence of each case, already checked.
    loss, dice
        One number per case in exactly one of them.
    ids
        Names of the cases in errors.
    unit
        Whether losses must be at most 1.
    as_dice
        Whether to return the Dice instead of the loss.

    Examples
    --------
    >>> check_outcomes(np.array([0.9, 0.2]), None, [0.75, 0.5]).tolist()
    [0.25, 0.5]
    """
    if (loss is None) == (dice is None):
        received = "neither" if loss is None else "both"
        raise ParameterError(
            f"loss, dice: expected exactly one of them, got {received}. The loss is one minus the Dice."
        )
    if loss is None:
        dice = check_dice(dice, confidence.size, ids=ids)
        quality: FloatArray = dice
        result: FloatArray = dice if as_dice else 1.0 - dice
    else:
        loss = check_losses(loss, confidence.size, ids=ids, unit=unit or as_dice)
        quality, result = -loss, 1.0 - loss if as_dice else loss
    warn_if_reversed(confidence, quality, "dice" if loss is None else "loss")
    return result


def warn_if_reversed(confidence: Any, quality: Any, name: str) -> None:
    """Warn if the more confident cases are clearly the worse ones, by the rank correlation of both.

    The limit is a Fisher z of -3, which random confidences reach in 0.1 to 0.25 % of samples. Cases that are
    tied with most others count less, and fewer than 10 cases or 3 different confidences never lead to a
    warning. Of more than 1,000 cases only a part is ranked.

    Parameters
    ----------
    confidence
        Confidence of each case.
    quality
        Dice of each case, or minus its loss.
    name
        Name of the argument in the warning, ``"loss"`` or ``"dice"``.
    """
    if confidence.size < _FEWEST_RANKED:
        return
    step = -(-confidence.size // _MOST_RANKED)
    confidence, quality = confidence[::step], quality[::step]
    ranks, distinct, untied = _mid_ranks(confidence)
    quality_ranks, _, untied_quality = _mid_ranks(quality)
    n = min(confidence.size, 2 * untied, 2 * untied_quality)
    if n < _FEWEST_RANKED or distinct < _FEWEST_DISTINCT:
        return
    correlation = float(ranks @ quality_ranks) / math.sqrt(
        float(ranks @ ranks) * float(quality_ranks @ quality_ranks)
    )
    fisher_z = math.atanh(min(max(correlation, -_ALMOST_1), _ALMOST_1)) * math.sqrt((n - 3) / 1.06)
    if fisher_z > _REVERSED:
        return
    received, remedy = (
        ("higher loss", "a Dice as dice=") if name == "loss" else ("lower Dice", "a loss as loss=")
    )
    warn_caller(
        f"{name}: more confident cases have a {received} (rank correlation of confidence and quality "
        f"{correlation:.2f}). Pass {remedy}, and a confidence that is high for good cases."
    )


def _mid_ranks(values: Any) -> tuple[Any, int, int]:
    """Return centred ranks, the number of different values, and the cases outside the largest tie."""
    order = values.argsort()
    ordered = values[order]
    firsts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    ranks = np.empty(values.size)
    if firsts.size == values.size - 1:  # no ties, the usual case
        ranks[order] = np.arange(values.size) - (values.size - 1) / 2.0
        return ranks, values.size, values.size - 1
    edges = np.concatenate([[0], firsts, [values.size]])
    counts = np.diff(edges)
    ranks[order] = np.repeat((edges[:-1] + edges[1:] - values.size) / 2.0, counts)
    return ranks, counts.size, values.size - int(counts.max())


def check_weights(values: Any, n: int) -> FloatArray:
    """Return the weights of ``n`` cases: at least 0, not all 0; ones if ``values`` is None."""
    if values is None:
        return np.ones(n)
    weights = check_vector(values, "weights", n=n)
    _check_values(weights >= 0.0, weights, "weights", "a weight of at least 0")
    if not weights.any():
        raise CaseValueError("weights: expected at least one above 0, got only zeros.")
    check_sum(weights, "weights")
    return weights


def is_failure(loss: Any, dice_cutoff: float) -> Any:
    """Return for each case whether its Dice, one minus its loss, is below the cutoff.

    Examples
    --------
    >>> is_failure(np.array([0.1, 1.0 - 0.8, 0.3]), 0.8).tolist()
    [False, False, True]
    """
    return loss > 1.0 - dice_cutoff + _DICE_ROUNDING


def frozen_copy(values: Any) -> Any:
    """Return a read-only copy of an array."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


# Labels of cases: patients, groups, ids. They are compared as text, because a table that has been through a
# file returns 7, 7.0 or "7" for the same patient. A column with both text and numbers is rejected: whether
# its 7 and "7" are the same patient could only be guessed.


def check_labels(values: Any, n: int, name: str, *, ids: Sequence[Any] | None = None) -> Any:
    """Return the label of each case as an array of text.

    Parameters
    ----------
    values
        Text or numbers, one per case: a sequence, array, or pandas column.
    n
        Number of cases.
    name
        Name of the labels in errors.
    ids
        Names of the cases in errors; without them a case is named by its index, counted from 0.

    Examples
    --------
    >>> check_labels([7.0, 8], 2, "patients").tolist()
    ['7', '8']
    """
    if isinstance(values, str | bytes | set | frozenset | dict) or not isinstance(values, Iterable):
        raise CaseLengthError(f"{name}: expected one label per case, in their order, got {values!r}.")
    # An array of objects, because NumPy turns the numbers of a mixed list into text.
    is_array = hasattr(values, "dtype")
    column = np.asarray(without_tensors(values)) if is_array else np.array([*values], dtype=object)
    if column.ndim != 1:
        raise CaseLengthError(f"{name}: expected one label per case (1-D), got shape {column.shape}.")
    check_length(column, n, name)
    distinct, index = _distinct_labels(column)
    texts = [format_label(label) for label in distinct]
    if None in texts:
        missing = texts.index(None)
        first = int(np.flatnonzero(index == missing)[0])
        case = first if ids is None else repr(ids[first])
        raise CaseValueError(
            f"{name}: expected text or a number, got {distinct[missing]!r} for case {case}. "
            "Add the label, or drop the case."
        )
    _check_one_kind(distinct, name)
    return np.array(texts, dtype=str)[index] if texts else np.zeros(0, dtype=str)


def _distinct_labels(column: Any) -> tuple[list[Any], Any]:
    """Return the distinct labels, and for each case the index of its label among them."""
    if column.dtype.kind in "USiufb":
        distinct, index = np.unique(column, return_inverse=True)
        return distinct.tolist(), index
    # Objects are told apart by type and text: some have no hash, and Python takes 1 and True for equal.
    numbers: dict[tuple[str, str], int] = {}
    keys = ((type(label).__name__, repr(label)) for label in column.tolist())
    index = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
    _, first = np.unique(index, return_index=True)
    return [column[at] for at in first], index


def _check_one_kind(labels: Iterable[Any], name: str) -> None:
    kinds: dict[str, Any] = {}
    for label in labels:
        plain = label.item() if isinstance(label, np.generic) else label
        kind = "text" if isinstance(plain, str) else "booleans" if isinstance(plain, bool) else "numbers"
        kinds.setdefault(kind, label)
    if len(kinds) > 1:
        examples = " and ".join(f"{kind} ({label!r})" for kind, label in list(kinds.items())[:2])
        raise CaseValueError(
            f"{name}: expected labels of one kind, got {examples}. Write all of them as text, or all "
            "as numbers."
        )


def number_labels(values: Any, n: int, name: str) -> Any:
    """Return the number of each case's label, counted from 0.

    The labels are numbered in numerical order if all of them are whole numbers, else alphabetically.

    Examples
    --------
    >>> number_labels(["b", "a", "b"], 3, "patients").tolist()
    [1, 0, 1]
    """
    labels, index = np.unique(check_labels(values, n, name), return_inverse=True)
    try:
        order = np.lexsort((labels, labels.astype(np.int64)))
    except (ValueError, OverflowError):
        return index
    return np.argsort(order)[index]


def format_label(value: Any) -> str | None:
    """Return a label as text, whole numbers without a decimal point; None if it is missing or not a label.

    Examples
    --------
    >>> format_label("a"), format_label(1.0), format_label(np.int64(1)), format_label(0.5)
    ('a', '1', '1', '0.5')
    >>> format_label(float("nan")), format_label("")
    (None, None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    return str(value) or None if isinstance(value, str | int | float) else None


def check_reference(reference: Any, confidence: Any) -> FloatArray:
    """Return reference confidences: finite, at least 10, and not copied from the calibration cases.

    Candidate thresholds are taken from the reference. A threshold taken from the calibration confidences
    depends on the cases that it is tested on, and the guarantee silently fails. So a reference is rejected if
    it consists of the calibration confidences in any order, is a part of them, or contains all of them.
    Coarse confidences share values by chance; only values that do not repeat count as evidence of a copy.

    Examples
    --------
    >>> check_reference(np.arange(10) / 10, np.arange(10) / 9).size
    10
    """
    values = check_vector(reference, "reference", fewest=0)
    if values.size < FEWEST_REFERENCES:
        raise TooFewCasesError(
            f"reference: expected confidences of at least {FEWEST_REFERENCES} unlabelled cases, got "
            f"{values.size}. Pass more, or none: a share of the labelled cases is then set aside instead."
        )
    is_copy = values is confidence or _agree_case_by_case(values, confidence) or _contains(values, confidence)
    if is_copy or _contains(_undo_rounding(values, confidence), confidence):
        raise ParameterError(
            "reference: expected confidences of other cases, got some or all of those of the calibration "
            "cases. Omit the reference to have a share of the labelled cases set aside instead."
        )
    return values


def _agree_case_by_case(values: Any, confidence: Any) -> bool:
    """Return whether the vectors are equal, and would hardly be so by chance."""
    if not np.array_equal(values, confidence):
        return False
    shares = np.unique(values, return_counts=True)[1] / values.size
    return bool(np.sum(shares**2) ** values.size < _CHANCE)


def _contains(values: Any, confidence: Any) -> bool:
    """Return whether one vector is part of the other, by enough values that are unique in the larger one."""
    smaller, larger = sorted((values, confidence), key=len)
    distinct, counts = np.unique(larger, return_counts=True)
    own, own_counts = np.unique(smaller, return_counts=True)
    at = np.minimum(np.searchsorted(distinct, own), distinct.size - 1)
    if not np.all((distinct[at] == own) & (own_counts <= counts[at])):
        return False
    is_whole = smaller.size == larger.size
    return bool((own.size if is_whole else np.count_nonzero(counts[at] == 1)) >= _DISTINCT_COPIES)


def _undo_rounding(values: Any, confidence: Any) -> Any:
    """Replace values by the nearest confidence if it is close: a copy may have lost digits in a file."""
    ordered = np.sort(confidence)
    right = np.clip(np.searchsorted(ordered, values), 1, ordered.size - 1)
    below, above = ordered[right - 1], ordered[right]
    nearest = np.where(values - below <= above - values, below, above)
    tolerance = _ROUNDED_COPY * np.abs(ordered[[0, -1]]).max()
    # About the probability that the value of another case is this close to one of the confidences.
    crowded = np.mean(np.diff(ordered) <= 2.0 * tolerance)
    if crowded**values.size > _CHANCE:
        return values
    return np.where(np.abs(values - nearest) <= tolerance, nearest, values)
