"""Tables and figures of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust.evaluation import (
    REFERENCES,
    EvaluatedSet,
    EvaluationSettings,
    evaluate_sets,
    rankable_sets,
)
from segtrust.report.figures import new_axes, plain_name, save_figure
from segtrust.report.runs import RESULTS
from segtrust.report.styles import style_of
from segtrust.report.tables import markdown_table, rows_as_latex, write_csv, write_text

__all__ = [
    "TITLES",
    "draw_curves",
    "draw_panel",
    "rounded_row",
    "suffix_of",
    "tables_for_people",
    "write_evaluated",
    "write_evaluation",
]

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]


def write_evaluation(out: Path, sets: Mapping[str, Sequence[Row]], how: EvaluationSettings) -> Tables:
    """Judge the rows of each set; write tables, figures and a short report into a folder; give the tables.

    Sets of too few cases to rank are left out, see `rankable_sets`.
    """
    found, _ = rankable_sets(sets, how)
    tables = evaluate_sets(found, how)
    write_evaluated(out, found, tables, how)
    return tables


def write_evaluated(
    out: Path, found: Sequence[EvaluatedSet], tables: Tables, how: EvaluationSettings
) -> None:
    """Write the tables of an evaluation, its figures and a short report into a folder."""
    for name in RESULTS:
        (out / name).mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        if rows:
            write_csv(out / "tables" / f"{name}.csv", rows)
    for name, rows in _rounded_tables(tables).items():
        write_text(out / "tables" / f"{name}.md", markdown_table(rows))
        write_text(out / "tables" / f"{name}.tex", rows_as_latex(rows))
    for structure in dict.fromkeys(each.structure for each in found):
        chosen = [each for each in found if each.structure == structure]
        save_figure(draw_curves(chosen), out / "figures" / f"risk_coverage{suffix_of(structure, found)}")
    write_text(out / "report.md", _report(tables_for_people(tables), how))


def suffix_of(structure: str, found: Sequence[EvaluatedSet]) -> str:
    """Tell figures apart by structure, where there are several; names may hold anything."""
    structures = list(dict.fromkeys(each.structure for each in found))
    if len(structures) == 1:
        return ""
    return f"_{structures.index(structure)}_{plain_name(structure)}"


def tables_for_people(tables: Tables) -> dict[str, str]:
    """Give the tables rounded, in Markdown."""
    return {name: markdown_table(rows) for name, rows in _rounded_tables(tables).items()}


def _rounded_tables(tables: Tables) -> dict[str, list[dict[str, str]]]:
    shown = {name: tables[name] for name in TITLES if tables[name]}
    return {name: [rounded_row(row) for row in rows] for name, rows in shown.items()}


_PERCENT = ("coverage",)
_DECIMALS = {"aurc": 3, "augrc": 3, "normalised_aurc": 3, "mean_loss": 3, "target_risk": 3, "difference": 3}
_DECIMALS |= {"low": 3, "high": 3, "foreground_ratio": 3}
_SHORT = {"p_value": ".2g", "max_epsilon": ".1e", "mean_epsilon": ".1e"}


def rounded_row(row: Mapping[str, Any]) -> dict[str, str]:
    """Give a row of a table as people read it.

    Examples
    --------
    >>> rounded_row({"set": "ID", "estimator": "sdc", "aurc": 0.12345})
    {'set': 'ID', 'estimator': 'SDC', 'aurc': '0.123'}
    """
    return {name: _cell(name, value, row) for name, value in row.items()}


def _cell(name: str, value: Any, row: Mapping[str, Any]) -> str:
    if name in ("estimator", "against"):
        return style_of(str(value)).label
    if value is None:
        return "not reached" if name == "coverage" else ""
    if name == "coverage" or (name in ("low", "high") and "coverage" in row):
        return f"{100.0 * value:.1f} %"
    if name in _SHORT:
        return format(value, _SHORT[name])
    return f"{value:.{_DECIMALS[name]}f}" if name in _DECIMALS else str(value)


_LOWEST = 0.01
"""Height of a panel at least, where nothing is ever wrong."""
_HIGHEST = 2.0
"""Times the risk of all cases, up to which curves are drawn: the surest few may all be wrong."""
TITLES = {
    "sets": "The sets",
    "areas": "Area under the risk-coverage curve",
    "coverages": "Largest coverage at the risk of the first set",
    "comparisons": "Paired comparisons of the AURC; below 0 the first is better",
    "bounds": "How far SDC and IDC can be apart",
}
"""What the tables show, by name."""


def _report(shown: Mapping[str, str], how: EvaluationSettings) -> str:
    units = "patients" if how.by_patient else "cases"
    dropped = "left out" if how.drop_empty else "kept"
    notes = (
        f"Intervals are {how.bootstrap.level:.0%} bootstrap intervals over {units} "
        f"({how.bootstrap.resamples} resamples, seed {how.bootstrap.seed}). Cases with an empty truth are "
        f"{dropped}. Full precision is in `tables/*.csv`."
    )
    parts = [f"## {TITLES[name]}\n\n{text}" for name, text in shown.items()]
    return "\n\n".join(["# Evaluation", notes, *parts])


def draw_curves(found: Sequence[EvaluatedSet]) -> Any:
    """Draw the risk-coverage curves of one structure, a panel for each set, see `draw_panel`."""
    figure, axes = new_axes(1, len(found), width=2.9 * len(found) + 0.9, height=2.7)
    for ax, each in zip(axes[0], found, strict=True):
        draw_panel(ax, each, found[0].full_risk, with_circles=each is not found[0])
        ax.set_title(f"{each.name} (n = {len(each.rows)})", fontsize=9)
    axes[0, 0].set_ylabel("selective risk")
    handles, labels = axes[0, -1].get_legend_handles_labels()  # another set has the risk of the first too
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8, handlelength=2.6)
    return figure


def draw_panel(ax: Any, found: EvaluatedSet, target: float, *, with_circles: bool) -> None:
    """Draw the risk-coverage curves of a set.

    Parameters
    ----------
    ax
        Where to draw.
    found
        The set.
    target
        A risk that is drawn as a line, such as that of all cases in distribution.
    with_circles
        Whether a circle shows how far each curve stays below it.
    """
    for number, (name, curve) in enumerate(found.curves.items()):
        style = style_of(name)  # the first on top, where lines coincide
        above = 3.5 if name in REFERENCES else 3.0  # thin lines, which others would hide
        ax.plot(curve.coverages, curve.risks, **style.line(), zorder=above - number / 100)
        met = curve.coverage_at_risk(target)
        if with_circles and met and name != "random":
            circle = {"marker": "o", "markersize": 5, "mfc": "none", "color": style.colour}
            ax.plot(met, target, **circle, zorder=4.0 - number / 100)
    label = "risk in distribution" if with_circles else None
    ax.axhline(target, color="black", linewidth=0.7, linestyle=":", label=label)
    highest = max(float(curve.risks.max()) for curve in found.curves.values())
    ax.set(xlabel="coverage", xlim=(0.0, 1.0))
    top = 1.05 * min(highest, _HIGHEST * max(found.full_risk, target))
    ax.set_ylim(0.0, max(top, _LOWEST))
