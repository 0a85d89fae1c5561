"""A folder of broken files: each ends as one line in ``failures.csv``, and the others are scored."""

import csv
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.io import broken
from tests.io.sandbox import read_in_child

pytestmark = [
    pytest.mark.needs("PIL", "nibabel", "h5py", "zarr", "pydicom", "tifffile"),
    pytest.mark.skipif(os.name != "posix", reason="makes pipes and links"),
]


def segtrust(*arguments, **options):
    command = [sys.executable, "-m", "segtrust", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def rows_of(path):
    with path.open(newline="") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All broken files and two good ones in one manifest, scored once."""
    folder = tmp_path_factory.mktemp("files")
    canary = folder / "canary"
    maps, masks = broken.maps(folder, canary), broken.masks(folder)
    good = broken.saved(folder / "good.npy", broken.good_map())
    white = broken.saved(folder / "white.npy", np.where(broken.good_map() > 0.5, 255, 0).astype(np.uint8))
    lines = [(case, path, "") for case, (path, _) in maps.items()]
    lines += [(case, path, mask) for case, (path, mask, _) in masks.items()]
    lines += [("good", good, ""), ("0 and 255 are a mask", good, white)]
    with (folder / "cases.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("case", "probabilities", "mask"), *lines])
    done = segtrust("score", folder / "cases.csv", "-o", folder / "out/scores.csv", "--workers", "2")
    expected = {case: words for case, (_, words) in maps.items()}
    expected |= {case: words for case, (_, _, words) in masks.items()}
    return done, folder, expected, canary


def test_each_is_one_line_that_names_file_and_fault(run):
    done, folder, expected, _ = run
    assert len(expected) >= 30
    failures = rows_of(folder / "out/failures.csv")
    assert failures.keys() == expected.keys(), done.stderr
    for case, words in expected.items():
        assert re.search(words, failures[case]["reason"], re.DOTALL), (case, failures[case]["reason"])
        assert str(folder) in failures[case]["reason"], case
        assert "unexpected" not in failures[case]["reason"], (case, failures[case]["reason"])


def test_the_others_are_scored_and_the_exit_code_tells(run):
    done, folder, expected, _ = run
    assert rows_of(folder / "out/scores.csv").keys() == {"good", "0 and 255 are a mask"}
    assert done.returncode == 1
    assert "2 cases scored" in done.stdout
    assert f"{len(expected)} failed" in done.stdout
    assert "Traceback" not in done.stderr


def test_no_code_was_run(run):
    assert not run[3].exists()


LATER = {"NaN inside", "logits", "signed integers", "no pixel", "channels of another model"}
"""Files that are read, and rejected when they are scored."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_reading_in_a_process_of_its_own_ends_with_a_reason(tmp_path):
    canary = tmp_path / "canary"
    for case, (path, words) in broken.maps(tmp_path, canary).items():
        outcome = read_in_child(path)
        assert outcome.kind == ("read" if case in LATER else "rejected"), (case, outcome)
        assert case in LATER or re.search(words, outcome.value, re.DOTALL), (case, outcome)
    assert not canary.exists()


def test_files_that_find_no_partner_are_told(tmp_path):
    for name in ("a_prob.npy", "a_pred.npy", "b_prob.npy", "c_mask.npy"):
        broken.saved(tmp_path / name, broken.good_map())
    done = segtrust("score", tmp_path, "-o", tmp_path / "out/scores.csv")
    failures = rows_of(tmp_path / "out/failures.csv")
    assert done.returncode == 1
    assert "a_pred.npy" in failures["a"]["reason"]
    assert "a_prob.npy" in failures["a"]["reason"]
    assert failures.keys() == {"a"}  # the file of c is left over
    assert "left over: 1 `*_mask.npy`" in done.stdout
    assert rows_of(tmp_path / "out/scores.csv").keys() == {"b"}


AS_NOBODY = """
import os, sys
import segtrust.engine
from segtrust.cli import app

# Workers are forks of a process that was started as another user.
segtrust.engine.make_executor = lambda *_: segtrust.engine.executors.InProcessExecutor()
arguments = ["score", sys.argv[1], "-o"]
try:
    app([*arguments, sys.argv[2]], standalone_mode=False)  # so that all modules are loaded, wherever they are
except BaseException:
    pass
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
app([*arguments, sys.argv[3]])
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users here")
def test_a_file_that_may_not_be_read(tmp_path):
    """Run as nobody where we are root, whom modes do not stop."""
    maps, out, first = (tmp_path / name for name in ("maps", "out", "first"))
    for folder in (maps, out):
        folder.mkdir()
        folder.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o005)
    for name in ("a.npy", "b.npy"):
        broken.saved(maps / name, broken.good_map())
    (maps / "a.npy").chmod(0)
    command = [sys.executable, "-c", AS_NOBODY, maps, first / "scores.csv", out / "scores.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "Permission denied" in rows_of(out / "failures.csv")["a"]["reason"]
    assert rows_of(out / "scores.csv").keys() == {"b"}
