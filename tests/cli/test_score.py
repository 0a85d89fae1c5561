"""``segtrust score`` and ``segtrust merge``."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import segtrust as st
from segtrust._files import write_json
from segtrust.calibration import PlattScaling
from segtrust.confidence import PatchLevel
from segtrust.engine import read_log
from segtrust.io import read_table
from tests.commands import segtrust, segtrust_process
from tests.engine.files import NNUNET, write_maps
from tests.policy.certified import policy
from tests.processes import children, interruptible, is_running, wait_until

COMMANDS = ("score", "merge", "evaluate", "calibrate", "triage")


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def parsed(text):
    """One JSON object and nothing else, without the NaN that Python alone understands."""
    return json.loads(text, parse_constant=no_constant)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_two_examples_and_the_exit_codes(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "200")
    done = segtrust(command, "--help")
    assert done.returncode == 0
    examples = done.stdout[done.stdout.index("Examples:") :]
    assert examples.count(f"segtrust {command} ") >= 2
    assert "Exit codes: 0" in examples


def test_all_well_is_0_and_nothing_is_drawn_without_a_terminal(tmp_path):
    made = write_maps(tmp_path / "maps", 3)
    done = segtrust_process("score", tmp_path / "maps", "-o", tmp_path / "out/scores.csv")
    summary = "3 maps (`*.npy`), ground truth none, images none, delivered masks none\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{summary}3 cases scored in ")
    confidence, *table, following = filter(None, done.stdout.splitlines()[2:])
    assert re.fullmatch(r"Confidence \(SDC\): 0\.\d{3} [ ▁▂▃▄▅▆▇█]{20} 0\.\d{3}, median 0\.\d{3}", confidence)
    assert table[0].strip() == "Cases, least confident first"
    assert sorted(line.split()[0] for line in table[3:]) == ["case_000", "case_001", "case_002"]
    assert following == f"Next: segtrust report {tmp_path / 'out/scores.csv'}"
    rows = read_table(tmp_path / "out/scores.csv").rows
    for row, case in zip(rows, made, strict=True):
        expected = st.score(case.prediction.probabilities, estimators=["sdc", "idc", "amsp"])
        assert {name: row[name] for name in expected} == expected


def test_region_is_chosen_by_name_without_a_policy(tmp_path):
    out = tmp_path / "scores.csv"
    done = segtrust("score", NNUNET / "regions/predictions", "-o", out, "--region", "whole_tumor")
    assert done.returncode == 0, done.stderr
    assert {row["structure"] for row in read_table(out).rows} == {"whole_tumor"}


def test_some_failed_is_1_and_all_failed_2(tmp_path):
    write_maps(tmp_path / "maps", 2)
    (tmp_path / "maps/bad.npy").write_bytes(b"")
    out = tmp_path / "scores.csv"
    some = segtrust("score", tmp_path / "maps", "-o", out, "--json")
    assert some.returncode == 1
    told = parsed(some.stdout)
    assert (told["cases"], told["failed"], told["table"]) == (2, 1, str(out))
    assert told["failures"][0]["case"] == "bad"
    assert str(tmp_path / "maps/bad.npy") in told["failures"][0]["reason"]
    assert some.stderr == ""
    every = segtrust("score", tmp_path / "maps/bad.npy", "-o", tmp_path / "none.csv")
    assert every.returncode == 2
    assert "bad.npy" in every.stderr
    assert "failures.csv" in every.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--estimators", "sdc,sdk"), "Unknown estimator 'sdk'; available: aef"),
        (("--estimators", "sdc,aef"), "aef learns from cases and has learned nothing here. Pass a policy"),
        (("--mask", "other"), "mask: expected delivered or threshold, got 'other'"),
        (("--empty", "other"), "empty: expected 'paper' or 'agree', got 'other'"),
        (("--memory", "much"), "memory: expected a size such as 8GiB"),
        (("--num-parts", "2", "--part-id", "2"), "part-id: expected a number from 0 to 1, got 2"),
        pytest.param(
            ("--dask", "nonsense://x"),
            "dask: expected the address of a running scheduler",
            marks=pytest.mark.needs("distributed"),
        ),
    ],
)
def test_what_cannot_be_done_is_2_and_one_line(tmp_path, options, said):
    write_maps(tmp_path / "maps", 1)
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "scores.csv").exists()


def test_an_empty_folder_is_2(tmp_path):
    done = segtrust("score", tmp_path, "-o", tmp_path / "scores.csv")
    assert done.returncode == 2
    assert "expected probability maps, got none" in done.stderr


def test_nnunet_as_it_comes(tmp_path):
    out = tmp_path / "scores.json"
    names = ("--names", NNUNET / "plain/predictions/dataset.json")
    done = segtrust_process(
        *("score", NNUNET / "plain/predictions", "-o", out, "--region", "each", "--workers", 2, *names)
    )
    assert done.returncode == 0, done.stderr
    found = [(row["case"], row["structure"]) for row in read_table(out).rows]
    assert found == [(case, name) for case in ("test_0", "test_1") for name in ("organ", "lesion")]


def test_parts_and_their_merge(tmp_path):
    write_maps(tmp_path / "maps", 3)
    parts = [tmp_path / f"part-{part}.csv" for part in range(2)]
    for part, path in enumerate(parts):
        done = segtrust("score", tmp_path / "maps", "-o", path, "--num-parts", 2, "--part-id", part)
        assert done.returncode == 0, done.stderr
    merged = segtrust_process("merge", *parts, "-o", tmp_path / "scores.csv")
    assert (merged.returncode, merged.stderr) == (0, "")
    assert merged.stdout.startswith("3 rows of 2 tables, 0 cases failed.")
    assert segtrust("merge", parts[0], "-o", tmp_path / "scores.csv").returncode == 2


def test_a_policy_scores_as_it_was_calibrated(tmp_path):
    made = write_maps(tmp_path / "maps", 3)
    scaling = PlattScaling(slope=0.6, intercept=-0.8, used_ids=frozenset(["someone"]), n_cases=1)
    write_json(tmp_path / "scaling.json", scaling.to_dict())
    decides = policy(estimator="pla", parameters={"size": 5}, recalibration=scaling.to_dict())
    decides.save(tmp_path / "policy.json")
    arguments = ("score", tmp_path / "maps", "--policy", tmp_path / "policy.json")
    done = segtrust(*arguments, "-o", tmp_path / "scores.csv")
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "scores.csv").rows
    for row, case in zip(rows, made, strict=True):
        p = case.prediction.probabilities
        expected = st.score(scaling.apply(p), p >= 0.5, [PatchLevel(size=5), "sdc"])
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        assert row["decision"] == str(decides.decide(row["pla"]))
        assert row["policy"] == decides.fingerprint
    same = segtrust(*arguments, "-o", tmp_path / "same.csv", "--calibrate-maps", tmp_path / "scaling.json")
    assert same.returncode == 0, same.stderr
    assert [row["pla"] for row in read_table(tmp_path / "same.csv").rows] == [row["pla"] for row in rows]
    write_json(tmp_path / "scaling.json", PlattScaling(slope=0.7, intercept=-0.8).to_dict())
    other = segtrust(*arguments, "-o", tmp_path / "other.csv", "--calibrate-maps", tmp_path / "scaling.json")
    assert other.returncode == 2
    assert "expected the recalibration of the policy, got another" in other.stderr


@pytest.mark.needs("pyarrow")
def test_names_of_files_may_hold_anything(tmp_path):
    write_maps(tmp_path / "maps", 1)
    strange = os.fsdecode(b'\xc5ngstr\xf6m, "one".npy')
    (tmp_path / "maps/case_000.npy").rename(tmp_path / "maps" / strange)
    for ending in ("csv", "json", "parquet"):
        done = segtrust("score", tmp_path / "maps", "-o", tmp_path / f"scores.{ending}")
        assert done.returncode == 0, done.stderr
        assert len(read_table(tmp_path / f"scores.{ending}").rows) == 1


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_on_a_cluster_of_ones_own_it_is_quiet_and_the_table_the_same(tmp_path):
    write_maps(tmp_path / "maps", 8)
    tables = []
    for name, options in (("here", ()), ("dask", ("--dask", "local", "--workers", 2))):
        out = tmp_path / f"{name}.json"
        done = segtrust_process("score", tmp_path / "maps", "-o", out, *options)
        assert (done.returncode, done.stderr) == (0, "")
        tables.append([{**row, "seconds": 0} for row in read_table(out).rows])
    assert tables[0] == tables[1]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")
@pytest.mark.parametrize("options", [("--workers", "2"), ("--workers", "2", "--dask", "local")])
def test_ctrl_c_ends_all_processes_and_says_that_it_goes_on(tmp_path, options):
    write_maps(tmp_path / "maps", 2)
    first = tmp_path / "maps/big_0.npy"
    np.save(first, np.random.default_rng(0).random((900, 900)))
    for number in range(1, 400):  # enough that it is still running when it is interrupted
        (tmp_path / f"maps/big_{number}.npy").hardlink_to(first)
    out = tmp_path / "scores.csv"
    command = interruptible(
        "-m", "segtrust", "score", tmp_path / "maps", "-o", out, "--estimators", "all", *options
    )
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        log = tmp_path / ".scores.csv.log"
        wait_until(lambda: log.exists() and len(read_log(log).outcomes) >= 4, pause=0.005)
        below = children(running.pid)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "Rerun the same command to resume" in said
    assert "Traceback" not in said
    assert len(below) >= 2
    wait_until(lambda: not any(map(is_running, below)))
    assert not out.exists()


def test_a_corrupt_log_is_2_and_says_what_to_do(tmp_path):
    write_maps(tmp_path / "maps", 2)
    command = ("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert segtrust(*command).returncode == 0
    before = (tmp_path / "scores.csv").read_text().count("\n")
    log = tmp_path / ".scores.csv.log"
    log.write_bytes(bytes(300))
    done = segtrust(*command)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"error: {log}: the log of this run is corrupt. Delete it: the cases are scored again.\n"
    )
    log.unlink()
    assert segtrust(*command).returncode == 0
    assert (tmp_path / "scores.csv").read_text().count("\n") == before


def test_a_case_that_takes_too_long_is_1_and_told(tmp_path):
    write_maps(tmp_path / "maps", 2)
    np.save(tmp_path / "maps/large.npy", np.random.default_rng(0).random((6000, 6000), np.float32))
    arguments = ("score", tmp_path / "maps", "-o", tmp_path / "scores.csv", "--estimators", "sdc,pla,mmmc")
    assert segtrust(*arguments, "--timeout", "soon").returncode == 2
    done = segtrust(*arguments, "--timeout", "0.01s")
    assert done.returncode in (1, 2)
    assert "took longer than 0.01 seconds. Allow more with --timeout" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="interrupts a group of processes")
@pytest.mark.parametrize("seconds", [0.3, 0.6, 0.9])
def test_ctrl_c_before_the_first_case_leaves_no_traceback(tmp_path, seconds):
    write_maps(tmp_path / "maps", 2)
    command = interruptible("-m", "segtrust", "score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    if "Interrupted" in said:
        assert running.returncode in (130, -signal.SIGINT)  # a shell says 130 for both
        assert said.startswith("Interrupted")
        assert "Rerun the same command" in said
    if running.returncode != -signal.SIGINT:  # the interpreter itself had not begun
        assert "Traceback" not in said


def test_a_limit_that_makes_no_sense_is_told_once(tmp_path, monkeypatch):
    write_maps(tmp_path / "maps", 3)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "-3")
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert done.returncode == 2
    assert done.stderr.count("SEGTRUST_MAX_BYTES") == 1
