"""What was found, in plain words and a few numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from segtrust.engine import loss_of_row
from segtrust.evaluation import ALL_STRUCTURES, EvaluatedSet
from segtrust.policy import Decision
from segtrust.report.html.choosing import kept_and_deferred
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.promises import promises_of
from segtrust.report.html.quality import quality_of
from segtrust.report.html.ranking import (
    FEWEST_TO_JUDGE,
    half_sentence,
    half_tile,
    has_gap,
    ranking_tile,
    verdict,
)
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.words import UNNAMED, counted, is_or_are, listed, percent, set_name
from segtrust.report.styles import style_of

__all__ = ["summary_of"]

Row = Mapping[str, Any]


def summary_of(run: ReportedRun) -> Html:
    """Give the summary: numbers to see at once, then sentences."""
    return joined(
        _tiles(run),
        tag("div", *_sentences(run), class_="words"),
        *promises_of(run),
    )


def _tiles(run: ReportedRun) -> Html:
    cases = len({(row["set"], row["case"]) for row in run.rows})
    tiles = [("cases", f"{cases:,}", f"in {counted(len({row['set'] for row in run.rows}), 'set')}")]
    if run.sets:
        tiles += _judged_tiles(_headline(run), run)
    decided = [row for row in run.rows if row.get("decision")]
    if decided:
        kept, deferred = kept_and_deferred(run.rows, run)
        what = "row" if run.several_structures else "case"
        share = f"{percent(len(kept) / len(run.rows))} of {counted(len(run.rows), what)}"
        nothing = sum(row["decision"] == str(Decision.NO_FINDING) for row in kept)
        share += f", {nothing:,} with no finding" if nothing else ""
        tiles.append(("accepted", f"{len(kept):,}", share))
        tiles.append(("deferred", f"{len(deferred):,}", "to be looked at"))
    if run.failures:
        tiles.append(("failed", f"{len(run.failures):,}", "see the warnings"))
    return tag("dl", *(_tile(*each) for each in tiles), class_="tiles")


def _tile(name: str, value: str, more: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", value), tag("dd", more, class_="more"))


def _headline(run: ReportedRun) -> EvaluatedSet:
    """Give the set that is told of first: the first one, over all its structures."""
    return [each for each in run.sets if each.name == run.sets[0].name][-1]


def _judged_tiles(found: EvaluatedSet, run: ReportedRun) -> list[tuple[str, str, str]]:
    area, judged, label = _area(found, run.main, run), quality_of(run), style_of(run.main).label
    of_what = "of all cases" if found.name == UNNAMED else f"of {found.name}"
    return [
        (f"mean {judged.word}", f"{judged.of(found.full_risk):.3f}", of_what),
        (f"AURC of {label}", f"{area['aurc']:.3f}", _interval(area, run) or "lower is better"),
        ranking_tile(found, run.main),
        half_tile(found, run.main),
    ]


def _area(found: EvaluatedSet, name: str, run: ReportedRun) -> Row:
    """Give the row of the table of areas; computed where the table lacks it."""
    key = (found.name, found.structure, name)
    for row in run.tables.get("areas", ()):
        if (row["set"], row["structure"], row["estimator"]) == key:
            return row
    return {"aurc": found.curves[name].aurc}


def _interval(area: Row, run: ReportedRun) -> str:
    if area.get("low") is None:
        return ""
    return f"{run.how.bootstrap.level:.0%} interval {area['low']:.3f} to {area['high']:.3f}"


def _sentences(run: ReportedRun) -> Iterator[Html]:
    yield tag("p", " ".join(_cases(run)))
    for found in run.sets:
        yield tag("p", _ranking(found, run))
    unranked = list(_unranked(run))
    yield from unranked
    if not run.sets and not unranked:
        yield tag("p", _unjudged(run))
    best = _best(run)
    if best:
        yield tag("p", best)


def _cases(run: ReportedRun) -> Iterator[str]:
    """Say how many cases each set has."""
    for name in dict.fromkeys(row["set"] for row in run.rows):
        rows = [row for row in run.rows if row["set"] == name]
        found = [each for each in run.sets if each.name == name]
        left_out = sum(each.left_out for each in found if each.structure != ALL_STRUCTURES)
        number = len({row["case"] for row in rows})
        structures = len({row["structure"] for row in rows})
        of_each = f" with {counted(structures, 'structure')} each" if structures > 1 else ""
        without = f"; {counted(left_out, 'empty truth')} {is_or_are(left_out)} left out" if left_out else ""
        begin = f"There {is_or_are(number)}" if name == UNNAMED else f"{name} has"
        yield f"{begin} {counted(number, 'case')}{of_each}{without}."


def _ranking(found: EvaluatedSet, run: ReportedRun) -> Html:
    """Say how good the cases of a set are, and how well their confidence ranks them."""
    curve, judged = found.curves[run.main], quality_of(run)
    mean = f"the mean {judged.word} is {judged.of(found.full_risk):.3f}."
    told = f"{mean} All losses are equal, so that there is nothing to rank."
    if has_gap(curve):
        area = _area(found, run.main, run)
        interval = f" ({_interval(area, run)})" if _interval(area, run) else ""
        told = (
            f"{mean} Ranking by {style_of(run.main).label} gives an AURC of {area['aurc']:.3f}{interval}, "
            f"between {curve.oracle.aurc:.3f} of the best possible order and {curve.full_risk:.3f} of a "
            f"random one. {verdict(found, run.main)} {half_sentence(found, run.main)}"
        )
    return joined(tag("strong", f"{run.title_of(found.name, found.structure)}: "), told)


def _unranked(run: ReportedRun) -> Iterator[Html]:
    """Say how good the cases are that are too few to be ranked."""
    ranked = {(found.name, found.structure) for found in run.sets}
    judged = quality_of(run)
    for (name, structure), rows in run.groups.items():
        kept = [row for row in rows if not (run.how.drop_empty and row.get("truth_ratio") == 0.0)]
        losses = [loss for row in kept if (loss := loss_of_row(row)) is not None]
        if losses and (name, structure) not in ranked:
            told = (
                f"{counted(len(losses), 'case')} with a {judged.word} of {judged.of(np.mean(losses)):.3f}. "
                "To rank cases takes two or more."
            )
            yield tag("p", tag("strong", f"{run.title_of(name, structure)}: "), told)


def _unjudged(run: ReportedRun) -> str:
    values = np.array([row[run.main] for row in run.rows], np.float64)
    low, middle, high = (f"{each:.3f}" for each in np.quantile(values, [0.05, 0.5, 0.95]))
    spread = f"{middle} in the middle, and between {low} and {high} for nine of ten"
    if values.size < FEWEST_TO_JUDGE:
        low, high = f"{values.min():.3f}", f"{values.max():.3f}"
        spread = f"between {low} and {high}"
    return (
        f"No truths are known, so nothing is said of how good these cases are. Their confidence "
        f"({style_of(run.main).label}) is {spread if low != high else middle}."
    )


def _best(run: ReportedRun) -> str:
    """Name the confidences with the smallest area on the headline set, where there are several."""
    if not run.sets or len(run.estimators) < 2 or not has_gap(_headline(run).curves[run.main]):
        return ""
    found = _headline(run)
    areas = {name: f"{_area(found, name, run)['aurc']:.3f}" for name in run.estimators}
    least = min(areas.values(), key=float)
    best = [style_of(name).label for name, area in areas.items() if area == least]
    where, many = f"on {set_name(found.name)}", len(areas)
    if len(best) == many:
        return f"All {many} confidences have the same AURC {where} ({least})."
    has = "has" if len(best) == 1 else "have"
    return (
        f"Of {many} confidences {listed(best, many)} {has} the smallest AURC {where} ({least}). "
        "Whether differences are more than chance is in the table of comparisons."
    )
