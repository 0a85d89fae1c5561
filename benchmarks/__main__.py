"""``python -m benchmarks``, from the root of the repository."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from segtrust.cli.apps import App
from segtrust.cli.output import new_console

bench_app = App(no_args_is_help=True, add_completion=False, help="Measure speed as ratios within one run.")


def _ratio_table(title: str, ratios: Iterable[Any]) -> Table:
    table = Table(title=title)
    for head in ("what", "of", "against"):
        table.add_column(head)
    for head in ("ms", "ratio", "target", ""):
        table.add_column(head, justify="right")
    for ratio in ratios:
        verdict = {None: "", True: "met", False: "missed"}[ratio.met]
        cells = (f"{1000.0 * ratio.seconds:.4g}", f"{ratio.ratio:.2f}", ratio.target, verdict)
        table.add_row(ratio.what, ratio.map, ratio.against, *cells)
    return table


_BENCH_EPILOG = (
    "Examples:\n\n  python -m benchmarks kernels\n\n"
    "  python -m benchmarks kernels --largest 1000000000 --folder /scratch\n\n"
    "  python -m benchmarks kernels --map volume.npy --json > kernels.json"
)


@bench_app.command("kernels", epilog=_BENCH_EPILOG)
def bench_kernels(
    map_file: Annotated[
        Path | None, typer.Option("--map", help="Time a map of your own as well: float32 .npy.")
    ] = None,
    largest: Annotated[int, typer.Option(help="Pixels of the largest map of the scaling table.")] = 10**8,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where maps of the scaling table are kept; above 10^8 pixels required."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Runs of each candidate, of which the shortest counts.")] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time the kernels against numpy.sum, the plain formulas, and one thread against two."""
    from benchmarks.kernels import kernel_sections

    own = None if map_file is None else np.load(map_file, mmap_mode="r")
    _print_sections(kernel_sections(own=own, largest=largest, folder=folder, rounds=rounds), as_json=as_json)


_SPEED_EPILOG = (
    "Examples:\n\n  python -m benchmarks speed\n\n  python -m benchmarks speed --side 64 --json > speed.json"
)


@bench_app.command("speed", epilog=_SPEED_EPILOG)
def bench_speed(
    rounds: Annotated[int, typer.Option(help="Turns of each candidate; the shortest run counts.")] = 15,
    side: Annotated[int, typer.Option(help="Side of the volume of 101 classes; 200 takes 3 GB.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time what users do most against what they would write themselves."""
    from benchmarks.speed import speed_sections

    _print_sections(speed_sections(rounds=rounds, side=side), as_json=as_json)


_SELECTIVE_EPILOG = (
    "Examples:\n\n  python -m benchmarks selective\n\n"
    "  python -m benchmarks selective --json > selective.json"
)


@bench_app.command("selective", epilog=_SELECTIVE_EPILOG)
def bench_selective(
    rounds: Annotated[
        int, typer.Option(help="Turns of each candidate, of which the shortest run counts.")
    ] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time the risk-coverage curve against numpy.argsort, and the bootstrap against a Python loop."""
    from benchmarks.selective import selective_sections

    _print_sections(selective_sections(rounds=rounds), as_json=as_json)


_DECODING_EPILOG = (
    "Examples:\n\n  python -m benchmarks decoding\n\n  python -m benchmarks decoding --json > decoding.json"
)


@bench_app.command("decoding", epilog=_DECODING_EPILOG)
def bench_decoding(
    rounds: Annotated[
        int, typer.Option(help="Turns of each candidate, of which the shortest run counts.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time Dice-optimal masks against numpy.sort of the same arrays."""
    from benchmarks.decoding import decoding_sections

    _print_sections(decoding_sections(rounds=rounds), as_json=as_json)


_SYNTHETIC_EPILOG = (
    "Examples:\n\n  python -m benchmarks synthetic\n\n"
    "  python -m benchmarks synthetic --json > synthetic.json"
)


@bench_app.command("synthetic", epilog=_SYNTHETIC_EPILOG)
def bench_synthetic(
    rounds: Annotated[
        int, typer.Option(help="Turns of each candidate, of which the shortest run counts.")
    ] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time the paper's ideal-model experiment against enumerating all masks of each image."""
    from benchmarks.synthetic import synthetic_sections

    _print_sections(synthetic_sections(rounds=rounds), as_json=as_json)


_TUNABLE_EPILOG = (
    "Examples:\n\n  python -m benchmarks tunable --json > tunable.json\n\n"
    "  python -m benchmarks tunable --data polyp/Kvasir --data polyp/CVC-ClinicDB"
)


@bench_app.command("tunable", epilog=_TUNABLE_EPILOG)
def bench_tunable(
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Time a tuning curve too, on a folder with 'predictions' and 'masks'."),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Turns of each candidate, of which the shortest run counts.")
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time patch sums against SciPy, features against PyRadiomics where it is there, and a tuning curve."""
    from benchmarks.tunable import tunable_sections

    _print_sections(tunable_sections(rounds=rounds, data=data or ()), as_json=as_json)


_IO_EPILOG = (
    "Examples:\n\n  python -m benchmarks io\n\n  python -m benchmarks io --folder /scratch --json > io.json"
)


@bench_app.command("io", epilog=_IO_EPILOG)
def bench_io(
    folder: Annotated[
        Path | None, typer.Option(help="Where files are made and removed again; about 5 GB.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Turns of each candidate, of which the shortest run counts.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time reading beside scoring, one worker against several, and measure the memory of whole runs."""
    from benchmarks.io import io_sections

    _print_sections(io_sections(rounds=rounds, folder=folder), as_json=as_json)


_MEDICAL_EPILOG = (
    "Examples:\n\n  python -m benchmarks medical --data runs/\n\n"
    "  python -m benchmarks medical --data runs/ --tasks polyp --json"
)


@bench_app.command("medical", epilog=_MEDICAL_EPILOG)
def bench_medical(
    data: Annotated[Path, typer.Option(help="Folder with the maps of tasks, as for `reproduce medical`.")],
    tasks: Annotated[
        str, typer.Option(help="Names, separated by commas; all that are there unless given.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run the medical evaluation once, and tell where its time goes."""
    from benchmarks.medical import medical_sections

    names = [name.strip() for name in tasks.split(",") if name.strip()]
    _print_sections(medical_sections(data, tasks=names), as_json=as_json)


def _print_sections(sections: Iterable[tuple[str, Iterable[Any]]], *, as_json: bool) -> None:
    """Print each section as soon as it is measured, or all of them as one JSON object."""
    console = new_console()
    collected: dict[str, list[dict[str, Any]]] = {}
    for title, lines in sections:
        gathered = list(lines)
        if as_json:
            collected[title] = [{**asdict(line), "met": line.met} for line in gathered]
        else:
            console.print(_section_table(title, gathered))
    if as_json:
        typer.echo(json.dumps(collected, indent=2))


def _section_table(title: str, lines: list[Any]) -> Table:
    if lines and hasattr(lines[0], "ratio"):
        return _ratio_table(title, lines)
    table = Table(title=title)
    for head in ("what", "value", "limit", ""):
        table.add_column(head, justify="left" if head == "what" else "right")
    for line in lines:
        value = f"{line.value:.2f} {line.unit}"
        table.add_row(line.what, value, f"<= {line.limit:g}", "met" if line.met else "missed")
    return table


if __name__ == "__main__":
    bench_app(prog_name="python -m benchmarks")
