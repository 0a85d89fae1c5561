"""What a report tells of: a score table, and all that lies beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust.engine.decisions import Policies
from segtrust.engine.score_table import PART, failures_beside
from segtrust.errors import ParameterError, SegtrustError, TooFewCasesError
from segtrust.experiments.evaluation import (
    EvaluatedSet,
    Evaluation,
    evaluate_sets,
    evaluated_sets,
)
from segtrust.io.tables import Table, read_table
from segtrust.report.html.standing import Drift, decided_by, drift_of, loss_of_row, policies_for
from segtrust.report.html.words import UNNAMED
from segtrust.report.styles import STYLES
from segtrust.saved import read_json
from segtrust.selective.resample import Bootstrap

__all__ = ["TABLES", "ReportedRun", "open_run_folder", "table_in"]

Row = dict[str, Any]
TABLES = ("sets", "areas", "coverages", "comparisons", "bounds", "tuning")
"""Tables of an evaluation, in the order in which they are shown."""
_NAMES = ("scores.parquet", "scores.csv", "scores.json")
_FIRST = "ID"


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """A run that is reported.

    Attributes
    ----------
    source, folder
        The score table, and where it lies.
    rows, about
        Of the score table; rows have a set, and a decision where a policy decides.
    estimators, main
        Columns that hold confidences, and the one that decides, or would.
    sets
        Structures of sets that have losses; none where no truth is known.
    tables
        By name, in full precision.
    how
        How the sets are judged.
    settings
        What ``run.json`` says; empty where there is none.
    failures
        Rows of ``failures.csv``.
    policies, policy_path, drift
        What decides, from which file, and tests against what it was made with, by set.
    unjudged
        Rows without a loss, where others have one.
    """

    source: Path
    folder: Path
    rows: tuple[Row, ...]
    about: Mapping[str, Any]
    estimators: tuple[str, ...]
    main: str
    sets: tuple[EvaluatedSet, ...]
    tables: Mapping[str, Sequence[Row]]
    how: Evaluation
    settings: Mapping[str, Any]
    failures: tuple[Row, ...]
    policies: Policies
    policy_path: Path | None = None
    drift: Drift = field(default_factory=dict)
    unjudged: int = 0

    @property
    def groups(self) -> dict[tuple[str, str], list[Row]]:
        """Rows by set and structure, in their order."""
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row["set"], row["structure"]), []).append(row)
        return found

    @property
    def several_structures(self) -> bool:
        """Whether rows are of more than one structure."""
        return len({row["structure"] for row in self.rows}) > 1

    @property
    def loss_name(self) -> str:
        """What the losses are one minus of, or the column that they are from."""
        return str(self.about.get("loss") or "dice")

    def threshold_of(self, structure: str) -> float | None:
        """Give the main confidence from which on cases are accepted; ``None`` where it does not decide."""
        policy = self.policies.get(structure, self.policies.get(""))
        if policy is not None:
            return policy.threshold if policy.scoring.estimator == self.main else None
        found = {
            round(row[self.main] - row["margin"], 12)
            for row in self.rows
            if row["structure"] == structure and row.get("margin") is not None
        }
        return found.pop() if len(found) == 1 else None


def table_in(path: Path) -> Path:
    """Give the score table that a path is, or that a folder holds."""
    if path.is_file():
        return path
    found = next((path / name for name in _NAMES if (path / name).is_file()), None)
    if found is None:
        raise ParameterError(
            f"{path}: expected a score table, or a folder of `segtrust evaluate` or `triage` with one, got "
            f"neither ({', '.join(_NAMES)})."
        )
    return found


def open_run_folder(path: Path, policy: Path | None = None, predictor: str = "") -> ReportedRun:
    """Read all that a report tells of.

    Parameters
    ----------
    path
        A score table, or the folder of a run.
    policy, predictor
        What decides, and which model made the maps: the promise holds for the policy's own.
    """
    source = table_in(path)
    table = _checked(read_table(source))
    folder = source.parent
    saved = _saved_tables(folder) if path.is_dir() else {}
    settings = _settings(folder) if path.is_dir() else {}
    policies = policies_for(policy, predictor, table)
    estimators = _estimators(table, saved)
    main = _main(estimators, policies)
    rows = tuple(decided_by(policies, [_named(row) for row in table.rows]))
    rows = tuple(sorted(rows, key=lambda row: row["set"] != _FIRST))
    judged = [{**row, "loss": loss} for row in rows if (loss := loss_of_row(row)) is not None]
    how = _how(estimators, settings, saved)
    sets = _sets(judged, how)
    return ReportedRun(
        source,
        folder,
        rows,
        table.about,
        estimators,
        main,
        sets,
        saved or _tables(sets, how),
        how,
        settings,
        _failures(source),
        policies,
        policy,
        drift_of(policy, policies, rows),
        len(rows) - len(judged) if judged else 0,
    )


def _checked(table: Table) -> Table:
    if PART in table.about:
        raise ParameterError(f"{table.source}: expected a whole run, got a part of one: segtrust merge.")
    missing = [name for name in ("case", "structure", "k") if name not in table.columns]
    if missing or not table.rows:
        what = f"no column {missing[0]!r}" if missing else "no rows"
        raise ParameterError(f"{table.source}: expected a score table, got one with {what}.")
    return table


def _named(row: Row) -> Row:
    return {**row, "set": row.get("set") or UNNAMED}


def _estimators(table: Table, saved: Mapping[str, Sequence[Row]]) -> tuple[str, ...]:
    """Give the confidences that were judged, or all that the table has in each row."""
    judged = dict.fromkeys(str(row["estimator"]) for row in saved.get("areas", ()))
    names = [name for name in judged or table.columns if name in STYLES and name in table.columns]
    found = tuple(name for name in names if None not in table.column(name))
    if not found:
        raise ParameterError(f"{table.source}: expected a column of confidences, got none: {table.columns}.")
    return found


def _main(estimators: Sequence[str], policies: Policies) -> str:
    """Give the confidence that decides; where nobody does, the SDC or the first."""
    deciding = [policy.scoring.estimator for policy in policies.values()]
    return next((name for name in (*deciding, "sdc") if name in estimators), estimators[0])


def _how(
    estimators: tuple[str, ...], settings: Mapping[str, Any], saved: Mapping[str, Sequence[Row]]
) -> Evaluation:
    """Give the way in which rows were judged, so that curves are those of the tables."""
    given = settings.get("parameters") or {}
    left_out = any(row.get("left_out_empty_truth") for row in saved.get("sets", ()))
    resamples = int(given.get("resamples") or 0)
    return Evaluation(
        estimators,
        drop_empty=bool(given.get("drop_empty_truth", left_out)),
        by_patient=bool(given.get("patients", False)),
        bootstrap=Bootstrap(resamples=resamples) if resamples else Bootstrap(resamples=2000),
    )


def _sets(rows: Sequence[Row], how: Evaluation) -> tuple[EvaluatedSet, ...]:
    """Sort rows by set and structure; a set of too few cases to rank has no curve, and is left out."""
    by_set: dict[str, list[Row]] = {}
    for row in rows:
        by_set.setdefault(row["set"], []).append(row)
    found: list[EvaluatedSet] = []
    for name, chosen in by_set.items():
        try:
            found += evaluated_sets({name: chosen}, how)
        except TooFewCasesError:
            continue
    return tuple(found)


def _tables(sets: Sequence[EvaluatedSet], how: Evaluation) -> Mapping[str, Sequence[Row]]:
    return {name: rows for name, rows in evaluate_sets(sets, how).items() if rows} if sets else {}


def _saved_tables(folder: Path) -> dict[str, Sequence[Row]]:
    """Read the tables of an evaluation, which are not computed again."""
    paths = {name: folder / "tables" / f"{name}.csv" for name in TABLES}
    found: dict[str, Sequence[Row]] = {
        name: read_table(path).rows for name, path in paths.items() if path.is_file()
    }
    return found if "areas" in found else {}


def _settings(folder: Path) -> Mapping[str, Any]:
    try:
        found = read_json(folder / "run.json")
    except (SegtrustError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _failures(source: Path) -> tuple[Row, ...]:
    """Read what failed in the making of a table; a list that cannot be read is none."""
    path = failures_beside(source, None)
    try:
        rows = read_table(path).rows if path.is_file() else ()
    except SegtrustError:
        return ()
    return tuple(row for row in rows if (row.get("table") or source.name) == source.name)
