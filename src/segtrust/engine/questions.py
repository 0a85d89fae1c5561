"""Questions about scored cases whose input looks wrong, and copies among them.

Each question is a sentence for the terminal, printed before the results. Nothing is changed: the numbers may
be right, and only a person can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.engine.outcomes import overlap_of_row
from segtrust.io import ArrayRef, ScoreRow

__all__ = [
    "FEW_AT_TOP",
    "FULL_RANGE",
    "GREY",
    "LABELS",
    "Copies",
    "checksum_of_row",
    "find_copies",
    "hints_of_map",
    "questions_about",
]

FULL_RANGE, FEW_AT_TOP, LABELS, GREY = "full range", "few at top", "labels", "grey"
"""Hints about one map; a question is asked if enough maps have them."""
_FEWEST_CASES = 5
"""Cases below which chance could explain what the rows say."""
_MOST_LABELS = 15
_SHOWN = 3
"""Groups of copies, and names of each, that are shown as examples."""
_SAMPLE = 1 << 16
"""Pixels of a map by which it is judged whether most of it is grey."""
_SMALL = 1024
"""Pixels below which the edges may be most of a map."""
_UNSURE = 0.05
"""Share of the pixels above one half that have the largest value, up to which a map is unsure."""


def hints_of_map(p: Any) -> tuple[str, ...]:
    """Return hints about a map in memory: it has the full range of values, is a label image, or is grey.

    A map that reaches exactly 1 in a few pixels only is unsure, and yet reaches the end of the scale: that
    happens to all maps of a set if each was stretched to 0 … 1 (or 0 … 255) before it was saved. A map is
    grey if more than half of its pixels, of which there are at least 1024, lie between 0.05 and 0.95, as in
    photographs.

    Parameters
    ----------
    p
        The map as it is stored: floats in [0, 1], or integers of 8 or 16 bits.

    Examples
    --------
    >>> hints_of_map(np.array([[0, 1], [2, 3]], np.uint8)), hints_of_map(np.array([[0.0, 0.25], [0.5, 1.0]]))
    (('labels',), ('full range',))
    >>> hints_of_map(np.array([[0.0, 0.25], [0.5, 0.75]])), hints_of_map(np.full((32, 32), 0.25))
    ((), ('grey',))
    """
    if not isinstance(p, np.ndarray) or not p.size or p.dtype.kind not in "uf":
        return ()
    top = float(np.iinfo(p.dtype).max) if p.dtype.kind == "u" else 1.0
    highest = p.max()
    if p.dtype.kind == "u" and 1 < highest <= _MOST_LABELS:
        return (LABELS,)
    sample = p.ravel(order="K")[:: (p.size // _SAMPLE) | 1]  # odd: not always the same column
    between = np.count_nonzero((sample > 0.05 * top) & (sample < 0.95 * top))
    is_grey = p.size >= _SMALL and between > sample.size / 2
    if highest != top or p.min() != 0:
        return (GREY,) if is_grey else ()
    at_top, above_half = np.count_nonzero(p == highest), np.count_nonzero(p >= top / 2)
    few_at_top = at_top <= _UNSURE * above_half
    flags = {FULL_RANGE: True, FEW_AT_TOP: few_at_top, GREY: is_grey}
    return tuple(name for name, flag in flags.items() if flag)


def questions_about(rows: Sequence[ScoreRow], hints: Mapping[str, int] | None = None) -> list[str]:
    """Return the questions that the rows of a run raise.

    Parameters
    ----------
    rows
        Rows of a score table. Columns that another program's table lacks raise no question.
    hints
        Number of maps with each hint, see `hints_of_map`.

    Examples
    --------
    >>> row = {"case": "a", "k": 90, "shape": "10×10", "truth_ratio": 0.1, "dice": 0.0}
    >>> print(*questions_about([row]))  # doctest: +ELLIPSIS
    In 1 of 1 cases, 1 − p agrees better with the ground truth than p. Are these probabilities of the ...
    """
    if not rows:
        return []
    count, hints = len(rows), hints or {}
    if hints.get(LABELS, 0) > count / 2:
        return [
            f"{hints[LABELS]} of {count} maps are whole numbers up to {_MOST_LABELS}. Are these label "
            "images? 8-bit maps are divided by 255, so labels would be probabilities near 0."
        ]
    filled = [row for row in rows if row.get("k")]
    if not filled and all(row.get("k") == 0 for row in rows):
        if all(row.get("mask") == "delivered" for row in rows):
            question = "Is it the right folder, and does --label name a label that they have?"
            return [f"All delivered masks are empty. {question}"]
        return [
            "All masks are empty: no map reaches the threshold. Are these probabilities? 8-bit numbers are "
            "divided by 255, so labels 0 and 1 would become probabilities near 0."
        ]
    questions = _questions_about_maps(filled, count, hints)
    ratios = [row["truth_ratio"] for row in rows if row.get("truth_ratio") is not None]
    if len(ratios) >= _FEWEST_CASES and not any(ratios):
        questions.append(
            f"The ground truth of all {len(ratios)} cases is empty. Is it the right folder, and do --label "
            "and --region name what it has?"
        )
    compared = [better for row in filled if (better := _inverse_agrees_better_with_truth(row)) is not None]
    delivered = [row["mask_difference"] > 0.5 for row in filled if row.get("mask_difference") is not None]
    for flags, other in ((compared, "the ground truth"), (delivered, "the delivered mask")):
        if flags and sum(flags) > len(flags) / 2:
            questions.append(
                f"In {sum(flags)} of {len(flags)} cases, 1 − p agrees better with {other} than p. Are these "
                "probabilities of the background?"
            )
            break
    perfect = sum(row.get("dice") == 1.0 for row in filled)
    if perfect >= _FEWEST_CASES and perfect > 0.9 * len(filled):
        questions.append(
            f"In {perfect} of {len(filled)} cases the mask equals the ground truth pixel by pixel. Was the "
            "folder of maps or masks given as ground truth?"
        )
    kinds = Counter(row["mask"] for row in rows if row.get("mask"))
    without_mask = sum(number for kind, number in kinds.items() if kind != "delivered")
    if kinds["delivered"] and without_mask:
        how = "decoded" if "dice-optimal" in kinds else "thresholded"
        questions.append(f"{without_mask} of {count} have no delivered mask: their maps were {how}.")
    return questions


def _questions_about_maps(filled: Sequence[ScoreRow], count: int, hints: Mapping[str, int]) -> list[str]:
    """Return at most one question: whether the maps are masks, images, or stretched."""
    if filled and all(row.get("mu") == 1.0 and row.get("lam") == 0.0 for row in filled):
        return [
            "All maps are 0 or 1 everywhere, and every confidence is 1. Are these probabilities, or masks?"
        ]
    if count >= _FEWEST_CASES and hints.get(GREY, 0) > count / 2:
        return [
            f"In {hints[GREY]} of {count} maps, more than half of the pixels lie between 0.05 and 0.95. Are "
            "these images? The maps of a model are close to 0 or 1 in most pixels."
        ]
    if count >= 2 * _FEWEST_CASES and hints.get(FULL_RANGE, 0) >= 0.95 * count and hints.get(FEW_AT_TOP):
        return [
            f"{hints[FULL_RANGE]} of {count} maps reach exactly 0 and 1, also unsure ones. Was each map "
            "stretched to the full range? That raises the confidence of unsure maps: save them as they are."
        ]
    return []


def _inverse_agrees_better_with_truth(row: ScoreRow) -> bool | None:
    """Return whether the complement of the mask has the larger Dice; ``None`` if the row does not say."""
    counts = overlap_of_row(row)
    in_truth = 0 if counts is None else counts.true_positives + counts.false_negatives
    if counts is None or not in_truth:
        return None
    outside = counts.pixels - counts.true_positives - counts.false_positives
    return bool(2.0 * counts.false_negatives / (in_truth + outside) > row["dice"])


@dataclass(frozen=True)
class Copies:
    """Cases with equal checksums: the same map under several names.

    Attributes
    ----------
    groups
        Names of the cases with the same map, each with its set if there are several sets.
    cases
        Number of all cases, copies or not.
    places
        Number of copies within each set and between sets, by a phrase; empty if there is one set.
    """

    groups: tuple[tuple[str, ...], ...]
    cases: int = 0
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def extra(self) -> int:
        """Number of cases that are copies of another one."""
        return sum(len(group) - 1 for group in self.groups)

    def __str__(self) -> str:
        """Return the number of copies, where they are, and some examples."""
        if not self.groups:
            return "No copies."
        counts = ", ".join(f"{count} {place}" for place, count in self.places.items())
        shown = "; ".join(" = ".join(group[:_SHOWN]) for group in self.groups[:_SHOWN])
        hidden = len(self.groups) > _SHOWN or any(len(group) > _SHOWN for group in self.groups)
        more = " The column checksum shows all of them: --details." if hidden else ""
        are = "is a copy of another" if self.extra == 1 else "are copies of others"
        where = f": {counts};" if counts else ","
        return (
            f"{self.extra} of {self.cases} cases {are} (equal checksums){where} such as {shown}.{more} "
            "Copies count as one case in intervals, certificates and drift tests."
        )


def find_copies(rows: Sequence[ScoreRow]) -> Copies:
    """Return the cases with equal checksums; those with an empty mask are not compared.

    Examples
    --------
    >>> rows = [{"case": name, "set": name[0], "checksum": "crc32:1", "k": 3} for name in ("a1", "b1", "b2")]
    >>> find_copies(rows).groups
    (('a: a1', 'b: b1', 'b: b2'),)
    >>> find_copies(rows).places
    {'within b': 1, 'between a and b': 1}
    """
    cases = {(row.get("set") or "", str(row["case"])) for row in rows}
    has_sets = len({name for name, _ in cases}) > 1
    same: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for row in rows:
        checksum = checksum_of_row(row)
        if checksum:
            case = (row.get("set") or "", str(row["case"]))
            same.setdefault((checksum, str(row.get("structure") or "")), {})[case] = None
    groups = list({tuple(group): None for group in same.values() if len(group) > 1})
    places: Counter[str] = Counter()
    for group in groups if has_sets else ():
        sets = Counter(name or "cases without a set" for name, _ in group)
        places.update({f"within {name}": count - 1 for name, count in sets.items() if count > 1})
        if len(sets) > 1:
            *others, last = sorted(sets)
            places[f"between {', '.join(others)} and {last}"] += len(sets) - 1
    named = (
        tuple(f"{name}: {case}" if has_sets and name else case for name, case in group) for group in groups
    )
    return Copies(tuple(named), len(cases), dict(places))


def checksum_of_row(row: Mapping[str, Any]) -> str:
    """Return the checksum by which the case of a row is recognised; empty for an empty mask.

    Many images have the same map if there is nothing in it, and they are different cases. The checksum in
    a table is that of the file; of a file with several maps, the place of the map is added.

    Examples
    --------
    >>> (
    ...     checksum_of_row({"checksum": "crc32:352441c2", "k": 7}),
    ...     checksum_of_row({"checksum": "crc32:352441c2", "k": 0}),
    ... )
    ('crc32:352441c2', '')
    >>> checksum_of_row({"checksum": "zip-crc32:352441c2", "k": 7, "file": "maps/stack.npz::p_hat[3]"})
    'zip-crc32:352441c2::p_hat[3]'
    """
    if row.get("k") == 0 or not row.get("checksum"):
        return ""
    place = ArrayRef.parse(str(row.get("file") or ""))
    return str(row["checksum"]) + str(replace(place, path=Path()))[len(str(Path())) :]
