"""Options that several commands share, declared once.

A command takes a dataclass for each group of options; `with_options` shows Typer its fields as if the command
had them as parameters of its own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.io import Dataset
    from segtrust.workflows import RunOptions

__all__ = [
    "USUAL",
    "CaseFlags",
    "DigestKind",
    "HowFlags",
    "PartFlags",
    "ReadFlags",
    "RunFlags",
    "TruthFlags",
    "changed_options",
    "share_of",
    "with_options",
]


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Spread parameters that are dataclasses into one option a field.

    Examples
    --------
    >>> @dataclass
    ... class Size:
    ...     width: Annotated[int, typer.Option(help="Pixels.")] = 10
    >>> @with_options
    ... def draw(name: str, size: Size) -> str:
    ...     return f"{name} {size.width}"
    >>> list(inspect.signature(draw).parameters), draw(name="a", width=3)
    (['name', 'width'], 'a 3')
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    groups = {name: hints[name] for name in parameters if is_dataclass(hints[name])}
    spread = [
        each
        for name, parameter in parameters.items()
        for each in (_parameters_of(groups[name]) if name in groups else [_keyword(parameter, hints[name])])
    ]

    @wraps(command)
    def run(**given: Any) -> Any:
        return command(**_gathered(given, groups))

    run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in spread}
    return run


def _keyword(parameter: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    return parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY)


def _parameters_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default_of(each),
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]


def _default_of(each: Any) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return inspect.Parameter.empty if each.default is MISSING else each.default


def _gathered(given: Mapping[str, Any], groups: Mapping[str, type]) -> dict[str, Any]:
    """Put options together into the dataclasses that they come from."""
    rest = dict(given)
    made = {
        name: group(**{each.name: rest.pop(each.name) for each in fields(group)})
        for name, group in groups.items()
    }
    return {**rest, **made}


def changed_options(flags: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the options of a group that differ from their default, by name."""
    return {
        each.name: getattr(flags, each.name)
        for each in fields(flags)
        if each.name not in without and getattr(flags, each.name) != each.default
    }


def share_of(text: str | float) -> float:
    """Read a share such as 0.05, or a percentage such as 5%.

    Examples
    --------
    >>> share_of("5%"), share_of("12.5 %"), share_of("0.05")
    (0.05, 0.125, 0.05)
    """
    plain = str(text).strip()
    number = plain.removesuffix("%")
    try:
        return float(Decimal(number.strip()) / (100 if number != plain else 1))
    except InvalidOperation:
        raise typer.BadParameter(f"expected a share such as 0.05 or 5%, got {plain!r}.") from None


class DigestKind(StrEnum):
    """Fingerprints of files."""

    QUICK = "quick"
    SHA256 = "sha256"


_FILES = "Which files"
_READING = "What is read of them"
_RUNNING = "How it is run"
_PER_SET = "Repeatable: one per folder of maps, or NAME=…"


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@dataclass
class CaseFlags:
    """Which files belong to a case."""

    pattern: Annotated[
        list[str] | None,
        _option(
            panel=_FILES,
            metavar="PATTERN",
            help=f"Names of the maps if they are unusual: '{{case}}_prob.nii.gz'. {_PER_SET}",
        ),
    ] = None
    allow_pickle: Annotated[
        bool,
        _option(
            "--allow-pickle",
            panel=_FILES,
            help="Load pickles. That runs whatever code is in them: only for files you made yourself.",
        ),
    ] = False
    mask_dir: Annotated[
        list[str] | None,
        _option(
            panel=_FILES,
            metavar="DIR",
            help=f"Folder of the delivered masks, named like the maps. {_PER_SET}",
        ),
    ] = None
    mask_pattern: Annotated[
        list[str] | None,
        _option(
            panel=_FILES,
            metavar="PATTERN",
            help=f"Names of the delivered masks: '{{case}}_seg.nii.gz'. {_PER_SET}",
        ),
    ] = None
    image_dir: Annotated[
        list[str] | None,
        _option(
            panel=_FILES,
            metavar="DIR",
            help=f"Folder of the images, named like the maps, for reports and the desk. {_PER_SET}",
        ),
    ] = None
    image_pattern: Annotated[
        list[str] | None,
        _option(panel=_FILES, metavar="PATTERN", help=f"Names of the images: '{{case}}_img.png'. {_PER_SET}"),
    ] = None
    member: Annotated[
        list[str] | None,
        _option(
            panel=_FILES,
            metavar="DIR",
            help="Folder of the maps of one more member of an ensemble, named like those of the first; "
            "repeatable. NAME=DIR is one more member of the folder of maps NAME.",
        ),
    ] = None

    def find(
        self, paths: Sequence[Path], *, needs_truth: bool | None = False, may_be_empty: bool = False
    ) -> Dataset:
        """Find the cases in paths."""
        from segtrust.io import find_cases

        return find_cases(
            paths,
            masks=self.mask_dir,
            images=self.image_dir,
            members=self.member,
            pattern=self.pattern,
            mask_pattern=self.mask_pattern,
            image_pattern=self.image_pattern,
            **self._truth_options(),
            needs_truth=needs_truth,
            may_be_empty=may_be_empty,
            allow_pickle=self.allow_pickle,
        )

    def _truth_options(self) -> dict[str, list[str] | None]:
        return {}


