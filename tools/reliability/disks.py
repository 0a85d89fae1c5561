"""Commands that write to a disk which is full, sooner or later, or read-only: nothing may be lost.

Each command is run on a small disk (tmpfs; to mount one takes root) that holds what an earlier run has left.
The disk is then filled up to some room, less than the command needs; it must end with exit code 2 and one
line that names the file, and leave all that was there as it was. When there is room again the same command
must end as if the disk had always been large.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tools.reliability.small_sets import write_breast_images, write_maps
from tools.reliability.without_times import Content, contents, differences

__all__ = [
    "TRIALS",
    "Found",
    "Trial",
    "can_mount",
    "main",
    "read_only",
    "small_disk",
    "try_disk",
    "write_data",
]

_FILLER = ".filler"
_SIZE_MB = 256

Run = Callable[..., Any]
"""Runs ``segtrust`` with arguments and gives exit code, output and errors as `subprocess.run` does."""


@dataclass(frozen=True)
class Trial:
    """A command on a small disk.

    Attributes
    ----------
    name
        Of the command.
    line
        Its arguments; ``{data}`` and ``{disk}`` stand for the folders.
    before
        What was run there earlier, with room.
    kept
        Which of the files of before must be there to the byte whatever happens: names with wildcards. Tables,
        figures and lists that are made anew of what is kept are not among them.
    """

    name: str
    line: str
    before: tuple[str, ...] = ()
    kept: tuple[str, ...] = ("*",)

    def arguments(self, line: str, data: Path, disk: Path) -> list[str]:
        """Give the words of a line."""
        return [word.format(data=data, disk=disk) for word in line.split()]


_SCORE = "score {data}/set/predictions --truth {data}/set/masks -o {disk}/scores.csv --estimators sdc"
_CALIBRATE = "calibrate {data}/judged.csv -o {disk}/policy.json --below-dice 0.5 --target-risk"
_TRIAGE = "triage {data}/set/predictions --policy {data}/policy.json -o {disk}/triage"
_TRAIN = (
    "tasks train breast-cancer --data {data}/busi -o {disk}/run --batch 4 --threads 1 --device cpu --epochs 2"
)
TRIALS = (
    Trial("score", _SCORE),
    Trial("score, once more", _SCORE, (_SCORE,), ("scores.csv*",)),
    Trial(
        "evaluate",
        "evaluate {data}/set --drop-empty-truth -o {disk}/out --resamples 100 --estimators sdc",
        (),
        ("scores.parquet",),
    ),
    Trial("calibrate", f"{_CALIBRATE} 0.4", (f"{_CALIBRATE} 0.3",), ("policy*.json",)),
    Trial("triage", _TRIAGE),
    Trial("triage, once more", _TRIAGE, (_TRIAGE,), ("*.csv", "*.about.json")),
    Trial(
        "report",
        "report {data}/judged.csv -o {disk}/report.html",
        ("report {data}/judged.csv -o {disk}/report.html",),
    ),
    Trial(
        "reproduce synthetic",
        "reproduce synthetic --out {disk}/out --images 20 --repeats 1 --workers 1",
        ("reproduce synthetic --out {disk}/out --images 20 --repeats 1 --workers 1",),
        ("*.npz", "*.csv"),
    ),
    Trial("tasks train", _TRAIN, (f"{_TRAIN} --until 1",), ("*.pt", "log.csv", "split.csv", "*.npz")),
)


@dataclass
class Found:
    """What came of a command on small disks.

    Attributes
    ----------
    needed
        Bytes of all that is there in the end: new files are written beside the old ones.
    refused, enough
        Disks on which the command could not end, one of them read-only, and on which it could.
    faults
        What was not as it should be.
    """

    needed: int = 0
    refused: int = 0
    enough: int = 0
    faults: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        """Give a row of the printed table."""
        said = "; ".join(self.faults) or "told, kept, went on"
        return f"| {name} | {self.needed / 1000:.0f} | {self.refused} | {self.enough} | {said} |"


def can_mount() -> bool:
    """Tell whether a small disk can be had here."""
    return os.name == "posix" and os.geteuid() == 0 and Path("/proc/mounts").exists()


def _mount(*words: str | Path) -> None:
    texts = map(str, words)
    subprocess.run(["mount", *texts], check=True, capture_output=True)  # nosec B607  # root's own


@contextmanager
def small_disk(place: Path, *, size_mb: int = _SIZE_MB) -> Iterator[Path]:
    """Give a disk of its own for a while."""
    place.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", place)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False, capture_output=True)  # nosec B607  # root's own


def _free(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


@contextmanager
def _filled(disk: Path, room: int) -> Iterator[None]:
    """Leave so much room on a disk for a while."""
    path = disk / _FILLER
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, _free(disk) - room))
    try:
        yield
    finally:
        path.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Let nobody write to a disk for a while."""
    _mount("-o", "remount,ro", disk)
    try:
        yield
    finally:
        _mount("-o", "remount,rw", disk)


