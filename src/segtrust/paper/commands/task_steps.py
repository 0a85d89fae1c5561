"""The steps of a task, as the commands of ``segtrust tasks`` take them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust._optional import require
from segtrust.cli.output import counted, progress_bar
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.paper.tasks.checking import Checked, Problem
    from segtrust.paper.tasks.nnunet import NnUNet
    from segtrust.paper.tasks.predicting import Predictions
    from segtrust.paper.tasks.preparing import Prepared
    from segtrust.paper.tasks.task import Recipe, Task
    from segtrust.paper.tasks.training import Trainer

__all__ = [
    "DeviceFlags",
    "MapFlags",
    "PredictFlags",
    "SplitFlags",
    "TrainFlags",
    "check_task",
    "converted",
    "evaluate_command",
    "evaluate_maps",
    "left_out_in",
    "nnunet_of",
    "predicted",
    "prepared_cases",
    "ready_cases",
    "refuse_beside_maps",
    "refuse_untested",
    "refuse_void",
    "take_published",
    "tell_checked",
    "tell_prepared",
    "tell_problems",
    "trained",
]

_MOST_SHOWN = 50
_TRAINING = "training"


@dataclass
class SplitFlags:
    """Which cases are trained on."""

    split: Annotated[
        Path | None, typer.Option(help="A table of one's own (CSV): case and split (train, val, test).")
    ] = None
    split_seed: Annotated[
        int | None, typer.Option(min=0, help="Of the split, where it is drawn; 0 unless given.")
    ] = None


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
        given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if self.epochs is not None:
            given["iterations"] = 0
        return replace(task.recipe(self.recipe), **given)


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
    maps: Annotated[
        Path | None,
        typer.Option(help="Folder of published maps, which are taken as they are (needs --data)."),
    ] = None


def left_out_in(path: Path) -> frozenset[str]:
    """Give the cases that a table of splits leaves out; none where there is no table."""
    from segtrust.paper.tasks.splitting import split_in

    return frozenset(case for case, split in split_in(path).items() if not split.strip())


def check_task(task: Task, data: Path, *, quick: bool = False, left_out: Collection[str] = ()) -> Checked:
    """Look at all cases, but for some that are left out."""
    from segtrust.paper.tasks.checking import Checked, Problem, check_samples, find_samples

    try:
        samples = [each for each in find_samples(task, data) if each.id not in left_out]
    except ParameterError as error:
        return Checked((), (Problem(task.name, str(error)),))
    with progress_bar("cases looked at", len(samples), goes_on=False) as advance:
        return check_samples(task, samples, quick=quick, advance=advance)


def tell_checked(checked: Checked) -> None:
    """Say what was found, and what is wrong with it."""
    for name, number in checked.counts.items():
        typer.echo(f"{name}: {counted(number, 'case')}")
    for note in checked.notes:
        typer.echo(f"Note: {note}")
    tell_problems(checked.problems)
    if not checked.problems:
        typer.echo("All is well.")


def tell_problems(problems: Sequence[Problem]) -> None:
    """List what is wrong, on standard error."""
    for problem in problems[:_MOST_SHOWN]:
        typer.secho(f"  {problem.case}: {problem.reason}", err=True)
    if problems[_MOST_SHOWN:]:
        typer.secho(f"  … and {len(problems) - _MOST_SHOWN} more; all of them: --json.", err=True)
    if problems:
        typer.secho(f"{counted(len(problems), 'problem')}.", err=True)


def prepared_cases(task: Task, data: Path, out: Path, splits: SplitFlags) -> Prepared:
    """Prepare all cases."""
    from segtrust.paper.tasks.checking import find_samples
    from segtrust.paper.tasks.preparing import prepare

    samples = find_samples(task, data)
    with progress_bar("cases prepared", len(samples)) as advance:
        return prepare(task, samples, out, split=splits.split, seed=splits.split_seed, advance=advance)


def tell_prepared(prepared: Prepared, out: Path) -> None:
    """Say how many cases there are of each split."""
    from segtrust.paper.tasks.preparing import counts_of

    told = ", ".join(f"{number} {name or 'left out'}" for name, number in counts_of(prepared).items())
    typer.echo(f"{counted(len(prepared.cases), 'case')} ready: {told}. Split: {out / 'split.csv'}")
    tell_problems(prepared.problems)


def ready_cases(task: Task, data: Path | None, out: Path, splits: SplitFlags) -> Prepared:
    """Prepare cases where data are given, or take those that are there; refuse to go on with problems."""
    from segtrust.paper.tasks.preparing import read_prepared

    if data is None:
        return read_prepared(out)
    prepared = prepared_cases(task, data, out, splits)
    _leave_with(prepared.problems)
    return prepared


def _leave_with(problems: Sequence[Problem]) -> None:
    if problems:
        tell_problems(problems)
        raise typer.Exit(1)


def nnunet_of(task: Task, out: Path, device: str) -> NnUNet | None:
    """Give the commands of nnU-Net for a task that is for them; None for all others."""
    from segtrust.paper.tasks.nnunet import NnUNet, is_nnunet

    return NnUNet(task, out, _nnunet_device() if device == "auto" else device) if is_nnunet(task) else None


def _nnunet_device() -> str:
    """Give CUDA, unless torch is here and knows that there is none."""
    if find_spec("torch") is None:
        return "cuda"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _given(flags: DeviceFlags | MapFlags | SplitFlags) -> list[str]:
    """Give the options that were given, as they are written."""
    names = [each.name for each in fields(flags) if getattr(flags, each.name) != each.default]
    return [{"start": "from"}.get(name, name).replace("_", "-") for name in names]


def refuse_beside_maps(how: PredictFlags) -> None:
    """Refuse options that say how maps are made, where they are taken as they are."""
    void = [name for name in _given(how) if name not in ("maps", "device", "threads")]
    if void:
        raise ParameterError(
            f"--{void[0]}: expected with networks, got it beside --maps, which are as they are."
        )


def refuse_void(task: Task, flags: DeviceFlags | MapFlags | SplitFlags) -> None:
    """Refuse options that nnU-Net's own commands know nothing of."""
    void = [name for name in _given(flags) if name != "device"]
    if void:
        option = void[0]
        raise ParameterError(
            f"--{option}: expected with networks that are trained here; {task.name} is trained by nnU-Net, "
            "by its own plan."
        )


