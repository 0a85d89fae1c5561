"""The columns of a score table: their names, kinds and meaning, and what release 0.1 called them.

This is the only list of these columns. Reading and writing tables, the documentation and the checks of new
estimator names use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "COLUMNS",
    "OLD_NAMES",
    "OLD_SCORES_FORMAT",
    "SCORES_FORMAT",
    "Column",
    "ScoreRow",
    "is_text_column",
    "is_whole_column",
]

ScoreRow = dict[str, Any]
"""The scores of one case and structure, by column: those of `COLUMNS`, and one per estimator."""
SCORES_FORMAT = "segtrust-scores-2"
OLD_SCORES_FORMAT = "segtrust-scores-1"
"""Format of the tables of release 0.1, which are read with the new names of their columns."""
OLD_NAMES: Mapping[str, str] = {
    "lower": "idc_over_sdc_low",
    "upper": "idc_over_sdc_high",
    "digest": "checksum",
    "mask_digest": "mask_checksum",
}
"""Columns that were renamed since release 0.1."""


@dataclass(frozen=True)
class Column:
    """One column of a score table.

    Attributes
    ----------
    name
        Name in every file.
    kind
        What its cells hold. Text stays text even if it looks like a number: a case may be called 007.
    meaning
        One sentence for the documentation.
    is_internal
        Whether a CSV file shows it only with ``--details``. Parquet and JSON always have it.
    """

    name: str
    kind: Literal["text", "whole", "number"]
    meaning: str
    is_internal: bool = False


COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        Column("case", "text", "Name of the case, with its folder if several folders were searched."),
        Column("structure", "text", "Name of the structure; `foreground` if there is only one."),
        Column("set", "text", "Name of the data set, if several are evaluated together."),
        Column("group", "text", "Patient, site or fold."),
        Column("split", "text", "Part of the data set, such as `test`."),
        Column("k", "whole", "Number of pixels in the mask.", is_internal=True),
        Column("mu", "number", "Mean probability inside the mask.", is_internal=True),
        Column("lam", "number", "Sum of the probabilities outside the mask.", is_internal=True),
        Column("s", "number", "Sum of the probabilities inside the mask.", is_internal=True),
        Column("idc_over_sdc_low", "number", "Lower bound of the ratio IDC / SDC."),
        Column("idc_over_sdc_high", "number", "Upper bound of the ratio IDC / SDC."),
        Column("relative_error", "number", "Largest relative error of the SDC compared with the IDC."),
        Column("foreground_ratio", "number", "Share of the pixels in the mask."),
        Column("mask", "text", "Mask that was scored: `delivered`, `threshold` or `dice-optimal`."),
        Column("mask_threshold", "number", "Threshold of the Dice-optimal mask."),
        Column(
            "mask_difference", "number", "Share of pixels in which the delivered mask differs from p ≥ t."
        ),
        Column("shape", "text", "Lengths of the axes, (z, y, x) or (y, x)."),
        Column("spacing_mm", "text", "Spacing of the axes in millimetres."),
        Column("file", "text", "File of the map."),
        Column("mask_file", "text", "File of the delivered mask."),
        Column("truth_file", "text", "File of the ground truth."),
        Column("image_file", "text", "File of the image."),
        Column("members", "number", "Number of maps that were fused."),
        Column(
            "member_files", "text", "Files of the other members of the ensemble, separated by semicolons."
        ),
        Column("dice", "number", "Dice of mask and ground truth."),
        Column("iou", "number", "Intersection over union of mask and ground truth."),
        Column("truth_ratio", "number", "Share of the pixels in the ground truth."),
        Column("loss", "number", "Loss by which the case is evaluated."),
        Column("decision", "text", "Decision of the policy: accept, defer or no finding."),
        Column("margin", "number", "Confidence minus the threshold of the policy."),
        Column("policy", "text", "Checksum of the policy."),
        Column("checksum", "text", "Checksum of the files of the map.", is_internal=True),
        Column("mask_checksum", "text", "Checksum of the file of the delivered mask.", is_internal=True),
        Column("seconds", "number", "Time for reading and scoring the case.", is_internal=True),
    )
}
_OTHER_TEXTS = frozenset(["kind", "reason", "table"])
"""Text columns of the list of failures."""


def is_text_column(name: str) -> bool:
    """Return whether the cells of a column are text, even if they look like numbers.

    Examples
    --------
    >>> is_text_column("case"), is_text_column("sdc"), is_text_column("reason")
    (True, False, True)
    """
    return name in _OTHER_TEXTS or (name in COLUMNS and COLUMNS[name].kind == "text")


def is_whole_column(name: str) -> bool:
    """Return whether the cells of a column are whole numbers."""
    return name in COLUMNS and COLUMNS[name].kind == "whole"