def write_data(data: Path, run: Run) -> None:
    """Write maps, a table of scores with losses, a policy and pictures to train on."""
    write_maps(data / "set", cases=120, side=32)
    write_breast_images(data / "busi", benign=5, malignant=3, side=32)
    scored = ("score", data / "set/predictions", "--truth", data / "set/masks", "--estimators", "sdc")
    made = ("calibrate", data / "judged.csv", "-o", data / "policy.json", "--target-risk", "0.4")
    for line in ((*scored, "-o", data / "judged.csv"), (*made, "--start-coverage", "0.9")):
        done = run(*line)
        if done.returncode != 0:
            raise RuntimeError(f"{line}: {done.stderr}")


def _kept(trial: Trial, disk: Path) -> dict[str, bytes]:
    files = [path for path in disk.rglob("*") if path.is_file() and path.name != _FILLER]
    return {
        path.relative_to(disk).as_posix(): path.read_bytes()
        for path in files
        if any(fnmatch(path.name, pattern) for pattern in trial.kept)
    }


def _begin(trial: Trial, data: Path, disk: Path, run: Run) -> None:
    for line in trial.before:
        done = run(*trial.arguments(line, data, disk))
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{line}: {done.stderr}")


def _unbroken(trial: Trial, data: Path, disk: Path, run: Run) -> tuple[int, int, Content]:
    """Give how many bytes a command needs with room enough, its exit code, and what it leaves."""
    with small_disk(disk):
        before = _free(disk)
        _begin(trial, data, disk, run)
        done = run(*trial.arguments(trial.line, data, disk))
        return before - _free(disk), done.returncode, contents(disk)


def try_disk(trial: Trial, data: Path, disk: Path, run: Run, *, rooms: int) -> Found:
    """Run a command on disks with so many different rooms, and on one that is read-only."""
    needed, code, expected = _unbroken(trial, data, disk, run)
    found = Found(needed)
    for room in [*(round(needed * share / rooms) for share in range(rooms)), None]:
        place = "read-only" if room is None else f"{room} B left"
        with small_disk(disk):
            _begin(trial, data, disk, run)
            refusal = _refusal(trial, data, disk, run, room=room)
            again = run(*trial.arguments(trial.line, data, disk))
            wrong = differences(expected, contents(disk))
        found.refused += refusal is not None
        found.enough += refusal is None
        found.faults += [f"{place}: {fault}" for fault in refusal or ()]
        if again.returncode != code or wrong:
            found.faults.append(f"{place}, then room: {again.returncode} {wrong} {again.stderr[-300:]}")
    return found


def _refusal(trial: Trial, data: Path, disk: Path, run: Run, *, room: int | None) -> list[str] | None:
    """Run a command, and say what is not as it should be; ``None`` where the room was enough."""
    before = _kept(trial, disk)
    with read_only(disk) if room is None else _filled(disk, room):
        done = run(*trial.arguments(trial.line, data, disk))
        after = _kept(trial, disk)
    if done.returncode in (0, 1) and room is not None:
        return None  # not all that is needed is needed at once
    said = done.stderr.strip().rpartition("\n")[2]
    lost = [name for name, content in before.items() if after.get(name) != content]
    left = [path.name for path in disk.rglob(".*.part*")]
    checks = {
        f"exit code {done.returncode}: {done.stderr[-400:]}": done.returncode == 2
        and "Traceback" not in done.stderr,
        f"says {said!r}": said.startswith("error: ") and str(disk) in said,
        f"lost {', '.join(lost)}": not lost,
        f"left {', '.join(left)}": not left,
    }
    return [fault for fault, is_well in checks.items() if not is_well]


def _segtrust(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "segtrust", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="for data and disks; must not be there")
    parser.add_argument("--rooms", type=int, default=8, help="different rooms for each command (8)")
    parser.add_argument("--only", action="append", choices=[each.name for each in TRIALS], help="a command")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all commands, print what came of it, and fail where something was lost or not told."""
    asked = _parsed(arguments)
    if not can_mount():
        sys.stderr.write("To mount a small disk takes root on Linux.\n")
        return 2
    data, disk = asked.folder.resolve() / "data", asked.folder.resolve() / "disk"
    write_data(data, _segtrust)
    rows, is_well = [], True
    for trial in TRIALS:
        if asked.only and trial.name not in asked.only:
            continue
        found = try_disk(trial, data, disk, _segtrust, rooms=asked.rooms)
        rows.append(found.row(trial.name))
        is_well &= not found.faults
        sys.stderr.write(f"{rows[-1]}\n")
    heads = ("command", "needs, kB", "disks too small or read-only", "just large enough", "what came of it")
    sys.stdout.write("\n".join([f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *rows]) + "\n")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
