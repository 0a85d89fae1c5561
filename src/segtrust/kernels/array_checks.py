"""Checks of arrays from users: is it an array, a probability map, a mask; with one wording for every error.

The same messages are raised wherever an array lies: in memory, in chunks or on a device.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from array_api_compat import is_torch_array

from segtrust._arguments import describe
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)

_VALUES_SHOWN = 6
_ROUNDING = 0.01
"""Values outside [0, 1] by no more than this are taken for rounding: half precision, resampling."""
_NARROW_FLOAT = re.compile(r"float[468]_")
"""Names of float types of a few bits, with which no library computes."""
_TYPE_HINTS = {
    "i": "Signed integers have no agreed scale: divide by it and pass floats, or use uint8 or uint16.",
    "u": "Only uint8 (/ 255) and uint16 (/ 65535) have an agreed scale: divide first and pass floats.",
    "c": "Probabilities are real: take the real part or the modulus, whichever is meant.",
}


def as_array(values: Any, name: str) -> Any:
    """Return numbers, lists and tables as NumPy arrays, and arrays of any library as they are, checked."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, list | tuple) and values and all(map(is_torch_array, values)):
        shapes = {tuple(tensor.shape) for tensor in values}
        if len(shapes) > 1:
            raise ParameterError(f"{name}: expected tensors of one shape, got {sorted(shapes)}.")
        values = sys.modules["torch"].stack(tuple(values))  # keeps gradient and device
    if not (is_torch_array(values) or _has_shape_and_type(values)):
        try:
            array = np.asarray(values)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"{name}: expected an array, got a {type(values).__name__} that cannot be converted: {error} "
                "Convert it first; all rows must have the same length."
            ) from error
        if array.dtype.kind not in "biufc":
            _raise_not_an_array(values, name)
        values = array
    check_array(values, name)
    return values


def check_array(values: Any, name: str) -> None:
    """Check that ``values`` has a shape and a type, and that all its pixels can be read as they are."""
    if type(values) is np.ndarray:
        return
    if is_torch_array(values):
        _check_tensor(values, name)
        return
    if not _has_shape_and_type(values):
        _raise_not_an_array(values, name)
    if values.shape is None:  # an HDF5 data set that was created without any data
        raise_empty(None, name)
    _check_unmasked(values, name)
    _check_stored(values, name)
    if hasattr(values, "todense"):
        _raise_sparse(values, name, "todense")
    if any(map(math.isnan, values.shape)):
        raise ParameterError(
            f"{name}: expected an array of known shape, got {values.shape}. Dask learns the sizes of its "
            "chunks by reading them: call .compute_chunk_sizes() first."
        )


def _has_shape_and_type(values: Any) -> bool:
    return hasattr(values, "shape") and hasattr(values, "dtype")


def _check_tensor(values: Any, name: str) -> None:
    if values.is_nested:  # such a tensor has no shape
        raise ParameterError(
            f"{name}: expected a dense array, got a nested tensor, whose parts differ in shape. "
            "Pass them one at a time: values.unbind()."
        )
    if str(values.layout) != "torch.strided":
        _raise_sparse(values, name, "to_dense")
    if values.device.type == "meta":
        raise ParameterError(
            f"{name}: expected an array that holds its pixels, got a tensor on the device 'meta', which has "
            "a shape but no values. Run the model on another device, such as 'cpu'."
        )


def _check_unmasked(values: Any, name: str) -> None:
    """Reject arrays with pixels masked by numpy.ma; a Dask array only shows that its chunks may have some."""
    lazy = isinstance(getattr(values, "_meta", None), np.ma.MaskedArray)
    if not (lazy or (isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values))):
        return
    masked = "chunks" if lazy else f"{values.size - values.count()} of {values.size} pixels"
    filled = "dask.array.ma.filled(values, 0)" if lazy else "values.filled(0)"
    raise ParameterError(
        f"{name}: expected an array without masked pixels, got {masked} masked by numpy.ma, which would be "
        f"counted like all others. Fill them in, {filled}, or crop the map, the mask and the ground truth."
    )


