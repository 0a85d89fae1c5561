"""What a policy promises, what it does to these cases, and whether they look like those it was made with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from segtrust.policy import Policy, PolicyStatus
from segtrust.report.html.choosing import kept_and_deferred
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.standing import Comparison, observed_risks
from segtrust.report.html.words import UNNAMED, counted, is_or_are, listed, percent, set_name
from segtrust.risks import describe_loss

__all__ = ["promises_of"]


def promises_of(run: ReportedRun) -> Iterator[Html]:
    """Give a box for each policy, then what the comparison with its calibration cases says of each set."""
    for structure, policy in run.policies.items():
        yield _promise(structure, policy, run)
    yield from _comparisons(run)


def _promise(structure: str, policy: Policy, run: ReportedRun) -> Html:
    """Say what a policy promises, of which sets that is in doubt, and what it does to these cases."""
    doubted = [
        set_name(name)
        for name, of_set in run.compared.items()
        if structure in of_set and of_set[structure].alarm
    ]
    is_certified = policy.status is PolicyStatus.CERTIFIED
    but = f", {'but ' if is_certified else ''}in doubt for {listed(doubted)}" if doubted else ""
    return tag(
        "div",
        tag("h3", f"What the threshold promises: {policy.status}{but}"),
        tag("p", str(policy)),
        tag("ul", *_kept(structure, policy, run)),
        class_=f"promise {'certified' if is_certified and not doubted else 'estimated'}",
    )


def _kept(structure: str, policy: Policy, run: ReportedRun) -> Iterator[Html]:
    """Say for each set what is accepted, and whether it is as good as was promised."""
    for name, of_set in run.compared.items():
        if structure not in of_set:
            continue
        rows = [row for row in run.rows if row["set"] == name and structure in ("", row["structure"])]
        accepted, _ = kept_and_deferred(rows, run)
        number = len(accepted)
        share = percent(number / len(rows))
        head = "All cases" if name == UNNAMED else name
        text = f"{head}: {number:,} of {len(rows):,} {is_or_are(number)} accepted ({share})"
        yield tag(
            "li", text, *_observed(accepted, policy, run), ". ", *_known(of_set[structure], policy, run)
        )


def _observed(accepted: Sequence[dict[str, Any]], policy: Policy, run: ReportedRun) -> Iterator[Html]:
    """Say of each limit whether the accepted cases keep it; nothing where no truth is known."""
    whose = "its" if len(accepted) == 1 else "their"
    observed = observed_risks(accepted, policy, run.loss_name)
    checked = [found.target for found in observed]
    for target in policy.targets if run.sets and accepted else ():
        if target not in checked:
            loss = describe_loss(target.loss) if target.loss else "a loss that the policy does not name"
            yield joined(
                f"; the limit of {target.risk:g} is on {loss} and cannot be checked with these cases"
            )
    for found in observed:
        limit = found.target
        ends = "" if policy.evidence.patients else f" (95% interval {found.low:.3f} to {found.high:.3f})"
        told = "within" if found.is_kept else tag("span", "above", class_="above")
        yield joined(
            f"; {whose} {limit.quantity} is {found.risk:.3f}{ends}, ", told, f" the limit of {limit.risk:g}"
        )


def _known(found: Comparison, policy: Policy, run: ReportedRun) -> Iterator[Html | str]:
    """Say how many of these very cases the policy was made with, and what it does to the others alone."""
    if not found.is_known:
        yield "Whether the policy was calibrated with these cases is not known."
    elif found.seen and not found.new:
        yield "The policy was calibrated with these very cases, so this is no test of it."
    elif found.seen:
        accepted, _ = kept_and_deferred(found.others, run)
        number = len(accepted)
        yield f"The policy was calibrated with {found.seen:,} of them, which are no test of it. Of the other "
        yield f"{found.new:,}, {number:,} {is_or_are(number)} accepted"
        yield from _observed(accepted, policy, run)
        yield "."


def _comparisons(run: ReportedRun) -> Iterator[Html]:
    """Say of each set whether its new cases look like those of the calibration."""
    every = [found for of_set in run.compared.values() for found in of_set.values()]
    if every and not any(found.has_reference for found in every):
        text = "No drift check: the calibration confidences are not beside the policy."
        yield tag("p", text, class_="calm")
        return
    for name, of_set in run.compared.items():
        for structure, found in of_set.items():
            yield _compared(run.name_of(name, structure) if structure else set_name(name), found)


def _compared(of_what: str, found: Comparison) -> Html:
    left = f" {counted(found.seen, 'calibration case')} left out." if found.seen else ""
    if found.test is None:
        return tag("p", tag("strong", f"No drift check, {of_what}: "), _untested(found), class_="calm")
    after = " What the policy says no longer holds for such cases." if found.alarm else ""
    return tag(
        "p",
        tag("strong", f"{of_what}: "),
        found.test.explain() + left + after,
        class_="alarm" if found.alarm else "calm",
    )


def _untested(found: Comparison) -> str:
    """Say why new cases were not compared with those of the calibration."""
    if not found.has_reference:
        return "the calibration confidences are not known."
    if not found.new:
        return f"the policy was calibrated with all {counted(found.cases, 'case')}, and none is new."
    left = f"; {counted(found.seen, 'calibration case')} left out" if found.seen else ""
    return f"{counted(found.new, 'new case')} cannot be compared with those of the calibration{left}."