@dataclass
class TruthFlags(CaseFlags):
    """Which files belong to a case, including its ground truth."""

    truth: Annotated[
        list[str] | None,
        _option(
            panel=_FILES, metavar="DIR", help=f"Folder of the ground truth, named like the maps. {_PER_SET}"
        ),
    ] = None
    truth_pattern: Annotated[
        list[str] | None,
        _option(
            panel=_FILES, metavar="PATTERN", help=f"Names of the ground truth: '{{case}}_gt.png'. {_PER_SET}"
        ),
    ] = None

    def _truth_options(self) -> dict[str, list[str] | None]:
        return {"truth": self.truth, "truth_pattern": self.truth_pattern}


@dataclass
class ReadFlags:
    """What is read of each case."""

    threshold: Annotated[
        float, _option(panel=_READING, help="Where no mask was delivered: p >= threshold.")
    ] = 0.5
    region: Annotated[
        list[str] | None,
        _option(
            panel=_READING,
            help="Structure of dataset.json, several times if wanted; 'each' for all of them.",
        ),
    ] = None
    channel: Annotated[
        int | None, _option(panel=_READING, min=0, help="Number of the channel, instead of --region.")
    ] = None
    label: Annotated[
        list[int] | None,
        _option(
            panel=_READING, help="Label of masks and truths that is foreground; several times if wanted."
        ),
    ] = None
    mask: Annotated[
        str, _option(panel=_READING, help="'delivered' masks, or the maps cut at the 'threshold'.")
    ] = "delivered"
    decode: Annotated[
        str | None,
        _option(
            panel=_READING,
            help="Mask where none was delivered: 'threshold', or 'dice-optimal', the one with the largest "
            "expected Dice. That of the policy unless given.",
        ),
    ] = None
    names: Annotated[
        Path | None,
        _option(
            panel=_READING,
            help="A dataset.json that names the structures, or a task: totalsegmentator:total.",
        ),
    ] = None
    key: Annotated[
        str | None, _option(panel=_READING, help="Name of the array, in files that hold several.")
    ] = None
    fuse: Annotated[
        str | None,
        _option(
            panel=_READING, help="How maps of --member become one: 'mean-probability' (usual), 'mean-logit'."
        ),
    ] = None
    resample: Annotated[
        str | None,
        _option(
            panel=_READING,
            help="If sizes or grids differ: 'truth' brings masks and ground truth to the map (nearest), "
            "'map' brings the map to the ground truth (linear).",
        ),
    ] = None
    truth_threshold: Annotated[
        float | None,
        _option(
            panel=_READING,
            help="Grey level from which on a pixel of the ground truth is foreground; below 1, a share of "
            "white. Soft edges are cut at half of the maximum without it.",
        ),
    ] = None

    fill_missing: Annotated[
        bool,
        _option(
            "--fill-missing",
            panel=_READING,
            help="Read chunks of Zarr or HDF5, or strips of TIFF, that were never written as fill values.",
        ),
    ] = False


USUAL = "sdc,idc,amsp"


