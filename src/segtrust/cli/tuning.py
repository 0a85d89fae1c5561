"""Estimators that learn, as ``segtrust evaluate`` judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import progress_bar
from segtrust.cli.jobs import names_of
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.cli.options import RunFlags
    from segtrust.evaluation import EvaluatedSet, FileCase
    from segtrust.io import Dataset

__all__ = ["TuneFlags", "told_tuning"]

_PANEL = "Estimators that learn"
_EVERY = ("sdc-tuned", "pla-tuned", "aef", "aef-sdc")


@dataclass
class TuneFlags:
    """Which estimators learn from parts of each set, and how often."""

    tune: Annotated[
        str,
        typer.Option(
            help=f"Judge them on random splits of each set: {', '.join(_EVERY)}, or 'all'.",
            rich_help_panel=_PANEL,
        ),
    ] = ""
    repeats: Annotated[
        int, typer.Option(min=1, help="Random splits for each size.", rich_help_panel=_PANEL)
    ] = 50
    seed: Annotated[int, typer.Option(min=0, help="Of the first split.", rich_help_panel=_PANEL)] = 0

    def refuse_without_truth(self, found: Dataset | None) -> None:
        """Refuse to learn from cases without a truth, before they are scored."""
        if not self.tune or found is None:
            return
        bare = [case.id for case in found.cases if case.truth is None]
        if bare:
            raise ParameterError(
                f"--tune: expected a truth of each case to learn from, got none of {bare[0]}. Give them: "
                "--truth."
            )

    def draw_tuning(
        self,
        sets: Sequence[EvaluatedSet],
        files_of: Callable[[EvaluatedSet], list[FileCase]],
        output: Path,
        run: RunFlags,
    ) -> list[dict[str, Any]]:
        """Draw the tuning curves, if any are asked for; give the means over the splits."""
        from segtrust.evaluation import TunedSets, TuningPlan, tune_sets
        from segtrust.report.tuned_sets import write_tuning

        if not self.tune or not sets:
            return []
        cases = [(each, files_of(each)) for each in sets]
        targets = {each.structure: each.full_risk for each in sets if each.name == sets[0].name}
        plan = TuningPlan(("sdc", *names_of(self.tune, _EVERY)), repeats=self.repeats, seed=self.seed)
        steps = sum(len(each) + self.repeats for _, each in cases)
        with progress_bar("cases and splits", steps) as advance:
            how = TunedSets(output / "parts", run.workers, advance)
            rows = tune_sets(cases, targets, plan, how)
        return write_tuning(output, rows) if rows else []


def told_tuning(summary: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Give the table for people, if there is any."""
    from segtrust.report.tuned_sets import tuning_table

    return {"tuning": tuning_table(summary)} if summary else {}
