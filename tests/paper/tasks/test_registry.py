import subprocess
import sys
from dataclasses import replace

import pytest

from segtrust.errors import ParameterError, UnknownNameError
from segtrust.paper.tasks import NAMES, Recipe, get_task

OWN = """
from segtrust.paper.tasks import Recipe, Source, Task, files_in, paired

TASK = Task(
    name="mine",
    title="Mine",
    network="unext",
    size=(64, 64),
    find=lambda data: paired(files_in(data / "images"), files_in(data / "masks")),
    recipes={"usual": Recipe(epochs=2)},
    source=Source("here", "mine", "me", "images and masks"),
)
"""


@pytest.mark.parametrize("name", NAMES)
def test_declarations_are_complete(name):
    task = get_task(name)
    assert task.name == name
    assert next(iter(task.sets)) == "ID"
    assert all((task.source.url, task.source.licence, task.source.citation, task.source.layout))


def test_file_of_one_s_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    assert get_task(str(path)).recipe().epochs == 2
    assert get_task(path).dimensions == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("x = 1", "got NoneType"), ("TASK = 3", "got int"), ("import nowhere_at_all", "fails"), ("(", "fails")],
)
def test_files_that_declare_nothing(tmp_path, text, said):
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(ParameterError, match=said):
        get_task(path)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="breast-cancer"):
        get_task("breast")
    with pytest.raises(ParameterError, match="got none"):
        get_task("nowhere.py")
    with pytest.raises(ParameterError, match="expected one of paper, code"):
        get_task("breast-cancer").recipe("mine")


@pytest.mark.parametrize(
    "change",
    [{"size": (8,)}, {"resize": "cubic"}, {"recipes": {}}, {"split": {"test": 3}}, {"split": {"a": 1}}],
)
def test_tasks_that_could_not_be_trained_are_refused(change):
    with pytest.raises(ParameterError, match=next(iter(change))):
        replace(get_task("nuclei"), **change)


@pytest.mark.parametrize(
    "change",
    [{"optimiser": "sgd"}, {"schedule": "steps"}, {"loss": "l2"}, {"epochs": 0}, {"learning_rate": 0.0}],
)
def test_recipes_that_mean_nothing_are_refused(change):
    with pytest.raises(ParameterError, match=next(iter(change))):
        Recipe(**change)


def test_tasks_are_listed_without_torch():
    get_all = "from segtrust.paper import tasks; [tasks.get_task(name) for name in tasks.NAMES]"
    code = f"import sys; {get_all}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
