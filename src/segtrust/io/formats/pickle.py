"""Pickles: those that nnU-Net writes, read without running what is in them, and those that a person trusts.

A pickle is a program: loading one runs whatever its author wrote. `read_plain_pickle` may make plain data
(numbers, text, lists, tuples, mappings) and NumPy's arrays and numbers, by functions of this module alone;
anything else ends the reading. These functions take what nnU-Net's pickles give them and no more: NumPy's own
would also allocate any amount of memory, and believe a type which says that its pixels are pointers.

`open_trusted` loads any pickle. Nothing calls it unless a person has said so (``--allow-pickle``).
"""

from __future__ import annotations

import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.formats._common import Volume

__all__ = ["LISTED", "is_pickle", "open_trusted", "read_plain_pickle", "read_trusted"]

LISTED = "listed"
"""Name of the arrays of a pickle that is a plain list of them."""
_LARGEST = 64 << 20
"""Bytes of a file, and of the arrays that are made from it."""
_MOST_STEPS = 200_000
"""Steps of a pickle: each takes time, whatever it makes."""
_NUMBERS = re.compile(r"[?biufc]\d{0,2}")
"""Types of numbers as pickles name them."""


def _rejected(what: object) -> UnsafeFileError:
    return UnsafeFileError(f"expected plain data and arrays of numbers only, got {what}")


class _Type:
    """A type of numbers; its byte order follows after the rest."""

    def __init__(self, name: str, *_about: bool) -> None:
        if not (isinstance(name, str) and _NUMBERS.fullmatch(name)):
            raise _rejected(f"an array of {name!r}")
        self.dtype: Any = np.dtype(name)

    def complete(self, state: Any) -> None:
        """Set the byte order; a number has no fields, parts, other size or other flags."""
        _version, order, *others = state
        if order not in ("<", ">", "|", "=") or others != [None, None, None, -1, -1, 0]:
            raise _rejected(f"a type of {state!r}")
        self.dtype = self.dtype.newbyteorder(order)


def _numpy(kind: Any) -> Any:
    if not isinstance(kind, _Type):
        raise _rejected(f"a type of {type(kind).__name__}")
    return kind.dtype


def _ndarray(*_: Any) -> Any:
    """Stand in for NumPy's class, which each pickle of an array names and never calls."""
    raise _rejected("a call of numpy.ndarray")


def _empty(kind: Any, shape: Any, _type: Any) -> Any:
    """Make an array that is filled later."""
    if kind is not _ndarray or shape != (0,):
        raise _rejected(f"an array of the shape {shape!r}")
    return np.empty(0, np.int8)


def _scalar(kind: Any, data: bytes) -> Any:
    """Make one of NumPy's numbers."""
    return np.frombuffer(data, _numpy(kind), 1)[0]


def _from_buffer(data: Any, kind: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    """Make an array as protocol 5 writes it."""
    flat = np.frombuffer(data, _numpy(kind))
    return flat.reshape(shape, order=order) if axes is None else flat.reshape(shape).transpose(axes)


def _mapping() -> Any:
    """Make a mapping that is filled later."""
    return OrderedDict()


_MAKERS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): _mapping,
    ("numpy", "ndarray"): _ndarray,
    ("numpy", "dtype"): _Type,
    **{
        (f"numpy.{core}.{module}", name): maker
        for core in ("core", "_core")
        for module, name, maker in (
            ("multiarray", "_reconstruct", _empty),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _from_buffer),
        )
    },
}
_Unpickler: Any = pickle._Unpickler


