"""``segtrust tasks``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from segtrust.cli.apps import App
from segtrust.cli.options import with_options
from segtrust.cli.output import counted, new_console
from segtrust.errors import PluginError
from segtrust.paper.commands.task_steps import (
    MapFlags,
    PredictFlags,
    SplitFlags,
    TrainFlags,
    check_task,
    converted,
    evaluate_command,
    evaluate_maps,
    left_out_in,
    nnunet_of,
    predicted,
    prepared_cases,
    ready_cases,
    refuse_beside_maps,
    refuse_untested,
    refuse_void,
    take_published,
    tell_checked,
    tell_prepared,
    trained,
)

if TYPE_CHECKING:
    from segtrust.paper.tasks.predicting import Predictions
    from segtrust.paper.tasks.task import Task

__all__ = ["tasks_app"]

tasks_app = App(
    no_args_is_help=True, help="Segmentation tasks: data, training, prediction; the paper's, and your own."
)

_CODES = "Exit codes: 0 all is well, 1 there are problems with the data, 2 nothing could be done."

_Name = Annotated[str, typer.Argument(metavar="TASK", help="A name of `segtrust tasks list`, or my_task.py.")]
_Data = Annotated[Path, typer.Option(help="Folder of the data set; `segtrust tasks show` says its layout.")]
_Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the run: prepared cases, weights, maps.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def _epilog(*commands: str) -> str:
    return "\n\n".join(["Examples:", *(f"  segtrust tasks {each}" for each in commands), _CODES])


@tasks_app.command("list", epilog=_epilog("list", "list --json"))
def list_tasks(as_json: _Json = False) -> None:
    """List the tasks: network, sets out of distribution, threshold and size."""
    rows = [_summary(task) for task in _tasks()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(str(each) for each in row.values()))
    new_console().print(table)


def _tasks() -> list[Task]:
    """Give all tasks; what is wrong with one of another package is told, and the others are listed."""
    from segtrust.paper.tasks import get_task, task_names

    found = []
    for name in task_names():
        try:
            found.append(get_task(name))
        except PluginError as error:
            typer.secho(str(error), err=True)
    return found


def _summary(task: Task) -> dict[str, Any]:
    return {
        "task": task.name,
        "title": task.title,
        "network": task.network,
        "out of distribution": ", ".join(list(task.sets)[1:]) or "–",
        "threshold": task.threshold,
        "size": "as the volumes" if task.resize == "none" else "×".join(map(str, task.size)),
    }


@tasks_app.command("show", epilog=_epilog("show breast-cancer", "show my_task.py --json"))
def show(name: _Name, as_json: _Json = False) -> None:
    """Tell all of a task: source, licence, citation and layout of its data, and how it is trained."""
    from segtrust.paper.tasks import get_task

    facts = _facts(get_task(name))
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for what, said in facts.items():
        if isinstance(said, Mapping):
            typer.echo("\n".join([f"{what}:", *(f"    {key}: {value}" for key, value in said.items())]))
        else:
            typer.echo(f"{what}: {said}")


def _facts(task: Task) -> dict[str, Any]:
    sizes = {each: number or "as many as there are" for each, number in task.sets.items()}
    own = {"labels": str(task.labels), "split": dict(task.split)}
    return {**_summary(task), "cases": sizes, **own, "data": asdict(task.source), **_recipes(task)}


def _recipes(task: Task) -> dict[str, Any]:
    """Tell how a task is trained; nnU-Net plans that itself."""
    from segtrust.paper.tasks.nnunet import is_nnunet

    if is_nnunet(task):
        names = ("configuration", "trainer", "folds")
        return {"nnU-Net's own plan": {name: task.options[name] for name in names}}
    patches = {"patches of": "×".join(map(str, task.size))} if task.resize == "none" else {}
    return {f"recipe {name}": {**patches, **recipe.shown()} for name, recipe in task.recipes.items()}


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
    from segtrust.paper.tasks import get_task

    checked = check_task(get_task(name), data, quick=quick)
    if as_json:
        values = {"counts": checked.counts, "notes": checked.notes}
        typer.echo(json.dumps(values | {"problems": [asdict(each) for each in checked.problems]}))
    else:
        tell_checked(checked)
    if checked.problems:
        raise typer.Exit(1)


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
    from segtrust.paper.tasks import get_task
    from segtrust.paper.tasks.preparing import counts_of

    task = get_task(name)
    nnunet = nnunet_of(task, out, "auto")
    if nnunet is not None:
        converted(nnunet, data, splits)
        typer.echo(json.dumps({"raw": str(nnunet.raw)}) if as_json else f"Cases are in {nnunet.raw}.")
        return
    prepared = prepared_cases(task, data, out, splits)
    if as_json:
        problems = [asdict(each) for each in prepared.problems]
        typer.echo(json.dumps({"splits": counts_of(prepared), "problems": problems}))
    else:
        tell_prepared(prepared, out)
    if prepared.problems:
        raise typer.Exit(1)


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

    Writes the weights of the best epoch by validation Dice (training/best.pt), a checkpoint every epoch
    (training/last.pt), a log (training/log.csv) and its curves. nnU-Net trains by its own commands.
    """
    from segtrust.paper.tasks import get_task

    task = get_task(name)
    nnunet = nnunet_of(task, out, how.device)
    if nnunet is not None:
        refuse_void(task, how)
        converted(nnunet, data, splits)
        nnunet.train()
        return
    trainer = trained(task, ready_cases(task, data, out, splits), out, how, quiet=as_json)
    if as_json:
        values = {"epochs": len(trainer.history), "best": trainer.best}
        typer.echo(json.dumps(values | {"weights": str(out / "training" / "best.pt")}))


