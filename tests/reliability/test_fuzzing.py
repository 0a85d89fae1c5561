"""Readers under files that were tampered with: what was found stays mended, and the checks can fail."""

import gzip
import io
import os
import random
import signal
import subprocess
import sys
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import DamagedFileError
from tools.reliability import fuzzing
from tools.reliability.fuzz import bundles, checks, mutations, readers, served
from tools.reliability.fuzz.traps import TRAPS

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.needs("PIL", "SimpleITK", "h5py", "nibabel", "pyarrow", "pydicom", "tifffile", "zarr"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does"),
]

FOUND = Path(__file__).parents[1] / "fixtures/fuzz"
SLOW = {"lzma bomb", "bz2 bomb", "100,000 arrays", "100,000 pages", "Parquet of 10⁸ characters"}
"""Traps that take long to write."""
READ = {"1,000,000 cases", "100,000 classes", "path out of the archive", ("hdf5", "deflate bomb")}
"""Traps that do no harm when they are read; the engine rejects the first two."""


def judged_traps(asked, folder, names):
    """What came of traps that were neither rejected nor contained in their process."""
    faults = {}
    for number, (reader, name) in enumerate(names):
        place = folder / f"trap{number}"
        place.mkdir()
        verdict = asked.judged(reader, TRAPS[reader, name](place))
        if verdict.is_fault(reader) or (verdict.kind == "read" and READ.isdisjoint({name, (reader, name)})):
            faults[reader, name] = verdict
    return faults


def test_what_was_found_is_mended_and_traps_are_refused(tmp_path):
    corpus = sorted(path for path in FOUND.glob("*/*") if path.is_dir())
    assert len(corpus) >= 40
    with served.Served() as asked:
        faults = {}
        for path in corpus:
            verdict = asked.judged(path.parent.name, bundles.lay_out(bundles.load(path), tmp_path / "input"))
            faults |= {path.relative_to(FOUND): verdict} if verdict.is_fault(path.parent.name) else {}
        quick = [each for each in TRAPS if each[1] not in SLOW and each[0] != "dicomseg"]
        faults |= judged_traps(asked, tmp_path, quick)
    assert not faults


@pytest.mark.slow
@pytest.mark.needs("highdicom")
def test_traps_that_take_long_to_write_are_refused(tmp_path):
    slow = [each for each in TRAPS if each[1] in SLOW or each[0] == "dicomseg"]
    with served.Served() as asked:
        assert not judged_traps(asked, tmp_path, slow)


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["npz", "tiff", "image", "log"])
def test_a_few_seconds_of_fuzzing_find_nothing(reader):
    found = fuzzing.fuzz(reader, 3.0, seed=7, guided=False)
    assert found.inputs > 5
    assert not found.findings


def test_bundles_are_packed_and_written_as_they_are(tmp_path):
    bundle = {"a.zarr/zarr.json": b"{}", "a.zarr/c/0": b"\0\1", "b.pkl": b""}
    assert bundles.unpack(bundles.pack(bundle)) == bundle
    assert bundles.unpack(bundles.pack(bundle)[:-1]) is None
    assert bundles.lay_out(bundle, tmp_path / "x") == tmp_path / "x/a.zarr"
    (tmp_path / "x/main").write_text("a.zarr/zarr.json\n")
    assert bundles.load(tmp_path / "x") == bundle
    assert next(iter(bundles.load(tmp_path / "x"))) == "a.zarr/zarr.json"