def _check_stored(values: Any, name: str) -> None:
    """Reject a Zarr or HDF5 array that would be read as fill values, or as codes of other numbers."""
    attributes = getattr(values, "attrs", None)
    if attributes is None or 0 in values.shape:
        return
    for attribute, neutral in (("scale_factor", 1), ("add_offset", 0)):
        value = attributes.get(attribute, neutral)
        if not np.array_equal(np.ravel(value), [neutral]):
            raise ParameterError(
                f"{name}: expected values that are stored as they are, got an array with {attribute} "
                f"{value}, which is not applied. Apply it and pass the result: "
                "values[:] * scale_factor + add_offset."
            )
    remedy = "Write or copy it again."
    stored = getattr(values, "nchunks_initialized", None)  # of Zarr
    if stored is not None:
        remedy = (
            "Copy it again. If it is meant to be empty, write it with "
            "zarr.config.set({'array.write_empty_chunks': True}): Zarr leaves out chunks of the fill value."
        )
    elif not getattr(values, "is_virtual", True):  # of HDF5, not stored in other files
        stored = values.id.get_storage_size()
    if stored == 0:
        raise ParameterError(
            f"{name}: expected an array with stored pixels, got one without any, which would be read as its "
            f"fill value everywhere. {remedy}"
        )


def _raise_sparse(values: Any, name: str, method: str) -> NoReturn:
    raise ParameterError(
        f"{name}: expected a dense array, got a sparse {type(values).__name__}. "
        f"Convert it first: values.{method}()."
    )


def _raise_not_an_array(values: Any, name: str) -> NoReturn:
    remedy = "Pass an array of numbers."
    if hasattr(values, "probabilities"):
        remedy = "Pass its probabilities and its mask, or pass it to score() of an estimator."
    elif isinstance(values, Real | Sequence) and not isinstance(values, str | bytes):
        remedy = "Convert it: numpy.asarray(values)."
    raise ParameterError(f"{name}: expected an array, got {describe(values)}. {remedy}")


def mask_name(source: str) -> str:
    """Return how errors name the mask of a map, with the case if the map's own name has one.

    Examples
    --------
    >>> mask_name("p"), mask_name("p[3]"), mask_name("case 7")
    ('mask', 'mask[3]', 'case 7: mask')
    """
    return f"mask{source[1:]}" if source == "p" or source.startswith("p[") else f"{source}: mask"


def check_shapes(shape: tuple[int, ...], mask_shape: tuple[int, ...] | None, source: str) -> None:
    """Check that a map has at least one pixel and that its mask, if any, has the same shape."""
    if math.prod(shape) == 0:
        raise_empty(shape, source)
    if mask_shape is not None and mask_shape != shape:
        raise_shape_mismatch(mask_shape, f"the shape of {source}, {shape}", mask_name(source))


def raise_empty(shape: tuple[int, ...] | None, source: str) -> NoReturn:
    """Raise the error for an array without pixels."""
    received = "an array without a shape" if shape is None else f"an array of shape {shape}"
    raise EmptyArrayError(
        f"{source}: expected at least one pixel, got {received}. "
        "Find out where its pixels were lost (a crop, a file that was never filled), or drop the case."
    )


def raise_shape_mismatch(shape: tuple[int, ...], expected: str, source: str) -> NoReturn:
    """Raise the error for a mask that is not on the grid of the array it belongs to."""
    raise MaskShapeError(
        f"{source}: expected {expected}, got {shape}. "
        "Both must lie on the same grid; resample or transpose one of them first."
    )


def dtype_name(dtype: Any) -> str:
    """Return the name of a type of any array library, without its library and byte order."""
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def check_map_type(dtype: Any, source: str) -> None:
    """Check that a type of any array library is a float, uint8, uint16 or bool."""
    name = dtype_name(dtype)
    is_float = ("float" in name and not _NARROW_FLOAT.match(name)) or name == "longdouble"
    if not (is_float or name in ("uint8", "uint16", "bool")):
        raise_map_type(dtype, name[:1] if name.startswith(("int", "uint", "complex")) else "", source)


