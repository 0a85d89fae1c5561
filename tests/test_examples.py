"""The programs under ``examples/`` run, in processes of their own, and print what they promise."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PAGE = EXAMPLES.parent / "docs/how-to/examples.md"
# As in Jupyter, a cell ends with the display of its last expression.
RUN_CELLS = """
import ast, json, pathlib, sys
names = {}
for cell in json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        program = ast.parse("".join(cell["source"]), cell["id"])
        last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
        exec(compile(program, cell["id"], "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
            if shown is not None:
                print(cell["id"], "shows", shown._repr_html_() if hasattr(shown, "_repr_html_") else shown)
"""
NO_WARNINGS = ("-W", "error")


def run(*command, folder):
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Lightning and MONAI lead to warnings of torch, so their examples run without NO_WARNINGS.
    assert "SegtrustWarning" not in done.stderr, done.stderr
    return done.stdout


def test_every_example_is_listed():
    text = PAGE.read_text("utf-8")
    listed = set(re.findall(r"(?m)^\| `(\w+\.(?:py|ipynb))`", text))
    assert listed == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")}


@pytest.mark.needs("torch")
def test_validation_to_decision(tmp_path):
    printed = run(*NO_WARNINGS, EXAMPLES / "validation_to_decision.py", folder=tmp_path)
    assert "Policy (certified): accept cases with a confidence (sdc)" in printed
    decided = re.findall(r"SDC [\d.]+: (\w+) \(true Dice", printed)
    accepted, deferred = decided.count("accept"), decided.count("defer")
    assert min(accepted, deferred) > 0
    assert f"{accepted} accepted, {deferred} for review" in printed  # maps and a vector of confidences


@pytest.mark.needs("monai", "ignite")
def test_monai_evaluator(tmp_path):
    printed = run(EXAMPLES / "monai_evaluator.py", folder=tmp_path)
    assert len(re.findall(r"case_\d: SDC", printed)) == 8
    assert (tmp_path / "scores.csv").is_file()


@pytest.mark.needs("lightning")
def test_lightning_validation(tmp_path):
    printed = run(EXAMPLES / "lightning_validation.py", folder=tmp_path)
    epochs = [float(value) for value in re.findall(r"epoch \d: .* AURC ([\d.]+)", printed)]
    assert len(epochs) == 4
    assert epochs[-1] < epochs[0]


@pytest.mark.needs("pandas")
def test_three_classes(tmp_path):
    printed = run(*NO_WARNINGS, EXAMPLES / "three_classes.py", folder=tmp_path)
    assert re.search(r"lesion +True +0\.\d+ +0\.\d+", printed)
    assert "review first: lesion" in printed


def test_plug_in_pixels(tmp_path):
    printed = run(*NO_WARNINGS, EXAMPLES / "plug_in_pixels.py", folder=tmp_path)
    scores = [float(score) for score in re.findall(r"boundary entropy (-[\d.]+)", printed)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)  # the softer the boundary, the less confident


def check_memory(printed):
    used = float(re.search(r"memory used ([\d.]+) MB", printed)[1])
    assert used < 8.0
    assert "idc: 0.82" in printed


def test_large_memory_map(tmp_path):
    check_memory(run(*NO_WARNINGS, EXAMPLES / "large_memory_map.py", 0.05, folder=tmp_path))


@pytest.mark.slow
def test_large_memory_map_of_2_gb(tmp_path):
    printed = run(*NO_WARNINGS, EXAMPLES / "large_memory_map.py", folder=tmp_path)
    assert "map 2147 MB" in printed
    check_memory(printed)


@pytest.mark.needs("torch")
def test_soft_dice_regulariser(tmp_path):
    printed = run(*NO_WARNINGS, EXAMPLES / "soft_dice_regulariser.py", folder=tmp_path)
    dice = [float(value) for value in re.findall(r"Dice of new images ([\d.]+)", printed)]
    assert dice[-1] > 0.8 > dice[0]


def test_notebook(tmp_path):
    printed = run(*NO_WARNINGS, "-c", RUN_CELLS, EXAMPLES / "first_steps.ipynb", folder=tmp_path)
    assert "AURC" in printed
    assert re.search(r"SDC [\d.]+: accept", printed)
    for cell in ("assess", "estimators", "curve", "certificate", "policy", "decide-maps"):
        assert re.search(rf"(?m)^{cell} shows (<div>.*)?<table>", printed), cell
    accepted, reviewed = map(float, re.search(r"accepted (0\.\d+), for review (0\.\d+)", printed).groups())
    assert accepted <= 0.15 < reviewed
    assert "save shows True" in printed


def test_the_notebook_has_the_format_of_jupyter():
    """What the schema of nbformat 4.5 requires; outputs are written when it is run."""
    content = json.loads((EXAMPLES / "first_steps.ipynb").read_text("utf-8"))
    assert set(content) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in ids)
    required = {"cell_type", "id", "metadata", "source"}
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            assert set(cell) == required | {"execution_count", "outputs"}
            assert (cell["execution_count"], cell["outputs"]) == (None, [])
        else:
            assert (cell["cell_type"], set(cell)) == ("markdown", required)
