"""What may come in: one number where one is asked for, and arrays of which every pixel can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from array_api_compat import is_torch_array

from segtrust._arguments import (
    check_nonnegative as check_number,
    check_threshold as check_fraction,
    check_weight as check_weight,
    check_whole as check_whole,
    describe as described,
)
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
