"""Packages that add something to segtrust, as they lie on the path once they are installed."""

from contextlib import contextmanager
from importlib import invalidate_caches

import numpy as np

from segtrust import plugins


def package(folder, name, entries, modules=None, version="1.0"):
    """Write a package: its entry points by group, and the text of its modules."""
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    listed = [
        f"[segtrust.{group}]\n" + "".join(f"{key} = {value}\n" for key, value in of_group.items())
        for group, of_group in entries.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(listed))
    for module, text in (modules or {}).items():
        (folder / f"{module}.py").write_text(text)
    invalidate_caches()  # or a module that was written just now may not be found
    return folder


@contextmanager
def installed(monkeypatch, folder):
    """Let packages be found, and forget them afterwards."""
    monkeypatch.syspath_prepend(folder)
    forget()
    try:
        yield folder
    finally:
        forget()


def forget():
    plugins.installed_plugins.cache_clear()
    plugins.warn_once.cache_clear()


ESTIMATOR = """
from dataclasses import dataclass
from segtrust.confidence import ConfidenceEstimator, Needs

@dataclass(frozen=True)
class Share(ConfidenceEstimator):
    power: float = 1.0
    name = "{name}"
    label = "Share"

    @property
    def needs(self):
        return Needs(counts=True)

    def read(self, summary):
        counts = summary.counts
        return (counts.k / counts.n) ** self.power
"""

READER = """
import struct
import numpy as np
from segtrust.errors import DamagedFileError
from segtrust.io import Reader
from segtrust.io import Volume

def recognises(path, head):
    return head[:4] == b"RAW7"

def open_raw7(path, key):
    data = path.read_bytes()
    count = data[4] if len(data) > 4 else 0
    shape = struct.unpack_from(f"<{count}I", data, 5) if len(data) >= 5 + 4 * count else ()
    size = 4 * int(np.prod(shape, dtype=object))
    if not 2 <= count <= 4 or len(data) != 5 + 4 * count + size:
        raise DamagedFileError(f"{path}: expected {size} bytes of pixels, got another number.")
    def load(channel):
        values = np.frombuffer(data, "<f4", offset=5 + 4 * count).reshape(shape)
        return values if channel is None else values[channel]
    return Volume(path, shape, np.dtype("<f4"), load)

def write(path, values):
    head = struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
    path.write_bytes(b"RAW7" + head + values.tobytes())

READER = Reader("RAW7", recognises, open_raw7)
"""

TASK = """
from segtrust.tasks import Recipe, Source, Task, files_in, paired  # as plug-ins of release 0.1 do

TASK = Task(
    name="lesions",
    title="Lesions",
    network="unext",
    size=(64, 64),
    find=lambda data: paired(files_in(data / "images"), files_in(data / "masks")),
    recipes={"usual": Recipe(epochs=2)},
    source=Source("here", "mine", "me", "images and masks"),
)
"""

TRAP = """
import os
import signal
import time
import numpy as np
from segtrust.io import Reader, Volume

HEAD = 4096  # a NumPy array follows it, so that it begins on a page

def recognises(path, head):
    return head[:4] == b"TRAP"

def open_trap(path, key):
    trap = path.with_suffix(".does")
    does = trap.read_text() if trap.exists() else ""
    with path.open("rb") as file:
        file.seek(HEAD)
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        start = file.tell()
    if does == "truncate always":  # also when it is read again
        os.truncate(path, start + dtype.itemsize * int(np.prod(shape)))
    values = np.memmap(path, dtype, "r", start, shape)
    def load(channel):
        if does.startswith("truncate"):  # by the reader itself: always at the same moment
            os.truncate(path, start)
        elif does == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif does == "hang":
            time.sleep(3600)
        elif does == "raise":
            raise RuntimeError("bad chunk")
        elif does == "interrupt":
            raise KeyboardInterrupt
        return values if channel is None else values[channel]
    return Volume(path, shape, dtype, load)

READER = Reader("TRAP", recognises, open_trap)
"""


def trap_package(folder):
    """Write a package that reads ``.trap`` files, as the text of the file ``.does`` beside them says.

    It can truncate the file that it has mapped, kill its own process, wait, or raise an error.
    """
    return package(folder, "traps", {"readers": {"trap": "traps:READER"}}, {"traps": TRAP})


def write_trap(path, values, does=""):
    """Write a map for this reader; without ``does`` it is read as any other."""
    with path.open("wb") as file:
        file.write(b"TRAP".ljust(4096, b"\0"))
        np.save(file, values)
    if does:
        path.with_suffix(".does").write_text(does)
