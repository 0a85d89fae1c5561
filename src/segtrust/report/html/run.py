"""What a report tells of: a score table, and all that lies beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust._files import read_json
from segtrust.engine import LOSS, Policies, find_table, loss_column, loss_name, loss_of_row, read_failures
from segtrust.errors import ParameterError, SegtrustError
from segtrust.evaluation import (
    EvaluatedSet,
    EvaluationSettings,
    evaluate_sets,
    rankable_sets,
)
from segtrust.io import Failure, Table, read_table
from segtrust.policy import Policy, StructurePolicies
from segtrust.report.html.reading import read_run_table
from segtrust.report.html.standing import (
    Comparisons,
    compared_with_calibration,
    decided_by,
    policies_for,
)
from segtrust.report.html.words import UNNAMED, set_name
from segtrust.report.runs import check_run_format
from segtrust.report.styles import is_styled
from segtrust.risks import Risk, describe_loss, find_risk
from segtrust.selective import Bootstrap

__all__ = ["TABLES", "ReportedRun", "open_run_folder"]

Row = dict[str, Any]
TABLES = ("sets", "areas", "coverages", "comparisons", "bounds", "tuning")
"""Tables of an evaluation, in the order in which they are shown."""
_FIRST = "ID"


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """A run that is reported.

    Attributes
    ----------
    source, folder, given
        The score table, where it lies, and what the report was asked for with.
    rows, about
        Of the score table; rows have a set, a loss (``None`` if unknown), and a decision where a policy
        decides.
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
        Cases without a result.
    policies, policy_path, predictor, compared
        What decides, from which file, and the cases against those that it was made with, by set.
    unjudged
        Rows without a loss, where others have one.
    unranked
        What has losses but too few cases to be among `sets`, in words.
    loss_name
        What the losses are: the short name of a risk, or a column; ``None`` if unknown.
    is_finished
        Whether the score table is written; otherwise the rows are those of its diary.
    has_files
        Whether the tables are those of files in the folder.
    """

    source: Path
    folder: Path
    rows: tuple[Row, ...]
    about: Mapping[str, Any]
    estimators: tuple[str, ...]
    main: str
    sets: tuple[EvaluatedSet, ...]
    tables: Mapping[str, Sequence[Row]]
    how: EvaluationSettings
    settings: Mapping[str, Any]
    failures: tuple[Failure, ...]
    policies: Policies
    policy_path: Path | None = None
    predictor: str = ""
    compared: Comparisons = field(default_factory=dict)
    unjudged: int = 0
    unranked: tuple[str, ...] = ()
    is_finished: bool = True
    has_files: bool = False
    given: Path | None = None
    loss_name: str | None = None

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

    def name_of(self, name: str, structure: str) -> str:
        """Name a structure of a set; the set alone where there is one structure."""
        return f"{set_name(name)}, {structure}" if self.several_structures else set_name(name)

    def title_of(self, name: str, structure: str) -> str:
        """Give the same as the head of a sentence."""
        return self.name_of("All cases" if name == UNNAMED else name, structure)

    @property
    def risk(self) -> Risk | None:
        """The risk that the losses are of; ``None`` if it is not one of ours."""
        return find_risk(self.loss_name or "")

    @property
    def loss_label(self) -> str:
        """How the losses are named on the page."""
        return describe_loss(self.loss_name or "loss")

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


def open_run_folder(
    path: Path, policy: str | Path | Policy | StructurePolicies | None = None, predictor: str = ""
) -> ReportedRun:
    """Read all that a report tells of.

    Parameters
    ----------
    path
        A score table, or the folder of a run.
    policy, predictor
        What decides, and which model made the maps: the promise holds for the policy's own.
    """
    table, is_finished = read_run_table(path)
    source = Path(table.source)
    folder = source.parent
    is_whole = path.is_dir() or _is_of_run(source)
    saved = _saved_tables(folder) if is_whole and is_finished else {}
    settings = _settings(folder) if is_whole else {}
    policies = policies_for(policy, predictor, table)
    estimators = _estimators(table, saved)
    main = _main(estimators, policies)
    rows = tuple(decided_by(policies, [_named(row) for row in table.rows]))
    rows = tuple(sorted(rows, key=lambda row: row["set"] != _FIRST))
    column = loss_column(table.columns)
    rows = tuple({**row, LOSS: loss_of_row(row, column)} for row in rows)
    judged = [row for row in rows if row[LOSS] is not None]
    how = _how(estimators, settings, saved)
    sets, unranked = rankable_sets(_by_set(judged), how)
    return ReportedRun(
        source,
        folder,
        rows,
        table.about,
        estimators,
        main,
        tuple(sets),
        saved or _tables(sets, how),
        how,
        settings,
        _failures(source),
        policies,
        Path(policy) if isinstance(policy, str | Path) else None,
        predictor,
        compared_with_calibration(policies, rows),
        len(rows) - len(judged) if judged else 0,
        tuple(unranked),
        is_finished,
        bool(saved),
        path,
        loss_name(table),
    )


def _is_of_run(source: Path) -> bool:
    """Tell whether a table is that of the run in its folder, and is judged as that says."""
    return (source.parent / "run.json").is_file() and find_table(source.parent) == source


def _named(row: Row) -> Row:
    return {**row, "set": row.get("set") or UNNAMED}


def _estimators(table: Table, saved: Mapping[str, Sequence[Row]]) -> tuple[str, ...]:
    """Give the confidences that were judged, or all that the table has in each row."""
    judged = dict.fromkeys(str(row["estimator"]) for row in saved.get("areas", ()))
    told = table.about.get("estimators") or {}
    names = [name for name in judged or table.columns if is_styled(name, told) and name in table.columns]
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
) -> EvaluationSettings:
    """Give the way in which rows were judged, so that curves are those of the tables."""
    given = settings.get("parameters") or {}
    left_out = any(row.get("left_out_empty_truth") for row in saved.get("sets", ()))
    resamples = int(given.get("resamples") or 0)
    return EvaluationSettings(
        estimators,
        drop_empty=bool(given.get("drop_empty_truth", left_out)),
        by_patient=bool(given.get("patients", False)),
        bootstrap=Bootstrap(resamples=resamples) if resamples else Bootstrap(resamples=2000),
    )


def _by_set(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["set"], []).append(row)
    return found


def _tables(sets: Sequence[EvaluatedSet], how: EvaluationSettings) -> Mapping[str, Sequence[Row]]:
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
    if not isinstance(found, dict):
        return {}
    check_run_format(found, folder / "run.json")
    return found


def _failures(source: Path) -> tuple[Failure, ...]:
    """Return what failed in the making of a table; a list that cannot be read is one failure."""
    try:
        return read_failures(source)
    except SegtrustError as error:
        return (Failure("failures.csv", "failures.csv", type(error).__name__, str(error)),)
