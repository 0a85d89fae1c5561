"""The metrics in a validation by Lightning: on two processes what one gives, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import segtrust

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "torchmetrics", "lightning")]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def validated(devices, folder):
    """What each process saw at the end, and what was logged."""
    folder.mkdir()
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1"}
    command = [sys.executable, "-W", "ignore", HERE / "lightning_runs.py", str(devices), folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    ranks = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(devices)]
    return ranks, json.loads((folder / "logged.json").read_text())


def test_two_processes_give_what_one_gives(tmp_path):
    (alone,), logged = validated(1, tmp_path / "one")
    ranks, logged_by_two = validated(2, tmp_path / "two")
    assert alone["ids"] == list(range(7))
    assert [{**rank, "rank": 0} for rank in ranks] == [alone, alone]
    assert logged_by_two == logged


def test_what_is_logged_is_what_the_functions_give(tmp_path):
    (alone,), logged = validated(1, tmp_path / "one")
    pairs = [(row[1], risk[1]) for row, risk in zip(alone["confidences"], alone["risks"], strict=True)]
    area = segtrust.risk_coverage_curve(*zip(*pairs, strict=True)).aurc
    assert logged["liver_aurc"] == area
    means = [
        sum(known) / len(known)
        for column in list(zip(*alone["confidences"], strict=True))[1:]
        if (known := [value for value in column if value >= 0])
    ]
    assert logged["confidence"] == pytest.approx(sum(means) / 2)
