"""``segtrust tasks``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from segtrust.cli.console import counted, new_console, progress_bar
from segtrust.cli.options import with_options
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.tasks.checking import Checked, Problem
    from segtrust.tasks.predicting import Predictions
    from segtrust.tasks.preparing import Prepared
    from segtrust.tasks.task import Recipe, Task

__all__ = ["tasks_app"]

tasks_app = typer.Typer(
    no_args_is_help=True,
    help="Segmentation tasks: data, training, prediction; the paper's six, and your own.",
)

_CODES = "Exit codes: 0 all is well, 1 there are problems with the data, 2 nothing could be done."
_MOST_SHOWN = 50

_Name = Annotated[str, typer.Argument(metavar="TASK", help="A name of `segtrust tasks list`, or my_task.py.")]
_Data = Annotated[Path, typer.Option(help="Folder of the data set; `segtrust tasks show` says its layout.")]
_Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the run: prepared cases, weights, maps.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def _epilog(*commands: str) -> str:
    return "\n\n".join(["Examples:", *(f"  segtrust tasks {each}" for each in commands), _CODES])


@dataclass
class SplitFlags:
    """Which cases are trained on."""

    split: Annotated[
        Path | None, typer.Option(help="A table of one's own (CSV): case and split (train, val, test).")
    ] = None
    split_seed: Annotated[int, typer.Option(min=0, help="Of the split, where it is drawn.")] = 0


@dataclass
class DeviceFlags:
    """What computes."""

    device: Annotated[str, typer.Option(help="'auto', 'cpu', 'cuda', 'cuda:1', ….")] = "auto"
    threads: Annotated[int, typer.Option(min=0, help="Of torch on the CPU; 0: its own choice.")] = 0


@dataclass
class TrainFlags(DeviceFlags):
    """How a network is trained."""

    recipe: Annotated[str, typer.Option(help="One of those that `show` lists; the first unless given.")] = ""
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None
    batch: Annotated[int | None, typer.Option(min=1, help="Cases a step, instead of the recipe's.")] = None
    learning_rate: Annotated[float | None, typer.Option(help="Instead of the recipe's.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Of weights, order and augmentation.")] = 0
    until: Annotated[
        int, typer.Option(min=0, help="Stop after this epoch; the same command without it goes on.")
    ] = 0
    patience: Annotated[
        int, typer.Option(min=0, help="Stop after so many epochs without a better validation Dice; 0: never.")
    ] = 0
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Go on from the last checkpoint.")] = (
        True
    )
    start: Annotated[Path | None, typer.Option("--from", help="Checkpoint to begin with.")] = None
    backbone: Annotated[Path | None, typer.Option(help="Checkpoint of the backbone to begin with.")] = None

    def chosen(self, task: Task) -> Recipe:
        """Give the recipe with what was said otherwise."""
        said = {"epochs": self.epochs, "batch": self.batch, "learning_rate": self.learning_rate}
        given = {name: value for name, value in said.items() if value is not None}
        if self.epochs is not None:
            given["iterations"] = 0
        return replace(task.recipe(self.recipe), **given)  # type: ignore[arg-type]


@dataclass
class MapFlags:
    """How maps are kept."""

    dtype: Annotated[str, typer.Option(help="float32, float16, or uint8 (p times 255).")] = "float32"
    splits: Annotated[str, typer.Option(help="Whose cases are predicted, separated by commas.")] = "test"


@dataclass
class PredictFlags(DeviceFlags, MapFlags):
    """How maps are made."""

    weights: Annotated[
        list[Path] | None,
        typer.Option(help="Checkpoint; several are averaged. Unless given, that of the training."),
    ] = None


@tasks_app.command("list", epilog=_epilog("list", "list --json"))
def list_tasks(as_json: _Json = False) -> None:
    """List the tasks: network, data sets in and out of distribution, threshold and size."""
    from segtrust.tasks import NAMES, get_task

    rows = [_summary(get_task(name)) for name in NAMES]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(str(each) for each in row.values()))
    new_console().print(table)


def _summary(task: Task) -> dict[str, Any]:
    others = list(task.sets)[1:]
    return {
        "task": task.name,
        "title": task.title,
        "network": task.network,
        "out of distribution": ", ".join(others) or "–",
        "threshold": task.threshold,
        "size": "×".join(map(str, task.size)),
    }


@tasks_app.command("show", epilog=_epilog("show breast-cancer", "show my_task.py --json"))
def show(name: _Name, as_json: _Json = False) -> None:
    """Tell all of a task: source, licence and citation of its data, their layout, and how it is trained."""
    from segtrust.tasks import get_task

    task = get_task(name)
    facts = _facts(task)
    if as_json:
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"{task.title}\n")
    for what, said in facts.items():
        if isinstance(said, Mapping):
            typer.echo("\n".join([f"{what}:", *(f"    {key}: {value}" for key, value in said.items())]))
        else:
            typer.echo(f"{what}: {said}")


def _facts(task: Task) -> dict[str, Any]:
    own = {"labels": str(task.labels), "split": dict(task.split)}
    recipes = {f"recipe {name}": _shown(recipe) for name, recipe in task.recipes.items()}
    return {**_summary(task), "sets": dict(task.sets), **own, "data": asdict(task.source), **recipes}


def _shown(recipe: Recipe) -> dict[str, Any]:
    """Give what a recipe says; nothing of what it leaves out."""
    return {name: value for name, value in recipe.described().items() if value not in (None, 0, 0.0, "")}


@tasks_app.command(
    "check",
    epilog=_epilog("check breast-cancer --data busi/", "check my_task.py --data data/ --quick --json"),
)
def check(
    name: _Name,
    data: _Data,
    quick: Annotated[bool, typer.Option("--quick", help="Look at names only; open no file.")] = False,
    as_json: _Json = False,
) -> None:
    """List all that is wrong with a data set, before hours are spent."""
    from segtrust.tasks import get_task

    checked = _checked(get_task(name), data, quick=quick)
    if as_json:
        values = {"counts": checked.counts, "notes": checked.notes}
        typer.echo(json.dumps(values | {"problems": [asdict(each) for each in checked.problems]}))
    else:
        _tell_checked(checked)
    if checked.problems:
        raise typer.Exit(1)


def _checked(task: Task, data: Path, *, quick: bool = False) -> Checked:
    from segtrust.tasks.checking import check_data

    with progress_bar("cases looked at", 0, goes_on=False) as advance:
        return check_data(task, data, quick=quick, advance=advance)


def _tell_checked(checked: Checked) -> None:
    for name, number in checked.counts.items():
        typer.echo(f"{name}: {counted(number, 'case')}")
    for note in checked.notes:
        typer.echo(f"Note: {note}")
    _tell_problems(checked.problems)
    if not checked.problems:
        typer.echo("All is well.")


def _tell_problems(problems: Sequence[Problem]) -> None:
    for problem in problems[:_MOST_SHOWN]:
        typer.secho(f"  {problem.case}: {problem.reason}", err=True)
    if problems[_MOST_SHOWN:]:
        typer.secho(f"  … and {len(problems) - _MOST_SHOWN} more; all of them: --json.", err=True)
    if problems:
        typer.secho(f"{counted(len(problems), 'problem')}.", err=True)


@tasks_app.command(
    "prepare",
    epilog=_epilog(
        "prepare breast-cancer --data busi/ -o runs/busi",
        "prepare nuclei --data nuclei/ -o runs/nuclei --split my.csv",
    ),
)
@with_options
def prepare(name: _Name, data: _Data, out: _Out, splits: SplitFlags, as_json: _Json = False) -> None:
    """Read and resize all cases once, and draw the split; what is ready is kept."""
    from segtrust.tasks import get_task

    prepared = _prepared(get_task(name), data, out, splits)
    if as_json:
        typer.echo(
            json.dumps({"splits": _counts(prepared), "problems": [asdict(p) for p in prepared.problems]})
        )
    else:
        _tell_prepared(prepared, out)
    if prepared.problems:
        raise typer.Exit(1)


def _prepared(task: Task, data: Path, out: Path, splits: SplitFlags) -> Prepared:
    from segtrust.tasks.checking import find_samples
    from segtrust.tasks.preparing import prepare

    samples = find_samples(task, data)
    with progress_bar("cases prepared", len(samples)) as advance:
        return prepare(task, samples, out, split=splits.split, seed=splits.split_seed, advance=advance)


def _counts(prepared: Prepared) -> dict[str, int]:
    from segtrust.tasks.preparing import counts_of

    return counts_of(prepared)


def _tell_prepared(prepared: Prepared, out: Path) -> None:
    told = ", ".join(f"{number} {name or 'left out'}" for name, number in _counts(prepared).items())
    typer.echo(f"{counted(len(prepared.cases), 'case')} ready: {told}. Split: {out / 'split.csv'}")
    _tell_problems(prepared.problems)


def _ready(task: Task, data: Path | None, out: Path, splits: SplitFlags) -> Prepared:
    """Prepare cases where data are given, or take those that are there; refuse to go on with problems."""
    from segtrust.tasks.preparing import read_prepared

    if data is None:
        return read_prepared(out)
    prepared = _prepared(task, data, out, splits)
    if prepared.problems:
        _tell_problems(prepared.problems)
        raise typer.Exit(1)
    return prepared


@tasks_app.command(
    "train",
    epilog=_epilog(
        "train breast-cancer --data busi/ -o runs/busi",
        "train nuclei --data nuclei/ -o runs/nuclei --epochs 50 --threads 2",
    ),
)
@with_options
def train(
    name: _Name, data: _Data, out: _Out, how: TrainFlags, splits: SplitFlags, as_json: _Json = False
) -> None:
    """Train the network of a task; prepares cases first, and goes on where it was stopped.

    Writes weights of the best epoch by validation Dice (training/best.pt), a checkpoint every epoch
    (training/last.pt), a log (training/log.csv) and its curves.
    """
    from segtrust.tasks import get_task

    task = get_task(name)
    rows = _trained(task, _ready(task, data, out, splits), out, how, quiet=as_json)
    if as_json:
        best = max(rows, key=lambda row: row["val_dice"] or 0.0)
        typer.echo(
            json.dumps({"epochs": len(rows), "best": best, "weights": str(out / "training" / "best.pt")})
        )


def _trained(
    task: Task, prepared: Prepared, out: Path, how: TrainFlags, *, quiet: bool
) -> list[dict[str, Any]]:
    from segtrust.optional import require

    require("torch", extra="models")
    from segtrust.tasks.training import Trainer, TrainingOptions

    options = TrainingOptions(
        seed=how.seed,
        device=how.device,
        threads=how.threads,
        patience=how.patience,
        until=how.until,
        resume=how.resume,
        weights=how.start,
        backbone=how.backbone,
    )
    trainer = Trainer(task, how.chosen(task), prepared, out / "training", options)
    with (
        _curves(task, out / "training"),
        progress_bar("steps", trainer.epochs * len(trainer.batches)) as advance,
    ):
        rows = trainer.run(on_epoch=lambda row: _tell_epoch(trainer, row, quiet=quiet), on_batch=advance)
    best = trainer.best
    if best is not None and not quiet:
        typer.echo(
            f"{counted(len(rows), 'epoch')}, best is {_epoch(best)}. Weights: {out / 'training' / 'best.pt'}"
        )
    return rows


@contextmanager
def _curves(task: Task, folder: Path) -> Iterator[None]:
    """Draw the log when a training ends, however it ends; not where Matplotlib is absent."""
    from importlib.util import find_spec

    try:
        yield
    finally:
        if find_spec("matplotlib") is not None and (folder / "log.csv").exists():
            from segtrust.report.figures import save_figure
            from segtrust.report.training import draw_training
            from segtrust.tasks.logs import read_log

            save_figure(draw_training(read_log(folder / "log.csv"), title=task.title), folder / "curves")


def _tell_epoch(trainer: Any, row: Mapping[str, Any], *, quiet: bool) -> None:
    if quiet:
        return
    best = trainer.best["epoch"]
    typer.echo(
        f"epoch {_epoch(row)} of {trainer.epochs}, loss {row['loss']:.4f}, rate {row['rate']:.2e}, "
        f"{row['seconds']:.1f} s, best so far {best}"
    )


def _epoch(row: Mapping[str, Any]) -> str:
    dice = "" if row["val_dice"] is None else f" (validation Dice {row['val_dice']:.4f})"
    return f"{int(row['epoch'])}{dice}"


@tasks_app.command(
    "predict",
    epilog=_epilog(
        "predict breast-cancer -o runs/busi",
        "predict mswml --data shifts/ -o runs/mswml --weights a.pth --weights b.pth",
    ),
)
@with_options
def predict(
    name: _Name,
    out: _Out,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set, where it is not prepared yet.")
    ] = None,
    *,
    how: PredictFlags,
    splits: SplitFlags,
    as_json: _Json = False,
) -> None:
    """Write maps of probabilities, truths and manifests; maps that are there are kept.

    Pictures are predicted at the size of the task, volumes as large as they are. Maps are never stretched.
    """
    from segtrust.tasks import get_task

    task = get_task(name)
    found = _predicted(task, _ready(task, data, out, splits), out, how)
    if as_json:
        sets = {each: str(path) for each, path in found.sets.items()}
        typer.echo(json.dumps({"cases": found.cases, "manifest": str(found.manifest), "sets": sets}))
    else:
        typer.echo(f"{counted(found.cases, 'case')} predicted. Manifest: {found.manifest}")
        typer.echo(f"Judge them: {_evaluate_command(task, found, out)}")


def _predicted(task: Task, prepared: Prepared, out: Path, how: PredictFlags) -> Predictions:
    from segtrust.tasks.predicting import PredictionOptions, predict

    splits = tuple(each.strip() for each in how.splits.split(",") if each.strip())
    options = PredictionOptions(how.dtype, splits, how.device, how.threads)
    own = out / "training" / "best.pt"
    if not how.weights and not own.exists():
        raise ParameterError(f"{own}: expected weights, got none. Train first, or give them: --weights.")
    with progress_bar("cases predicted", len(prepared.of(*splits))) as advance:
        return predict(task, prepared, how.weights or [own], out, options, advance=advance)


def _evaluate_command(task: Task, found: Predictions, out: Path) -> str:
    first, *others = found.sets.items()
    more = "".join(f" --ood {name}={path}" for name, path in others)
    threshold = "" if task.threshold == 0.5 else f" --threshold {task.threshold}"
    return f"segtrust evaluate {first[1]}{more} -o {out / 'evaluation'} --drop-empty-truth{threshold}"


@tasks_app.command(
    "run",
    epilog=_epilog(
        "run breast-cancer --data busi/ -o runs/busi",
        "run my_task.py --data data/ -o runs/mine --epochs 20 --threads 2",
    ),
)
@with_options
def run(
    name: _Name,
    data: _Data,
    out: _Out,
    *,
    how: TrainFlags,
    maps: MapFlags,
    splits: SplitFlags,
) -> None:
    """Check, prepare, train, predict and evaluate, one after the other; goes on where it was stopped."""
    from segtrust.tasks import get_task

    task = get_task(name)
    checked = _checked(task, data)
    _tell_checked(checked)
    if checked.problems:
        raise typer.Exit(1)
    prepared = _ready(task, data, out, splits)
    _tell_prepared(prepared, out)
    _trained(task, prepared, out, how, quiet=False)
    found = _predicted(
        task, prepared, out, PredictFlags(**vars(maps), device=how.device, threads=how.threads)
    )
    _evaluate(task, found, out)


def _evaluate(task: Task, found: Predictions, out: Path) -> None:
    from segtrust.cli.evaluating import evaluate
    from segtrust.cli.judging import JudgeFlags, SetFlags
    from segtrust.cli.options import ReadFlags, RunFlags

    first, *others = found.sets.items()
    flags = (
        JudgeFlags(estimators="all", drop_empty_truth=True),
        SetFlags(ood=[f"{name}={path}" for name, path in others] or None),
        ReadFlags(threshold=task.threshold),
        RunFlags(),
    )
    options = {name: value for each in flags for name, value in vars(each).items()}
    evaluate(predictions=[first[1]], output=out / "evaluation", **options)
