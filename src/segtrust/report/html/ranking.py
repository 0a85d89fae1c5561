"""How well a confidence ranks the cases of a set, in words; nothing is praised that could be chance."""

from __future__ import annotations

from segtrust.evaluation import EvaluatedSet
from segtrust.report.html.words import counted, percent
from segtrust.selective import RiskCoverageCurve

__all__ = ["FEWEST_TO_JUDGE", "half_sentence", "half_tile", "has_gap", "ranking_tile", "verdict"]

FEWEST_TO_JUDGE = 10
"""Cases from which on it is said how well they are ranked: any order of fewer is good too often by chance."""
_ROUNDING = 1e-9
_HALF = 0.5
_NONE = "–"
"""In place of a number that there is not."""
_KINDS = ((0.8, "very well"), (0.6, "well"), (0.3, "moderately"), (0.0, "poorly"))


def has_gap(curve: RiskCoverageCurve) -> bool:
    """Tell whether an order of the cases can be better than another: not where all losses are equal."""
    return curve.full_risk - curve.oracle.aurc > _ROUNDING * max(abs(curve.full_risk), 1.0)


def _closed(curve: RiskCoverageCurve) -> float:
    """Share of the gap between a random order and the best one that is closed; ties may exceed the best."""
    return min(1.0 - curve.normalised_aurc, 1.0)


def verdict(found: EvaluatedSet, estimator: str) -> str:
    """Say in words how far a ranking is from a random one, and from the best one that there could be."""
    curve = found.curves[estimator]
    if len(found.rows) < FEWEST_TO_JUDGE:
        return f"{counted(len(found.rows), 'case')} are too few to tell how well it ranks."
    closed = _closed(curve)
    if closed <= 0.0:
        return "It ranks no better than chance."
    word = next(word for least, word in _KINDS if closed >= least)
    return f"It ranks {word}: {percent(closed)} of that gap is closed."


def ranking_tile(found: EvaluatedSet, estimator: str) -> tuple[str, str, str]:
    """Give the same as a name, a number and a remark."""
    curve = found.curves[estimator]
    if not has_gap(curve):
        return "ranking", _NONE, "all losses are equal"
    if len(found.rows) < FEWEST_TO_JUDGE:
        return "ranking", _NONE, "too few cases to tell"
    if _closed(curve) <= 0.0:
        return "ranking", "none", "no better than a random order"
    return "ranking", percent(_closed(curve)), "0 % is a random order, 100 % a perfect one"


def _surer(curve: RiskCoverageCurve) -> tuple[str, float, float]:
    """Name the surer half, with its coverage and risk; it is larger where many confidences are equal."""
    at = int(curve.coverages.searchsorted(_HALF * (1.0 - _ROUNDING)))
    coverage = float(curve.coverages[at])
    is_half = coverage - _HALF < 1.0 / curve.loss.size
    return "surer half" if is_half else f"surest {percent(coverage)}", coverage, float(curve.risks[at])


def half_sentence(found: EvaluatedSet, estimator: str) -> str:
    """Say what accepting the surer half would do."""
    curve = found.curves[estimator]
    name, coverage, risk = _surer(curve)
    if coverage == 1.0:
        return "Half of the cases cannot be accepted alone: too many have the same confidence."
    before, after = f"{curve.full_risk:.3f}", f"{risk:.3f}"
    change = (
        f"leave the mean loss at {after}"
        if before == after
        else f"change the mean loss from {before} to {after}"
    )
    return f"Accepting only the {name} would {change}."


def half_tile(found: EvaluatedSet, estimator: str) -> tuple[str, str, str]:
    """Give the same as a name, a number and a remark."""
    curve = found.curves[estimator]
    name, coverage, risk = _surer(curve)
    if coverage == 1.0:
        return "risk, surer half", _NONE, "too many confidences are equal"
    return f"risk, {name}", f"{risk:.3f}", f"{curve.full_risk:.3f} for all cases"
