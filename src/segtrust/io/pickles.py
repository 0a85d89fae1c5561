"""The pickles that nnU-Net writes beside its arrays, read without running what is in them.

A pickle is a program: to load one runs whatever its author wrote. Here only plain data (numbers, text, lists,
tuples, mappings) and NumPy's arrays and numbers are made; anything else ends the reading.
"""

from __future__ import annotations

import io
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

from segtrust.errors import DamagedFileError, UnsafeFileError

__all__ = ["read_plain_pickle"]

_LARGEST = 64 << 20
_ALLOWED = {
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),
    *(
        (f"numpy.{core}.{module}", name)
        for core in ("core", "_core")
        for module, name in (
            ("multiarray", "_reconstruct"),
            ("multiarray", "scalar"),
            ("numeric", "_frombuffer"),
        )
    ),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _PlainUnpickler(pickle.Unpickler):
    """Makes plain data and arrays of numbers."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise UnsafeFileError(f"expected plain data and arrays only, got {module}.{name}")
        return getattr(import_module(module.replace("numpy.core", "numpy._core")), name)

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafeFileError("expected plain data and arrays only, got a reference to something else")


def read_plain_pickle(path: Path) -> Any:
    """Read a pickle of plain data and NumPy arrays; refuse any other before it is made.

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
    segtrust.errors.UnsafeFileError: ...geometry.pkl: expected plain data and arrays only, got posix.getcwd...
    """
    size = path.stat().st_size
    if size > _LARGEST:
        raise UnsafeFileError(f"{path}: expected the geometry of a case, got a pickle of {size} bytes.")
    try:
        return _PlainUnpickler(io.BytesIO(path.read_bytes())).load()
    except UnsafeFileError as error:
        raise UnsafeFileError(
            f"{path}: {error}. A pickle can run code when it is loaded, so this one is not: ask where it "
            "came from."
        ) from None
    except Exception as error:  # noqa: BLE001 - damaged pickles raise nearly everything
        raise DamagedFileError(
            f"{path}: expected a pickle of plain data, got one that cannot be read ({error!r})."
        ) from None
