"""What a reader should know before believing the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from segtrust.engine import loss_of_row
from segtrust.report.html.choosing import kept_and_deferred
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.standing import observed_risks
from segtrust.report.html.words import counted, is_or_are, listed, percent
from segtrust.report.styles import style_of

__all__ = ["cautions_of"]

Row = dict[str, Any]
_DOUBT = 0.005
"""Expected wrong pixels for each of the mask, below which a map hardly knows any doubt."""
_MANY = 0.5
_DIFFERENT = 0.001
"""Share of the pixels from which on a delivered mask is said to differ from its map."""
_FEW, _FEWEST = 30, 2
_LONGEST_REASON = 300
_SHOWN_FAILURES = 20


def cautions_of(run: ReportedRun) -> list[str]:
    """Give warnings, each a sentence or two; none where all looks well."""
    found = [*_of_failures(run), *_of_run(run), *_of_rankings(run), *_of_promises(run), *_of_drift(run)]
    for (name, structure), rows in run.groups.items():
        found += [f"{run.title_of(name, structure)}: {text}" for text in _of_group(rows, run)]
    return found


def _of_failures(run: ReportedRun) -> Iterator[str]:
    if not run.failures:
        return
    number = len(run.failures)
    yield (
        f"{counted(number, 'case')} gave no result and {is_or_are(number)} in no number of this report "
        "(failures.csv)."
    )
    for failure in run.failures[:_SHOWN_FAILURES]:
        yield f"Failed: {failure.case}: {failure.reason[:_LONGEST_REASON]}"
    if number > _SHOWN_FAILURES:
        yield f"Failed: {number - _SHOWN_FAILURES:,} more, which failures.csv lists."


def _of_run(run: ReportedRun) -> Iterator[str]:
    if run.unjudged:
        are = is_or_are(run.unjudged)
        yield f"{counted(run.unjudged, 'row')} without a loss {are} in no curve, area or mean."
    for text in run.unranked:
        yield f"Not ranked, so in no curve, area or table: {text}"
    if not run.is_finished:
        yield f"The run is not finished: this is of the {counted(len(run.rows), 'row')} that it has so far."
    elif run.settings and run.settings.get("finished") is None:
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
                f"{run.title_of(found.name, found.structure)}: {style_of(run.main).label} ranks no better "
                "than chance. A threshold on it protects nobody here."
            )


def _of_promises(run: ReportedRun) -> Iterator[str]:
    """Tell of sets whose accepted cases are worse than a policy limits."""
    for (name, structure), rows in run.groups.items():
        policy = run.policies.get(structure, run.policies.get(""))
        accepted, _ = kept_and_deferred(rows, run)
        for found in observed_risks(accepted, policy, run.loss_name) if policy is not None else ():
            if not found.is_kept:
                yield (
                    f"{run.title_of(name, structure)}: the accepted cases are not as the policy limits them. "
                    f"Observed {found.risk:.3f}, limit: {found.target}."
                )


def _of_drift(run: ReportedRun) -> Iterator[str]:
    """Tell of sets whose new cases are not like those that a policy was made with."""
    for name, of_set in run.compared.items():
        for structure, found in of_set.items():
            if found.alarm:
                yield (
                    f"{run.title_of(name, structure)}: drift alarm. The new cases are not like those of the "
                    "calibration, and of such cases nothing is promised, however they are decided."
                )


def _of_group(rows: Sequence[Row], run: ReportedRun) -> Iterator[str]:
    checks = (_few, _empty_truths, _empty_masks, _ties, _constants, _disagreement, _polarised, _mixed)
    for check in checks:
        text = check(rows, run)
        if text:
            yield text


def _few(rows: Sequence[Row], run: ReportedRun) -> str:
    """Tell of intervals of few cases; where nothing can be ranked there are none."""
    number = sum(loss_of_row(row) is not None for row in rows)
    if number >= _FEW or number < _FEWEST:
        return ""
    return f"only {counted(number, 'case')}; intervals from so few are too narrow."


def _empty_truths(rows: Sequence[Row], run: ReportedRun) -> str:
    count = sum(row.get("truth_ratio") == 0.0 for row in rows)
    if not count:
        return ""
    what = "left out" if run.how.drop_empty else "kept: any predicted pixel gives a Dice of 0"
    they = "it" if count == 1 else "they"
    are = is_or_are(count)
    return f"{count} of {len(rows)} truths {are} empty; {they} {are} {what}."


def _empty_masks(rows: Sequence[Row], run: ReportedRun) -> str:
    count = sum(row["k"] == 0 for row in rows)
    return f"{count} of {len(rows)} masks {is_or_are(count)} empty." if count else ""


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
    labels = listed([style_of(name).label for name in same])
    if len(same) == 1:
        return f"{labels} is the same for all cases and ranks nothing."
    return f"{labels} are each the same for all cases and rank nothing."


def _disagreement(rows: Sequence[Row], run: ReportedRun) -> str:
    """Tell of delivered masks that are not their map cut at the threshold."""
    found = [row for row in rows if (row.get("mask_difference") or 0.0) > _DIFFERENT]
    if not found:
        return ""
    worst = max(found, key=lambda row: float(row["mask_difference"]))
    differ = "differs" if len(found) == 1 else "differ"
    return (
        f"{len(found)} of {len(rows)} delivered masks {differ} from the map cut at the threshold; most in "
        f"{worst['case']}, by {percent(worst['mask_difference'])} of the pixels."
    )


def _polarised(rows: Sequence[Row], run: ReportedRun) -> str:
    """Tell of maps that are nearly 0 or 1 everywhere: confidences made of them tell little."""
    filled = [row for row in rows if row["k"] and row.get("mu") is not None and row.get("lam") is not None]
    sure = [row for row in filled if (1.0 - row["mu"]) + row["lam"] / row["k"] < _DOUBT]
    if not filled or len(sure) < _MANY * len(filled):
        return ""
    return (
        f"{len(sure)} of {len(filled)} maps {is_or_are(len(sure))} polarised, next to 0 or 1 in nearly all "
        "pixels. Are these probabilities, or masks?"
    )


def _mixed(rows: Sequence[Row], run: ReportedRun) -> str:
    kinds = {row["mask"] for row in rows if row.get("mask")}
    if len(kinds) < 2:
        return ""
    cut = sum(row.get("mask") in kinds - {"delivered"} for row in rows)
    how = "decoded" if "dice-optimal" in kinds else "cut at the threshold"
    if cut == 1:
        return f"1 of {len(rows)} has no delivered mask: its map was {how}."
    return f"{cut} of {len(rows)} have no delivered mask: their maps were {how}."
