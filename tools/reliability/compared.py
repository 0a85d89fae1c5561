"""One drawn case, computed by the library and by the slow references: how far they are apart.

Every check gives pairs of a quantity and its error; `tools.reliability.limits` says how large that may be.
Errors are relative unless the name of the quantity says otherwise. Where doubles themselves lose digits,
below 1e-290, an error is taken relative to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import segtrust as st
from segtrust.confidence import (
    ConfidenceEstimator,
    PatchLevel,
    ThresholdLevel,
    TunedPatchLevel,
    TunedSoftDice,
    assess_map,
    get_estimators,
    summarise,
)
from segtrust.kernels import (
    DeviceMap,
    MapSource,
    check_map_type,
    check_shapes,
    expected_dice,
    expected_tversky,
    largest_box_sums,
    open_map,
    probability_of_empty,
    probability_of_foreground,
)
from segtrust.maps import Prediction
from segtrust.selective import CONVENTIONS
from segtrust.selective.pvalues import (
    betting_p_value,
    betting_stakes,
    binomial_p_value,
    hoeffding_bentkus_p_value,
)
from tests import references
from tests.references import Exact
from tests.selective import brute
from tools.reliability.limits import TOLERANCES
from tools.reliability.random_cases import DrawnMap, DrawnTable, InChunks

__all__ = ["check_map", "check_table", "estimators_of", "off", "source_of"]

Checks = Iterator[tuple[str, float]]

_SMALL = 1e-290
_MOST_DECODED, _LEAST_THEOREM, _MOST_THEOREM = 24, 1e-40, 50.0
_ROUNDED_TAUS = (1.0 + 4e-15, 1.0 + 3e-9)
"""A pixel whose entropy is tau up to rounding, or whose doubt is up to rounding, may count or not."""


def off(found: Any, reference: Any, scale: Any = None) -> float:
    """Give how far a number is off, relative to the reference or to ``scale``; NaN agrees with NaN only."""
    if found != found or reference != reference:  # NaN, told quicker than by NumPy
        return 0.0 if found != found and reference != reference else np.inf
    difference = float(abs(found - reference))
    return difference and difference / max(float(abs(reference) if scale is None else scale), _SMALL)


def as_device_map(drawn: DrawnMap) -> DeviceMap:
    """Open a NumPy map as if it were on a device, with the checks of `open_map`."""
    check_shapes(drawn.p.shape, None if drawn.mask is None else np.shape(drawn.mask), "p")
    check_map_type(drawn.p.dtype, "p")
    return DeviceMap(drawn.p, drawn.mask, drawn.threshold, "p")


def source_of(drawn: DrawnMap) -> MapSource:
    """Open a map the way that was drawn for it."""
    if drawn.path == "arrays":
        return as_device_map(drawn)
    return open_map(drawn.p, drawn.mask, threshold=drawn.threshold)


def estimators_of(drawn: DrawnMap) -> list[ConfidenceEstimator]:
    """Give all estimators that need not learn, with the settings that were drawn."""
    settings = (
        ThresholdLevel(drawn.tau),
        PatchLevel(drawn.sides[0]),
        TunedPatchLevel(drawn.sides[1]),
        TunedSoftDice(drawn.weight),
    )
    return get_estimators(["sdc", "idc", "amsp", "apc", "ane", "mmmc", *settings])


def check_map(drawn: DrawnMap, rng: np.random.Generator) -> Checks:
    """Compare all estimators and bounds of a map, and one more thing that is drawn."""
    p = drawn.p.values if isinstance(drawn.p, InChunks) else drawn.p
    y = references.mask_of(p, drawn.mask, drawn.threshold)
    found = assess_map(source_of(drawn), estimators_of(drawn))
    yield "foreground", off(found.foreground_ratio, np.count_nonzero(y) / y.size)
    yield from _check_scores(drawn, p, y, found.scores)
    yield from _check_bounds(p, y, found.bounds, theorem=rng.random() < 0.01)
    more = _MORE[int(rng.integers(len(_MORE)))]
    yield from more(drawn, p, y, (found.scores, rng))


def _check_scores(drawn: DrawnMap, p: Any, y: Any, found: Any) -> Checks:
    exact = references.scores(p, y, drawn.tau, drawn.sides[0])
    for name in ("sdc", "idc", "amsp", "ane", "pla"):
        yield name, off(found[name], exact[name])
    yield "mmmc", _off_mmmc(found["mmmc"], p, exact["mmmc"])
    yield "apc (absolute)", off(found["apc"], exact["apc"], 1.0)
    yield "pla-tuned", off(found["pla-tuned"], references.pla(p, drawn.sides[1]))
    yield "tla", _off_tla(found["tla"], p, drawn.tau, exact["tla"])
    s, lam = _masses(p, y)
    whole = np.count_nonzero(y) + s + Exact(drawn.weight) * lam
    yield "sdc-tuned", off(found["sdc-tuned"], 2 * s / whole if y.any() else 0)


def _masses(p: Any, y: Any) -> tuple[Any, Any]:
    exact = references.probabilities(p)
    return exact[y].sum(), exact[~y].sum()


def _off_mmmc(found: float, p: Any, reference: Any) -> float:
    """Compare a quotient of entropies, which has no more digits than they have."""
    error = off(found, reference)
    if error <= TOLERANCES["mmmc"]:
        return error
    doubts = references.entropies(p)
    with_fewest_digits = min(doubts.max(), np.median(doubts) + doubts.min())
    return error * min(1.0, float(with_fewest_digits / _SMALL))


def _off_tla(found: float, p: Any, tau: float, reference: Any) -> float:
    error = off(found, reference)
    if error <= TOLERANCES["tla"]:
        return error
    return min(error, *(off(found, references.tla(p, tau * more)) for more in _ROUNDED_TAUS))


def _check_bounds(p: Any, y: Any, found: Any, *, theorem: bool) -> Checks:
    """Compare the sums, and the bounds that follow from the sums as they came out."""
    s, lam = _masses(p, y)
    yield from (
        ("k", off(found.k, np.count_nonzero(y))),
        ("s", off(found.s, s)),
        ("lam", off(found.lam, lam)),
    )
    if found.k == 0:
        for name in ("mu", "lower", "upper", "relative_error"):
            yield name.replace("_", " "), off(getattr(found, name), np.nan)
        return
    k, s, lam = found.k, Exact(found.s), Exact(found.lam)
    excess = references.upper_bound_excess(k + s, lam)
    if theorem and _LEAST_THEOREM < lam < _MOST_THEOREM:  # below, 70 digits are too few to subtract 1
        excess = Exact(str(references.upper_bound_excess_by_theorem(float(k + s), float(lam))))
    yield "mu", off(found.mu, s / k)
    yield "lower", off(found.lower, references.lower_bound(k, s / k, lam))
    yield "upper", off(found.upper, references.upper_bound(k, s / k, lam))
    gap = (k - s) / k / (k + s + lam)
    yield "relative error", off(found.relative_error, max(gap, excess / (1 + excess)))


def _check_alone(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    """Each estimator beside others gives what it gives alone."""
    scores, rng = known
    estimators = {each.name: each for each in estimators_of(drawn)}
    for name in rng.choice(["sdc", "idc", "apc", "mmmc", "pla", "amsp", "ane", "tla"], 3, replace=False):
        summary = summarise(source_of(drawn), [estimators[name].needs])
        yield f"alone: {name}", off(estimators[name].read(summary), scores[name])


def _check_tversky(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    _, rng = known
    pairs = [
        (1.0, 1.0),
        (0.2, 0.8),
        (0.0, 1.0),
        (1.0, 0.0),
        (0.5, 30.0),
        (0.9, 0.1),
        (rng.random(), rng.random()),
    ]
    alpha, beta = pairs[int(rng.integers(len(pairs)))]
    found = expected_tversky(source_of(drawn).dice_statistics(), alpha, beta)
    yield "tversky", off(found, references.counted_tversky(p, y, alpha, beta) if y.any() else 0)


def _check_empty(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    """Compare the chance of an empty truth, and the expected Dice if it is not."""
    statistics = source_of(drawn).dice_statistics()
    exact = references.probabilities(p)
    empty = (1 - exact).prod()
    yield "chance of empty", off(probability_of_empty(statistics), empty)
    some = -np.expm1(np.log1p(-exact[exact < 1]).sum()) if (exact < 1).all() else Exact(1)
    if some > _SMALL and y.any():
        found = expected_dice(statistics) / probability_of_foreground(statistics)
        yield "expected if not empty", off(found, references.idc(p, y) / some)


def _check_losses(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    pairs = {
        "dice": (st.dice, 1.0),
        "iou": (st.iou, None),
        "f-beta": (lambda *masks: st.f_beta(*masks, beta=2.0), 2.0),
    }
    hits, false = np.count_nonzero(y & drawn.truth), np.count_nonzero(y & ~drawn.truth)
    missed = np.count_nonzero(~y & drawn.truth)
    for name, (score, beta) in pairs.items():
        alpha = 1.0 if beta is None else 1.0 / (1.0 + beta**2)
        errors = alpha * false + (1.0 if beta is None else 1.0 - alpha) * missed
        yield name, off(score(drawn.truth, y), hits / (hits + errors) if hits else 0.0)


def _check_boxes(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    sides = (1, 2, 5, 10)
    found, u = largest_box_sums(source_of(drawn).entropy_map(), sides), references.entropies(p)
    pairs = zip(found, sides, strict=True)
    yield "boxes", max(off(-largest, references.pla_of(u, side)) for largest, side in pairs)


def _check_observed(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    """Compare TLA and SDC* from observations, as tuning curves take them."""
    case = Prediction(drawn.p, mask=drawn.mask, threshold=drawn.threshold)
    level, weighted = ThresholdLevel(drawn.tau), TunedSoftDice(drawn.weight)
    found = level.score_observation(level.observe(case))
    yield "tla", _off_tla(found, p, drawn.tau, references.tla(p, drawn.tau))
    yield "sdc-tuned", off(weighted.score_observation(weighted.observe(case)), known[0]["sdc-tuned"])


def _check_best_mask(drawn: DrawnMap, p: Any, y: Any, known: Any) -> Checks:
    """Compare the Dice-optimal mask with the masks of all sizes."""
    exact = np.asarray(references.probabilities(p).ravel(), np.float64)
    if exact.size > _MOST_DECODED or not exact.any():
        return
    values = references.expected_by_size(exact)
    found = st.dice_optimal_mask(drawn.p)
    k = np.count_nonzero(exact >= found.threshold)
    yield "k of the best mask", off(found.k, k)
    yield "best mask", max(off(found.confidence, values.max()), off(values[k - 1], values.max()))


_MORE: tuple[Callable[..., Checks], ...] = (
    _check_alone,
    _check_tversky,
    _check_empty,
    _check_losses,
    _check_boxes,
    _check_observed,
    _check_best_mask,
)


def check_table(drawn: DrawnTable, rng: np.random.Generator) -> Checks:
    """Compare the curve of a table of cases, its areas and points, and one of two more things."""
    curve = st.risk_coverage_curve(drawn.confidence, drawn.loss, weights=drawn.weights)
    loss = drawn.loss.astype(Exact)
    weights = None if drawn.weights is None else drawn.weights.astype(Exact)
    points = brute.points(drawn.confidence, loss, weights)
    yield from _check_points(curve, points)
    yield from _check_areas(curve, points, (drawn, loss, weights))
    yield from _check_readings(curve, points, drawn)
    yield from (_check_failures if rng.random() < 0.5 else _check_p_values)(drawn)


def _check_points(curve: Any, points: Any) -> Checks:
    same = len(curve.risks) == points.shape[1]
    for name, reference in zip(("coverages", "risks", "thresholds"), points[:, 1:], strict=True):
        found = getattr(curve, name)[1:]
        errors = abs(found - reference) / np.maximum(abs(reference), _SMALL) if same else np.inf
        yield name, float(np.max(errors))


def _areas_of(confidence: Any, loss: Any, weights: Any) -> dict[str, Any]:
    """Give the areas of all conventions the slow way."""
    coverages, risks, _ = brute.points(confidence, loss, weights)
    return {
        "paper": brute.area(coverages, risks),
        "plugin": brute.plugin(confidence, loss, weights),
        "trapezoid-from-first": brute.area(coverages[1:], risks[1:]),
    }


def _check_areas(curve: Any, points: Any, case: tuple[DrawnTable, Any, Any]) -> Checks:
    drawn, loss, weights = case
    areas, oracles = (_areas_of(each, loss, weights) for each in (drawn.confidence, -loss))
    yield "area: generalised", off(curve.augrc, brute.generalised(points[0], points[1]))
    n = np.count_nonzero(np.ones(loss.size) if weights is None else weights)
    for name in CONVENTIONS:
        area, oracle = areas[name], oracles[name]
        whole = points[1, -1]
        random = whole * (1 - Exact(1) / n) if name == "trapezoid-from-first" else whole
        yield f"area: {name}", off(curve.area(name), area, whole)
        yield f"oracle: {name}", off(curve.oracle.area(name), oracle, whole)
        yield "random", off(curve.random_area(name), random)
        yield f"excess: {name} (of the area)", off(curve.excess(name), area - oracle, whole)
        gap = random - oracle
        placed = (area - oracle) / gap if gap > 1e-12 * random else Exact(0)
        error = off(curve.normalised(name), placed, max(abs(placed), 1))
        yield f"normalised: {name} (of the gap)", float(error * min(gap / random, 1) if random > 0 else error)


def _check_readings(curve: Any, points: Any, drawn: DrawnTable) -> Checks:
    """Compare the curve at a coverage, at a risk and at a threshold."""
    (coverages, risks, thresholds), (coverage, share) = points, drawn.asked
    at = np.flatnonzero(coverages >= coverage * (1 - 1e-12))[0]
    yield "risk at a coverage", off(curve.risk_at_coverage(coverage), risks[at])
    for target in (share * curve.full_risk, float(curve.risks[-1]), float(np.median(curve.risks))):
        reached = np.flatnonzero(risks[1:] <= Exact(target) * (1 + 1e-12))
        found = curve.coverage_at_risk(target)
        expected = float(coverages[1 + reached[-1]]) if reached.size else -1.0
        yield "coverage at a risk", off(-1.0 if found is None else found, expected)
    threshold = float(np.median(drawn.confidence / 2) * 2)
    found = curve.at_threshold(threshold)
    accepted = np.flatnonzero(thresholds >= threshold)
    yield "threshold", off(found.coverage, coverages[accepted[-1]])


def _check_failures(drawn: DrawnTable) -> Checks:
    found = st.failure_detection(drawn.confidence, drawn.loss, cutoff=drawn.cutoff)
    failed = (drawn.loss > 1 - drawn.cutoff) & (1 - drawn.loss < drawn.cutoff)
    both = 0 < failed.sum() < failed.size
    slow = {"auroc": brute.auroc, "aupr": brute.average_precision, "false alarms": brute.false_alarms}
    for name, score in slow.items():
        value = found.fpr_at_95_tpr if name == "false alarms" else getattr(found, name)
        yield name, off(value, score(drawn.confidence, failed) if both else np.nan)
    dice = 1 - drawn.loss
    constant = np.ptp(drawn.confidence / 4) == 0 or np.ptp(dice) == 0
    pairs = {
        "spearman": (brute.ranks(drawn.confidence), brute.ranks(dice)),
        "pearson": (drawn.confidence, dice),
    }
    for name, pair in pairs.items():
        yield (
            f"{name} (absolute)",
            off(getattr(found, name), np.nan if constant else brute.correlation(*pair), 1.0),
        )


def _check_p_values(drawn: DrawnTable) -> Checks:
    target, delta, loss = 0.1 + 0.2 * drawn.cutoff, 0.05, drawn.loss
    fortunes = [
        np.prod(np.maximum(1 - Exact(stake) * (loss - Exact(target)), 0))
        for stake in betting_stakes(loss.size, target, delta)
    ]
    yield (
        "betting",
        off(betting_p_value(loss, target, delta), min(1 / max(np.mean(fortunes), Exact(_SMALL)), 1)),
    )
    tails = _tails(loss.size, target)
    mean = min(loss.astype(Exact).mean(), Exact(target))
    odds = [(mean, Exact(target)), (1 - mean, 1 - Exact(target))]
    hoeffding = np.exp(-loss.size * sum(a * np.log(a / b) for a, b in odds if a > 0))
    bentkus = np.exp(Exact(1)) * tails[int(np.ceil(np.round(loss.sum(), 9)))]
    yield "hoeffding-bentkus", off(hoeffding_bentkus_p_value(loss, target, delta), min(1, hoeffding, bentkus))
    if np.isin(loss, (0.0, 1.0)).all():
        yield "binomial", off(binomial_p_value(loss, target, delta), tails[int(loss.sum())])


def _tails(n: int, target: float) -> Any:
    """Give the chances of at most 0, 1, … n hits in n throws."""
    return np.cumsum(references.poisson_binomial(np.full(n, target, Exact)))
