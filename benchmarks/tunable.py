"""``tunable``: what estimators that learn spend their time on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.features import compare_features, time_ragged
from benchmarks.tuning import compare_sides, time_tuning

__all__ = ["tunable_sections"]


def tunable_sections(*, rounds: int, data: Sequence[Path] = ()) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each.

    The features are compared only where PyRadiomics is installed, the tuning curve needs data.
    """
    yield "Patch sums of PLA*, gain over one filter for each side", compare_sides(rounds=rounds)
    if find_spec("radiomics") is not None:
        yield "Features at one grey level, gain over PyRadiomics", compare_features(rounds=rounds)
    yield "Features of the most ragged masks", time_ragged(rounds=rounds)
    if data:
        yield "Tuning curve of six estimators", time_tuning(data)
