"""EvaluationSettings of scored cases: how well confidences rank errors, and what tuning cases add."""

from __future__ import annotations

from segtrust.evaluation.file_cases import FileCase
from segtrust.evaluation.parts import Part, PartStore, compute_parts, store_of
from segtrust.evaluation.summary import (
    Counts,
    SetSummary,
    compare_mean_confidence,
    summarise_evaluated,
)
from segtrust.evaluation.tables import (
    ALL_STRUCTURES,
    REFERENCES,
    EvaluatedSet,
    EvaluationSettings,
    evaluate_rows,
    evaluate_sets,
    evaluated_sets,
    over_structures,
    rankable_sets,
)
from segtrust.evaluation.tuned_sets import (
    SHARES,
    TunedSets,
    TuningPlan,
    cases_of_set,
    summarise_sets,
    tune_sets,
)
from segtrust.evaluation.tuning import (
    ELSEWHERE,
    HERE,
    TuningOptions,
    split_cases,
    summarise_tuning,
    tuning_curve,
    tuning_sizes,
)

__all__ = [
    "ALL_STRUCTURES",
    "ELSEWHERE",
    "HERE",
    "REFERENCES",
    "SHARES",
    "Counts",
    "EvaluatedSet",
    "EvaluationSettings",
    "FileCase",
    "Part",
    "PartStore",
    "SetSummary",
    "TunedSets",
    "TuningOptions",
    "TuningPlan",
    "cases_of_set",
    "compare_mean_confidence",
    "compute_parts",
    "evaluate_rows",
    "evaluate_sets",
    "evaluated_sets",
    "over_structures",
    "rankable_sets",
    "split_cases",
    "store_of",
    "summarise_evaluated",
    "summarise_sets",
    "summarise_tuning",
    "tune_sets",
    "tuning_curve",
    "tuning_sizes",
]