def refuse_untested(prepared: Prepared, out: Path) -> None:
    """Refuse to train for hours what nothing could be said of in the end."""
    if not prepared.of("test"):
        raise ParameterError(f"{out / 'split.csv'}: expected cases to test on, got none. Name some 'test'.")


def converted(run: NnUNet, data: Path, splits: SplitFlags) -> None:
    """Write cases in the layout of nnU-Net; refuse to go on with problems."""
    from segtrust.paper.tasks.checking import find_samples
    from segtrust.paper.tasks.nnunet import convert

    samples = find_samples(run.task, data)
    with progress_bar("cases converted", len(samples)) as advance:
        found = convert(run, samples, split=splits.split, seed=splits.split_seed, advance=advance)
    _leave_with(found)


def trained(task: Task, prepared: Prepared, out: Path, how: TrainFlags, *, quiet: bool = False) -> Trainer:
    """Train, and draw the curves; say how each epoch went."""
    require("torch", extra="torch")
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

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
    trainer = Trainer(task, how.chosen(task), prepared, out / _TRAINING, options)
    steps = trainer.epochs * len(trainer.batches)
    with _curves(task, out / _TRAINING), progress_bar("steps", steps) as advance:
        trainer.run(on_epoch=lambda row: _tell_epoch(trainer, row, quiet=quiet), on_batch=advance)
    if trainer.best is not None and not quiet:
        done = counted(len(trainer.history), "epoch")
        typer.echo(f"{done}, best is {_epoch(trainer.best)}. Weights: {out / _TRAINING / 'best.pt'}")
    return trainer


@contextmanager
def _curves(task: Task, folder: Path) -> Iterator[None]:
    """Draw the log when a training ends, however it ends; not where Matplotlib is absent."""
    try:
        yield
    finally:
        if find_spec("matplotlib") is not None and (folder / "log.csv").exists():
            from segtrust.paper.tasks.logs import read_log
            from segtrust.paper.tasks.training_curves import draw_training
            from segtrust.report.figures import save_figure

            save_figure(draw_training(read_log(folder / "log.csv"), title=task.title), folder / "curves")


