"""``segtrust demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import segtrust as st
from segtrust.cli.console import new_console
from segtrust.report.tables import write_csv

__all__ = ["EPILOG", "demo"]

_DEMO_ESTIMATORS = ("sdc", "idc", "amsp", "ane", "mmmc", "pla")


def _demo_rows() -> list[dict[str, Any]]:
    from segtrust.demo import lesion_cases

    rows = []
    for case in lesion_cases():
        p = case.prediction.probabilities
        found = st.assess(p, estimators=_DEMO_ESTIMATORS)
        row: dict[str, Any] = {"case": case.id, "k": found.bounds.k, **found.scores}
        row |= {"epsilon": found.bounds.relative_error, "dice": st.dice(case.truth, p >= 0.5)}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["sdc"])


EPILOG = "Examples:\n\n  segtrust demo\n\n  segtrust demo --output scores.csv"


def demo(
    output: Annotated[
        Path | None, typer.Option(help="Also write the table, in full precision, as CSV.")
    ] = None,
) -> None:
    """Score a few made-up lesions and show which confidence knows the errors."""
    rows = _demo_rows()
    table = Table(title="Confidence of seven made-up lesions, surest first")
    table.add_column("case")
    heads = ("k", "SDC", "IDC", "error bound", "aMSP", "aNE", "MMMC", "PLA", "true Dice")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        scores = [f"{row[name]:.3f}" for name in ("sdc", "idc")]
        others = [f"{row[name]:.3f}" for name in ("amsp", "ane", "mmmc", "pla")]
        table.add_row(
            row["case"], str(row["k"]), *scores, f"{row['epsilon']:.1e}", *others, f"{row['dice']:.3f}"
        )
    console = new_console()
    console.print(table)
    console.print(_verdict(rows))
    if output is not None:
        write_csv(output, rows)
        console.print(f"The table is in {output}.")


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Say how well each confidence orders the cases by their true Dice."""
    from scipy.stats import spearmanr

    truth = [row["dice"] for row in rows]
    order = {name: spearmanr([row[name] for row in rows], truth).statistic for name in _DEMO_ESTIMATORS}
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in order.items())
    return (
        f"Rank correlation with the true Dice, which none of them has seen: {listed}.\n"
        "SDC is the soft Dice confidence, IDC the exact expected Dice; the error bound certifies how far\n"
        "apart the two can be. The others average over a background in which every model is sure."
    )
