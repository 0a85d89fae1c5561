"""What Dice-optimal masks gain on cases with known truth, beside what the maps promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.io import ScoreRow, Table
from segtrust.selective import trace_curve

__all__ = ["compare_decoding"]

_NEEDED = ("case", "structure", "mask", "dice", "idc", "sdc", "truth_ratio")
_TAIL = 2.5
"""Percent of the resamples beyond each end of an interval."""


def compare_decoding(
    usual: Table, decoded: Table, *, drop_empty: bool = True, resamples: int = 10_000, seed: int = 0
) -> list[ScoreRow]:
    """Compare the Dice of two masks of each map, with intervals over paired resamples of the cases.

    Parameters
    ----------
    usual, decoded
        Score tables of the same cases with their truths, the second with the masks that were sought.
    drop_empty
        Whether cases with an empty truth are left out.
    resamples, seed
        Of the bootstrap.

    Returns
    -------
    list of dict
        A row a set and structure: the mean Dice of both masks, the gain with its interval, the gain that the
        maps promise (mean difference of the exact expected Dice), how many cases are better and worse, and
        the AURC of the SDC of each mask with the interval of their difference.
    """
    pairs = _paired(usual, decoded, drop_empty)
    return [
        {"set": name, "structure": structure, **_compared(np.array(values), resamples, seed)}
        for (name, structure), values in pairs.items()
    ]


def _paired(usual: Table, decoded: Table, drop_empty: bool) -> dict[tuple[str, str], list[Any]]:
    """Give Dice, expected Dice and SDC of both masks of each case, by set and structure."""
    rows = [_by_case(table, name) for table, name in ((usual, "usual"), (decoded, "decoded"))]
    if rows[0].keys() != rows[1].keys():
        other = min(rows[0].keys() ^ rows[1].keys())
        raise ParameterError(f"decoded: expected the cases of the usual table, got {other[1]} in one alone.")
    found: dict[tuple[str, str], list[Any]] = {}
    for key, row in rows[0].items():
        if drop_empty and not row["truth_ratio"]:
            continue
        numbers = [each[name] for each in (row, rows[1][key]) for name in ("dice", "idc", "sdc")]
        found.setdefault((key[0], key[2]), []).append(numbers)
    return found


def _by_case(table: Table, name: str) -> dict[tuple[str, str, str], ScoreRow]:
    missing = [each for each in _NEEDED if each not in table.columns]
    if missing:
        raise ParameterError(
            f"{name}: expected a score table with the column {missing[0]!r}, got {', '.join(table.columns)}. "
            "Score with --truth, and with sdc and idc among the --estimators."
        )
    return {(row.get("set") or "", row["case"], row["structure"]): row for row in table.rows}


def _compared(values: Any, resamples: int, seed: int) -> ScoreRow:
    usual, decoded = values[:, :3], values[:, 3:]
    gains = decoded[:, 0] - usual[:, 0]
    drawn = _resampled(len(values), resamples, seed)
    low, high = _interval([gains[each].mean() for each in drawn])
    few = drawn[: max(1, resamples // 10)]
    changes = [_aurc(decoded[each]) - _aurc(usual[each]) for each in few]
    aurc_low, aurc_high = _interval(changes)
    return {
        "n": len(values),
        "dice_usual": float(usual[:, 0].mean()),
        "dice_decoded": float(decoded[:, 0].mean()),
        "gain": float(gains.mean()),
        "gain_low": low,
        "gain_high": high,
        "expected_gain": float((decoded[:, 1] - usual[:, 1]).mean()),
        "better": int((gains > 0.0).sum()),
        "worse": int((gains < 0.0).sum()),
        "aurc_usual": _aurc(usual),
        "aurc_decoded": _aurc(decoded),
        "aurc_change_low": aurc_low,
        "aurc_change_high": aurc_high,
    }


def _resampled(n: int, resamples: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, n, (resamples, n))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(values, [_TAIL, 100.0 - _TAIL])
    return float(low), float(high)


def _aurc(columns: Any) -> float:
    """Give the area under the curve of the risk by the SDC of the mask that is judged."""
    return trace_curve(columns[:, 2], 1.0 - columns[:, 0]).aurc
