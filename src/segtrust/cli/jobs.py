"""How cases are scored, from options: estimators, recalibration, and the policies that decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segtrust.cli.options import DigestKind, ReadFlags
from segtrust.errors import ParameterError, PolicyError

if TYPE_CHECKING:
    from segtrust.calibration import Scaling
    from segtrust.confidence import ConfidenceEstimator
    from segtrust.engine import Policies, ScoreJob
    from segtrust.io import CaseFiles, Dataset, ScoreRow

__all__ = ["USUAL", "HowFlags", "Plan", "names_of", "plan_of"]

USUAL = "sdc,idc,amsp"
ALL = "all"


@dataclass
class HowFlags:
    """How cases are scored."""

    estimators: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas (also of `segtrust plugins`); 'all' for all that need no truths."
        ),
    ] = USUAL
    policy: Annotated[
        Path | None, typer.Option(help="Add what this policy decides: accept, defer, no finding.")
    ] = None
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; a policy's promise holds for its own.")
    ] = ""
    calibrate_maps: Annotated[
        Path | None, typer.Option(help="Recalibrate the maps first: a saved scaling (JSON).")
    ] = None
    empty: Annotated[
        str, typer.Option(help="What two empty masks are worth: 'paper' a Dice of 0, 'agree' of 1.")
    ] = "paper"
    digest: Annotated[DigestKind, typer.Option(help="Fingerprint of the maps' files.")] = DigestKind.QUICK


@dataclass(frozen=True)
class Plan:
    """What is done with each case, and who decides on it.

    Attributes
    ----------
    job
        Gives the rows of a case.
    policies
        By structure; none where nobody decides.
    policy_path
        The file that they are from.
    """

    job: ScoreJob
    policies: Policies = field(default_factory=dict)
    policy_path: Path | None = None

    def after(self, rows: Sequence[ScoreRow]) -> Plan:
        """Give the plan with policies as they stand for rows: not certified for another kind of masks."""
        from segtrust.engine import policies_for_rows, reference_path

        if self.policy_path is None:
            return self
        stand = policies_for_rows(self.policies, reference_path(self.policy_path), rows)
        return replace(self, policies=stand)

    def decided(self, rows: Sequence[ScoreRow]) -> Sequence[ScoreRow]:
        """Give the rows with decisions, where there are policies."""
        from segtrust.engine import decide_rows

        return decide_rows(self.policies)(rows) if self.policies else rows


def _policies(path: Path | None, predictor: str) -> Policies:
    """Read the policies, as they stand for a predictor; none where no file is given."""
    from segtrust.engine import load_policies

    found = {} if path is None else load_policies(path)
    return {name: policy.for_predictor(predictor) for name, policy in found.items()}


def plan_of(
    how: HowFlags,
    read: ReadFlags,
    cases: Sequence[CaseFiles],
    *,
    found: Dataset | None = None,
    drop_empty: bool = False,
) -> Plan:
    """Say what is done with each case; with policies as they were made with.

    Parameters
    ----------
    how, read
        What was asked for.
    cases
        That will be scored: some estimators need cases with several members.
    found
        Sets of cases that are judged together; then estimators may learn from each of them without truths.
    drop_empty
        Whether cases with an empty truth do not count there.
    """
    from segtrust.confidence import get_estimators
    from segtrust.engine import ScoreJob, SetReader, check_reading, fit_to_sets, fusion_of, reference_path
    from segtrust.io import Dataset, Decoding
    from segtrust.maps import EmptyPolicy

    policies = _policies(how.policy, how.predictor)
    chosen = _for_policies(read, policies)
    if how.policy is not None and read.fuse is None:  # as the policy was made with
        chosen = replace(chosen, fuse=fusion_of(reference_path(how.policy)))
    options = chosen.options()
    if options.decode is not Decoding.THRESHOLD:
        options = replace(options, decode_empty=EmptyPolicy(_empty_of(how, policies)))
    if how.policy is not None:
        check_reading(reference_path(how.policy), asdict(options))
    scaling = _scaling(how.calibrate_maps, policies)
    names, unlabelled = _names(how, policies, found)
    has_members = any(case.members for case in cases) or not cases  # why there are none is told elsewhere
    names = _with_members(names, has_members, is_all=ALL in how.estimators)
    _refuse_unused_fusion(read, has_members)
    job = ScoreJob(
        _estimators(names, how.empty, policies),
        options,
        scaling,
        digest=how.digest.value,
        empty=EmptyPolicy(how.empty),
        of_sets=fit_to_sets(
            get_estimators(unlabelled), found or Dataset(), SetReader(options, scaling, drop_empty)
        ),
    )
    return Plan(job, policies, how.policy)


def _for_policies(read: ReadFlags, policies: Policies) -> ReadFlags:
    """Read the structures that policies are for, unless others are asked for, which one must be for."""
    from segtrust.engine import check_structures
    from segtrust.io import FOREGROUND

    names = [name for name in policies if name not in ("", FOREGROUND)]
    if policies and read.region and "each" not in read.region:
        check_structures(policies, read.region)
    read = _decoding_as(read, policies)
    return replace(read, region=names) if names and not read.region and read.channel is None else read


def _empty_of(how: HowFlags, policies: Policies) -> str:
    """Give what an empty mask is worth where masks are sought: what the policies have, where they agree."""
    found = {each.scoring.empty for each in policies.values()}
    return min(found) if len(found) == 1 else how.empty


def _decoding_as(read: ReadFlags, policies: Policies) -> ReadFlags:
    """Make masks as policies were made with, unless said otherwise, which is then refused."""
    found = {each.scoring.decode for each in policies.values()}
    if len(found) > 1:
        raise ParameterError("policy: expected one way to make masks (decode) for all structures.")
    if read.decode is not None and found - {read.decode}:
        raise PolicyError(
            f"decode: the policy was made with {min(found)!r} masks, got {read.decode!r}. Leave --decode "
            "out, or calibrate anew."
        )
    return replace(read, decode=min(found)) if found else read


def names_of(text: str, every: Sequence[str]) -> list[str]:
    """Give the names in a list that is separated by commas, each once; 'all' are those of ``every``.

    Examples
    --------
    >>> names_of("idc, all", ["sdc", "idc"])
    ['idc', 'sdc']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ParameterError("estimators: expected at least one name, got none.")
    return list(dict.fromkeys(each for name in names for each in (every if name == ALL else [name])))