def raise_map_type(dtype: Any, kind: str, source: str) -> NoReturn:
    """Raise the error for a type that holds no probabilities; ``kind`` is its letter in NumPy."""
    hint = _TYPE_HINTS.get(kind, "Convert the map to float32 probabilities first.")
    raise ProbabilityTypeError(
        f"{source}: expected float16, float32, float64, uint8, uint16 or bool, got {dtype}. {hint}"
    )


def as_binary(mask: Any, source: str = "mask") -> Any:
    """Return a NumPy mask as uint8 of 0 and 1, without a copy if it is bool or uint8 already.

    Examples
    --------
    >>> as_binary(np.array([0.0, 1.0])).tolist()
    [0, 1]
    """
    if mask.dtype == bool:
        return mask.view(np.uint8)
    if mask.dtype.kind not in "uif":
        raise_mask_type(mask.dtype, source)
    if mask.dtype == np.uint8:
        binary = mask
        is_binary = mask.size == 0 or mask.max() <= 1
    else:
        binary = (mask != 0).view(np.uint8)
        is_binary = (mask == binary).all()
    if not is_binary:
        raise_mask_values(np.unique(mask[(mask != 0) & (mask != 1)]).tolist(), source)
    return binary


def raise_mask_type(dtype: Any, source: str) -> NoReturn:
    """Raise the error for a type that holds no mask."""
    raise MaskError(
        f"{source}: expected bool, integers or floats of 0 and 1, got {dtype}. "
        "Convert it to bool first, for example mask == 1."
    )


def raise_mask_values(values: Sequence[float], source: str) -> NoReturn:
    """Raise the error for a mask that holds ``values`` other than 0 and 1."""
    distinct = list(dict.fromkeys(_format_value(value, 6) for value in values))  # NaN differs from itself
    shown = ", ".join(distinct[:_VALUES_SHOWN]) + (", …" if len(distinct) > _VALUES_SHOWN else "")
    raise NotBinaryError(
        f"{source}: expected only 0 and 1, got the values {shown}. "
        "Threshold or select the label first, for example mask > 0 or mask == label."
    )


class NearbyValues(NamedTuple):
    """The finite values around a bad one: their range, and whether all above 1 are whole numbers."""

    low: float
    high: float
    whole: bool


def raise_bad_value(value: float, index: tuple[int, ...], nearby: NearbyValues, source: str) -> NoReturn:
    """Raise the error for a value that is not a probability."""
    low, high, whole = nearby
    if not math.isfinite(value):
        remedy = "NaN and infinity cannot be scored: fix the model output or drop the case."
    elif low >= -_ROUNDING and high <= 1.0 + _ROUNDING:
        remedy = "This looks like a rounding error: clip it first, numpy.clip(p, 0, 1)."
    elif whole and low >= -_ROUNDING and high <= 255.0:
        remedy = "These look like 8-bit levels: divide by 255 or pass them as uint8."
    else:
        remedy = "These look like logits: convert them first, with a sigmoid or softmax(logits, axis=0)."
        if low >= -_ROUNDING and high <= 100.0:
            remedy += " Or are they per cent? Then divide by 100."
    span = ""
    if low <= high:  # not NaN
        span = f" (finite values nearby span [{_format_value(low, 3)}, {_format_value(high, 3)}])"
    raise ProbabilityRangeError(
        f"{source}: expected probabilities in [0, 1], got {_format_value(value, 6)} at index {index}{span}. "
        f"{remedy}"
    )


def _format_value(value: float, digits: int) -> str:
    """Format a number; with all digits if it is outside [0, 1] but would read as 0 or 1.

    Examples
    --------
    >>> _format_value(1.25, 3), _format_value(1.0000001, 6)
    ('1.25', '1.0000001')
    """
    text = f"{value:.{digits}g}"
    is_beyond = not 0.0 <= value <= 1.0 and float(text) in (0.0, 1.0)
    return repr(float(value)) if is_beyond else text
