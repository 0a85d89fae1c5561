"""Commands killed at random moments and begun again: they must end as if nothing had happened.

Each command is run once without a break, then killed by SIGKILL, with all of its workers, and given again
until it comes to its end; then in a new folder from the start, until it has been killed often enough. Every
file that it leaves is compared with that of the unbroken run, but for the times in it
(`tools.reliability.without_times`).

Most moments are drawn from the time that the unbroken run took. Files are written in milliseconds, which
these would rarely meet: so every third moment is that at which one of the drafts, drawn likewise, appears.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tools.reliability.small_sets import write_breast_images, write_maps
from tools.reliability.without_times import Content, contents, differences

__all__ = ["COMMANDS", "Killed", "kill_often", "main", "prepare"]

_POLL_S = 0.0005
_LONGEST_S = 300.0
"""After which a run that does not end is a fault of its own."""


@dataclass(frozen=True)
class Command:
    """A command, and the data that it needs: arguments of ``segtrust``, from a folder with data in it."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]


def _maps(folder: Path) -> None:
    write_maps(folder / "set", cases=60, side=400)


def _few_maps(folder: Path) -> None:
    write_maps(folder / "set", cases=30, side=96)


def _published(folder: Path) -> None:
    """Write maps as another's are taken over for `reproduce medical`: a manifest and its files."""
    root = folder / "runs" / "nuclei" / "predictions"
    write_maps(root / "id", cases=24, side=64)
    lines = [f"{i:03d},id/predictions/case_{i:03d}.npy,id/masks/case_{i:03d}.png" for i in range(24)]
    (root / "id.csv").write_text("\n".join(["case,probabilities,truth", *lines]) + "\n", encoding="utf-8")


def _none(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _breast(folder: Path) -> None:
    write_breast_images(folder / "busi", benign=8, malignant=4, side=64)


_LINES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "score": (
        "score set/predictions --truth set/masks -o out/scores.csv --estimators sdc,idc,amsp,pla --workers 2",
        _maps,
    ),
    "evaluate": ("evaluate set/predictions --truth set/masks -o out --resamples 200", _few_maps),
    "reproduce synthetic": (
        "reproduce synthetic --out out --images 100 --repeats 2 --workers 2",
        _none,
    ),
    "reproduce medical": (
        "reproduce medical --data runs --out out --repeats 2 --resamples 200 --workers 1",
        _published,
    ),
    "tasks train": (
        "tasks train breast-cancer --data busi -o out --epochs 3 --batch 4 --threads 1 --device cpu",
        _breast,
    ),
}
COMMANDS = tuple(Command(name, tuple(line.split()), made) for name, (line, made) in _LINES.items())


