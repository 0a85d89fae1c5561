"""What may come in: one number where one is asked for, and arrays of which every pixel can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from array_api_compat import is_torch_array

from segtrust.errors import ParameterError
from segtrust.kernels.refusals import refuse_empty

__all__ = [
    "as_array",
    "check_array",
    "check_fraction",
    "check_number",
    "check_weight",
    "check_whole",
    "described",
]

_LONGEST = 60
_LARGEST = float(np.finfo(float).max)
_HEAVIEST = 1e20
"""Weight up to which expectations are exact. Doubles would do for 1e100; but where a device has only singles,
their range ends at 1e38, and the weight is multiplied by 1e8 and by the sum of the probabilities."""


def described(value: Any) -> str:
    """Say in a few words what came instead of what was expected.

    Examples
    --------
    >>> described("0.5"), described([0.5]), described(np.zeros(3))
    ("the text '0.5'", 'list [0.5]', 'ndarray of shape (3,)')
    """
    kind = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(value, "shape"):
        return f"{kind} of shape {value.shape}"
    shown = " ".join(repr(value).split())
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    return f"the text {shown}" if isinstance(value, str) else f"{kind} {shown}"


def check_number(
    value: Any,
    name: str,
    expected: str = "a finite number of at least 0",
    *,
    most: float = math.inf,
    remedy: str = "Choose a number within these limits.",
) -> None:
    """Refuse what is not one finite number from 0 to ``most``."""
    if not isinstance(value, float | Real):  # float first, because it is quick
        raise ParameterError(
            f"{name}: expected {expected}, got {described(value)}. "
            "Pass one number; float(value) makes one of a text or of an array with one element."
        )
    try:
        number = float(value)
    except OverflowError:  # whole numbers and fractions may be of any size
        came = "a number too large for a float"
        raise ParameterError(f"{name}: expected {expected}, got {came}. {remedy}") from None
    if not 0.0 <= number <= min(most, _LARGEST):
        raise ParameterError(f"{name}: expected {expected}, got {value!r}. {remedy}")


def check_fraction(value: Any, name: str) -> None:
    """Refuse what is not one number from 0 to 1, such as a decision threshold."""
    remedy = "Divide a percentage by 100 and an 8-bit level by 255; of a logit take the sigmoid."
    check_number(value, name, "a number in [0, 1]", most=1.0, remedy=remedy)


def check_weight(value: Any, name: str) -> None:
    """Refuse what is not one number from 0 to 1e20, such as the weight of a false negative."""
    check_number(value, name, f"a finite number of at least 0 and at most {_HEAVIEST:g}", most=_HEAVIEST)


def check_whole(value: Any, name: str, *, least: int = 0, most: int | None = None) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``.

    Examples
    --------
    >>> check_whole(0, "trees", least=1)
    Traceback (most recent call last):
    ...
    segtrust.errors.ParameterError: trees: expected a whole number of at least 1, got 0.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ParameterError(f"{name}: expected a whole number of at least {least}, got {value!r}.")
    if most is not None and int(value) > most:
        raise ParameterError(f"{name}: expected a whole number of at most {most}, got {value!r}.")


def as_array(values: Any, name: str) -> Any:
    """Give numbers, lists and tables as NumPy arrays, and arrays as they are, checked."""
    if type(values) is np.ndarray:
        return values
    if not (is_torch_array(values) or _has_shape_and_type(values)):
        values = _array_of(values, name)
    check_array(values, name)
    return values


def _array_of(values: Any, name: str) -> Any:
    """Make an array of a number, a list or a table; what has no numbers is named by what it is."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name}: expected an array, got a {type(values).__name__} that is none: {error} "
            "Convert it first; rows must be of the same length."
        ) from error
    if array.dtype.kind not in "biufc":
        _refuse_no_array(values, name)
    return array


def _refuse_no_array(values: Any, name: str) -> NoReturn:
    remedy = "Pass an array of numbers."
    if hasattr(values, "probabilities"):
        remedy = "Pass its probabilities and its mask, or give it to score() of an estimator."
    elif isinstance(values, Real | Sequence) and not isinstance(values, str | bytes):
        remedy = "Convert it: numpy.asarray(values)."
    raise ParameterError(f"{name}: expected an array, got {described(values)}. {remedy}")


def check_array(values: Any, name: str) -> None:
    """Refuse what has no shape and type, and arrays whose pixels cannot all be read as they are."""
    if type(values) is np.ndarray:
        return
    if is_torch_array(values):
        _check_tensor(values, name)
        return
    if not _has_shape_and_type(values):
        _refuse_no_array(values, name)
    if values.shape is None:  # a data set of HDF5 that was made without any data
        refuse_empty(None, name)
    _check_unmasked(values, name)
    if hasattr(values, "todense"):
        _refuse_sparse(values, name, "todense")
    if any(map(math.isnan, values.shape)):
        raise ParameterError(
            f"{name}: expected an array of known shape, got {values.shape}. Dask learns the sizes of its "
            "chunks by reading them: call .compute_chunk_sizes() first."
        )


def _has_shape_and_type(values: Any) -> bool:
    return hasattr(values, "shape") and hasattr(values, "dtype")


def _check_unmasked(values: Any, name: str) -> None:
    """Refuse pixels that numpy.ma hides; Dask tells by its sample only whether its chunks may hide some."""
    lazy = isinstance(getattr(values, "_meta", None), np.ma.MaskedArray)
    if not (lazy or (isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values))):
        return
    hidden = "chunks" if lazy else f"{values.size - values.count()} of {values.size} pixels"
    filled = "dask.array.ma.filled(values, 0)" if lazy else "values.filled(0)"
    raise ParameterError(
        f"{name}: expected an array that shows all its pixels, got {hidden} masked by numpy.ma, which would "
        f"count as if they were not. Say what they are, {filled}, or crop map, mask and truth to the others."
    )


def _check_tensor(values: Any, name: str) -> None:
    """Refuse tensors that are not one box of pixels with values; a nested one does not tell its shape."""
    if values.is_nested:
        raise ParameterError(
            f"{name}: expected a dense array, got a nested tensor, whose parts differ in shape. "
            "Give them one at a time: values.unbind()."
        )
    if str(values.layout) != "torch.strided":
        _refuse_sparse(values, name, "to_dense")
    if values.device.type == "meta":
        raise ParameterError(
            f"{name}: expected an array that holds its pixels, got a tensor on the device 'meta', which has "
            "a shape but no values. Run the model on another device, such as 'cpu'."
        )


def _refuse_sparse(values: Any, name: str, method: str) -> NoReturn:
    raise ParameterError(
        f"{name}: expected a dense array, got a sparse {type(values).__name__}. "
        f"Give all its pixels: values.{method}()."
    )
