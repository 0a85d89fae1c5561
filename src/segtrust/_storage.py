"""One way to save and load: every class that can be stored is one JSON file with a ``format`` entry."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from segtrust._files import check_format, read_json, write_json
from segtrust.errors import SavedStateError, SegtrustError

__all__ = ["Storable", "load", "without_format"]

_KINDS = {
    "segtrust-audit": "segtrust.selective.AuditBound",
    "segtrust-calibration-cases": "segtrust.selective.CalibrationCases",
    "segtrust-certificate": "segtrust.selective.Certificate",
    "segtrust-conformal-dice": "segtrust.selective.ConformalDice",
    "segtrust-conformal-volume": "segtrust.selective.ConformalVolume",
    "segtrust-estimator": "segtrust.confidence.ConfidenceEstimator",
    "segtrust-looks": "segtrust.selective.LookLog",
    "segtrust-martingale": "segtrust.selective.ExchangeabilityMartingale",
    "segtrust-mean-dice": "segtrust.selective.MeanDiceEstimator",
    "segtrust-multiclass-scaling": "segtrust.calibration.MulticlassTemperatureScaling",
    "segtrust-policy": "segtrust.policy.Policy",
    "segtrust-recalibration": "segtrust.selective.Recalibration",
    "segtrust-scaling": "segtrust.calibration.Scaling",
    "segtrust-structures": "segtrust.policy.StructurePolicies",
}
"""Classes by the kind of their format, which is followed by its version: ``segtrust-policy-2``."""


class Storable:
    """Mixin with `save` and `load` for a class with `to_dict` and `from_dict`."""

    _format: ClassVar[str]
    """Kind and version of the file."""
    _older_formats: ClassVar[tuple[str, ...]] = ()
    """Earlier versions that `from_dict` reads too."""
    _load_error: ClassVar[type[SegtrustError]] = SavedStateError

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the object."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "saved values") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write a JSON file; an existing file is replaced in one step, or left unchanged.

        Parameters
        ----------
        path
            Path of the file; `load` of this class or `segtrust.load` reads it.
        """
        write_json(path, {"format": self._format, **self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path
            Path of the file. One of another kind, of another version, or corrupt raises an error that names
            it.
        """
        saved = read_json(path, error=cls._load_error)
        version = saved.get("format") if isinstance(saved, Mapping) else None
        expected = version if version in cls._older_formats else cls._format
        check_format(saved, expected, str(path), error=cls._load_error)
        return cls.from_dict(saved, source=str(path))


def without_format(saved: Any) -> Any:
    """Return saved values without their ``format`` entry, which `Storable.load` has checked."""
    return {name: saved[name] for name in saved if name != "format"} if isinstance(saved, Mapping) else saved


def load(path: str | Path) -> Any:
    """Read any file that a ``save`` method of segtrust wrote; its ``format`` entry tells what it is.

    Parameters
    ----------
    path
        JSON file of a policy, the policies of several structures, a certificate, calibration cases, Dice
        or volume intervals, a recalibration, an estimator of the mean Dice, a scaling, a running drift check,
        an audit or a confidence estimator.

    Examples
    --------
    >>> import tempfile
    >>> from segtrust.calibration import TemperatureScaling
    >>> path = Path(tempfile.mkdtemp()) / "scaling.json"
    >>> TemperatureScaling(2.0).save(path)
    >>> load(path).temperature
    2.0
    """
    saved = read_json(path)
    version = saved.get("format") if isinstance(saved, Mapping) else None
    kind = str(version).rpartition("-")[0]
    if kind not in _KINDS:
        raise SavedStateError(
            f"{path}: expected a file that a save method of segtrust wrote, with one of the formats "
            f"{', '.join(_KINDS)}; got {'no format' if version is None else repr(version)}."
        )
    module, _, name = _KINDS[kind].rpartition(".")
    return getattr(import_module(module), name).load(path)