@dataclass
class Killed:
    """What came of killing a command.

    Attributes
    ----------
    unbroken_s
        Seconds of the run that was left alone.
    kills, at_drafts
        How many there were before the command had come to its end, and those at a draft.
    runs
        That came to their end: each is compared.
    lost_s
        Seconds beyond those of as many unbroken runs.
    unequal
        Files that differ, by run.
    drafts
        Drafts that were left behind by runs that came to their end.
    """

    unbroken_s: float
    kills: int = 0
    at_drafts: int = 0
    runs: int = 0
    lost_s: float = 0.0
    unequal: list[list[str]] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether every run ended as the unbroken one did."""
        return not any(self.unequal) and not self.drafts

    def row(self, name: str) -> str:
        """Give a row of the printed table."""
        lost = f"{self.lost_s / max(self.kills, 1):.1f}"
        said = "yes" if self.is_equal else f"NO: {[*filter(None, self.unequal)]} {self.drafts}"
        cells = (name, f"{self.unbroken_s:.1f}", self.kills, self.at_drafts, self.runs, said, lost)
        return f"| {' | '.join(map(str, cells))} |"


def _start(command: Command, folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, so that its workers can be killed with it."""
    with (folder / "stderr.txt").open("wb") as told:
        return subprocess.Popen(
            [sys.executable, "-m", "segtrust", *command.arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
        )


def _drafts_in(folder: Path) -> set[str]:
    """Give the drafts that are being written; folders may come and go meanwhile."""
    found = set()
    for root, _, names in os.walk(folder):
        found.update(f"{root}/{name}" for name in names if ".part" in name)
    return found


def _draft_moments(running: subprocess.Popen[bytes], out: Path) -> Iterator[int]:
    """Count drafts as they appear, until the command ends."""
    seen: set[str] = set()
    last = -1
    while running.poll() is None:
        seen |= _drafts_in(out)
        if len(seen) != last:
            last = len(seen)
            yield last
        time.sleep(_POLL_S)


def _kill_group(running: subprocess.Popen[bytes]) -> None:
    """Kill a command and its workers, and wait until none of them is left."""
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    end = time.monotonic() + 30.0
    while _group_lives(running.pid):
        if time.monotonic() > end:
            raise RuntimeError(f"processes of the group {running.pid} outlive SIGKILL")
        time.sleep(0.01)


def _group_lives(group: int) -> bool:
    """Tell whether a process of a group is there, other than as an entry that nobody has taken notice of."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, found = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(found) == group and state not in "ZX":
            return True
    return False


def _check_end(running: subprocess.Popen[bytes], folder: Path) -> None:
    if running.returncode != 0:
        said = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"exit code {running.returncode} instead of 0: {said[-2000:]}")


def run_unbroken(command: Command, folder: Path) -> tuple[float, int, Content]:
    """Run a command to its end: give the seconds, how many drafts were seen, and what it left."""
    begin = time.monotonic()
    running = _start(command, folder)
    drafts = max(_draft_moments(running, folder / "out"), default=0)
    seconds = time.monotonic() - begin
    _check_end(running, folder)
    return seconds, drafts, contents(folder / "out")


def _attempt(command: Command, folder: Path, after_s: float, at_draft: int | None) -> bool:
    """Run a command until a moment, or the appearance of a draft, and kill it; tell whether it was there."""
    begin = time.monotonic()
    running = _start(command, folder)
    if at_draft is not None:
        is_time = any(count >= at_draft for count in _draft_moments(running, folder / "out"))
    else:
        is_time = _lasts(running, after_s)
    if is_time and running.poll() is None:
        _kill_group(running)
        return True
    running.wait(timeout=max(1.0, _LONGEST_S - (time.monotonic() - begin)))
    _check_end(running, folder)
    return False


def _lasts(running: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        running.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def prepare(command: Command, folder: Path) -> None:
    """Write the data of a command into a folder, which must not be there."""
    folder.mkdir(parents=True)
    command.prepare(folder)


def kill_often(
    command: Command,
    folder: Path,
    *,
    kills: int,
    seed: int,
    tell: Callable[[str], object] = lambda text: None,
) -> Killed:
    """Kill a command so many times before its end, and compare what comes of going on."""
    seconds, drafts, expected = run_unbroken(command, folder)
    shutil.rmtree(folder / "out")
    found, begin = Killed(seconds), time.monotonic()
    moments = _moments(found, drafts, np.random.default_rng(seed))
    while found.kills < kills or (folder / "out").exists():
        after_s, at_draft = next(moments) if found.kills < kills else (_LONGEST_S, None)
        if _attempt(command, folder, after_s, at_draft):
            found.kills, found.at_drafts = found.kills + 1, found.at_drafts + (at_draft is not None)
        else:
            _compare(found, expected, folder / "out")
        tell(f"{command.name}: {found.kills} kills, {found.runs} runs ended")
    found.lost_s = max(0.0, time.monotonic() - begin - found.runs * seconds)
    return found


def _moments(found: Killed, drafts: int, rng: np.random.Generator) -> Iterator[tuple[float, int | None]]:
    """Draw moments: seconds from the start, and every third time the number of a draft."""
    while True:
        is_draft = drafts and found.kills % 3 == 2
        yield (
            float(rng.uniform(0.0, found.unbroken_s)),
            int(rng.integers(1, drafts + 1)) if is_draft else None,
        )


def _compare(found: Killed, expected: Content, out: Path) -> None:
    found.runs += 1
    found.unequal.append(differences(expected, contents(out)))
    found.drafts += sorted(_drafts_in(out))
    shutil.rmtree(out)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="for data and results; must not be there")
    parser.add_argument("--kills", type=int, default=50, help="of each command (50)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    parser.add_argument("--only", action="append", choices=[each.name for each in COMMANDS], help="a command")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill all commands, print what came of it, and fail where something is not as it was."""
    asked = _parsed(arguments)
    heads = ("command", "unbroken, s", "kills", "of them at a draft", "runs ended", "equal", "lost a kill, s")
    rows, is_equal = [], True
    for command in COMMANDS:
        if asked.only and command.name not in asked.only:
            continue
        place = asked.folder / command.name.replace(" ", "-")
        prepare(command, place)
        run_unbroken(command, place)  # compiles and imports for the first time, which takes longer
        shutil.rmtree(place / "out")
        found = kill_often(command, place, kills=asked.kills, seed=asked.seed, tell=_tell)
        rows.append(found.row(command.name))
        is_equal &= found.is_equal
        _tell(rows[-1])
    table = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *rows]
    sys.stdout.write("\n".join(table) + "\n")
    return 0 if is_equal else 1


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
