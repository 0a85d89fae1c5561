"""What goes wrong: one bad case never stops the others, and the exit code says what happened.

0: everything was done. 1: some cases failed, and ``failures.csv`` says why. 2: nothing could be done.
"""

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.helpers import assert_golden, read_csv
from tests.behaviour.maps import FLAT, VOLUME, blob, truth_of, write_cases
from tests.commands import segtrust, segtrust_process
from tests.io import broken

FUZZ = Path(__file__).parents[1] / "fixtures/fuzz"
RELEASE = Path(__file__).parents[1] / "fixtures/release-0.1.0"
SECONDS = 120
LIBRARIES = pytest.mark.needs("PIL", "nibabel", "h5py", "zarr", "pydicom", "tifffile", "SimpleITK")
POSIX = pytest.mark.skipif(os.name != "posix", reason="makes pipes and links")
FORESEEN = {"Unpaired", "Quarantined", "OSError", "FileNotFoundError", "IsADirectoryError", "PermissionError"}
"""Kinds of failure that are not errors of segtrust's own."""


def is_foreseen(failure):
    """Whether a failure is one that segtrust knows, not an error from anywhere inside it."""
    return failure["kind"] in FORESEEN or issubclass(
        getattr(st.errors, failure["kind"], int), st.errors.SegtrustError
    )


def write_manifest(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("case", "probabilities", "mask", "truth"), *rows])
    return path


# Broken files.


