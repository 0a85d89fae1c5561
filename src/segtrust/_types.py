"""Types of the public functions: what may be passed as a map, and the names that options accept.

A map on the host gives a Python float. An array on a device (torch, CuPy, JAX) gives an array of its own
library, so that device and gradient are kept; type checkers see both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class ChunkedArray(Protocol):
    """An array that is read chunk by chunk: Dask, Zarr or HDF5."""

    @property
    def chunks(self) -> Any:
        """Shape of the chunks."""
        ...


class DeviceArray(Protocol):
    """An array of torch, CuPy or JAX."""

    @property
    def device(self) -> Any:
        """Where it is stored."""
        ...

    @property
    def shape(self) -> Any:
        """Length of each axis."""
        ...


class Column(Protocol):
    """A column of pandas."""

    @property
    def index(self) -> Any:
        """Labels of the rows."""
        ...

    @property
    def to_numpy(self) -> Any:
        """Return the values as an array."""
        ...


MapOnHost: TypeAlias = "npt.NDArray[Any] | Sequence[Any] | float | ChunkedArray"
"""A map of NumPy, of plain numbers, or in chunks."""
AnyArray: TypeAlias = "MapOnHost | DeviceArray"
"""A map, mask or selection of pixels of any library."""
FloatArray: TypeAlias = "npt.NDArray[np.float64]"
BoolArray: TypeAlias = "npt.NDArray[np.bool_]"
IntArray: TypeAlias = "npt.NDArray[np.int64]"
VectorLike: TypeAlias = "npt.ArrayLike"
"""One number per case: a list, an array, a column of pandas or a tensor."""
DeviceArrayT = TypeVar("DeviceArrayT", bound=DeviceArray)
ColumnT = TypeVar("ColumnT", bound=Column)

EmptyName = Literal["paper", "agree"]
"""How empty masks are scored, see `segtrust.EmptyPolicy`."""
DecodingName = Literal["threshold", "dice-optimal"]
"""How masks are made if none was delivered, see `segtrust.Scoring`."""
PValueName = Literal["suited", "adaptive-betting", "betting", "hoeffding-bentkus", "binomial"]
"""Tests of a candidate threshold, see `segtrust.Procedure`."""
SearchName = Literal["suited", "ranks", "candidates"]
"""Thresholds that are tested, see `segtrust.Procedure`."""
ConventionName = Literal["paper", "plugin", "trapezoid-from-first"]
"""Conventions for the area under a risk-coverage curve, see `segtrust.RiskCoverageCurve.area`."""
StatisticName = Literal["aurc", "augrc", "e_aurc"]
"""Areas under a curve with bootstrap intervals, see `segtrust.bootstrap_interval`."""
BootstrapMethodName = Literal["suited", "bca", "percentile", "conservative"]
"""How resamples become an interval, see `segtrust.Bootstrap`."""
DriftStatisticName = Literal["ks", "mann-whitney", "energy"]
"""How two samples of confidences are compared, see `segtrust.drift_test`."""
FusionName = Literal["mean-probability", "mean-logit"]
"""How maps are fused, see `segtrust.Fusion`."""
