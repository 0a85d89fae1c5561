"""What was found, in plain words and a few numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from segtrust.errors import PolicyError, SeenCasesError
from segtrust.experiments.evaluation import ALL_STRUCTURES, EvaluatedSet
from segtrust.report.html.choosing import kept_and_deferred
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.quality import quality_of
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.standing import observed_risks
from segtrust.report.html.words import UNNAMED, counted, percent
from segtrust.report.styles import style_of
from segtrust.selective.policy import Policy, Standing

__all__ = ["summary_of"]

Row = Mapping[str, Any]
_HALF = 0.5


def summary_of(run: ReportedRun) -> Html:
    """Give the summary: numbers to see at once, then sentences."""
    return joined(
        _tiles(run),
        tag("div", *_sentences(run), class_="words"),
        *(_promise(name, policy, run) for name, policy in run.policies.items()),
        *_alarms(run),
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
    curve, label = found.curves[run.main], style_of(run.main).label
    area = _area(found, run.main, run)
    interval = _interval(area)
    judged, closed = quality_of(run), 1.0 - curve.normalised_aurc
    half = curve.risk_at_coverage(_HALF)
    return [
        (f"mean {judged.word}", f"{judged.of(found.full_risk):.3f}", f"of {found.name}"),
        (f"AURC of {label}", f"{area['aurc']:.3f}", interval or "lower is better"),
        _ranking_tile(closed),
        ("risk, surer half", f"{half:.3f}", f"{found.full_risk:.3f} for all cases"),
    ]


def _ranking_tile(closed: float) -> tuple[str, str, str]:
    if closed <= 0.0:
        return "ranking", "none", "no better than a random order"
    return "ranking", percent(closed), "0 % is a random order, 100 % a perfect one"


def _area(found: EvaluatedSet, name: str, run: ReportedRun) -> Row:
    """Give the row of the table of areas; computed where the table lacks it."""
    key = (found.name, found.structure, name)
    for row in run.tables.get("areas", ()):
        if (row["set"], row["structure"], row["estimator"]) == key:
            return row
    return {"aurc": found.curves[name].aurc}


def _interval(area: Row) -> str:
    if area.get("low") is None:
        return ""
    return f"{area['low']:.3f} to {area['high']:.3f}"


def _sentences(run: ReportedRun) -> Iterator[Html]:
    yield tag("p", " ".join(_cases(run)))
    for found in run.sets:
        yield tag("p", _ranking(found, run))
    if not run.sets:
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
        cases = counted(len({row["case"] for row in rows}), "case")
        structures = len({row["structure"] for row in rows})
        of_each = f" with {counted(structures, 'structure')} each" if structures > 1 else ""
        without = f", without {counted(left_out, 'empty truth')}" if left_out else ""
        begin = "There are" if name == UNNAMED else f"{name} has"
        yield f"{begin} {cases}{of_each}{without}."


def _ranking(found: EvaluatedSet, run: ReportedRun) -> Html:
    """Say how good the cases of a set are, and how well their confidence ranks them."""
    curve, label = found.curves[run.main], style_of(run.main).label
    area = _area(found, run.main, run)
    interval = f" ({run.how.bootstrap.level:.0%} interval {_interval(area)})" if _interval(area) else ""
    what = f"{found.name}, {found.structure}" if run.several_structures else found.name
    half, judged = curve.risk_at_coverage(_HALF), quality_of(run)
    return joined(
        tag("strong", f"{what}: "),
        f"the mean {judged.word} is {judged.of(found.full_risk):.3f}. Ranking by {label} gives an AURC of "
        f"{area['aurc']:.3f}{interval}, between {curve.oracle.aurc:.3f} of the best possible order and "
        f"{curve.full_risk:.3f} of a random one. {_verdict(curve.normalised_aurc)} Accepting only the surer "
        f"half would change the mean loss from {curve.full_risk:.3f} to {half:.3f}.",
    )


def _verdict(normalised: float) -> str:
    """Say in words how far a ranking is from the oracle's, 0, and from a random one, 1."""
    closed = 1.0 - normalised
    if closed <= 0.0:
        return "It ranks no better than chance."
    kinds = ((0.8, "very well"), (0.6, "well"), (0.3, "moderately"), (0.0, "poorly"))
    word = next(word for least, word in kinds if closed >= least)
    return f"It ranks {word}: {percent(closed)} of that gap is closed."


