"""``segtrust reproduce``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segtrust._compile import available_cores
from segtrust.cli.apps import App
from segtrust.cli.options import with_options
from segtrust.cli.output import progress_bar
from segtrust.errors import ParameterError
from segtrust.paper.commands.medical import MEDICAL_EPILOG, medical

if TYPE_CHECKING:
    from segtrust.paper.drift.simulation import Recorded
    from segtrust.paper.validity import Outcome

__all__ = ["reproduce_app"]

reproduce_app = App(no_args_is_help=True, help="Run an experiment anew, with tables and figures.")

_Out = Annotated[
    Path, typer.Option(help="Folder for tables, figures and run.json; finished parts are kept in it.")
]
_Workers = Annotated[int | None, typer.Option(min=1, help="Processes; one a core unless given.")]

_VALIDITY_FORMATS = {
    **dict.fromkeys(("broken", "broken_low", "broken_high"), ".4f"),
    **dict.fromkeys(("certified", "coverage", "oracle_coverage"), ".3f"),
}


@reproduce_app.callback()
def _reproduce() -> None:
    """Run an experiment anew, with tables and figures."""


@reproduce_app.command(
    "validity",
    epilog="Examples:\n\n  segtrust reproduce validity --out validity\n\n"
    "  segtrust reproduce validity --out validity --draws 20000",
)
def validity(
    out: _Out,
    draws: Annotated[int, typer.Option(min=1, help="Calibration sets drawn for each row.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the population.")] = 0,
    workers: _Workers = None,
) -> None:
    """Show by simulation whether certified thresholds keep their guarantee, and the coverage it costs."""
    from segtrust.paper.validity import DELTA, draw_validity, settings, simulate_validity
    from segtrust.report.figures import save_figure
    from segtrust.report.runs import mark_running, open_run, write_run
    from segtrust.report.tables import markdown_table, write_csv, write_markdown

    open_run(out, command="reproduce validity")
    mark_running(out, command="reproduce validity")
    begin = time.perf_counter()
    with progress_bar("draws", draws * len(settings())) as advance:
        outcomes = simulate_validity(
            draws=draws,
            seed=seed,
            folder=out / "parts",
            workers=workers or available_cores(),
            advance=advance,
        )
    rows = [asdict(outcome) for outcome in outcomes]
    write_csv(out / "tables" / "validity.csv", rows)
    write_markdown(out / "tables" / "validity.md", rows, _VALIDITY_FORMATS)
    save_figure(draw_validity(outcomes, delta=DELTA), out / "figures" / "validity")
    parameters = {"draws": draws, "seed": seed, "delta": DELTA}
    seconds = time.perf_counter() - begin
    write_run(out, command="reproduce validity", parameters=parameters, seconds=seconds)
    typer.echo(f"{markdown_table(rows, _VALIDITY_FORMATS)}\n\n{_describe_broken(outcomes)}")
    typer.echo(f"Tables and figures are in {out.resolve()}.")


def _describe_broken(outcomes: Sequence[Outcome]) -> str:
    """Name the rows whose guarantees are broken too often for chance, corrected for the number of rows."""
    broken = [
        f"{outcome.scenario}, {outcome.p_value}, {outcome.n} cases"
        for outcome in outcomes
        if not outcome.is_kept(len(outcomes))
    ]
    if broken:
        return f"Broken more often than allowed: {'; '.join(broken)}."
    return f"No guarantee is broken significantly more often than allowed ({len(outcomes)} settings)."


_DRIFT_EPILOG = (
    "Examples:\n\n  segtrust reproduce drift --out drift\n\n"
    "  segtrust reproduce drift --out drift --inside here.csv --outside elsewhere.csv"
)


@dataclass
class RecordedFlags:
    """Real cases."""

    inside: Annotated[
        list[Path] | None,
        typer.Option(
            help="Score table with truths, of cases as a policy is made with; several may be given."
        ),
    ] = None
    outside: Annotated[
        list[Path] | None,
        typer.Option(help="Score table with truths, of cases that arrive later; several may be given."),
    ] = None

    def recorded(self) -> Recorded | None:
        """Read the tables, if there are any."""
        from segtrust.io import read_table
        from segtrust.paper.drift.simulation import Recorded

        if not self.inside and not self.outside:
            return None
        if not self.inside or not self.outside:
            raise ParameterError("--inside, --outside: expected tables for both or none, got one of them.")
        return Recorded.of(*([read_table(each) for each in paths] for paths in (self.inside, self.outside)))


@reproduce_app.command("drift", epilog=_DRIFT_EPILOG)
@with_options
def drift(
    out: _Out,
    runs: Annotated[int, typer.Option(min=1, help="Streams of cases for each drift.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of all draws.")] = 0,
    *,
    real: RecordedFlags,
    workers: _Workers = None,
) -> None:
    """Show what becomes of a certified promise when cases change, and whether the alarm comes in time.

    More runs go on with those that are in the folder.
    """
    from segtrust.paper.drift.report import reproduce_drift
    from segtrust.paper.drift.simulation import DriftSettings, sources_of

    settings, recorded = DriftSettings(runs=runs, seed=seed), real.recorded()
    with progress_bar("streams", runs * len(sources_of(settings, recorded))) as advance:
        reproduce_drift(
            out, settings, recorded=recorded, workers=workers or available_cores(), advance=advance
        )
    typer.echo((out / "tables" / "drift.md").read_text(encoding="utf-8"))
    typer.echo(f"Tables and figures are in {out.resolve()}.")


_SYNTHETIC_EPILOG = (
    "Examples:\n\n  segtrust reproduce synthetic --out synthetic\n\n"
    "  segtrust reproduce synthetic --out quick --images 500 --repeats 3"
)


@reproduce_app.command("synthetic", epilog=_SYNTHETIC_EPILOG)
def synthetic(
    out: _Out,
    images: Annotated[int, typer.Option(min=2, help="Images of a repeat.")] = 5000,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats, each with images of its own.")] = 10,
    workers: _Workers = None,
) -> None:
    """Run the paper's simulated experiments: section 6, with its four figures."""
    from segtrust.paper.synthetic import Synthetic
    from segtrust.paper.synthetic.paper import parts_of
    from segtrust.paper.synthetic.report import SUMMARY_FORMATS, reproduce_synthetic, summarise
    from segtrust.report.tables import markdown_table

    settings = Synthetic(images=images, repeats=repeats)
    with progress_bar("experiments", sum(part.weight for part in parts_of(settings))) as advance:
        results = reproduce_synthetic(out, settings, workers=workers or available_cores(), advance=advance)
    for name in ("ideal_model", "perturbed_model"):
        typer.echo(f"{markdown_table(summarise(results.rows(name)), SUMMARY_FORMATS)}\n")
    typer.echo(f"Tables and figures are in {out.resolve()}.")