class _Steps(dict[int, Any]):
    """Functions for the steps of a pickle; counts the steps and stops when there are too many."""

    _left = _MOST_STEPS

    def __getitem__(self, code: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _rejected(f"more than {_MOST_STEPS} steps")
        return super().__getitem__(code)


class _PlainUnpickler(_Unpickler):  # type: ignore[misc]
    """Makes plain data and arrays of numbers.

    It is Python's unpickler written in Python: the one in C allocates as much memory as a few bytes ask for,
    and completes whatever object it is told to.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(_Unpickler.dispatch)

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self._left = _LARGEST
        self.dispatch = _Steps(type(self).dispatch)  # type: ignore[misc]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return self._bytes
        if (module, name) not in _MAKERS:
            raise _rejected(f"{module}.{name}")
        return _MAKERS[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _rejected("a reference to something else")

    def get_extension(self, code: int) -> Any:
        raise _rejected(f"the extension {code}")

    def load_build(self) -> None:
        """Complete an array or a type, the only objects that are made in two steps."""
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, _Type):
            made.complete(state)
        elif isinstance(made, np.ndarray):
            self._fill(made, state)
        else:
            raise _rejected(f"the state of {type(made).__name__}")

    def load_bytearray8(self) -> None:
        """Take the bytes that exist, not as many as are announced."""
        self.append(bytearray(self.read(int.from_bytes(self.read(8), "little"))))

    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8

    def _fill(self, array: Any, state: Any) -> None:
        """Fill an array with bytes; NumPy compares their number with the shape."""
        _version, shape, kind, is_fortran, data = state
        if not isinstance(data, bytes | str):
            raise _rejected(f"an array of {type(data).__name__}")
        self._spend(len(data))
        array.__setstate__((1, shape, _numpy(kind), is_fortran, data))

    def _bytes(self, text: str, encoding: str) -> bytes:
        """Make bytes as protocols 0 to 2 write them."""
        if encoding not in ("latin1", "latin-1"):
            raise _rejected(f"text in {encoding}")
        self._spend(len(text))
        return text.encode("latin1")

    def _spend(self, count: int) -> None:
        """Stop if few bytes make many."""
        self._left -= count
        if self._left < 0:
            raise _rejected(f"more than {_LARGEST} bytes")


def read_plain_pickle(path: Path) -> Any:
    """Read a pickle of plain data and NumPy arrays; reject anything else before it is made.

    Examples
    --------
    >>> import os, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "geometry.pkl"
    >>> _ = path.write_bytes(pickle.dumps({"spacing": (1.0, 0.5)}))
    >>> read_plain_pickle(path)
    {'spacing': (1.0, 0.5)}
    >>> _ = path.write_bytes(pickle.dumps(os.getcwd))
    >>> read_plain_pickle(path)
    Traceback (most recent call last):
    ...
    segtrust.errors.UnsafeFileError: ...geometry.pkl: expected plain data and arrays of numbers only, got p...
    """
    size = path.stat().st_size
    if size > _LARGEST:
        raise UnsafeFileError(f"{path}: expected the geometry of a case, got a pickle of {size} bytes.")
    content = path.read_bytes()
    try:
        return _PlainUnpickler(content).load()
    except UnsafeFileError as error:
        raise UnsafeFileError(
            f"{path}: {error}. A pickle can run code when it is loaded, so this one is not: ask where it "
            "came from."
        ) from None
    except Exception as error:  # noqa: BLE001 - corrupt pickles raise nearly everything
        raise DamagedFileError(
            f"{path}: expected a pickle of plain data, got one that cannot be read ({error!r})."
        ) from None


# Trusted pickles


def is_pickle(path: Path) -> bool:
    """Recognise a pickle by its ending."""
    return path.suffix.lower() in (".pkl", ".pickle")


def read_trusted(path: Path) -> Mapping[str, Any]:
    """Load the arrays of a pickle, or of an archive of pickled arrays, by name; code in it is run."""
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)  # maps and truth may be two files, which are read in turns
def _loaded(path: Path, modified_ns: int) -> Mapping[str, Any]:
    try:
        if is_pickle(path):
            values = pickle.loads(path.read_bytes())  # nosec B301  # only if --allow-pickle was given
        else:
            with np.load(path, allow_pickle=True) as archive:
                values = dict(archive)
    except Exception as error:  # noqa: BLE001 - corrupt pickles raise nearly everything
        raise DamagedFileError(
            f"{path}: expected a pickle, got one that cannot be read ({error!r})."
        ) from None
    if isinstance(values, list):
        return {LISTED: values}
    if not isinstance(values, Mapping):
        raise WrongContentError(
            f"{path}: expected arrays by name, such as p_hat, got {type(values).__name__}."
        )
    return values


def open_trusted(ref: ArrayRef) -> Volume:
    """Open one of the cases of a trusted pickle; cases may differ in shape."""
    arrays = read_trusted(ref.path)
    if ref.key is None or ref.key not in arrays:
        raise WrongContentError(f"{ref.path}: expected {ref.key!r}, got {', '.join(map(str, arrays))}.")
    values = np.asarray(arrays[ref.key][ref.index or 0])

    def load(channel: int | None) -> Any:
        return values if channel is None else values[channel]

    return Volume(str(ref), values.shape, values.dtype, load)
