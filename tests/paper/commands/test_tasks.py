"""``segtrust tasks``, in this process; the exit codes as a user sees them."""

import json
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from segtrust.cli import app
from tests import commands
from tests.paper.networks.conftest import one_thread
from tests.paper.tasks import miniatures

__all__ = ["one_thread"]

pytestmark = pytest.mark.needs("PIL", "nibabel")

COMMANDS = ("list", "show", "check", "prepare", "train", "predict", "boxes", "run")
OWN = """
from dataclasses import replace
from segtrust.paper.tasks import Recipe, get_task

recipe = Recipe(learning_rate=1e-3, epochs={epochs}, batch=2)
split = {{"train": 2, "val": 1, "test": 1}}
TASK = replace(get_task("{name}"), size=(32, 32), recipes={{"usual": recipe}}, split=split)
"""


def segtrust(*arguments: object):
    return CliRunner().invoke(app, ["tasks", *map(str, arguments)])


@pytest.fixture
def own(tmp_path):
    """Gives the file of a small task."""

    def write(name: str = "nuclei", epochs: int = 1):
        path = tmp_path / f"my_{name.replace('-', '_')}.py"
        path.write_text(OWN.format(name=name, epochs=epochs))
        return path

    return write


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_two_examples(command):
    done = segtrust(command, "--help")
    assert done.exit_code == 0
    assert done.output.count(f"segtrust tasks {command}") >= 2
    assert "Exit codes" in done.output


def test_list_and_show():
    rows = json.loads(segtrust("list", "--json").stdout)
    assert {"brain-tumor", "polyp", "nuclei"} <= {row["task"] for row in rows}
    assert "mswml" in segtrust("list").stdout
    shown = segtrust("show", "mswml").stdout
    for said in (
        "CC BY-NC-SA",
        "Malinin",
        "1_FLAIR_isovox.nii.gz",
        "threshold: 0.35",
        "recipe code",
        "zenodo",
    ):
        assert said in shown
    facts = json.loads(segtrust("show", "breast-cancer", "--json").stdout)
    assert facts["recipe paper"]["epochs"] == 400
    assert facts["split"] == {"train": 450, "val": 99, "test": 98}


def test_check_tells_all_and_leaves_with_1(tmp_path):
    data = miniatures.busi(tmp_path)
    assert segtrust("check", "breast-cancer", "--data", data).exit_code == 0
    (data / "benign" / "benign (2)_mask.png").unlink()
    (data / "malignant" / "malignant (2).png").write_bytes(b"")
    done = segtrust("check", "breast-cancer", "--data", data)
    assert done.exit_code == 1
    assert "benign (2)" in done.stderr
    assert "malignant (2)" in done.stderr
    assert "2 problems" in done.stderr
    problems = json.loads(segtrust("check", "breast-cancer", "--data", data, "--json").stdout)["problems"]
    assert len(problems) == 2


@pytest.mark.slow
@pytest.mark.needs("torch", "matplotlib", "pyarrow")
def test_run_does_all_of_it_and_again_does_nothing(tmp_path, own):
    data = miniatures.nuclei(tmp_path / "data")
    command = ("run", own(), "--data", data, "-o", tmp_path / "out", "--threads", 1)
    done = segtrust(*command)
    assert done.exit_code == 0, done.output
    for said in ("All is well", "12 cases ready", "epoch 1", "\nbright: 4 cases, mean Dice"):
        assert said in done.output
    out = tmp_path / "out"
    for name in ("split.csv", "training/best.pt", "training/log.csv", "training/curves.svg"):
        assert (out / name).exists()
    assert (out / "predictions/ood-bright.csv").exists()
    assert (out / "evaluation/report.md").exists()
    before = (out / "training/last.pt").stat().st_mtime_ns
    again = segtrust(*command)
    assert again.exit_code == 0, again.output
    assert (out / "training/last.pt").stat().st_mtime_ns == before


