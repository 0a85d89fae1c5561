"""A review desk as a process of its own, over a run that is made for it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tools.reliability.small_sets import write_maps

__all__ = ["TOKEN", "DeskProcess", "make_run"]

TOKEN = "a token of the reliability tools"  # nosec B105  # of a desk that lives for a minute
"""With it each browser is told from the others, as where all come through one proxy."""
_PREDICTOR = "net"
_SIDE = 384
_PATIENCE_S = 120.0


def make_run(folder: Path, *, cases: int, maps: int) -> Path:
    """Score so many cases, of which only some have a map of their own, and certify a threshold on others.

    The desk opens files, whose number is what takes memory; names that share a file cost no room on the disk.
    """
    folder.mkdir(parents=True)
    write_maps(folder / "known", cases=maps, side=_SIDE)
    for part, end in (("predictions", "npy"), ("masks", "png")):
        (folder / "new" / part).mkdir(parents=True)
        for number in range(cases):
            file = folder / "known" / part / f"case_{number % maps:03d}.{end}"
            (folder / "new" / part / f"new_{number:05d}.{end}").hardlink_to(file)
    for name, table in (("known", "known.csv"), ("new", "scores.csv")):
        maps_of, truths = folder / name / "predictions", folder / name / "masks"
        _segtrust("score", maps_of, "--truth", truths, "-o", folder / table)
    goal = ("--target-risk", "0.4", "--predictor", _PREDICTOR)
    _segtrust("calibrate", folder / "known.csv", "-o", folder / "policy.json", *goal)
    return folder


def _segtrust(*arguments: object) -> None:
    command = [sys.executable, "-m", "segtrust", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"segtrust {arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")


@dataclass
class DeskProcess:
    """The desk on a run, which can be killed and started again at the same address.

    Attributes
    ----------
    folder
        Of the run.
    port
        Where it listens; 0 until it was started for the first time.
    """

    folder: Path
    port: int = 0
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process."""
        if self._process is None:
            raise RuntimeError("the desk was not started")
        return self._process.pid

    @property
    def log(self) -> Path:
        """What it complains of: nothing, if all is well."""
        return self.folder / "desk.log"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        policy = ("--policy", str(self.folder / "policy.json"), "--predictor", _PREDICTOR)
        command = [sys.executable, "-m", "segtrust", "review", str(self.folder), "--api-only", *policy]
        with self.log.open("a", encoding="utf-8") as complaints:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                env={**os.environ, "SEGTRUST_TOKEN": TOKEN},
            )
        self.port = self._announced(self._process)

    def _announced(self, process: subprocess.Popen[str]) -> int:
        """Read the port of the address that a desk prints."""
        end = time.monotonic() + _PATIENCE_S
        out = process.stdout
        while out is not None and time.monotonic() < end and process.poll() is None:
            if select.select([out], [], [], 1.0)[0]:
                found = re.search(r"http://127\.0\.0\.1:(\d+)/", out.readline())
                if found:
                    return int(found[1])
        raise RuntimeError(f"the desk did not start: {self.log.read_text(encoding='utf-8')[-2000:]}")

    def kill(self) -> None:
        """Kill it in the midst of whatever it does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it as a person does."""
        self._end(signal.SIGINT)

    def _end(self, by: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(by)
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