@reproduce_app.command(
    "synthetic-beyond",
    epilog="Examples:\n\n  segtrust reproduce synthetic-beyond --out beyond\n\n"
    "  segtrust reproduce synthetic-beyond --out quick --quick",
)
def synthetic_beyond(
    out: _Out,
    quick: Annotated[bool, typer.Option("--quick", help="Few images of up to 10^4 pixels.")] = False,
    workers: _Workers = None,
) -> None:
    """Go past the paper's ten independent pixels: up to 10^6, and with correlated errors.

    Takes much longer than the paper's setting; --quick takes about a minute.
    """
    from segtrust.paper.synthetic.beyond import parts_of
    from segtrust.paper.synthetic.beyond_report import reproduce_beyond
    from segtrust.paper.synthetic.settings import Beyond
    from segtrust.paper.synthetic.studies import studies_of

    few = Beyond(sizes=(10, 100, 10_000), images=(100, 100, 10), draws=(50, 50, 50), repeats=2)
    settings = few if quick else Beyond()
    with progress_bar("studies", sum(part.weight for part in parts_of(settings))) as advance:
        reproduce_beyond(out, settings, workers=workers or available_cores(), advance=advance)
    for name in studies_of(settings):
        table = (out / "tables" / f"{name}.md").read_text(encoding="utf-8")
        typer.echo(f"{name}\n\n{table}")
    typer.echo(f"Tables and figures are in {out.resolve()}.")


_TUNING_EPILOG = (
    "Examples:\n\n  segtrust reproduce tuning --data busi --predictions unet --out busi-tuning\n\n"
    "  segtrust reproduce tuning --data kvasir --data clinicdb --elsewhere etis --out polyp-tuning"
)


