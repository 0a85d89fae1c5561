"""A process that reads one input after the other under limits, watched by another that it may take down.

Started as ``python -m tools.reliability.fuzz.served READER …``, with the readers that it shall be ready for:
it takes a reader and a path a line, and answers each with a verdict. Whoever asks waits no longer than a
reader may take, and begins another where one has died.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tools.reliability.fuzz.bundles import lay_out
from tools.reliability.fuzz.checks import MOST_BYTES, SECONDS, Cost, Verdict, bound_memory, judged, measured

__all__ = ["Served", "environment", "get_ready"]

_ROOT = Path(__file__).parents[3]
_BEGIN_S = 180.0
"""Longest that a process may take until all is imported and compiled."""
_PATIENCE = 20
"""How many times longer a process is waited for that gets no core."""
_LIBRARIES = (
    *("nibabel", "SimpleITK", "h5py", "zarr", "tifffile", "imagecodecs", "pydicom.pixels", "pyarrow.parquet"),
    *("PIL.PngImagePlugin", "PIL.BmpImagePlugin", "PIL.WebPImagePlugin", "numba"),
)


def _core_seconds(pid: int) -> float:
    """Time that a process has had a core so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wants_core(pid: int) -> bool:
    """Whether a process, or one of its threads, would go on if it could."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return any(each.read_text().rpartition(")")[2].split()[0] in "RD" for each in threads)


def environment() -> dict[str, str]:
    """Give what a process that reads is to know: its limits, and few threads, which all take addresses."""
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT), os.environ.get("PYTHONPATH", "")])
    few = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    limits = {"SEGTRUST_MAX_BYTES": str(MOST_BYTES), "MALLOC_ARENA_MAX": "2"}
    limits["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # its own sets aside addresses by the gigabyte
    return {**os.environ, **few, **limits, "PYTHONPATH": path}


class Served:
    """Asks a process to read; a new one whenever the last has died.

    Parameters
    ----------
    readers
        That the process reads the seeds of before its memory is counted; others are ready when all libraries
        are imported.
    """

    def __init__(self, readers: Sequence[str] = ()) -> None:
        self._readers = tuple(readers)
        self._process: subprocess.Popen[bytes] | None = None
        self.most = Cost()
        """The largest that an input took."""

    def __enter__(self) -> Served:
        """Begin; the process is started when it is first asked."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def judged(self, reader: str, path: Path) -> Verdict:
        """Let the process read a file, and give its verdict, or what became of it."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(f"{reader}\t{path}\n".encode())
        process.stdin.flush()
        answer = self._answer()
        if answer is None:
            self._end()
            return Verdict("hang", f"no answer for {SECONDS:g} s")
        if not answer:
            return Verdict("crash", self._cause())
        verdict, cost = json.loads(answer)
        self.most = self.most.or_more(Cost(**cost))
        return Verdict(**verdict)

    def _answer(self) -> bytes | None:
        """Wait for an answer, on a busy machine longer: what counts is the time of a core."""
        assert self._process is not None
        begin, until = _core_seconds(self._process.pid), time.monotonic() + _PATIENCE * SECONDS
        while (answer := self._line(SECONDS)) is None:
            is_waiting = not _wants_core(self._process.pid)
            if is_waiting or _core_seconds(self._process.pid) - begin > SECONDS or time.monotonic() > until:
                break
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-m", "tools.reliability.fuzz.served", *self._readers]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                cwd=_ROOT,
            )
            if not self._line(_BEGIN_S):
                raise RuntimeError(f"the process that reads did not begin: {self._cause()}")
        return self._process

    def _line(self, seconds: float) -> bytes | None:
        """Give what the process writes; nothing where it has ended, ``None`` where it is silent."""
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return self._process.stdout.readline() if ready else None

    def _cause(self) -> str:
        """Say how the process has ended."""
        assert self._process is not None
        self._process.communicate()
        code, self._process = self._process.returncode, None
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def get_ready(readers: Sequence[str]) -> None:
    """Import and compile all that readers need, by their seeds, before memory is counted."""
    from tools.reliability.fuzz import readers as _readers, seeds  # noqa: F401

    for name in _LIBRARIES:
        if find_spec(name.partition(".")[0]):
            import_module(name)
    for reader in readers:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            (Path(folder) / "seeds").mkdir()
            for number, bundle in enumerate(seeds.SEEDS[reader](Path(folder) / "seeds")):
                verdict = judged(reader, lay_out(bundle, Path(folder) / str(number)))
                if verdict.kind not in ("read", "refused"):
                    raise RuntimeError(f"{reader}: seed {next(iter(bundle))}: {verdict}")


def _serve(readers: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")  # libraries may write on the usual one
    os.dup2(2, 1)
    get_ready(readers)
    bound_memory()
    for line in itertools.chain([""], sys.stdin):  # the first answer says that all is ready
        reader, _, path = line.rstrip("\n").partition("\t")
        verdict, cost = measured(reader, Path(path)) if reader else (Verdict("read"), Cost())
        answers.write(json.dumps([vars(verdict), vars(cost)]) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.argv[1:])