def _unjudged(run: ReportedRun) -> str:
    values = np.array([row[run.main] for row in run.rows], np.float64)
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return (
        f"No truths are known, so nothing is said of how good these cases are. Their confidence "
        f"({style_of(run.main).label}) is {middle:.3f} in the middle, and between {low:.3f} and {high:.3f} "
        "for nine of ten."
    )


def _best(run: ReportedRun) -> str:
    """Name the confidence with the smallest area on the headline set, where there are several."""
    if not run.sets or len(run.estimators) < 2:
        return ""
    found = _headline(run)
    best = min(run.estimators, key=lambda name: float(_area(found, name, run)["aurc"]))
    name, area = style_of(best).label, float(_area(found, best, run)["aurc"])
    return (
        f"Of {len(run.estimators)} confidences {name} has the smallest AURC on {found.name} ({area:.3f}). "
        "Whether differences are more than chance is in the table of comparisons."
    )


def _promise(structure: str, policy: Policy, run: ReportedRun) -> Html:
    """Say what a policy promises, and what it does to these cases."""
    tests = [each for of_set in run.drift.values() for name, each in of_set.items() if name == structure]
    is_doubted = bool(tests) and all(test.alarm for test in tests)
    is_certified = policy.standing is Standing.CERTIFIED and not is_doubted
    but = ", but not for cases like these" if is_doubted else ""
    return tag(
        "div",
        tag("h3", f"What the threshold promises: {policy.standing}{but}"),
        tag("p", str(policy)),
        tag("ul", *_kept(structure, policy, run)),
        class_=f"promise {'certified' if is_certified else 'estimated'}",
    )


def _kept(structure: str, policy: Policy, run: ReportedRun) -> Iterator[Html]:
    """Say for each set what is accepted, and whether it is as good as was promised."""
    for name in dict.fromkeys(row["set"] for row in run.rows):
        rows = [row for row in run.rows if row["set"] == name and structure in ("", row["structure"])]
        accepted, _ = kept_and_deferred(rows, run)
        if not rows:
            continue
        text = f"{name}: {len(accepted)} of {len(rows)} are accepted ({percent(len(accepted) / len(rows))})"
        yield tag("li", text, *_observed(accepted, policy), ".", _seen(rows, policy))


def _observed(accepted: Sequence[dict[str, Any]], policy: Policy) -> Iterator[Html]:
    """Say of each limit whether the accepted cases keep it; nothing where no truth is known."""
    for target, risk in observed_risks(accepted, policy):
        what = "mean loss" if target.below_dice is None else f"share below Dice {target.below_dice:g}"
        told = tag("span", "above", class_="above") if risk > target.risk else "within"
        yield joined(f"; their {what} is {risk:.3f}, ", told, f" the limit of {target.risk:g}")


def _seen(rows: Sequence[Row], policy: Policy) -> str:
    """Say whether the policy was made with these very cases, which then show nothing new."""
    try:
        policy.refuse([row["case"] for row in rows])
    except SeenCasesError:
        return " The policy was calibrated with cases of this set, so this is no test of it."
    except PolicyError:
        return " Whether the policy was calibrated with these cases is not known."
    return ""


def _alarms(run: ReportedRun) -> Iterator[Html]:
    for name, tests in run.drift.items():
        for structure, test in tests.items():
            of_what = f"{name}, {structure}" if structure and run.several_structures else name
            head = "Drift alarm" if test.alarm else "No drift seen"
            after = " The promise no longer holds for such cases." if test.alarm else ""
            yield tag(
                "p",
                tag("strong", f"{head}, {of_what}: "),
                test.explain(),
                after,
                class_="alarm" if test.alarm else "calm",
            )
    if run.policies and not run.drift:
        text = "No drift check: the calibration confidences are not beside the policy, or cases are too few."
        yield tag("p", text, class_="calm")
