"""What a reader should know before believing the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from segtrust.report.html.choosing import kept_and_deferred
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.standing import observed_risks
from segtrust.report.html.words import counted, listed, percent
from segtrust.report.styles import style_of

__all__ = ["cautions_of"]

Row = dict[str, Any]
_DOUBT = 0.005
"""Expected wrong pixels for each of the mask, below which a map hardly knows any doubt."""
_MANY = 0.5
_DIFFERENT = 0.001
"""Share of the pixels from which on a delivered mask is said to differ from its map."""
_FEW = 30
_LONGEST_REASON = 300
_SHOWN_FAILURES = 20


def cautions_of(run: ReportedRun) -> list[str]:
    """Give warnings, each a sentence or two; none where all looks well."""
    found = [*_of_failures(run), *_of_run(run), *_of_rankings(run), *_of_promises(run)]
    for (name, structure), rows in run.groups.items():
        what = f"{name}, {structure}" if run.several_structures else name
        found += [f"{what}: {text}" for text in _of_group(rows, run)]
    return found


def _of_failures(run: ReportedRun) -> Iterator[str]:
    if not run.failures:
        return
    yield (
        f"{counted(len(run.failures), 'case')} gave no result and are in no number of this report "
        "(failures.csv)."
    )
    for row in run.failures[:_SHOWN_FAILURES]:
        yield f"Failed: {row.get('case')}: {str(row.get('reason'))[:_LONGEST_REASON]}"


def _of_run(run: ReportedRun) -> Iterator[str]:
    if run.unjudged:
        yield f"{counted(run.unjudged, 'row')} without a loss are in no curve, area or mean."
    if run.settings and run.settings.get("finished") is None:
        yield "The run has not finished: numbers may be of a run before."
    if not run.policies and any(row.get("decision") for row in run.rows):
        yield "Decisions are those in the score table; what the policy promises is told with --policy."


def _of_rankings(run: ReportedRun) -> Iterator[str]:
    """Tell of sets in which surer cases are no better than others; of few cases that is chance."""
    for found in run.sets:
        if (
            len(found.rows) >= _FEW
            and np.ptp(found.losses) > 0.0
            and found.curves[run.main].normalised_aurc >= 1.0
        ):
            yield (
                f"{found.name}, {found.structure}: {style_of(run.main).label} ranks no better than chance. A "
                "threshold on it protects nobody here."
            )


def _of_promises(run: ReportedRun) -> Iterator[str]:
    """Tell of sets whose accepted cases are worse than a policy limits."""
    for (name, structure), rows in run.groups.items():
        policy = run.policies.get(structure, run.policies.get(""))
        accepted, _ = kept_and_deferred(rows, run)
        for target, risk in observed_risks(accepted, policy) if policy is not None else ():
            if risk > target.risk:
                yield (
                    f"{name}, {structure}: the accepted cases are not as the policy limits them. Observed "
                    f"{risk:.3f}, limit: {target}."
                )


def _of_group(rows: Sequence[Row], run: ReportedRun) -> Iterator[str]:
    checks = (_few, _empty_truths, _empty_masks, _ties, _constants, _disagreement, _polarised, _mixed)
    for check in checks:
        text = check(rows, run)
        if text:
            yield text


def _few(rows: Sequence[Row], run: ReportedRun) -> str:
    if len(rows) >= _FEW:
        return ""
    return f"only {counted(len(rows), 'case')}; intervals from so few are too narrow."


def _empty_truths(rows: Sequence[Row], run: ReportedRun) -> str:
    count = sum(row.get("truth_ratio") == 0.0 for row in rows)
    if not count:
        return ""
    what = "left out" if run.how.drop_empty else "kept: any predicted pixel gives a Dice of 0"
    return f"{count} of {len(rows)} truths are empty; they are {what}."


def _empty_masks(rows: Sequence[Row], run: ReportedRun) -> str:
    count = sum(row["k"] == 0 for row in rows)
    return f"{count} of {len(rows)} masks are empty." if count else ""


def _ties(rows: Sequence[Row], run: ReportedRun) -> str:
    _, counts = np.unique([row[run.main] for row in rows], return_counts=True)
    tied = int(counts[counts > 1].sum())
    if not tied or counts.size == 1:
        return ""
    label = style_of(run.main).label
    return f"{tied} of {len(rows)} cases share their {label} with another; they are accepted together."


def _constants(rows: Sequence[Row], run: ReportedRun) -> str:
    same = [name for name in run.estimators if len({row[name] for row in rows}) == 1]
    if len(rows) < 2 or not same:
        return ""
    return f"{listed([style_of(name).label for name in same])} is the same for all cases and ranks nothing."


def _disagreement(rows: Sequence[Row], run: ReportedRun) -> str:
    """Tell of delivered masks that are not their map cut at the threshold."""
    found = [row for row in rows if (row.get("mask_difference") or 0.0) > _DIFFERENT]
    if not found:
        return ""
    worst = max(found, key=lambda row: float(row["mask_difference"]))
    return (
        f"{len(found)} of {len(rows)} delivered masks differ from their map cut at the threshold; most in "
        f"{worst['case']}, by {percent(worst['mask_difference'])} of the pixels."
    )


def _polarised(rows: Sequence[Row], run: ReportedRun) -> str:
    """Tell of maps that are nearly 0 or 1 everywhere: confidences made of them tell little."""
    filled = [row for row in rows if row["k"] and row.get("mu") is not None and row.get("lam") is not None]
    sure = [row for row in filled if (1.0 - row["mu"]) + row["lam"] / row["k"] < _DOUBT]
    if not filled or len(sure) < _MANY * len(filled):
        return ""
    return (
        f"{len(sure)} of {len(filled)} maps are polarised, next to 0 or 1 in nearly all pixels. Are they "
        "probabilities, or masks?"
    )


def _mixed(rows: Sequence[Row], run: ReportedRun) -> str:
    kinds = {row["mask"] for row in rows if row.get("mask")}
    if len(kinds) < 2:
        return ""
    cut = sum(row.get("mask") == "threshold" for row in rows)
    return f"{cut} of {len(rows)} have no delivered mask: their maps were cut at the threshold."