@dataclass
class HowFlags:
    """How cases are scored."""

    estimators: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas (also of `segtrust plugins`); 'all' for all that need no ground "
            "truth."
        ),
    ] = USUAL
    policy: Annotated[
        Path | None, typer.Option(help="Add what this policy decides: accept, defer, no finding.")
    ] = None
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; a policy's guarantee holds for its own.")
    ] = ""
    calibrate_maps: Annotated[
        Path | None, typer.Option(help="Recalibrate the maps first: a saved scaling (JSON).")
    ] = None
    empty: Annotated[
        str, typer.Option(help="What two empty masks are worth: 'paper' a Dice of 0, 'agree' of 1.")
    ] = "paper"
    digest: Annotated[DigestKind, typer.Option(help="Checksum of the maps' files.")] = DigestKind.QUICK

    def score_options(self) -> dict[str, Any]:
        """Return the options for `segtrust.workflows` besides estimators, policy and model."""
        names = ("calibrate_maps", "empty", "digest")
        return {name: value for name, value in changed_options(self).items() if name in names}


@dataclass
class RunFlags:
    """How cases are run."""

    workers: Annotated[int, _option(panel=_RUNNING, min=1, help="Processes side by side.")] = 1
    dask: Annotated[
        str,
        _option(
            panel=_RUNNING,
            help="Run on a Dask cluster: one of --workers processes; tcp://scheduler:8786 is a running one.",
        ),
    ] = ""
    memory: Annotated[
        str,
        _option(panel=_RUNNING, help="Memory for all workers together, such as 8GiB; most of what is free."),
    ] = ""
    timeout: Annotated[
        str, _option(panel=_RUNNING, help="Time limit per case, in minutes or such as 90s, 10min or 2h.")
    ] = "30min"
    resume: Annotated[
        bool,
        _option(
            "--resume/--no-resume", panel=_RUNNING, help="Resume a run that was stopped, or score all again."
        ),
    ] = True
    overwrite: Annotated[
        bool,
        _option(
            "--overwrite",
            panel=_RUNNING,
            help="Replace a table of other cases, or one that was made with other settings.",
        ),
    ] = False
    as_json: Annotated[
        bool, _option("--json", panel=_RUNNING, help="Print one JSON object instead of a summary.")
    ] = False

    def get_ready(self) -> None:
        """Start to import what workers need, while cases are being found."""
        if not self.dask:
            from segtrust._processes import preload_workers

            preload_workers()

    def options(self) -> RunOptions:
        """Return the options for `segtrust.workflows`."""
        options = changed_options(self, without=("as_json", "memory", "timeout"))
        if self.memory:
            options["memory"] = bytes_of(self.memory)
        return cast(
            "RunOptions", {**options, "timeout": seconds_of(self.timeout), "command": tuple(sys.argv[1:])}
        )


@dataclass
class PartFlags(RunFlags):
    """How the cases of one job of several are run."""

    details: Annotated[
        bool,
        _option(
            "--details",
            panel=_RUNNING,
            help="Show internal columns in CSV: k, mu, lam, s, checksums, seconds. Parquet always has them.",
        ),
    ] = False
    num_parts: Annotated[
        int, _option(panel=_RUNNING, min=1, help="Jobs of an array of jobs; see `segtrust merge`.")
    ] = 1
    part_id: Annotated[
        int | None, _option(panel=_RUNNING, min=0, help="Which of them this is, from 0 on.")
    ] = None


_SECONDS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """Read a time, in minutes unless it has a unit.

    Examples
    --------
    >>> seconds_of("10min"), seconds_of("90 s"), seconds_of("0.5")
    (600.0, 90.0, 30.0)
    """
    plain = text.strip().lower()
    number = plain.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        seconds = float(number) * _SECONDS[plain[len(number) :].strip()]
    except (ValueError, KeyError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ParameterError(f"timeout: expected a time such as 10min, 90s or 2h, got {text!r}.")
    return seconds


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(text: str) -> int:
    """Read a size, in powers of 1024.

    Examples
    --------
    >>> bytes_of("8GiB"), bytes_of("500 MB")
    (8589934592, 524288000)
    """
    plain = text.strip().upper().removesuffix("B").removesuffix("I").strip()
    number, unit = (plain[:-1], plain[-1]) if plain[-1:] in ("K", "M", "G", "T") else (plain, "")
    try:
        found = int(float(number) * _UNITS[unit])
    except ValueError:
        found = 0
    if found < 1:
        raise ParameterError(f"memory: expected a size such as 8GiB or 500MB, got {text!r}.")
    return found
