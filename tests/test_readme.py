"""Every command of the README, copied from it and run in its order, on small data laid out as it says."""

import os
import re
import shlex
import subprocess
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

from tests.paper.tasks import miniatures

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCED = re.compile(r"(?ms)^```(?:text|console)\n(.*?)^```")
SELF = "make test"  # runs this very test
SERVES = re.compile(r"segtrust review ")
TRAINS = re.compile(r"segtrust tasks run ")


def commands_in(text):
    """The commands of fenced blocks, without prompts and remarks, continued lines joined."""
    lines = [
        line
        for block in FENCED.findall(text)
        for line in block.replace("\\\n", " ").splitlines()
        if re.match(r"(\$ )?(segtrust|make) ", line)
    ]
    return [re.sub(r"\s+#.*", "", line.removeprefix("$ ")).strip() for line in lines]


COMMANDS = [command for command in commands_in(README) if command != SELF]


def disc(rng, side=32):
    """A map and its truth: discs of any size, the smaller the less sure and the less right."""
    radius = rng.uniform(3, 13)
    y, x = np.ogrid[-side / 2 : side / 2, -side / 2 : side / 2]
    distance = np.hypot(y, x)
    p = 1 / (1 + np.exp(np.clip((distance - radius) * 1.5, -30, 30)))
    return p.astype(np.float32), distance <= radius + rng.normal(0, 0.25)


def write_discs(maps, truths, number, seed):
    """Write folders of maps and truths."""
    rng = np.random.default_rng(seed)
    for folder in (maps, truths):
        folder.mkdir(parents=True)
    for at in range(number):
        p, truth = disc(rng)
        np.save(maps / f"case_{at:03}.npy", p)
        np.save(truths / f"case_{at:03}.npy", truth.astype(np.uint8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with what the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    write_discs(folder / "predictions", folder / "labels", 300, 0)
    write_discs(folder / "tonight", folder / "unseen", 60, 1)
    miniatures.busi(folder / "busi", benign=14, malignant=8)
    return folder


@pytest.fixture(scope="module")
def environment():
    """Where the command line is found, and no browser is opened."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "DISPLAY": "", "WAYLAND_DISPLAY": ""}


def run(command, folder, environment):
    """Run a command as it is; what serves is stopped once it does, what trains does so for one epoch."""
    if SERVES.match(command):
        return serve(f"{command} --port 0", folder, environment)
    if TRAINS.match(command):
        command = f"{command} --epochs 1 --device cpu"
    where = ROOT if command.startswith("make ") else folder
    done = subprocess.run(
        command, shell=True, cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def serve(command, folder, environment):
    """Start a desk, wait for its address, and stop it."""
    with subprocess.Popen(
        shlex.split(command), cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        lines = []
        try:
            deadline = time.monotonic() + 120
            while not any("The review desk is at http" in line for line in lines):
                line = process.stdout.readline()
                assert line, f"{command}\n{''.join(lines)}"
                assert time.monotonic() < deadline
                lines.append(line)
        finally:
            process.terminate()
    return "".join(lines)


@pytest.mark.slow
@pytest.mark.needs("playwright", "chromium", "node", "torch", "PIL")  # the page must have been built
def test_every_command_runs(folder, environment, record_property):
    for command in COMMANDS:
        begin = time.monotonic()
        run(command, folder, environment)
        record_property(command, f"{time.monotonic() - begin:.1f} s")


def test_the_commands_are_found():
    assert {"make demo", "segtrust review --demo"} <= set(COMMANDS)
    assert len(COMMANDS) >= 10
    assert commands_in("```console\n$ segtrust score a \\\n  -o b.csv   # why\nshown\n```\n") == [
        "segtrust score a    -o b.csv"
    ]


def test_times_are_measured_ones():
    told = README[README.index("`make demo` does") : README.index("What it shows")]
    assert re.search(r"took \d+ s here", told)
    assert re.search(r"`make test` took \d+ minutes", told)
    assert "TIME_" not in README


def test_what_the_readme_shows_is_there():
    linked = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert linked
    assert not [path for path in linked if not (ROOT / path).exists()]
