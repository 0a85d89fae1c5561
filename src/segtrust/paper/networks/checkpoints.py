"""Weights from files of ``torch.save``: read without running code, and compared before they are used."""

from __future__ import annotations

import re
import warnings
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from torch import Tensor

from segtrust._files import check_format
from segtrust.errors import (
    DamagedFileError,
    ParameterError,
    UnknownFormatError,
    UnsafeFileError,
    WrongContentError,
)
from segtrust.paper.networks.network import Network
from segtrust.paper.networks.registry import owner_of

__all__ = ["TRAINING", "WEIGHTS", "load_backbone", "load_weights", "read_weights"]

TRAINING, WEIGHTS = "segtrust-training-1", "segtrust-weights-1"
"""Formats of what a training goes on from, and of the weights of its best epoch."""

_ZIP, _PICKLE = b"PK\x03\x04", b"\x80"
"""First bytes of an archive of torch, and of a file of its older versions."""
_CONTAINERS = ("state_dict", "model_state_dict", "model", "net")
_PARALLEL = "module."
"""Before the names of a network that was trained on several devices."""
_COUNTER = "num_batches_tracked"
_SHOWN = 3
_FORBIDDEN = re.compile(r"GLOBAL (\S+)")
_SCALAR = np.float64(0.0).__reduce__()[0]
_PLAIN: list[Any] = [
    Namespace,
    (_SCALAR, "numpy._core.multiarray.scalar"),
    (_SCALAR, "numpy.core.multiarray.scalar"),
    np.dtype,
    *(type(np.dtype(kind)) for kind in ("f8", "f4", "i8", "i4", "?")),
]
"""What stands in published checkpoints beside tensors, and runs nothing: options, and NumPy's numbers."""
_HINTS = re.compile(r"\s*\(?(Re-running|In PyTorch 2\.6|Please file|Check the documentation).*", re.DOTALL)
"""Advice of torch to load the file as if it were trusted."""


def load_weights(model: Network, path: str | Path) -> None:
    """Load all weights of a network from a checkpoint, in place.

    Parameters
    ----------
    model
        What `segtrust.paper.networks.create` gave.
    path
        A file of ``torch.save``: tensors by name, alone or under ``state_dict``, ``model_state_dict``,
        ``model`` or ``net``, with or without the prefix ``module.``. The counters of batch norms may be
        absent, as in old files.

    Raises
    ------
    UnsafeFileError
        The file would run code.
    DamagedFileError, UnknownFormatError
        It is truncated, or no checkpoint.
    WrongContentError
        It holds something else; the first names that differ are told.

    Examples
    --------
    >>> import tempfile
    >>> from segtrust.paper.networks import create
    >>> path = Path(tempfile.mkdtemp()) / "model.pth"
    >>> torch.save(create("unext").state_dict(), path)
    >>> load_weights(create("unext"), path)
    """
    weights = read_weights(path)
    differences = _compare(model.state_dict(), weights)
    if differences:
        advice = model.advice(differences.missing, differences.unexpected) or _advice(model.name, weights)
        raise WrongContentError(
            f"{path}: expected the weights of {model.name!r}, got others: {differences}. {advice}"
        )
    _check_values(weights, str(path))
    model.check_weights(weights, str(path))
    model.load_state_dict(weights, strict=False)


