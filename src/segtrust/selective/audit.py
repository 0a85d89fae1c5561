"""Audits of accepted cases, which show whether a guarantee is kept once the policy is in use.

Some accepted cases are drawn at random, a person judges them, and `AuditBound` is told their losses one by
one. It keeps an upper and a lower bound on the mean loss (or the failure rate) of all accepted cases, which
may be looked at after every case, and the audit may be stopped at any time, for any reason.

Why this is allowed. Suppose that the mean loss were m or more. A gambler who bets on low losses multiplies
the capital, which starts at 1, by 1 + λ(m − loss) for each audited case, with a stake λ between 0 and
1/(1 − m), so that the capital never becomes negative. Whatever the past, the expected loss of the next case
is at least m, so the expected capital does not grow: the game is unfavourable. By Ville's inequality, the
capital then *ever* reaches 1/δ with probability at most δ, however long the game lasts. So as soon as it
reaches 1/δ, the value m is ruled out for good. The upper bound is the lowest m that is ruled out. It is below
the true mean only if a value at or below the true mean was ruled out, which has probability at most δ. The
lower bound is the same game with one minus the losses. The alarm "the guarantee is broken" is the moment at
which the target itself is ruled out as too low; if the guarantee holds, this ever happens with probability at
most α.

Stakes. Nobody knows the best stake in advance, so the capital is shared among gamblers with different
stakes, each of which is fixed before the first case. Together they play a game of the same kind, so the
argument above holds, and they end up with at least a fixed share of what the best of them alone would have.
For losses of 0 and 1, the capital of the gambler with the stake c/(1 − m) is the likelihood ratio of the
failure rates m(1 − c) and m, so nothing is lost by betting, and only the number of failures matters.

Audits without replacement. If a batch of N accepted cases is audited case by case, and only the mean of this
batch matters (``population=N``), the losses seen so far tell something about the others. If the mean of all N
cases is m, the expected loss of the next case is (N m − sum of losses so far) / (cases left), and each bet is
made against this value (Waudby-Smith and Ramdas 2020). The bounds are exact once all N cases are audited.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_count, check_delta, check_fraction, check_seed, check_whole
from segtrust._display import Displayed
from segtrust._files import check_format, check_keys, naming_errors, rebuild
from segtrust._optional import require
from segtrust._storage import Storable
from segtrust._types import VectorLike
from segtrust.errors import ParameterError
from segtrust.selective.plan import POWER, draw_failures, draw_losses
from segtrust.selective.seen import check_ids
from segtrust.selective.targets import Target, describe_confidence
from segtrust.selective.vectors import check_dice, check_losses

if TYPE_CHECKING:
    from pandas import DataFrame

_FORMAT = "segtrust-audit-1"
_KEYS = ("format", "target", "delta", "alpha", "population", "losses")

_STEP = 0.0005
"""Distance of the candidate means: bounds are multiples of it, or the target."""

_SMALLEST = 1e-6
"""Distance from 0 and 1 at which a target is still a candidate of its own."""

_UPPER_STAKES = 1.0 / (1.0 + np.exp(-np.linspace(-2.0, 4.0, 13)))
"""Stakes of the gamblers who bet on low losses, as shares of the largest stake allowed: 0.12 to 0.98."""

_LOWER_STAKES = 1.0 / (1.0 + np.exp(-np.linspace(-5.0, 0.0, 11)))
"""Stakes of the gamblers who bet on high losses: 0.007 to 0.5. A failure rate of twice a small target τ is
found fastest with a share of about τ."""

_TRIALS = 1000
"""Simulated audits of a plan."""

_MOST_CASES = 1 << 14
"""Largest number of audited cases that a plan considers."""

_CASES_AT_A_TIME = 128


def _factors(values: Any, mean: Any, stakes: Any) -> Any:
    """Return the factor by which each value multiplies the capital of each gambler (along the last axis).

    The gamblers bet that the mean of the values, which are in [0, 1], is below ``mean``.
    """
    return 1.0 + np.multiply.outer((mean - values) / (1.0 - mean), stakes)


class _UpperSide:
    """Candidate means that are not ruled out yet, and the capital of each gambler against each of them.

    The capital grows with the candidate, so that those ruled out are always the largest ones.
    """

    def __init__(self, candidates: Any, stakes: Any, level: float, population: int | None) -> None:
        self._candidates = candidates
        self._stakes = stakes
        self._limit = 1.0 / level
        self._population = population
        self._capitals = np.ones((candidates.size, stakes.size))
        self._n, self._total = 0, 0.0

    @property
    def left(self) -> int:
        """Number of candidates that are not ruled out; they are the smallest ones."""
        return int(self._candidates.size)

    def add(self, value: float) -> None:
        """Bet on the next value."""
        means, N = self._candidates, self._population  # noqa: N806
        if N is not None:  # the mean of the cases left; one that is below 0 is never ruled out any more
            means = np.clip((N * means - self._total) / (N - self._n), 0.0, 1.0 - 1e-12)
        self._capitals *= _factors(value, means, self._stakes)
        self._n, self._total = self._n + 1, self._total + value
        ruled_out = self._capitals.mean(axis=1) >= self._limit
        if N is not None:  # even losses of 1 in all cases left would not reach these means
            ruled_out |= N * self._candidates - self._total > N - self._n + 1e-9
        if ruled_out.any():
            first = int(ruled_out.argmax())
            self._candidates, self._capitals = self._candidates[:first], self._capitals[:first]


@dataclass(frozen=True)
class AuditState:
    """State of an audit after a case.

    Attributes
    ----------
    n
        Number of audited cases.
    mean
        Their mean loss or share of failures; ``None`` before the first case.
    lower, upper
        Bounds on the mean loss or failure rate of all accepted cases. ``upper`` never rises and ``lower``
        never falls.
    confirmed
        Whether ``upper`` is at most the target.
    alarm
        Whether the data show that the guarantee is broken; an alarm does not go away.
    alarmed_at
        Number of audited cases after which this was first the case, or ``None``.
    """

    n: int
    mean: float | None
    lower: float
    upper: float
    confirmed: bool
    alarm: bool
    alarmed_at: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return all values, ready for JSON."""
        return asdict(self)


