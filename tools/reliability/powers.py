"""How time and memory grow with a size: powers that are fitted to what was measured, told and drawn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import linregress

__all__ = ["LABELS", "SHARED", "Fit", "Study", "Values", "draw", "fitted", "said_of", "table_of"]

Values = dict[str, float]
"""Seconds and MiB of a run, by these names."""

LABELS = {"seconds": ("time", "s"), "mib": ("memory", "MiB")}
SHARED = "workers"
"""How a study begins in which the same work is shared among more and more: its time should fall."""
NOISE = {"seconds": 0.0005, "mib": 1.0}
"""What a run must take more than the smallest, or it says nothing of growth."""
FEWEST, FEWEST_SHARED = 3, 2
"""Sizes that a power is fitted to: workers of two cores have no more."""
_SCALES: dict[str, tuple[tuple[str, float], ...]] = {
    "seconds": (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)),
    "mib": (("MiB", 1.0), ("KiB", 1024.0), ("bytes", 1024.0**2)),
}
"""Units, each with how many make a second or a MiB."""
_BLUE, _RED, _GREEN = "#0072b2", "#d55e00", "#009e73"


@dataclass(frozen=True)
class Fit:
    """A power of the size, and how well it is known.

    Attributes
    ----------
    power, factor
        Of ``factor * size**power``.
    error
        Standard error of the power; ``None`` of two points, through which a line always goes.
    sizes
        That it was fitted to.
    """

    power: float
    factor: float
    error: float | None
    sizes: tuple[int, ...]

    def at(self, size: int) -> float:
        """Give what a size should take."""
        return float(self.factor * size**self.power)

    def __str__(self) -> str:
        """Write the power, a minus as such, with its error."""
        about = "" if self.error is None else f" ± {self.error:.2f}"
        return f"{self.power + 0.0:.2f}{about}".replace("-", "−")


def fitted(values: dict[int, float]) -> Fit:
    """Fit a power to what sizes take.

    Examples
    --------
    >>> str(fitted({1: 3.0, 2: 6.0, 4: 12.0})), str(fitted({1: 8.0, 2: 4.0}))
    ('1.00 ± 0.00', '−1.00')
    """
    line = linregress(np.log(list(values)), np.log(list(values.values())))
    error = float(line.stderr) if len(values) > 2 else None
    return Fit(float(line.slope), float(np.exp(line.intercept)), error, tuple(values))


@dataclass(frozen=True)
class Study:
    """What was measured of one thing that is doubled.

    Attributes
    ----------
    what
        Is doubled.
    found
        Seconds and MiB by size.
    base
        Those of the smallest run, which are no growth.
    cores
        Of the machine: more workers than these can gain nothing.
    """

    what: str
    found: dict[int, Values]
    base: Values
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)

    @property
    def is_shared(self) -> bool:
        """Whether the work stays the same, and those who share it become more."""
        return self.what.startswith(SHARED)

    def start(self, name: str) -> float:
        """Give what is no growth; of the memory of workers nothing: each has a start of its own."""
        return 0.0 if self.is_shared and name == "mib" else self.base[name]

    def beyond(self, name: str) -> dict[int, float]:
        """Give what each size takes more than the smallest run, as far as that can be told from noise."""
        more = {size: values[name] - self.start(name) for size, values in self.found.items()}
        return {size: value for size, value in more.items() if value > NOISE[name]}

    def fit(self, name: str) -> Fit | None:
        """Fit the power by which time or memory grows; ``None`` where it does not."""
        telling = self.beyond(name)
        if self.is_shared and name == "seconds":
            telling = {size: value for size, value in telling.items() if size <= self.cores}
        fewest = FEWEST_SHARED if self.is_shared else FEWEST
        return fitted(telling) if len(telling) >= fewest else None

    def each_more(self, name: str) -> float:
        """Give what each more costs at the end, between the two largest sizes."""
        before, last = sorted(self.found)[-2:]
        return (self.found[last][name] - self.found[before][name]) / (last - before)

    def gains(self) -> dict[int, float]:
        """Give how many times as fast as one worker several are."""
        beyond = self.beyond("seconds")
        return {size: beyond[1] / beyond[size] for size in beyond if size > 1 and 1 in beyond}


def said_of(study: Study, name: str) -> str:
    """Say by what power something grows, and what each more costs; of the time of workers what they gain."""
    fit = study.fit(name)
    if fit is None:
        return "no growth that could be told from noise"
    power = f"power {fit} of {len(fit.sizes)} sizes"
    if study.is_shared and name == "seconds":
        gained = ", ".join(f"{gain:.2f} times as fast with {size}" for size, gain in study.gains().items())
        return f"{power}, up to {study.cores} cores; {gained}"
    return f"{power}; each more costs {_cost(study.each_more(name), name)}"


def _cost(each: float, name: str) -> str:
    """Write seconds or MiB in a unit in which they are no tiny number.

    Examples
    --------
    >>> _cost(0.0018, "seconds"), _cost(4 / (1 << 20), "mib"), _cost(17.0, "mib")
    ('1.8 ms', '4 bytes', '17 MiB')
    """
    scales = _SCALES[name]
    unit, factor = next((scale for scale in scales if abs(each * scale[1]) >= 1), scales[-1])
    return f"{each * factor:.3g} {unit}"


def table_of(studies: Iterable[Study]) -> str:
    """Write the powers as a table in Markdown."""
    lines = ["| doubled | measured | time | memory |", "|---|---|---|---|"]
    for study in studies:
        sizes = sorted(study.found)
        ends = f"{sizes[0]:,} to {sizes[-1]:,}"
        lines.append(f"| {study.what} | {ends} | {said_of(study, 'seconds')} | {said_of(study, 'mib')} |")
    return "\n".join(lines)


def draw(studies: Sequence[Study], path: Path) -> None:
    """Draw time and memory against size, on axes where a power is a line, with the line that was fitted."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "segtrust"  # the same figure is the same file
    from matplotlib import pyplot as plt

    size = (2.9 * len(studies), 5.4)
    figure, axes = plt.subplots(len(LABELS), len(studies), figsize=size, layout="constrained", squeeze=False)
    for column, study in enumerate(studies):
        for line, name in enumerate(LABELS):
            _draw_one(axes[line][column], study, name)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _draw_one(axis: Any, study: Study, name: str) -> None:
    """Draw what each size takes beyond the smallest run, and the power that was fitted to it."""
    beyond, fit, start = study.beyond(name), study.fit(name), study.start(name)
    what, unit = LABELS[name]
    sizes = sorted(study.found)
    after = f" beyond {_cost(start, name)}" if start else ""
    axis.set(xlabel=study.what.replace(", ", "\n"), ylabel=f"{what}{after} ({unit})")
    if not beyond:
        axis.text(0.5, 0.5, "no growth", ha="center", transform=axis.transAxes)
        return
    axis.loglog(list(beyond), list(beyond.values()), "o", color=_BLUE, label="measured")
    if fit is not None:
        axis.loglog(fit.sizes, [fit.at(each) for each in fit.sizes], color=_RED, label=f"power {fit}")
    if study.is_shared and name == "seconds" and 1 in beyond:
        shared = [beyond[1] / each for each in sizes]
        axis.loglog(sizes, shared, "--", color=_GREEN, label="shared out fully")
    _scale(axis, sizes)
    axis.legend(fontsize="small")


def _scale(axis: Any, sizes: Sequence[int]) -> None:
    """Mark the sizes themselves, and round numbers beside them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_xticks(sizes, [_short(size) for size in sizes], rotation=45 if max(sizes) > 1000 else 0)
    axis.xaxis.minorticks_off()
    low, high = axis.get_ylim()
    axis.set_ylim(low / 1.3, high * 1.3)  # a decade that holds one mark only says little
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 100 else (1.0,)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3)


def _short(size: int) -> str:
    """Write a size in few letters.

    Examples
    --------
    >>> _short(8000), _short(1 << 20)
    ('8000', '1 Mi')
    """
    return f"{size >> 20} Mi" if size >= 1 << 20 else str(size)