def load_backbone(model: Network, path: str | Path) -> None:
    """Load the backbone of a network from a checkpoint of the backbone alone, in place.

    A classifier that the network has no use for is left out. Errors are those of `load_weights`.
    """
    backbone = getattr(model, "backbone", None)
    if backbone is None:
        raise ParameterError(f"backbone: {model.name!r} has none that is trained by itself. Leave it out.")
    weights = {
        name: each for name, each in read_weights(path).items() if not name.startswith(model.backbone_extras)
    }
    differences = _compare(backbone.state_dict(), weights)
    if differences:
        raise WrongContentError(
            f"{path}: expected the backbone of {model.name!r}, got other tensors: {differences}. "
            f"{_advice(None, weights)}"
        )
    _check_values(weights, str(path))
    backbone.load_state_dict(weights, strict=False)


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of a checkpoint by name, without prefix, onto the CPU; errors as of `load_weights`."""
    content = _read(Path(path))
    _check_version(content, str(path))
    for key in _CONTAINERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
            break
    if not _is_weights(content):
        raise WrongContentError(
            f"{path}: expected tensors by name, got {_described(content)}. "
            "Save the state dict: torch.save(model.state_dict(), path)."
        )
    if all(name.startswith(_PARALLEL) for name in content):
        return {name.removeprefix(_PARALLEL): each for name, each in content.items()}
    return dict(content)


def _check_version(content: Any, source: str) -> None:
    """Refuse a checkpoint of a training with another version; one from elsewhere says nothing of a format."""
    told = str(content.get("format", "")) if isinstance(content, Mapping) else ""
    for known in (WEIGHTS, TRAINING):
        if told.startswith(known.rpartition("-")[0]):
            check_format(content, known, source, error=WrongContentError)


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        head = file.read(16)
    if not head.startswith((_ZIP, _PICKLE)):
        raise UnknownFormatError(
            f"{path}: expected a checkpoint of torch.save, got a file that begins with {head!r}. "
            "Fetch it again if it was downloaded."
        )
    try:
        if head.startswith(_ZIP):
            _check_sums(path)
        with warnings.catch_warnings(), torch.serialization.safe_globals(_PLAIN):
            warnings.simplefilter("ignore")  # about archives and protocols that are refused below
            return torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged archives raise nearly everything
        raise _unreadable(path, error) from None


def _check_sums(path: Path) -> None:
    """Compare the checksums of an archive, which torch does not."""
    with ZipFile(path) as archive:
        garbled = archive.testzip()
    if garbled is not None:
        raise BadZipFile(f"the checksum of {garbled!r} does not fit")


def _unreadable(path: Path, error: Exception) -> UnsafeFileError | DamagedFileError:
    forbidden = _FORBIDDEN.search(str(error))
    if forbidden:
        return UnsafeFileError(
            f"{path}: expected tensors and plain data only, got {forbidden[1]}. A checkpoint can run code "
            "when it is loaded, so this one is not. Where you trust its author, save its state dict alone."
        )
    reason = _HINTS.sub("", str(error).partition("\n")[0]) or type(error).__name__
    return DamagedFileError(
        f"{path}: expected a checkpoint of torch.save, got one that cannot be read ({reason}). "
        "Fetch it again, or compare its size with that of the original."
    )


def _is_weights(content: Any) -> bool:
    return (
        isinstance(content, Mapping)
        and bool(content)
        and all(isinstance(name, str) and isinstance(each, Tensor) for name, each in content.items())
    )


def _described(content: Any) -> str:
    if not isinstance(content, Mapping):
        return type(content).__name__
    return f"a mapping with {_first([repr(key) for key in content])}" if content else "an empty mapping"


@dataclass(frozen=True)
class _Differences:
    """What stands in the way of a checkpoint."""

    missing: list[str]
    unexpected: list[str]
    reshaped: list[str]

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.missing or self.unexpected or self.reshaped)

    def __str__(self) -> str:
        """Name the first of each kind."""
        kinds = {"missing": self.missing, "unexpected": self.unexpected, "of another shape": self.reshaped}
        return "; ".join(f"{kind}: {_first(names)}" for kind, names in kinds.items() if names)


def _compare(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> _Differences:
    return _Differences(
        [name for name in expected if name not in found and not name.endswith(_COUNTER)],
        [name for name in found if name not in expected],
        [
            f"{name} {tuple(found[name].shape)} for {tuple(each.shape)}"
            for name, each in expected.items()
            if name in found and found[name].shape != each.shape
        ],
    )


def _check_values(weights: Mapping[str, Tensor], source: str) -> None:
    """Refuse tensors that cannot be weights, before one of them is copied."""
    for name, each in weights.items():
        if name.endswith(_COUNTER):
            continue
        is_dense = each.layout == torch.strided and each.device.type != "meta"
        if not (is_dense and each.is_floating_point() and bool(torch.isfinite(each).all())):
            kind = f"{each.dtype}, {each.layout}" if is_dense else f"{each.layout} on {each.device.type}"
            raise WrongContentError(
                f"{source}: expected finite numbers in all tensors, got {name} of {kind}. Was the training "
                "stopped by a loss that is no number, or the file made for another purpose?"
            )


def _first(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _advice(wanted: str | None, weights: Mapping[str, Tensor]) -> str:
    owner = owner_of(weights)
    if owner is None or owner == wanted:
        return "Give the checkpoint of this very network, trained with the same options."
    return f"They are those of {owner!r}: create({owner!r}, weights=...)."
