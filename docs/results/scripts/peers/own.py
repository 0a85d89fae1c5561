"""segtrust's side of the comparison, and the rules that were read: nothing else has to be installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import segtrust as st
from docs.results.scripts.peers import empties, inputs, rules
from docs.results.scripts.peers.inputs import Scores
from docs.results.scripts.peers.tables import Table
from segtrust.selective import trace_curve

ORDERS = 200
"""Orders in which the tied table is handed over."""
DRAWS = 300
"""Calibration sets that are drawn from the population."""
CASES, REFERENCES = 300, 1000
LARGE = 200_000
TARGETS = {
    "mean loss at most 0.12": st.Target(0.12),
    "Dice below 0.85 in at most 0.25": st.Target(0.25, below_dice=inputs.FAILED_BELOW),
}
DELTA = 0.05
PROCEDURE = st.Procedure()

Area = Callable[[Any, Any], float]


def areas() -> Table:
    """Give each rule's area of the embedded table; the loss is one minus Dice, so only three packages can."""
    sets = [(name, estimator) for name in ("ID", "bright") for estimator in ("sdc", "amsp")]
    header = ("rule", *(f"{name}, {estimator}" for name, estimator in sets))
    given = [inputs.nuclei(*each) for each in sets]
    rows = [(name, *(f"{area(s.confidence, s.loss):.4f}" for s in given)) for name, area in AREAS.items()]
    return Table("areas", header, tuple(rows))


def _own(convention: str) -> Area:
    return lambda confidence, loss: trace_curve(confidence, loss).area(
        convention
    )  # no warning: it may be bad


AREAS: dict[str, Area] = {
    "segtrust, `paper`": _own("paper"),
    "segtrust, `plugin`": _own("plugin"),
    "segtrust, `trapezoid-from-first`": _own("trapezoid-from-first"),
    "fd-shifts (read)": lambda c, loss: rules.fd_shifts_areas(c, loss)[0],
    "ValUES (read)": rules.values_aurc,
    "E-AURC, segtrust": lambda c, loss: trace_curve(c, loss).e_aurc,
    "E-AURC, ValUES (read)": rules.values_e_aurc,
    "E-AURC of the oracle, segtrust": lambda _, loss: st.risk_coverage_curve(-loss, loss).e_aurc,
    "E-AURC of the oracle, ValUES (read)": lambda _, loss: rules.values_e_aurc(-loss, loss),
    "AUGRC, segtrust": lambda c, loss: trace_curve(c, loss).augrc,
    "AUGRC, fd-shifts (read)": lambda c, loss: rules.fd_shifts_areas(c, loss)[1],
}

FAILURE_HEADER = ("package", "AURC", "AUGRC", "coverage at risk 0.05", "risk at coverage 0.8")


def failures() -> Table:
    """Give the figures of a loss of 0 or 1, which every neighbour with a curve can take; set ID, SDC."""
    given = inputs.nuclei("ID", "sdc")
    curve = trace_curve(given.confidence, given.failed)
    ends = (curve.augrc, curve.coverage_at_risk(0.05), curve.risk_at_coverage(0.8))
    rows = [
        (f"segtrust, `{name}`", f"{curve.area(name):.4f}", *(f"{each:.4f}" for each in ends))
        for name in ("paper", "plugin", "trapezoid-from-first")
    ]
    fd = rules.fd_shifts_areas(given.confidence, given.failed)
    rows.append(("fd-shifts (read)", f"{fd[0]:.4f}", f"{fd[1]:.4f}", "", ""))
    rows.append(("ValUES (read)", f"{rules.values_aurc(given.confidence, given.failed):.4f}", "–", "–", "–"))
    return Table("failures", FAILURE_HEADER, tuple(rows))


TIES_HEADER = ("rule", "smallest", "mean", "largest")


def ties(rules_of: dict[str, Callable[[Scores], float]] | None = None) -> Table:
    """Give the smallest, mean and largest area over many orders of one tied table; the loss is 0 or 1."""
    given, rng = inputs.tied(), np.random.default_rng(0)
    shuffled = [given.taken(rng.permutation(given.loss.size)) for _ in range(ORDERS)]
    found = {name: [area(each) for each in shuffled] for name, area in (rules_of or _tie_rules()).items()}
    rows = [(name, *(f"{of(got):.4f}" for of in (min, np.mean, max))) for name, got in found.items()]
    return Table("ties", TIES_HEADER, tuple(rows))


def _tie_rules() -> dict[str, Callable[[Scores], float]]:
    def on(area: Area) -> Callable[[Scores], float]:
        return lambda given: area(given.confidence, given.failed)

    named = {f"segtrust, `{name}`": on(_own(name)) for name in ("paper", "plugin", "trapezoid-from-first")}
    read = {
        "fd-shifts (read)": on(lambda c, loss: rules.fd_shifts_areas(c, loss)[0]),
        "ValUES (read)": on(rules.values_aurc),
    }
    return named | read


Finder = Callable[[Scores, Any, st.Target], float | None]
"""Calibration cases, reference confidences and a target in; a threshold, or none, out."""
PROMISE_HEADER = ("who, promise", "answers", "mean coverage", "broken")


def promises(of: dict[tuple[str, str], Finder] | None = None, draws: int = DRAWS) -> Table:
    """Draw calibration sets, and see how often a threshold is found, what it accepts and if it holds."""
    finders = of or {("segtrust", promise): certified for promise in TARGETS}
    whole = inputs.population(LARGE, seed=1)
    rows = [
        (f"{who}, {promise}", *_kept(find, TARGETS[promise], whole, draws))
        for (who, promise), find in finders.items()
    ]
    return Table("promises", PROMISE_HEADER, tuple(rows))


def certified(given: Scores, reference: Any, target: st.Target) -> float | None:
    """Find segtrust's threshold."""
    cases = st.CalibrationCases(given.confidence, given.loss, reference=reference)
    return st.certify(cases, [target], delta=DELTA, procedure=PROCEDURE).threshold


def _kept(find: Finder, target: st.Target, whole: Scores, draws: int) -> tuple[str, str, str]:
    curve = st.risk_coverage_curve(whole.confidence, target.losses(whole.loss))
    thresholds = [find(given, reference, target) for given, reference in calibration_sets(draws)]
    met = [curve.at_threshold(each) for each in thresholds if each is not None]
    coverage = sum(point.coverage for point in met) / draws  # nothing found accepts nothing
    broken = sum(point.risk > target.risk for point in met) / draws
    return f"{len(met) / draws:.3f}", f"{coverage:.3f}", f"{broken:.3f}"


def calibration_sets(draws: int = DRAWS) -> Iterator[tuple[Scores, Any]]:
    """Draw calibration cases, and confidences of others for candidate thresholds."""
    for seed in range(draws):
        drawn = inputs.population(CASES + REFERENCES, seed=1000 + seed)
        yield drawn.taken(slice(CASES)), drawn.confidence[CASES:]


def empty_masks() -> Table:
    """Give the Dice of empty masks under both policies."""
    policies = {f"segtrust, `{name}`": partial(st.dice, empty=name) for name in ("paper", "agree")}
    return empties.table(*(empties.answers(name, dice) for name, dice in policies.items()))


def tables() -> list[Table]:
    """Give all tables of segtrust's side."""
    return [areas(), failures(), ties(), promises(), empty_masks()]
