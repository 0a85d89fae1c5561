"""``selective``: the curve against sorting, the bootstrap against a loop over the curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import segtrust as st
from benchmarks.timing import Ratio, shortest_times

__all__ = ["compare_bootstrap", "compare_curve", "selective_sections"]

RESAMPLES = 10_000
"""Resamples of the bootstrap; the loop in Python runs a tenth of them and counts ten times."""


def selective_sections(*, rounds: int) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each."""
    yield "Curve and AURC, in units of numpy.argsort on the same vector", compare_curve(rounds=rounds)
    yield f"{RESAMPLES:,} bootstrap AURCs, gain over a Python loop", compare_bootstrap(rounds=rounds)


def _cases(n: int, *, decimals: int | None = None) -> tuple[Any, Any]:
    """Confidences and losses that belong together loosely."""
    rng = np.random.default_rng(0)
    confidence = rng.random(n)
    loss = (1.0 - confidence) * rng.random(n)
    return confidence if decimals is None else confidence.round(decimals), loss


def _curve_and_area(confidence: Any, loss: Any) -> float:
    return st.risk_coverage_curve(confidence, loss).aurc


def compare_curve(n: int = 10**6, *, rounds: int = 9) -> Iterator[Ratio]:
    """Time curve and area against sorting the confidences."""
    for name, decimals in ((f"n = {n:,}", None), (f"n = {n:,}, 3 decimals", 3)):
        confidence, loss = _cases(n, decimals=decimals)
        runs: dict[str, Callable[[], object]] = {
            "sort": partial(np.argsort, confidence),
            "curve": partial(_curve_and_area, confidence, loss),
        }
        times = shortest_times(runs, rounds=rounds)
        ratio = times["curve"] / times["sort"]
        yield Ratio("curve + AURC", "numpy.argsort", name, times["curve"], ratio, "<= 1.5")


def _python_loop(confidence: Any, loss: Any, resamples: int) -> list[float]:
    """Resample as a script would."""
    rng = np.random.default_rng(0)
    draws = (rng.integers(0, loss.size, loss.size) for _ in range(resamples))
    return [st.risk_coverage_curve(confidence[drawn], loss[drawn]).aurc for drawn in draws]


def compare_bootstrap(n: int = 1000, *, rounds: int = 9) -> Iterator[Ratio]:
    """Time whole intervals against a tenth of the resamples in Python; the ratio is the gain."""
    confidence, loss = _cases(n)
    plan = st.Bootstrap(resamples=RESAMPLES)

    def interval(threads: int) -> object:
        with st.use_threads(threads):
            return st.bootstrap_interval(confidence, loss, bootstrap=plan)

    runs: dict[str, Callable[[], object]] = {
        "loop": lambda: _python_loop(confidence, loss, RESAMPLES // 10),
        "1 thread": lambda: interval(1),
        "2 threads": lambda: interval(2),
    }
    times = shortest_times(runs, rounds=rounds)
    for what in ("1 thread", "2 threads"):
        gain = 10.0 * times["loop"] / times[what]
        yield Ratio(f"BCa interval, {what}", "Python loop", f"n = {n:,}", times[what], gain, ">= 50")
