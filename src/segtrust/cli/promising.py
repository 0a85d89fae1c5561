"""What is promised of accepted cases, and whether rows with losses bear it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import Calibration
    from segtrust.io import Table
    from segtrust.selective import Certificate

__all__ = ["Certified", "PromiseFlags", "TargetFlags", "certify_rows", "tell_certified"]


@dataclass
class TargetFlags:
    """What is promised."""

    target_risk: Annotated[float, typer.Option(help="Limit on the mean loss of the accepted cases.")]
    below_dice: Annotated[
        float | None,
        typer.Option(help="Limit instead the share of accepted cases whose Dice is below this."),
    ] = None
    delta: Annotated[float, typer.Option(help="Probability that the promise is broken.")] = 0.05
    start_coverage: Annotated[
        float,
        typer.Option(help="Where the search begins, fixed before a loss is seen; lower for hard targets."),
    ] = 0.5
    estimator: Annotated[str, typer.Option(help="Column of the confidence.")] = "sdc"


@dataclass
class PromiseFlags(TargetFlags):
    """What is promised, of which rows."""

    loss: Annotated[
        str | None,
        typer.Option(help="Loss to limit: dice, iou, f2 or hamming; by default that of the table."),
    ] = None
    loss_column: Annotated[str, typer.Option(help="Column of the loss; else one minus 'dice'.")] = "loss"
    patients: Annotated[
        bool, typer.Option("--patients", help="The column 'group' is the patient, who is the unit.")
    ] = False
    predictor: Annotated[str, typer.Option(help="Which model made the maps, in words.")] = ""
    drop_unjudged: Annotated[
        bool,
        typer.Option(
            "--drop-unjudged", help="Leave out rows without a loss; the promise is about cases that have one."
        ),
    ] = False


@dataclass(frozen=True)
class Certified:
    """What came of a calibration.

    Attributes
    ----------
    certificates
        By structure.
    text
        What the policy says, which was written; nothing where there is none.
    doubt
        Why it is estimated only, whatever the certificates say; nothing where it is certified.
    """

    certificates: Mapping[str, Certificate]
    text: str
    doubt: str = ""

    @property
    def certified(self) -> bool:
        """Whether each structure has a threshold; with a doubt it is an estimated one."""
        return all(each.certified for each in self.certificates.values())

    @property
    def values(self) -> dict[str, Any]:
        """Give for machines what `tell_certified` tells people."""
        return {
            name: _values(each, self.doubt or ("no confidence is left" if each.total_delta >= 1.0 else ""))
            for name, each in self.certificates.items()
        }


def certify_rows(
    table: Table, scores: Path, promise: PromiseFlags, output: Path, *, reference: Path | None = None
) -> Certified:
    """Certify thresholds on the rows of a table, and write the policy if there are any.

    Parameters
    ----------
    table
        With losses.
    scores
        Path of the table; what was asked of its cases is kept beside it.
    promise
        What was asked for.
    output
        The policy.
    reference
        Scores of unlabelled cases, for candidate thresholds.
    """
    from segtrust.engine import DOUBT, calibrate_table, looks_path, read_looks, save_policies, write_looks

    looks = read_looks(scores)
    found = calibrate_table(table, _calibration(promise, reference), looks)
    try:
        write_looks(scores, looks)  # before anybody sees the answer
    except OSError as error:
        typer.secho(
            f"{looks_path(scores)}: this look at the cases could not be recorded ({error.strerror}). "
            "Count it yourself before you ask them again.",
            err=True,
        )
    certificates = {name: certificate for name, (certificate, _) in found.items()}
    certified = all(each.certified for each in certificates.values())
    doubt = str(table.about.get(DOUBT) or "")
    return Certified(certificates, save_policies(output, found, table) if certified else "", doubt)


def tell_certified(found: Certified, output: Path) -> None:
    """Say what is promised, or why nothing is."""
    if found.certified:
        typer.echo(f"{found.text}\n\nThe policy is in {output}.")
        return
    for name, certificate in found.certificates.items():
        if not certificate.certified:
            typer.secho(f"{name}: {certificate}" if name else str(certificate), err=True)
    typer.secho("No policy was written.", err=True)


def _values(found: Certificate, doubt: str) -> dict[str, Any]:
    said = f"Estimated, and nothing is promised ({doubt}). Otherwise: {found}" if doubt else str(found)
    standing = "estimated" if doubt else "certified"
    return {
        "certified": found.certified and not doubt,
        "standing": standing if found.certified else None,
        "doubt": doubt,
        "threshold": found.threshold,
        "coverage": found.coverage,
        "probability": 1.0 - found.total_delta,
        "looks": found.evidence.earlier_looks + 1,
        "cases": found.n,
        "text": said if found.certified else str(found),
    }


def _loss(promise: PromiseFlags) -> str:
    """Return the risk or the column that was asked for."""
    from segtrust.cli.judging import check_loss

    if promise.loss is None:
        return promise.loss_column
    if promise.loss_column != "loss":
        raise ParameterError("loss: expected --loss or --loss-column; got both.")
    return check_loss(promise.loss)


def _calibration(promise: PromiseFlags, reference: Path | None) -> Calibration:
    from segtrust.engine import Calibration, structures_of
    from segtrust.io import read_table
    from segtrust.selective import Target

    confidences: dict[str, list[float]] = {}
    if reference is not None:
        table = read_table(reference)
        for name, confidence in zip(structures_of(table), table.column(promise.estimator), strict=True):
            confidences.setdefault(name, []).append(confidence)
    return Calibration(
        promise.estimator,
        (Target(promise.target_risk, promise.below_dice),),
        delta=promise.delta,
        loss=_loss(promise),
        by_patient=promise.patients,
        predictor=promise.predictor,
        reference=confidences,
        start_coverage=promise.start_coverage,
        drop_unjudged=promise.drop_unjudged,
    )