class AuditBound(Displayed, Storable):
    """Running audit of accepted cases: bounds on their risk that are valid at any time, and an alarm.

    The audited cases must be drawn at random from the accepted cases, and be passed in the order in which
    they were drawn: with replacement, or from a stream of cases whose expected loss does not change, or
    without replacement from a batch of known size (``population``). `draw_audit` draws them. Cases that are
    chosen by a person, or audited in the order of their confidence, make the bounds wrong.

    If ``lower`` ever exceeds ``upper``, the losses were not draws of this kind: most likely, the risk has
    changed during the audit.

    Parameters
    ----------
    target
        Guarantee to be checked: a limit on the mean loss, or a `Target` with ``below_dice`` for a failure
        rate; ``None`` for bounds without a guarantee.
    delta
        Upper limit on the probability that ``upper`` is ever below the true risk.
    alpha
        Upper limit on the probability that an alarm is ever raised although the guarantee holds, and that
        ``lower`` is ever above the true risk.
    population
        Number of accepted cases, if they are audited without replacement and the bounds shall be about the
        mean of these cases. By default the bounds are about the expected loss of any accepted case.

    Examples
    --------
    >>> audit = AuditBound(Target(0.10, below_dice=0.8))
    >>> state = audit.extend(dice=[0.93, 0.88, 0.91, 0.95] * 10)
    >>> audit.confirmed, audit.upper
    (True, 0.092)
    >>> print(audit.explain())
    Audit of 40 accepted cases: failure rate at most 9.2 % (95 % confidence). The guarantee (at most 10 %) is
    confirmed.
    >>> audit = AuditBound(Target(0.10, below_dice=0.8))
    >>> audit.extend([0, 1, 0, 0, 1, 0, 1, 1, 0, 1]).alarmed_at  # verdicts: 1 is a failure
    10
    """

    _format = _FORMAT

    def __init__(
        self,
        target: Target | float | None = None,
        *,
        delta: float = 0.05,
        alpha: float = 0.05,
        population: int | None = None,
    ) -> None:
        self.target = target if isinstance(target, Target | None) else Target(target)
        self.delta = check_delta(delta)
        self.alpha = check_fraction(alpha, "alpha", open_ends=True)
        self.population = None if population is None else check_count(population, "population")
        grid = np.arange(1, round(1.0 / _STEP)) * _STEP
        if self.target is not None and _SMALLEST <= self.target.risk <= 1.0 - _SMALLEST:
            grid = np.union1d(grid[np.abs(grid - self.target.risk) > 1e-9], self.target.risk)
        self._grid = grid
        self._above = _UpperSide(grid, _UPPER_STAKES, self.delta, self.population)
        self._below = _UpperSide(1.0 - grid[::-1], _LOWER_STAKES, self.alpha, self.population)
        self._losses: list[float] = []
        confirmed = self.target is not None and self.target.risk == 1.0
        self._states = [AuditState(0, None, 0.0, 1.0, confirmed, False, None)]

    @property
    def state(self) -> AuditState:
        """The current state."""
        return self._states[-1]

    @property
    def history(self) -> tuple[AuditState, ...]:
        """The state after each audited case."""
        return tuple(self._states[1:])

    @property
    def upper(self) -> float:
        """Upper bound on the mean loss or failure rate of all accepted cases."""
        return self.state.upper

    @property
    def lower(self) -> float:
        """Lower bound on the mean loss or failure rate of all accepted cases."""
        return self.state.lower

    @property
    def confirmed(self) -> bool:
        """Whether the upper bound is at most the target."""
        return self.state.confirmed

    @property
    def alarm(self) -> bool:
        """Whether the data show that the guarantee is broken."""
        return self.state.alarm

    def explain(self) -> str:
        """Return the result in plain words."""
        state = self.state
        if not state.n:
            return "No accepted case has been audited yet."
        is_rate = (
            set(self._losses) <= {0.0, 1.0} if self.target is None else self.target.below_dice is not None
        )
        name = "failure rate" if is_rate else "mean loss" if self.target is None else self.target.quantity
        low, high = (_format_risk(end, is_rate=is_rate) for end in (state.lower, state.upper))
        bound, error = (f"at least {low}", self.alpha) if state.alarm else (f"at most {high}", self.delta)
        cases = f"{state.n} accepted case" + "s" * (state.n > 1)
        text = f"Audit of {cases}: {name} {bound} ({describe_confidence(error)})."
        if state.n == self.population and state.mean is not None:  # nothing is left to be estimated
            text = f"Audit of all {cases}: {name} {_format_risk(state.mean, is_rate=is_rate)}."
        if self.target is None:
            return text
        result = "neither confirmed nor contradicted yet"
        if state.n == self.population:
            result = "confirmed" if state.confirmed else "broken"
        elif state.alarm:
            result = "broken"
        elif state.confirmed:
            result = "confirmed"
        limit = _format_risk(self.target.risk, is_rate=is_rate)
        return f"{text} The guarantee (at most {limit}) is {result}."

    def _shown(self) -> dict[str, Any]:
        state = self.state
        shown: dict[str, Any] = {"n": state.n, "mean": state.mean, "lower": state.lower, "upper": state.upper}
        if self.target is not None:
            shown |= {"target": self.target.risk, "confirmed": state.confirmed, "alarm": state.alarm}
        return shown | {"delta": self.delta, "alpha": self.alpha}

    def _caption(self) -> str:
        return self.explain()

    def to_dataframe(self) -> DataFrame:
        """Return the state after each audited case as a pandas table, one row per case."""
        columns = [attribute.name for attribute in fields(AuditState)]
        rows = [asdict(state) for state in self.history]
        return require("pandas", extra="tables").DataFrame(rows, columns=columns)

    def update(self, loss: float | None = None, *, dice: float | None = None) -> AuditState:
        """Add the next audited case and return the new state; a value that is rejected changes nothing.

        Parameters
        ----------
        loss
            Loss of the case in [0, 1], or its verdict: 1 for a failure, 0 for a success. If the target is
            about failures, a loss counts as 1 if one minus the loss is below ``below_dice``, else as 0.
        dice
            Dice of the case in [0, 1], instead of the loss.
        """
        return self.extend(None if loss is None else [loss], dice=None if dice is None else [dice])

    def extend(self, losses: VectorLike | None = None, *, dice: VectorLike | None = None) -> AuditState:
        """Add several audited cases in the order in which they were drawn; if one is rejected, none is added.

        Parameters
        ----------
        losses
            Loss of each case in [0, 1], or its verdict: 1 for a failure, 0 for a success.
        dice
            Dice of each case in [0, 1], instead of the losses.
        """
        if (losses is None) == (dice is None):
            raise ParameterError("loss, dice: expected exactly one of them. The loss is 1 - Dice.")
        given: Any = losses if dice is None else dice
        n = len(given)
        if n == 0:
            return self.state
        values = check_losses(given, n, unit=True) if dice is None else 1.0 - check_dice(given, n)
        n += len(self._losses)
        if self.population is not None and n > self.population:
            raise ParameterError(
                f"population: expected at most {self.population} audited cases, got {n}. Audit no case twice."
            )
        limited = values if self.target is None else self.target.losses(values)
        for value in limited.tolist():
            self._add(value)
        return self.state

    def _add(self, loss: float) -> None:
        self._losses.append(loss)
        self._above.add(loss)
        self._below.add(1.0 - loss)
        last, n, size = self.state, len(self._losses), self._grid.size
        upper = float(self._grid[self._above.left]) if self._above.left < size else 1.0
        ruled_out = size - self._below.left
        lower = float(self._grid[ruled_out - 1]) if ruled_out else 0.0
        mean = math.fsum(self._losses) / n
        confirmed = alarm = False
        if self.target is not None:
            limit = self.target.risk
            alarm = last.alarm or (lower >= limit if limit > 0.0 else loss > 0.0)
            confirmed = (mean if n == self.population else upper) <= limit + 1e-9
        alarmed_at = last.alarmed_at or (n if alarm else None)
        if n == self.population:
            lower = upper = mean
        self._states.append(AuditState(n, mean, lower, upper, confirmed, alarm, alarmed_at))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the audit."""
        return {
            "format": _FORMAT,
            "target": None if self.target is None else asdict(self.target),
            "delta": self.delta,
            "alpha": self.alpha,
            "population": self.population,
            "losses": list(self._losses),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "audit") -> Self:
        """Rebuild what `to_dict` returned; the next case gets the same state as without the interruption.

        `SavedStateError` names the source and the value that is missing, unknown or out of range.
        """
        check_format(saved, _FORMAT, source)
        values = check_keys(saved, _KEYS, source)
        with naming_errors(source):
            target = None if values["target"] is None else rebuild(Target, values["target"], source)
            audit = cls(target, **{name: values[name] for name in ("delta", "alpha", "population")})
            audit.extend(values["losses"])
        return audit


def _format_risk(risk: float, *, is_rate: bool) -> str:
    return f"{100.0 * risk:.4g} %" if is_rate else f"{risk:.4g}"


def draw_audit(
    ids: Sequence[Any], n: int | None = None, *, share: float | None = None, seed: int | str
) -> list[Any]:
    """Draw accepted cases for an audit at random, without replacement, in the order of their audit.

    Each id gets a random number in [0, 1): a hash (SHA-256) of the seed and the id as text. The cases with
    the lowest numbers are drawn, lowest first. The same seed and ids give the same answer on every machine,
    in whatever order the ids come. With ``share``, whether a case is drawn does not depend on the others.

    Fix and record the seed before anyone judges a case. Audit the cases in the order returned: if the audit
    stops early, those audited so far are a random sample too.

    Parameters
    ----------
    ids
        Id of each accepted case; all different.
    n
        Number of cases to draw.
    share
        Probability with which each case is drawn, instead of ``n``.
    seed
        Random seed: a number, or a text such as the checksum of a policy.

    Examples
    --------
    >>> draw_audit(["a", "b", "c", "d", "e"], 2, seed=1)
    ['d', 'b']
    >>> len(draw_audit(range(1000), share=0.1, seed="2f7a"))
    111
    """
    if (n is None) == (share is None):
        raise ParameterError("n, share: expected exactly one of them.")
    names = check_ids(ids, len(ids))
    salt = seed if isinstance(seed, str) else str(check_whole(seed, "seed"))
    texts = (f"{salt}\n{name}".encode("utf-8", "surrogatepass") for name in names)
    numbers = [int.from_bytes(hashlib.sha256(text).digest()[:8], "big") / 2.0**64 for text in texts]
    order = sorted(range(len(names)), key=lambda at: (numbers[at], names[at]))
    if n is not None:
        chosen = order[: check_whole(n, "n", most=len(names))]
    else:
        limit = check_fraction(share, "share")
        chosen = [at for at in order if numbers[at] < limit]
    return [ids[at] for at in chosen]


@dataclass(frozen=True, repr=False)
class AuditPlan(Displayed):
    """Number of audited cases required.

    Attributes
    ----------
    confirm
        Number after which the guarantee is confirmed with probability ``power``, if the risk of the accepted
        cases is ``expected_risk``; ``None`` if no number is enough.
    detect
        Number after which a broken guarantee is detected with probability ``power``, if their risk is
        ``broken_risk``; ``None`` if no number is enough.
    expected_risk, broken_risk
        The two risks that were assumed.
    power
        The probability of either.
    reason
        The result in words.
    """

    confirm: int | None
    detect: int | None
    expected_risk: float
    broken_risk: float
    power: float
    reason: str

    def _shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"confirm": self.confirm, "detect": self.detect}
        shown |= {"expected_risk": self.expected_risk, "broken_risk": self.broken_risk}
        return shown | {"power": self.power}

    def _caption(self) -> str:
        return self.reason

    def __str__(self) -> str:
        """Return the result in words."""
        return self.reason


def audit_plan(
    target: Target | float,
    expected_risk: float,
    *,
    broken_risk: float | None = None,
    spread: float | None = None,
    delta: float = 0.05,
    alpha: float = 0.05,
    power: float = POWER,
    seed: int = 0,
) -> AuditPlan:
    """Return how many accepted cases an audit needs, by simulation of `AuditBound`.

    Parameters
    ----------
    target
        Guarantee to be checked: a limit in (0, 1) on the mean loss, or a `Target` with ``below_dice`` for a
        failure rate.
    expected_risk
        Expected mean loss or failure rate of the accepted cases. The closer to the target, the more cases are
        needed to confirm the guarantee.
    broken_risk
        Risk that shall be detected if the guarantee is broken; by default twice the target, or halfway
        between the target and 1 if that is less.
    spread
        Standard deviation of the losses; by default equal to their mean, or as large as possible if that is
        less. Not used for failures, which are 0 or 1.
    delta
        Error probability of the upper bound, as it will be passed to `AuditBound`.
    alpha
        Probability of a false alarm, as it will be passed to `AuditBound`.
    power
        Probability of confirming, and of detecting.
    seed
        Random seed of the simulation.

    Returns
    -------
    AuditPlan
        From 1,000 simulated audits; accurate to a few per cent.

    Examples
    --------
    >>> plan = audit_plan(Target(0.10, below_dice=0.8), 0.04)
    >>> plan.confirm < audit_plan(Target(0.10, below_dice=0.8), 0.06).confirm
    True
    >>> audit_plan(0.10, 0.12).confirm is None
    True
    """
    target = target if isinstance(target, Target) else Target(target)
    limit, is_rate = target.risk, target.below_dice is not None
    if not _SMALLEST <= limit <= 1.0 - _SMALLEST:
        raise ParameterError(
            f"target: expected a limit in [{_SMALLEST:g}, 1 - {_SMALLEST:g}], got {limit:g}. A risk of 0 "
            "cannot be confirmed, and a limit of 1 always holds."
        )
    expected = check_fraction(expected_risk, "expected_risk")
    broken = min(2.0 * limit, (1.0 + limit) / 2.0)
    broken = broken if broken_risk is None else check_fraction(broken_risk, "broken_risk")
    if broken <= limit:
        raise ParameterError(f"broken_risk: expected a risk above the target, {limit:g}, got {broken:g}.")
    check_fraction(power, "power", open_ends=True)
    check_fraction(alpha, "alpha", open_ends=True)
    check_delta(delta)
    check_seed(seed)

    def count_cases(risk: float, sign: int, stakes: Any, level: float) -> int | None:
        """Return after how many cases the target is ruled out from above (sign 1) or from below (-1)."""
        draw = draw_failures(risk) if is_rate else draw_losses(risk, spread)
        rng = np.random.default_rng(seed)
        mean, capitals = (limit if sign > 0 else 1.0 - limit), np.ones((_TRIALS, 1, stakes.size))
        passed_at = np.full(_TRIALS, np.inf)
        for done in range(0, _MOST_CASES, _CASES_AT_A_TIME):
            losses = draw(rng, (_TRIALS, _CASES_AT_A_TIME))[0]  # type: ignore[arg-type]
            values = losses if sign > 0 else 1.0 - losses
            with np.errstate(over="ignore"):  # of audits that have long been decided
                capitals = capitals[:, -1:] * np.cumprod(_factors(values, mean, stakes), axis=1)
            passed = capitals.mean(axis=2) >= 1.0 / level
            first = np.where(passed.any(axis=1), done + 1 + passed.argmax(axis=1), np.inf)
            passed_at = np.minimum(passed_at, first)
            if np.isfinite(passed_at).mean() >= power:
                return int(np.quantile(passed_at, power, method="inverted_cdf"))
        return None

    confirm = count_cases(expected, 1, _UPPER_STAKES, delta) if expected < limit else None
    detect = count_cases(broken, -1, _LOWER_STAKES, alpha)
    name, chance = "failure rate" if is_rate else target.quantity, f"a {100.0 * power:g} % chance"
    low, high, most = (_format_risk(risk, is_rate=is_rate) for risk in (expected, broken, limit))
    goals = (
        (confirm, f"confirming the guarantee (at most {most}) if the {name} is {low}"),
        (detect, f"detecting that it is broken if the {name} is {high}"),
    )
    sentences = [
        f"About {needed} audited cases give {chance} of {goal}."
        if needed is not None
        else f"More than {_MOST_CASES} audited cases are needed for {chance} of {goal}."
        for needed, goal in goals
    ]
    if expected >= limit:
        sentences[0] = f"No number of cases confirms the guarantee (at most {most}) if the {name} is {low}."
    return AuditPlan(confirm, detect, expected, broken, power, " ".join(sentences))