def _names(how: HowFlags, policies: Policies, found: Dataset | None) -> tuple[list[str], list[str]]:
    """Give the estimators that are asked for: those that are ready, and those that learn from a set first."""
    from segtrust.confidence import get_estimator
    from segtrust.engine import UNLABELLED

    needed = {each.scoring.estimator for each in policies.values()}
    unlabelled = [] if found is None else [name for name in UNLABELLED if name not in needed]
    every = _every(how.estimators, unlabelled)
    names = [] if policies and not how.estimators else names_of(how.estimators, every)
    unfitted = [get_estimator(name).name for name in names if name not in {*every, *needed}]
    if unfitted:
        raise ParameterError(
            f"estimators: {unfitted[0]} learns from cases and has learned nothing here. Give a policy that "
            f"holds it (--policy), or one of {', '.join(every)}."
        )
    return [name for name in names if name not in unlabelled], [name for name in unlabelled if name in names]


def _every(text: str, unlabelled: Sequence[str]) -> list[str]:
    """Give the estimators that need no truths; of other packages' those that somebody asks for."""
    from segtrust.confidence import ESTIMATORS, usable_names

    asked = [name.strip() for name in text.split(",") if name.strip()]
    names = usable_names() if ALL in asked else [*ESTIMATORS]
    return [name for name in dict.fromkeys([*names, *asked]) if name != ALL and _is_ready(name, unlabelled)]


def _with_members(names: Sequence[str], has_members: bool, *, is_all: bool) -> list[str]:
    """Refuse estimators that compare members where there are none; 'all' are then all but them."""
    from segtrust.confidence import needs_members

    void = [] if has_members else [name for name in names if needs_members(name)]
    if void and not is_all:
        raise ParameterError(
            f"estimators: {void[0]} compares the members of an ensemble, and the cases have one map each. "
            "Give the others: --member, or the column 'members' of a manifest."
        )
    return [name for name in names if name not in void]


def _refuse_unused_fusion(read: ReadFlags, has_members: bool) -> None:
    if read.fuse is not None and not has_members:
        raise ParameterError("fuse: expected several maps a case (--member), got one of each.")


def _is_ready(name: str, unlabelled: Sequence[str]) -> bool:
    from segtrust.confidence import learns

    return name in unlabelled or not learns(name)


def _estimators(names: Sequence[str], empty: str, policies: Policies) -> tuple[ConfidenceEstimator, ...]:
    """Make the estimators that are asked for, and those of the policies, which win."""
    from segtrust.policy import Scoring

    asked = {name: Scoring(name, empty=empty).make_estimator() for name in names}  # type: ignore[arg-type]
    needed = {each.scoring.estimator: each.estimator() for each in policies.values()}
    return tuple({**asked, **needed}.values())


def _scaling(path: Path | None, policies: Policies) -> Scaling | None:
    """Give the recalibration of the maps: that of a file, or that of the policies."""
    from segtrust.calibration import Scaling

    of_policies = _scalings(policies)
    if path is not None:
        given = Scaling.load(path)
        if any(each != replace(given, used_ids=frozenset()) for each in of_policies.values()):
            raise ParameterError(f"{path}: expected the recalibration of the policy, got another.")
        return given
    found = list(of_policies.values())
    if any(each != found[0] for each in found):
        raise ParameterError("policy: expected one recalibration of the maps for all structures.")
    return found[0] if found else None


def _scalings(policies: Policies) -> Mapping[str, Scaling | None]:
    return {name: policy.scoring.make_scaling() for name, policy in policies.items()}
