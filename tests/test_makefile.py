"""The commands for those who work on segtrust."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.needs("make")
def test_help_is_one_table(tool):
    command = [tool("make"), "--no-print-directory", "help"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [line.split()[0] for line in lines]
    starts = {line.index(line[len(name) :].lstrip()) for line, name in zip(lines, names, strict=True)}
    assert {"demo", "test", "test-pythons"} <= set(names)
    assert len(starts) == 1, "the descriptions stand in one column"