@LIBRARIES
@POSIX
def test_broken_files_are_named_failures(tmp_path):
    """All broken maps and masks with two good cases among them, scored by one command."""
    canary = tmp_path / "canary"
    rows = [(case, path, "", "") for case, (path, _) in broken.maps(tmp_path, canary).items()]
    rows += [(case, path, mask, "") for case, (path, mask, _) in broken.masks(tmp_path).items()]
    bad = [row[0] for row in rows]
    assert len(bad) >= 40
    good = broken.saved(tmp_path / "good.npy", broken.good_map())
    rows.insert(len(rows) // 2, ("good", good, "", ""))
    rows.append(("good as well", good, "", ""))
    manifest = write_manifest(tmp_path / "cases.csv", rows)
    out = tmp_path / "out"
    done = segtrust_process("score", manifest, "-o", out / "scores.csv", "--json", timeout=SECONDS)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads(done.stdout)
    assert (summary["cases"], summary["failed"]) == (2, len(bad))
    failures = {row["case"]: row for row in read_csv(out / "failures.csv")}
    assert sorted(failures) == sorted(bad)
    for case, failure in failures.items():
        assert is_foreseen(failure), failure
        assert str(tmp_path) in failure["reason"], case
    assert not canary.exists(), "a pickle was run"
    scored = {row["case"]: row["sdc"] for row in read_csv(out / "scores.csv")}
    expected = st.soft_dice_confidence(broken.good_map())
    assert scored == pytest.approx({"good": expected, "good as well": expected}, rel=1e-12)


def fuzz_inputs(*readers):
    return sorted(path for reader in readers for path in (FUZZ / reader).iterdir() if path.is_dir())


def lay_out(bundle, folder):
    """Copy an input of the fuzz corpus and return the file that is read first."""
    copied = Path(shutil.copytree(bundle, folder))
    files = sorted(path for path in copied.rglob("*") if path.is_file() and path.name != "main")
    if not (copied / "main").exists():
        return files[0]
    main = copied / (copied / "main").read_text().strip()
    (copied / "main").unlink()
    return main


@LIBRARIES
@pytest.mark.needs("pyarrow")
def test_maps_of_the_fuzz_corpus(tmp_path):
    """Files that once crashed, hung or filled the memory: each is a failure now, or read."""
    inputs = fuzz_inputs("dicomseg", "itk", "nifti", "nnunet", "picture", "tiff")
    rows = [
        (f"{each.parent.name} {each.name}", lay_out(each, tmp_path / f"input{number}"), "", "")
        for number, each in enumerate(inputs)
    ]
    np.save(tmp_path / "good.npy", broken.good_map())
    rows.append(("good", tmp_path / "good.npy", "", ""))
    manifest = write_manifest(tmp_path / "cases.csv", rows)
    done = segtrust_process("score", manifest, "-o", tmp_path / "scores.csv", timeout=SECONDS)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    failures = read_csv(tmp_path / "failures.csv")
    assert all(map(is_foreseen, failures)), failures
    scored = [row["case"] for row in read_csv(tmp_path / "scores.csv")]
    found = {"failed": sorted(row["case"] for row in failures), "scored": sorted(set(scored))}
    assert sorted([*found["failed"], *found["scored"]]) == sorted(row[0] for row in rows)
    assert_golden("files/fuzz", found)


COMMANDS = {
    "manifest": [("score", "{input}", "-o", "{out}/scores.csv")],
    "policy": [("triage", "{maps}", "--policy", "{input}", "-o", "{out}")],
    "state": [("score", "{maps}", "-o", "{out}/scores.csv", "--calibrate-maps", "{input}")],
    "table": [
        ("calibrate", "{input}", "-o", "{out}/policy.json", "--target-risk", "0.3"),
        ("merge", "{input}", "-o", "{out}/scores.csv"),
    ],
    "losses": [("evaluate", "{maps}", "--losses", "{input}", "-o", "{out}")],
    "dataset": [("score", "{maps}", "-o", "{out}/scores.csv", "--names", "{input}", "--region", "each")],
}


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("bundle", fuzz_inputs(*COMMANDS), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_other_files_of_the_fuzz_corpus(tmp_path, bundle):
    """Each ends with an exit code and a message, never with a traceback, which would be raised here."""
    write_cases(tmp_path / "maps", 2)
    for number, command in enumerate(COMMANDS[bundle.parent.name]):
        path = lay_out(bundle, tmp_path / f"input{number}")
        words = [word.format(input=path, maps=tmp_path / "maps", out=tmp_path / "out") for word in command]
        done = segtrust(*words)
        assert done.returncode in (1, 2), done
        assert "Traceback" not in done.stderr
        assert done.returncode == 1 or done.stderr.startswith("error: "), done.stderr
        for path in (tmp_path / "out").glob("failures.csv"):
            assert all(map(is_foreseen, read_csv(path))), read_csv(path)


# Single faults.


def faulty(fault):
    """Return a map with a fault."""
    p = blob(FLAT)
    if fault == "NaN":
        p[3, 4] = np.nan
    elif fault == "infinite":
        p[3, 4] = np.inf
    elif fault == "logits":
        p = 8 * p - 4
    elif fault == "percent":
        p = 100 * p
    elif fault == "just negative":
        p[0, 0] = -0.001
    elif fault == "signed whole numbers":
        p = np.int32(p)
    elif fault == "text":
        p = np.full(FLAT, "0.5")
    elif fault == "one row of pixels":
        p = p[0]
    elif fault == "no pixel":
        p = p[:0]
    return p


FAULTS = {
    "NaN": "ProbabilityRangeError",
    "infinite": "ProbabilityRangeError",
    "logits": "ProbabilityRangeError",
    "percent": "ProbabilityRangeError",
    "just negative": "ProbabilityRangeError",
    "signed whole numbers": "ProbabilityTypeError",
    "text": "ReadError",
    "no pixel": "SegtrustError",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_map(tmp_path, fault):
    write_cases(tmp_path / "maps", 3)
    np.save(tmp_path / "maps/case_001.npy", faulty(fault))
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert done.returncode == 1, done.stderr
    assert "case_001" in done.stderr + done.stdout
    (failure,) = read_csv(tmp_path / "failures.csv")
    assert failure["case"] == "case_001"
    assert issubclass(getattr(st.errors, failure["kind"]), getattr(st.errors, FAULTS[fault])), failure
    assert failure["file"].endswith("case_001.npy")
    assert failure["file"] in failure["reason"]
    assert failure["table"] == "scores.csv"
    assert [row["case"] for row in read_csv(tmp_path / "scores.csv")] == ["case_000", "case_002"]


def test_rounding_beyond_one_is_no_fault(tmp_path):
    write_cases(tmp_path / "maps", 1)
    p = np.load(tmp_path / "maps/case_000.npy")
    p[0, 0] = 1 + 1e-7
    np.save(tmp_path / "maps/case_000.npy", p)
    assert segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv").returncode == 0


def test_the_list_of_failures_goes_when_they_are_gone(tmp_path):
    write_cases(tmp_path / "maps", 2)
    good = np.load(tmp_path / "maps/case_001.npy")
    np.save(tmp_path / "maps/case_001.npy", faulty("logits"))
    arguments = ("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert segtrust(*arguments).returncode == 1
    np.save(tmp_path / "maps/case_001.npy", good)
    done = segtrust(*arguments)
    assert done.returncode == 0, done.stderr
    assert len(read_csv(tmp_path / "scores.csv")) == 2
    assert not (tmp_path / "failures.csv").exists()


@pytest.fixture
def truths(tmp_path):
    write_cases(tmp_path / "maps", 4, truths=tmp_path / "truth")
    (tmp_path / "truth/case_000.npy").unlink()
    np.save(tmp_path / "truth/case_001.npy", truth_of((FLAT[1], FLAT[0])))
    np.save(tmp_path / "truth/case_002.npy", 7 * truth_of(FLAT) + truth_of(FLAT, radius=0.2))
    np.save(tmp_path / "truth/nobody.npy", truth_of(FLAT))
    return tmp_path


def test_ground_truth_that_is_missing_or_does_not_fit(truths):
    done = segtrust("score", truths / "maps", "-o", truths / "scores.csv", "--truth", truths / "truth")
    assert done.returncode == 1, done.stderr
    kinds = {row["case"]: row["kind"] for row in read_csv(truths / "failures.csv")}
    scored = {row["case"]: row["dice"] != "" for row in read_csv(truths / "scores.csv")}
    assert_golden("files/truths", {"failures": kinds, "scored, with a dice": scored})


def test_masks_that_do_not_fit(truths):
    done = segtrust("score", truths / "maps", "-o", truths / "scores.csv", "--mask-dir", truths / "truth")
    assert done.returncode == 1, done.stderr
    kinds = {row["case"]: row["kind"] for row in read_csv(truths / "failures.csv")}
    scored = {row["case"]: row["mask"] for row in read_csv(truths / "scores.csv")}
    assert_golden("files/masks", {"failures": kinds, "scored, with a mask": scored})


def test_members_that_do_not_fit(tmp_path):
    for folder in ("maps", "second"):
        write_cases(tmp_path / folder, 4)
    (tmp_path / "second/case_000.npy").unlink()
    np.save(tmp_path / "second/case_001.npy", blob((FLAT[1], FLAT[0])))
    np.save(tmp_path / "second/case_002.npy", faulty("NaN"))
    out = tmp_path / "scores.csv"
    done = segtrust("score", tmp_path / "maps", "-o", out, "--member", tmp_path / "second")
    assert done.returncode == 1, done.stderr
    assert [row["case"] for row in read_csv(out)] == ["case_003"]
    assert sorted(row["case"] for row in read_csv(tmp_path / "failures.csv")) == [
        f"case_{number:03d}" for number in range(3)
    ]


def test_two_maps_of_one_case(tmp_path):
    (tmp_path / "maps").mkdir()
    for name in ("a_prob.npy", "a_pred.npy", "b_prob.npy", "c_mask.npy"):
        np.save(tmp_path / "maps" / name, blob(FLAT))
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert done.returncode == 1
    failures = {row["case"]: row["kind"] for row in read_csv(tmp_path / "failures.csv")}
    assert failures == {"a": "Unpaired"}
    assert "1 `*_mask.npy`" in done.stdout, "a file called mask is left over, neither a mask nor a failure"
    assert [row["case"] for row in read_csv(tmp_path / "scores.csv")] == ["b"]


# Nothing can be done.


def test_all_cases_failed(tmp_path):
    (tmp_path / "maps").mkdir()
    np.save(tmp_path / "maps/a.npy", faulty("NaN"))
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert done.returncode == 2
    assert [row["case"] for row in read_csv(tmp_path / "failures.csv")] == ["a"]


IMPOSSIBLE = {
    "empty folder": ("score", "{empty}"),
    "no such folder": ("score", "{maps}/none"),
    "unknown estimator": ("score", "{maps}", "--estimators", "sdc,sdk"),
    "estimator that must learn first": ("score", "{maps}", "--estimators", "aef"),
    "pairwise dice of one model": ("score", "{maps}", "--estimators", "pairwise-dice"),
    "no estimator": ("score", "{maps}", "--estimators", ""),
    "threshold above 1": ("score", "{maps}", "--threshold", "1.5"),
    "unknown kind of mask": ("score", "{maps}", "--mask", "other"),
    "unknown decoding": ("score", "{maps}", "--decode", "other"),
    "unknown policy for empty masks": ("score", "{maps}", "--empty", "other"),
    "no amount of memory": ("score", "{maps}", "--memory", "much"),
    "no such part": ("score", "{maps}", "--num-parts", "2", "--part-id", "2"),
    "no such policy": ("score", "{maps}", "--policy", "{maps}/none.json"),
    "no such folder of masks": ("score", "{maps}", "--mask-dir", "{maps}/none"),
    "empty member": ("score", "{maps}", "--member", "{empty}"),
    "manifest without maps": ("score", "{maps}/../cases.csv"),
}
AFTER_ALL = {
    "no such structure": (2, ("score", "{maps}", "--region", "liver")),
    "no ground truth at all": (1, ("score", "{maps}", "--truth", "{empty}")),
}
USAGE = {
    "unknown option": ("score", "{maps}", "--no-such-option"),
    "unknown command": ("scores", "{maps}"),
    "no argument": ("score",),
    "no workers": ("score", "{maps}", "--workers", "0"),
    "no number": ("score", "{maps}", "--threshold", "half"),
    "unknown checksum": ("score", "{maps}", "--digest", "md5"),
}


def run_in(tmp_path, command, *, output="scores.csv"):
    write_cases(tmp_path / "maps", 2)
    (tmp_path / "empty").mkdir()
    (tmp_path / "cases.csv").write_text("case,map\na,maps/case_000.npy\n")
    words = [word.format(maps=tmp_path / "maps", empty=tmp_path / "empty") for word in command]
    return segtrust(*words, "-o", tmp_path / output)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_nothing_can_be_done(tmp_path, name):
    done = run_in(tmp_path, IMPOSSIBLE[name])
    assert done.returncode == 2, done
    assert done.stderr.startswith("error: ")
    assert done.stdout == ""
    assert not (tmp_path / "scores.csv").exists()


@pytest.mark.parametrize("name", AFTER_ALL)
def test_every_case_has_its_failure(tmp_path, name):
    code, command = AFTER_ALL[name]
    assert run_in(tmp_path, command).returncode == code
    assert [row["case"] for row in read_csv(tmp_path / "failures.csv")] == ["case_000", "case_001"]


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage(tmp_path, name):
    done = run_in(tmp_path, USAGE[name])
    assert done.returncode == 2, done
    assert done.stderr
    assert not (tmp_path / "scores.csv").exists()


def test_an_output_of_an_unknown_kind(tmp_path):
    done = run_in(tmp_path, ("score", "{maps}"), output="scores.xlsx")
    assert done.returncode == 2, done
    assert done.stderr.startswith("error: ")
    assert not (tmp_path / "scores.xlsx").exists()


def test_no_command_and_version():
    assert segtrust("--version").stdout.split() == ["segtrust", st.__version__]
    assert segtrust("--help").returncode == 0


def test_maps_of_other_settings_are_not_mixed_into_a_table(tmp_path):
    """The same output with other settings starts again, and does not keep rows of the first run."""
    write_cases(tmp_path / "maps", 2)
    out = tmp_path / "scores.csv"
    codes, thresholds = [], []
    for threshold in ("0.5", "0.2"):
        options = ("--threshold", threshold, "--details")
        codes.append(segtrust("score", tmp_path / "maps", "-o", out, *options).returncode)
        thresholds.append([row["k"] for row in read_csv(out)])
    assert_golden("files/settings", {"codes": codes, "pixels": thresholds})


def test_volumes_that_differ_in_shape_from_their_mask(tmp_path):
    for folder in ("maps", "masks"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "maps/a.npy", blob(VOLUME))
    np.save(tmp_path / "masks/a.npy", truth_of(VOLUME[::-1]))
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "s.csv", "--mask-dir", tmp_path / "masks")
    assert done.returncode == 2
    (failure,) = read_csv(tmp_path / "failures.csv")
    assert issubclass(getattr(st.errors, failure["kind"]), st.errors.SegtrustError)
