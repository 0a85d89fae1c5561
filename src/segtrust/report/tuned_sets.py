"""Tables and figures of the tuning curves of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.evaluation import REFERENCES, summarise_sets
from segtrust.report.figures import new_axes, save_figure
from segtrust.report.runs import RESULTS
from segtrust.report.styles import style_of
from segtrust.report.tables import markdown_table, rows_as_latex, write_csv, write_markdown, write_text

__all__ = ["draw_tuning_panel", "tuning_for_people", "tuning_table", "write_tuning"]

Row = dict[str, Any]
_LABELS = {"aurc": "AURC", "coverage": "coverage at the risk in distribution (%)"}
_SCALES = {"aurc": 1.0, "coverage": 100.0}


def write_tuning(out: Path, rows: Sequence[Row]) -> list[Row]:
    """Write each split, the means over them, and a figure of all sets; give the means."""
    for name in RESULTS:
        (out / name).mkdir(parents=True, exist_ok=True)
    summary = summarise_sets(rows)
    write_csv(out / "tables" / "tuning_splits.csv", rows)
    write_csv(out / "tables" / "tuning.csv", summary)
    shown = tuning_for_people(summary)
    if shown:  # none of the sizes need be one of the shares that tables show
        write_markdown(out / "tables" / "tuning.md", shown)
        write_text(out / "tables" / "tuning.tex", rows_as_latex(shown))
        _add_to_report(out / "report.md", tuning_table(summary))
    for value in ("aurc", "coverage"):
        save_figure(_draw(summary, value), out / "figures" / f"tuning_{value}")
    return summary


def _add_to_report(path: Path, table: str) -> None:
    if path.exists():
        text = path.read_text(encoding="utf-8").rstrip("\n")
        write_text(path, f"{text}\n\n## Estimators that learn, over random splits\n\n{table}")


def tuning_for_people(summary: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Round, at the shares that tables show."""
    return [
        {
            "set": row["set"],
            "structure": row["structure"],
            "estimator": style_of(row["estimator"]).label.replace("*", r"\*"),
            "tuning cases": f"{row['size']} ({row['share']:.0%})",
            "aurc": _spread(row["aurc"], row["aurc_std"], 1.0, 3),
            "coverage": _coverage(row),
        }
        for row in summary
        if row["share"] is not None and row["estimator"] not in REFERENCES
    ]


def _coverage(row: Mapping[str, Any]) -> str:
    """Give the coverage, or a dash where no split reaches the risk."""
    if row["not_reached"] == 1.0:
        return "–"
    return _spread(row["coverage"], row["coverage_std"], 100.0, 1, " %")


def _spread(mean: float | None, deviation: float | None, scale: float, digits: int, unit: str = "") -> str:
    if mean is None:
        return ""
    spread = "" if deviation is None else f" ± {scale * deviation:.{digits}f}"
    return f"{scale * mean:.{digits}f}{spread}{unit}"


def _draw(summary: Sequence[Mapping[str, Any]], value: str) -> Any:
    """Draw a panel for each set and structure."""
    sets = list(dict.fromkeys((row["set"], row["structure"]) for row in summary))
    figure, axes = new_axes(1, len(sets), width=2.9 * len(sets) + 0.9, height=2.7)
    for ax, (name, structure) in zip(axes[0], sets, strict=True):
        chosen = [row for row in summary if (row["set"], row["structure"]) == (name, structure)]
        draw_tuning_panel(ax, chosen, value, most_ticks=6)
        of_what = "" if structure == "foreground" else f", {structure}"
        ax.set_title(f"{name}{of_what} (n = {chosen[0]['cases']})", fontsize=9)
    axes[0, 0].set_ylabel(_LABELS[value])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8, handlelength=2.6)
    return figure


def draw_tuning_panel(
    ax: Any, rows: Sequence[Mapping[str, Any]], value: str, *, most_ticks: int = 16
) -> None:
    """Draw means against the size of the tuning set, shaded by one standard deviation.

    Oracle and random are lines without a shade.

    Parameters
    ----------
    ax
        Where to draw.
    rows
        Of `segtrust.evaluation.summarise_tuning`, of one set.
    value
        ``"aurc"``, or ``"coverage"`` in percent.
    most_ticks
        Sizes that are written below the axis.
    """
    for name in dict.fromkeys(row["estimator"] for row in rows):
        points = sorted((row for row in rows if row["estimator"] == name), key=lambda row: int(row["size"]))
        _draw_line(ax, name, points, value)
    sizes = sorted({row["size"] for row in rows})
    shown = [sizes[i] for i in np.unique(np.linspace(0, len(sizes) - 1, most_ticks).round().astype(int))]
    ax.set_xscale("log")
    ax.set_xticks(shown, [str(size) for size in shown], minor=False, fontsize=7)
    ax.set_xticks([], minor=True)
    ax.set_xlabel("tuning cases")
    ax.set_ylim(bottom=0.0, top=100.0 if value == "coverage" else None)


def _draw_line(ax: Any, name: str, points: Sequence[Mapping[str, Any]], value: str) -> None:
    style = style_of(name)
    x = [row["size"] for row in points]
    pair = (np.array([row[key] for row in points], np.float64) for key in (value, f"{value}_std"))
    mean, deviation = (_SCALES[value] * each for each in pair)
    if name not in REFERENCES and not np.isnan(deviation).any():
        low, high = mean - deviation, mean + deviation
        ax.fill_between(x, low, high, color=style.colour, alpha=0.15, linewidth=0.0)
    alone = {"marker": "o", "markersize": 3} if len(x) == 1 else {}
    ax.plot(x, mean, **style.line(), **alone)


def tuning_table(summary: Sequence[Mapping[str, Any]]) -> str:
    """Give the table for people in Markdown."""
    return markdown_table(tuning_for_people(summary))
