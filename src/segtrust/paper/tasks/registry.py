"""Tasks by name, and tasks of one's own by their file."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from segtrust.errors import ParameterError, PluginError, UnknownNameError
from segtrust.paper.tasks.task import Task
from segtrust.plugins import find_plugin, plugin_names

__all__ = ["NAMES", "get_task", "task_names"]

NAMES = (
    "brain-tumor",
    "breast-cancer",
    "skin-cancer",
    "mswml",
    "optic-cup",
    "polyp",
    "optic-disc",
    "nuclei",
    "hippocampus",
    "fundus",
    "skin",
)
"""The tasks that are known; the paper's first."""


def task_names() -> list[str]:
    """Give all names: segtrust's own first, then those of other packages, which are not loaded for that."""
    return [*NAMES, *plugin_names("tasks", NAMES)]


def get_task(name: str | Path) -> Task:
    """Give a task by its name, or that of a Python file, which is run.

    Parameters
    ----------
    name
        One of `NAMES` or of another package, or the path of a file that ends in ``.py`` and has a `Task`
        called ``TASK``.

    Examples
    --------
    >>> get_task("breast-cancer").size
    (256, 256)
    >>> get_task("breast")
    Traceback (most recent call last):
    ...
    segtrust.errors.UnknownNameError: Unknown task 'breast'; available: ...
    """
    if str(name) in NAMES:
        module: Any = import_module(f"segtrust.paper.tasks.known.{str(name).replace('-', '_')}")
    elif str(name).endswith(".py"):
        module = _run(Path(name))
    else:
        return _of_package(str(name))
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        raise ParameterError(f"{name}: expected TASK = Task(...) in it, got {type(task).__name__}.")
    return task


def _of_package(name: str) -> Task:
    plugin = find_plugin("tasks", name)
    if plugin is None:
        raise UnknownNameError(
            f"Unknown task {name!r}; available: {', '.join(task_names())}, or the path of a file of your "
            "own, my_task.py."
        )
    task: Task = plugin.load(lambda found: _checked(found, name))
    return task


def _checked(found: Any, name: str) -> Task:
    if not isinstance(found, Task):
        raise PluginError(f"expected a Task, got {type(found).__name__}")
    if found.name != name:
        raise PluginError(f"expected a task called {name!r}, got {found.name!r}")
    return found


def _run(path: Path) -> Any:
    if not path.is_file():
        raise ParameterError(f"{path}: expected a file that declares a task, got none.")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:  # pragma: no cover - not for a path that ends in .py
        raise ParameterError(f"{path}: expected a Python file.")
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.parent.absolute()))  # for modules that lie beside it
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError, NameError, TypeError, AttributeError) as error:
        raise ParameterError(
            f"{path}: expected a declaration of a task, got one that fails: {error}."
        ) from error
    finally:
        sys.path.pop(0)
    return module