@pytest.mark.needs("torch", "matplotlib")
def test_steps_one_by_one(tmp_path, own):
    data, out = miniatures.nuclei(tmp_path / "data"), tmp_path / "out"
    task = own(epochs=2)
    prepared = json.loads(segtrust("prepare", task, "--data", data, "-o", out, "--json").stdout)
    assert prepared == {"splits": {"train": 4, "val": 2, "test": 6}, "problems": []}
    flags = ("--data", data, "-o", out, "--device", "cpu", "--json")
    trained = json.loads(segtrust("train", task, *flags, "--until", 1).stdout)
    assert trained["epochs"] == 1
    trained = json.loads(segtrust("train", task, *flags).stdout)
    assert trained["epochs"] == 2
    predicted = segtrust("predict", task, "-o", out, "--dtype", "float16")
    assert "6 cases predicted" in predicted.stdout
    assert "--ood bright=" in predicted.stdout
    as_json = json.loads(segtrust("predict", task, "-o", out, "--json", "--splits", "val").stdout)
    assert as_json["cases"] == 2


def test_what_cannot_be_done_is_told(tmp_path, own):
    data = miniatures.nuclei(tmp_path / "data")
    (data / "masks" / "03.png").unlink()
    done = segtrust("train", own(), "--data", data, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "03" in done.stderr
    assert segtrust("run", own(), "--data", data, "-o", tmp_path / "out").exit_code == 1
    assert segtrust("prepare", own(), "--data", data, "-o", tmp_path / "out").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "breast"), "Unknown task 'breast'"),
        (("prepare", "nuclei", "--data", "nowhere", "-o", "out"), "nowhere: expected the folder of nuclei"),
        (("predict", "nuclei", "-o", "out"), "segtrust tasks prepare"),
    ],
)
def test_errors_are_one_line_and_2(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    run = commands.segtrust_process if arguments[0] == "show" else commands.segtrust
    done = run("tasks", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.needs("torch", "matplotlib", "pyarrow")
def test_published_polyp_maps_through_to_the_evaluation(tmp_path):
    data = miniatures.polyps(tmp_path / "data")
    maps = miniatures.published_maps(tmp_path / "maps", data)
    done = segtrust("predict", "polyp", "--data", data, "--maps", maps, "-o", tmp_path / "out")
    assert "10 cases predicted" in done.stdout
    line = done.stdout.strip().splitlines()[-1].removeprefix("Judge them: segtrust ").split()
    judged = CliRunner().invoke(app, line)
    assert judged.exit_code == 0, judged.output
    assert "10 of 10 evaluated." in judged.output
    assert "352×352" in (tmp_path / "out/evaluation/tables/sets.csv").read_text()


@pytest.mark.slow
@pytest.mark.needs("torch", "matplotlib")
def test_killed_by_the_system_it_goes_on_to_the_same_weights(tmp_path, own):
    import torch

    data, task = miniatures.busi(tmp_path / "data"), own("breast-cancer", 6)

    def command(name: str) -> list[str]:
        flags = ["--data", str(data), "-o", str(tmp_path / name), "--threads", "1", "--device", "cpu"]
        return [sys.executable, "-m", "segtrust", "tasks", "train", str(task), *flags]

    subprocess.run(command("unbroken"), check=True, capture_output=True)
    for _ in range(3):
        running = subprocess.Popen(command("broken"), stdout=subprocess.DEVNULL)
        log = tmp_path / "broken" / "training" / "log.csv"
        before = log.read_text().count("\n") if log.exists() else 0
        for _ in range(600):
            time.sleep(0.05)
            if running.poll() is not None or (log.exists() and log.read_text().count("\n") > before):
                break
        running.send_signal(signal.SIGKILL)
        running.wait()
    subprocess.run(command("broken"), check=True, capture_output=True)
    one, other = (torch.load(tmp_path / name / "training/last.pt") for name in ("unbroken", "broken"))
    assert all(torch.equal(one["state_dict"][name], other["state_dict"][name]) for name in one["state_dict"])
    assert [row["loss"] for row in one["history"]] == [row["loss"] for row in other["history"]]