def _tell_epoch(trainer: Trainer, row: Mapping[str, Any], *, quiet: bool) -> None:
    if quiet or trainer.best is None:
        return
    typer.echo(
        f"epoch {_epoch(row)} of {trainer.epochs}, loss {row['loss']:.4f}, rate {row['rate']:.2e}, "
        f"{row['seconds']:.1f} s, best so far {trainer.best['epoch']}"
    )


def _epoch(row: Mapping[str, Any]) -> str:
    dice = "" if row["val_dice"] is None else f" (validation Dice {row['val_dice']:.4f})"
    return f"{int(row['epoch'])}{dice}"


def predicted(task: Task, prepared: Prepared, out: Path, how: PredictFlags) -> Predictions:
    """Write maps with the weights that are given, or those of the training."""
    from segtrust.paper.tasks.predicting import PredictionOptions, predict

    splits = tuple(each.strip() for each in how.splits.split(",") if each.strip())
    options = PredictionOptions(how.dtype, splits, how.device, how.threads)
    own = out / _TRAINING / "best.pt"
    if not how.weights and not own.exists():
        raise ParameterError(f"{own}: expected weights, got none. Train first, or give them: --weights.")
    require("torch", extra="torch")
    with progress_bar("cases predicted", len(prepared.of(*splits))) as advance:
        return predict(task, prepared, how.weights or [own], out, options, advance=advance)


def take_published(task: Task, data: Path | None, out: Path, maps: Path, splits: SplitFlags) -> Predictions:
    """Take maps that others have made."""
    from segtrust.paper.tasks.checking import find_samples
    from segtrust.paper.tasks.preparing import splits_of
    from segtrust.paper.tasks.published import take_maps

    if data is None:
        raise ParameterError("data: expected the folder of the truths beside --maps, got none.")
    samples = find_samples(task, data)
    out.mkdir(parents=True, exist_ok=True)
    parts = splits_of(task, samples, out, split=splits.split, seed=splits.split_seed)
    known = [replace(each, split=parts[each.id]) for each in samples]
    with progress_bar("maps taken", len(samples)) as advance:
        return take_maps(task, known, maps, out, advance=advance)


def evaluate_command(task: Task, found: Predictions, out: Path) -> str:
    """Give the command that judges maps, ready for a shell."""
    first, others = _judged_sets(found)
    more = [word for name, path in others.items() for word in ("--ood", f"{name}={path}")]
    threshold = [] if task.threshold == 0.5 else ["--threshold", str(task.threshold)]
    region = [word for name in _region(task) for word in ("--region", name)]
    how = ["-o", str(out / "evaluation"), "--estimators", "all", "--drop-empty-truth"]
    return shlex.join(["segtrust", "evaluate", str(first), *more, *how, *threshold, *region])


def _judged_sets(found: Predictions) -> tuple[Path, Mapping[str, Path]]:
    """Give the set in distribution, which the others are held against, and those."""
    from segtrust.paper.tasks.task import ID

    if ID not in found.sets:
        raise ParameterError(
            f"{found.manifest}: expected cases in distribution, which the others are judged beside, got none."
        )
    return found.sets[ID], {name: path for name, path in found.sets.items() if name != ID}


def _region(task: Task) -> list[str]:
    """Give the structure that is judged, where maps hold several: the first, as a list."""
    return list(task.options.get("regions", {}))[:1]


def evaluate_maps(task: Task, found: Predictions, out: Path) -> None:
    """Judge maps as `segtrust evaluate` does."""
    from segtrust.cli.evaluate import EvaluateFlags, SetFlags, evaluate
    from segtrust.cli.options import ReadFlags, RunFlags

    first, others = _judged_sets(found)
    flags = (
        EvaluateFlags(estimators="all", drop_empty_truth=True),
        SetFlags(ood=[f"{name}={path}" for name, path in others.items()] or None),
        ReadFlags(threshold=task.threshold, region=_region(task) or None),
        RunFlags(),
    )
    options = {name: value for each in flags for name, value in vars(each).items()}
    evaluate(predictions=[first], output=out / "evaluation", **options)
