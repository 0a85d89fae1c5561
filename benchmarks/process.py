"""What can only be seen from outside a process: start-up times and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Reading", "first_calls", "memory_of", "peak_memory", "processes_of", "start_up"]

_ROOT = Path(__file__).parents[1]
"""Where new processes find this package."""

_FIRST_CALL = """
import numpy as np, segtrust as st
names = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla"]
st.assess(np.full((16, 16, 16), 0.3, np.float32), estimators=names)
"""

_PEAK = """
import resource, numpy as np, segtrust as st
from benchmarks.kernels import SHAPE, _everything, logit_normal_volume
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
_everything(logit_normal_volume((20, 30, 40)))
p = logit_normal_volume()
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = peak()
_everything(p)
print((peak() - before) / (p.nbytes / 2**20))
"""


@dataclass(frozen=True)
class Reading:
    """One number seen from outside, with its unit and the limit it should keep."""

    what: str
    value: float
    unit: str
    limit: float

    @property
    def met(self) -> bool:
        """Whether the limit is kept."""
        return self.value <= self.limit


def _seconds(code: str, **environment: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
    return time.perf_counter() - begin


def start_up(*, rounds: int = 5) -> Iterator[Reading]:
    """Time the import and the first call of a new process, with and without compiled kernels on disk."""
    bare = min(_seconds("pass") for _ in range(rounds))
    light = min(_seconds("import segtrust") for _ in range(rounds))
    yield Reading("import segtrust", light - bare, "s", 0.3)
    with tempfile.TemporaryDirectory() as folder:
        cold = _seconds(_FIRST_CALL, NUMBA_CACHE_DIR=folder)
        yield Reading("first call, nothing cached", cold - bare, "s", 10.0)
        warm = min(_seconds(_FIRST_CALL, NUMBA_CACHE_DIR=folder) for _ in range(rounds))
        yield Reading("first call, kernels cached", warm - bare, "s", 1.0)


_FIRST_SDC = """
import numpy as np, segtrust as st
st.soft_dice_confidence(np.full((64, 64), 0.3, np.float32))
"""
_FIRST_SIX = """
import numpy as np, segtrust as st
st.score(np.full((64, 64), 0.3, np.float32), estimators=["sdc", "idc", "amsp", "ane", "mmmc", "pla"])
"""


def first_calls(*, rounds: int = 5) -> Iterator[Reading]:
    """Time whole processes that score one image, with the compiled kernels on disk."""
    for what, code, aim in (("SDC", _FIRST_SDC, 0.6), ("six estimators", _FIRST_SIX, 1.2)):
        _seconds(code)  # compiles what is not cached
        yield Reading(f"first call, {what}", min(_seconds(code) for _ in range(rounds)), "s", aim)


def peak_memory() -> Iterator[Reading]:
    """Measure the memory that scoring by all estimators takes beside the map; Linux only."""
    if not Path("/proc/self/clear_refs").exists():
        return
    done = subprocess.run(
        [sys.executable, "-c", _PEAK], check=True, capture_output=True, text=True, cwd=_ROOT
    )
    yield Reading("peak extra memory, all estimators", 100.0 * float(done.stdout), "% of the map", 20.0)


def processes_of(session: int) -> Iterator[Path]:
    """Yield the folders in ``/proc`` of the processes of a session, workers and their server among them."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                yield folder
        except OSError:  # it has ended
            continue


def memory_of(session: int) -> float:
    """Return the MiB that all processes of a session have together, with shared pages counted once."""
    kib = 0
    for folder in processes_of(session):
        try:
            lines = (folder / "smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:  # it has ended
            continue
        kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib / 1024