def test_changes_reach_what_is_packed():
    """Archives stay archives whose checksums are right, and what is in them is another."""
    file = io.BytesIO()
    np.savez_compressed(file, p=np.zeros((8, 8), np.float32))
    packed = gzip.compress(bytes(range(200)))
    changed = 0
    for seed in range(60):
        chance = random.Random(seed)
        found = mutations.mutated_bytes(file.getvalue(), chance, b"other")
        with (
            suppress(zipfile.BadZipFile, zlib.error, ValueError),
            zipfile.ZipFile(io.BytesIO(found)) as archive,
        ):
            changed += archive.testzip() is None and found != file.getvalue()
        unpacked = mutations.mutated_bytes(packed, chance, b"other")
        changed += unpacked[:2] == b"\x1f\x8b" and unpacked != packed
    assert changed > 60


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, "read"),
        (KeyError("x"), "error"),
        (OSError("no file is named"), "error"),
        (MemoryError(), "memory"),
        (DamagedFileError("{path}: expected data, got none."), "refused"),
        (DamagedFileError("expected data, got none."), "words"),
        (DamagedFileError("{path}: Unable to allocate 9 GiB"), "refused"),  # it was, and not used
    ],
)
def test_what_a_reader_does_is_judged(monkeypatch, tmp_path, error, kind):
    path = tmp_path / "a.npy"

    def read(_):
        if isinstance(error, DamagedFileError):
            raise DamagedFileError(str(error).replace("{path}", str(path)))
        if error is not None:
            raise error

    monkeypatch.setitem(readers.READ, "npy", read)
    assert checks.judged("npy", path).kind == kind


MEASURED = """
import time
from pathlib import Path
import numpy as np
from tools.reliability.fuzz import checks, readers

def read(_):
    begin = time.process_time()
    while time.process_time() - begin < 0.05:
        np.ones(40 << 20, np.uint8).sum()

readers.READ["npy"] = read
verdict, cost = checks.measured("npy", Path("a.npy"))
print(verdict.kind, cost.seconds, cost.mebibytes)
"""


def test_what_an_input_takes_is_measured():
    """In a process of its own: one that has memory to spare needs no more."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kind, seconds, mebibytes = done.stdout.split()
    assert kind == "read"
    assert float(seconds) >= 0.05
    assert float(mebibytes) > 20
    assert checks.Cost(1.0, 30.0).or_more(checks.Cost(60.0, 0.0)) == checks.Cost(60.0, 30.0)


_TAKES_MEMORY = """
from pathlib import Path
import numpy as np
from segtrust.errors import DamagedFileError
from tools.reliability.fuzz import checks, readers
def read(path):
    np.ones(100 << 20, np.uint8)
    raise DamagedFileError(f"{path}: unable to allocate")
readers.READ["npy"] = read
checks.HEADROOM = 50 << 20
print(checks.judged("npy", Path("a.npy")).kind)
"""


def test_memory_that_is_used_is_a_fault_however_it_is_told():
    """In a process of its own: one that has run many tests has memory to spare, and takes no more."""
    done = subprocess.run(
        [sys.executable, "-c", _TAKES_MEMORY], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "memory\n", done.stderr


def test_a_failure_that_nobody_foresaw_is_a_fault(monkeypatch, tmp_path):
    """The engine tells everything as the failure of a case; here what is none of its own is found out."""
    np.save(tmp_path / "a.npy", np.full((4, 4), 0.5, np.float32))
    monkeypatch.setattr("segtrust.engine.scoring.assess_map", lambda *_: {}["nothing"])
    assert checks.judged("npy", tmp_path / "a.npy").kind == "error"


@pytest.mark.slow
def test_a_process_that_dies_or_hangs_is_told(monkeypatch, tmp_path):
    np.save(tmp_path / "a.npy", np.full((4, 4), 0.5, np.float32))
    with served.Served() as asked:
        os.kill(asked._running().pid, signal.SIGSEGV)
        assert asked.judged("npy", tmp_path / "a.npy") == checks.Verdict("crash", "SIGSEGV")
        os.kill(asked._running().pid, signal.SIGSTOP)
        monkeypatch.setattr(served, "SECONDS", 0.2)
        assert asked.judged("npy", tmp_path / "a.npy").kind == "hang"


def test_a_row_has_a_cell_for_each_column():
    found = fuzzing.Fuzzed("tiff", inputs=1200, seconds=60.0, edges=511)
    assert found.row() == "| tiff | 1,200 | 60 | 20 | 511 | 0 | 0 | 0 |"
    assert len(found.row().strip("| ").split(" | ")) == len(fuzzing.COLUMNS)