@dataclass
class SplitFlags:
    """How cases are split."""

    repeats: Annotated[int, typer.Option(min=1, help="Random splits for each size.")] = 50
    seed: Annotated[int, typer.Option(min=0, help="Of the first split.")] = 0


@reproduce_app.command("tuning", epilog=_TUNING_EPILOG)
@with_options
def tuning(
    data: Annotated[
        list[Path], typer.Option(help="Folder with maps and 'masks' (PNG); may be given several times.")
    ],
    out: _Out,
    elsewhere: Annotated[
        list[Path] | None, typer.Option(help="Folder of another distribution, to test on as well.")
    ] = None,
    predictions: Annotated[
        str, typer.Option(help="Name of the maps' folder beside 'masks'.")
    ] = "predictions",
    *,
    splits: SplitFlags,
    workers: _Workers = None,
) -> None:
    """Compare estimators that learn, by the size of their tuning set: section 7.4.

    Cases whose truth is empty are left out.
    """
    from segtrust.paper.pairs import labelled_pairs, pairs_in
    from segtrust.paper.tuning import TuningRun, reproduce_tuning, tables_of

    others = labelled_pairs([*elsewhere], predictions) if elsewhere else []
    shared = {each.resolve() for each in data} & {each.resolve() for each in elsewhere or ()}
    if shared:
        raise ParameterError(f"{shared.pop()}: expected --elsewhere to be other folders than --data.")
    cases = labelled_pairs(data, predictions)
    left_out = len(pairs_in([*data, *(elsewhere or ())], predictions)) - len(cases) - len(others)
    run = TuningRun(cases, others, splits.repeats, splits.seed, left_out)
    with progress_bar("cases and splits", run.steps) as advance:
        summary = reproduce_tuning(out, run, workers=workers or available_cores(), advance=advance)
    for name, table in tables_of(summary).items():
        typer.echo(f"{name}\n\n{table}\n")
    if left_out:
        typer.echo(f"{left_out} of {len(cases) + len(others) + left_out} cases were left out: empty truth.")
    typer.echo(f"Tables and figures are in {out.resolve()}.")


_DECODING_EPILOG = (
    "Examples:\n\n  segtrust score maps/ --truth labels/ -o usual.csv\n\n"
    "  segtrust score maps/ --truth labels/ -o decoded.csv --decode dice-optimal\n\n"
    "  segtrust reproduce decoding --usual usual.csv --decoded decoded.csv --out decoding"
)
_DECODING_FORMATS: dict[str, str] = dict.fromkeys(
    (
        *("dice_usual", "dice_decoded", "gain", "gain_low", "gain_high", "expected_gain"),
        *("aurc_usual", "aurc_decoded", "aurc_change_low", "aurc_change_high"),
    ),
    ".4f",
)


@reproduce_app.command("decoding", epilog=_DECODING_EPILOG)
def decoding(
    usual: Annotated[Path, typer.Option(help="Score table with truths, of the usual masks.")],
    decoded: Annotated[Path, typer.Option(help="The same cases, scored with --decode dice-optimal.")],
    out: Annotated[Path, typer.Option(help="Folder for tables and run.json.")],
    resamples: Annotated[int, typer.Option(min=100, help="Of the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
) -> None:
    """Compare the Dice of Dice-optimal masks with that of the usual ones: the gain, and what was promised.

    Cases whose truth is empty are left out.
    """
    from segtrust.io import read_table
    from segtrust.paper.decoding import compare_decoding
    from segtrust.report.runs import mark_running, open_run, write_run
    from segtrust.report.tables import markdown_table, write_csv, write_markdown

    begin = time.perf_counter()
    tables = read_table(usual), read_table(decoded)
    open_run(out, command="reproduce decoding")
    mark_running(out, command="reproduce decoding")
    rows = compare_decoding(*tables, resamples=resamples, seed=seed)
    write_csv(out / "tables" / "decoding.csv", rows)
    write_markdown(out / "tables" / "decoding.md", rows, _DECODING_FORMATS)
    parameters = {"usual": str(usual), "decoded": str(decoded), "resamples": resamples, "seed": seed}
    write_run(out, command="reproduce decoding", parameters=parameters, seconds=time.perf_counter() - begin)
    typer.echo(f"{markdown_table(rows, _DECODING_FORMATS)}\n\nTables are in {out.resolve()}.")


reproduce_app.command("medical", epilog=MEDICAL_EPILOG)(medical)