@tasks_app.command(
    "predict",
    epilog=_epilog(
        "predict breast-cancer -o runs/busi",
        "predict mswml --data shifts/ -o runs/mswml --weights seed1.pth --weights seed2.pth",
        "predict polyp --data polyp/ -o runs/polyp --maps published/",
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
    from segtrust.paper.tasks import get_task

    task = get_task(name)
    nnunet = nnunet_of(task, out, how.device)
    if how.maps is not None:
        refuse_beside_maps(how)
        found = take_published(task, data, out, how.maps, splits)
    elif nnunet is not None:
        refuse_void(task, how)
        refuse_void(task, splits)
        found = nnunet.predict()
    else:
        found = predicted(task, ready_cases(task, data, out, splits), out, how)
    _tell_predicted(task, found, out, as_json=as_json)


def _tell_predicted(task: Task, found: Predictions, out: Path, *, as_json: bool) -> None:
    from segtrust.paper.tasks import ID

    if as_json:
        sets = {each: str(path) for each, path in found.sets.items()}
        typer.echo(json.dumps({"cases": found.cases, "manifest": str(found.manifest), "sets": sets}))
    else:
        typer.echo(f"{counted(found.cases, 'case')} predicted. Manifest: {found.manifest}")
        if ID in found.sets:
            typer.echo(f"Judge them: {evaluate_command(task, found, out)}")
        else:
            typer.echo("None is in distribution: predict such cases too, to judge these beside them.")


@tasks_app.command(
    "boxes",
    epilog=_epilog(
        "boxes optic-disc -o runs/disc --table fundus/boxes.csv",
        "boxes my_disc.py -o runs/disc --table boxes.csv",
    ),
)
def boxes(
    name: _Name,
    out: _Out,
    table: Annotated[Path, typer.Option(help="Where the table goes: 'boxes.csv' in the folder of the data.")],
) -> None:
    """Write the box about each structure that was predicted, by which `optic-cup` cuts its squares."""
    from segtrust.paper.tasks import get_task
    from segtrust.paper.tasks.boxes import write_boxes
    from segtrust.paper.tasks.preparing import read_prepared

    number = write_boxes(get_task(name), read_prepared(out), out, table)
    typer.echo(f"Boxes of {counted(number, 'case')}: {table}")


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
    from segtrust.paper.tasks import get_task

    task = get_task(name)
    nnunet = nnunet_of(task, out, how.device)
    if nnunet is not None:
        refuse_void(task, how)
        refuse_void(task, maps)
    checked = check_task(task, data, left_out=left_out_in(splits.split or out / "split.csv"))
    tell_checked(checked)
    if checked.problems:
        raise typer.Exit(1)
    if nnunet is not None:
        converted(nnunet, data, splits)
        nnunet.train()
        found = nnunet.predict()
    else:
        prepared = ready_cases(task, data, out, splits)
        tell_prepared(prepared, out)
        refuse_untested(prepared, out)
        trained(task, prepared, out, how)
        flags = PredictFlags(**vars(maps), device=how.device, threads=how.threads)
        found = predicted(task, prepared, out, flags)
    evaluate_maps(task, found, out)
