"""Everything a user can rely on by name: commands, options, formats, estimators, public names, columns.

`inventory.json` lists it. A commit that removes or adds something changes the inventory, and says why.
"""

import json
import re
import shutil
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.helpers import RECORDING, format_golden, plain, read_columns, read_csv
from tests.behaviour.maps import CONTENTS, FLAT, blob, write_cases
from tests.behaviour.test_formats import WRITERS
from tests.commands import command_tree, segtrust

INVENTORY = Path(__file__).parent / "inventory.json"
RELEASE = Path(__file__).parents[1] / "fixtures/release-0.1.0"
ADVICE = (
    "If this is intended, change tests/behaviour/inventory.json in a commit that says why "
    "(SEGTRUST_RECORD=1 rewrites it)."
)
ENDINGS = (
    *(".npy", ".npz", ".nii", ".nii.gz", ".mha", ".mhd", ".nrrd", ".nhdr", ".h5", ".hdf5", ".zarr"),
    *(".ome.zarr", ".zarr.zip", ".dcm", ".png", ".tif", ".tiff", ".ome.tif", ".ome.tiff", ".bmp", ".webp"),
    *(
        ".jpg",
        ".jpeg",
        ".gif",
        ".pt",
        ".pth",
        ".pkl",
        ".mat",
        ".txt",
        ".json",
        ".md",
        ".zip",
        ".npy.gz",
        ".img",
    ),
)
"""Names that files in a folder of maps may have; the inventory says which of them count as maps."""


def compare(section, found):
    """Fail with what is missing from a section of the inventory, and with what is not in it."""
    found = plain(found)
    if RECORDING:
        known = json.loads(INVENTORY.read_text("utf-8")) if INVENTORY.exists() else {}
        INVENTORY.write_text(format_golden({**known, section: found}), "utf-8")
    listed = json.loads(INVENTORY.read_text("utf-8"))[section]
    if isinstance(listed, dict):
        listed = {(name, item) for name, items in listed.items() for item in ("", *items)}
        found = {(name, item) for name, items in found.items() for item in ("", *items)}
    gone = sorted(" ".join(each) if isinstance(each, tuple) else each for each in set(listed) - set(found))
    new = sorted(" ".join(each) if isinstance(each, tuple) else each for each in set(found) - set(listed))
    assert not gone, f"{section}: gone: {gone}. {ADVICE}"
    assert not new, f"{section}: not in the inventory: {new}. {ADVICE}"


# Commands.


def walk(command, path="segtrust"):
    """Return a line for each option and argument, by command."""
    found = {path: sorted(describe(parameter) for parameter in command.params)}
    for name, inner in getattr(command, "commands", {}).items():
        found |= walk(inner, f"{path} {name}")
    return found


def describe(parameter):
    """Return how an option is spelled, and its limits, choices and default."""
    is_argument = not parameter.opts[0].startswith("-")
    words = [f"<{parameter.name}>"] if is_argument else [*parameter.opts, *parameter.secondary_opts]
    if parameter.nargs == -1 or getattr(parameter, "multiple", False):
        words.append("several")
    limits = getattr(parameter, "type", parameter)  # of Typer's older versions, and of its newer ones
    words += [
        f"{end}={getattr(limits, end)}" for end in ("min", "max") if getattr(limits, end, None) is not None
    ]
    default = parameter.default
    if isinstance(default, Enum):
        words.append(f"({'|'.join(str(choice.value) for choice in type(default))})")
        default = default.value
    if parameter.required:
        words.append("required")
    elif not is_argument and getattr(parameter, "is_flag", False):
        words.append(f"flag={bool(default)}")
    elif default not in (None, (), []) and not callable(default):
        words.append(f"default={str(default).replace(str(Path.home()), '~')}")
    return " ".join(words)


def test_commands_and_options():
    compare("commands", walk(command_tree()))


def test_every_command_shows_its_help():
    for path in walk(command_tree()):
        done = segtrust(*path.split()[1:], "--help")
        assert (done.returncode, done.stderr) == (0, ""), path
        assert "Usage:" in done.stdout


# Names in Python.


def test_public_names():
    compare("public names", st.__all__)
    for name in st.__all__:
        assert getattr(st, name) is not None
    assert set(dir(st)) >= set(st.__all__)  # and the submodules, which load on first use


def test_errors():
    """All errors, and what a caller may catch them by."""
    errors = {name: kind for name, kind in vars(st.errors).items() if is_error(kind)}
    compare("errors", {name: [base.__name__ for base in kind.__mro__[1:-1]] for name, kind in errors.items()})
    kinds = (st.errors.SegtrustError, st.errors.SegtrustWarning)
    assert all(issubclass(kind, kinds) for kind in errors.values())


def is_error(kind):
    return isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == st.errors.__name__


