"""``segtrust bench tunable``: what estimators that learn spend their time on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from segtrust.bench.features import compare_features, time_ragged

__all__ = ["tunable_sections"]


def tunable_sections(*, rounds: int) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each."""
    yield "Features at one grey level, gain over PyRadiomics", compare_features(rounds=rounds)
    yield "Features of the most ragged masks", time_ragged(rounds=rounds)