def test_estimators():
    """The error for an unknown name lists those that there are."""
    with pytest.raises(st.errors.UnknownNameError) as raised:
        st.get_estimator("none-such")
    words = sorted(set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", str(raised.value))))
    found = {name: type(st.get_estimator(name)) for name in words if is_estimator(name)}
    compare("estimators", {name: [kind.__name__] for name, kind in found.items()})
    assert all(getattr(st, kind.__name__) is kind for kind in found.values())


def is_estimator(name):
    try:
        return st.get_estimator(name).name == name
    except st.errors.UnknownNameError:
        return False


def test_estimators_that_need_no_ground_truth(tmp_path):
    write_cases(tmp_path / "maps", 1)
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv", "--estimators", "all")
    assert done.returncode == 0, done.stderr
    columns = read_columns(tmp_path / "scores.csv")
    compare("estimators of 'all'", [name for name in columns if is_estimator(name)])


def test_risks():
    compare("risks", sorted(st.RISKS))


# Files.


def test_formats():
    """Each has a test that writes and scores it, in test_formats.py."""
    compare("formats", sorted(WRITERS))


def test_endings(tmp_path):
    """Which files of a folder count as maps: they are scored, or listed as failures."""
    (tmp_path / "maps").mkdir()
    for number, ending in enumerate(ENDINGS):
        (tmp_path / f"maps/x{number:02d}{ending}").write_text("no map")
    np.save(tmp_path / "maps/good.npy", CONTENTS["flat f4"])
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert done.returncode == 1
    found = {ending: [] for ending in ("opened", "listed, not opened", "passed over")}
    kinds = {Path(row["file"]).name[3:]: row["kind"] for row in read_csv(tmp_path / "failures.csv")}
    for ending in ENDINGS:
        kind = kinds.get(ending)
        found[
            "passed over" if kind is None else "listed, not opened" if kind == "Unpaired" else "opened"
        ].append(ending)
    compare("endings", found)


# Columns.


def test_columns_of_scores(tmp_path):
    """Of a run with everything that adds columns, and of the tables beside it."""
    write_cases(tmp_path / "maps", 3, truths=tmp_path / "truth")
    write_cases(tmp_path / "second", 3)
    np.save(tmp_path / "maps/broken.npy", np.full(FLAT, np.nan))
    shutil.copytree(tmp_path / "truth", tmp_path / "masks")
    shutil.copytree(tmp_path / "maps", tmp_path / "images")
    policy = ("--policy", RELEASE / "policy.json")
    runs = {
        "bare": (),
        "ground truth": ("--truth", tmp_path / "truth"),
        "members": ("--member", tmp_path / "second", "--estimators", "sdc,pairwise-dice"),
        "masks sought": ("--decode", "dice-optimal"),
        "policy": policy,
        "everything": (
            *(
                "--truth",
                tmp_path / "truth",
                "--mask-dir",
                tmp_path / "masks",
                "--image-dir",
                tmp_path / "images",
            ),
            *("--member", tmp_path / "second", "--estimators", "all", *policy),
        ),
    }
    columns = {}
    for name, options in runs.items():
        done = segtrust("score", tmp_path / "maps", "-o", tmp_path / f"{name}.csv", *options)
        assert done.returncode == 1, done.stderr
        columns[f"score, {name}"] = read_columns(tmp_path / f"{name}.csv")
        columns["failures"] = read_columns(tmp_path / "failures.csv")
    done = segtrust("triage", tmp_path / "maps", *policy, "-o", tmp_path / "triage")
    assert done.returncode == 1, done.stderr
    for path in sorted((tmp_path / "triage").glob("*.csv")):
        columns[f"triage, {path.name}"] = read_columns(path)
    compare("columns", columns)


def test_columns_of_manifests(tmp_path):
    """Each column of a manifest is used: it shows in the row of the case."""
    p = blob(FLAT)
    for name in ("p", "q", "image"):
        np.save(tmp_path / f"{name}.npy", p)
    for name in ("mask", "truth"):
        np.save(tmp_path / f"{name}.npy", np.uint8(p > 0.4))
    row = {
        **{
            "case": "ann",
            "probabilities": "p.npy",
            "members": "q.npy",
            "mask": "mask.npy",
            "truth": "truth.npy",
        },
        **{"image": "image.npy", "group": "site", "split": "test", "unknown": "?"},
    }
    (tmp_path / "cases.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "scores.csv")
    assert done.returncode == 0, done.stderr
    (found,) = read_csv(tmp_path / "scores.csv")
    text = " ".join(map(str, found.values()))
    compare("columns of manifests", sorted(name for name, value in row.items() if value in text))


def test_the_inventory_has_no_other_sections():
    sections = re.findall(r'compare\(\s*"([^"]+)"', Path(__file__).read_text("utf-8"))
    assert sorted(json.loads(INVENTORY.read_text("utf-8"))) == sorted(sections)
