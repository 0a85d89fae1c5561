"""The public names: one list, typed, and every one of them documented."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_overloads

import pytest

import segtrust as st

STUB = Path(st.__file__).with_suffix(".pyi")


def typed_names() -> Iterator[tuple[str, str]]:
    """The module and the name of everything that the stub imports."""
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            assert all(alias.asname == alias.name for alias in node.names)
            yield from ((str(node.module), alias.name) for alias in node.names)


def test_stub_and_package_name_the_same():
    assert {name for _, name in typed_names()} | {"__version__"} == set(dir(st))


@pytest.mark.parametrize(("module", "name"), list(typed_names()))
def test_stub_and_package_mean_the_same(module, name):
    """The same object has the same signature."""
    assert getattr(st, name) is getattr(import_module(module), name)


def parameters_of(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    signature = inspect.signature(function)
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


def test_overloads_have_the_parameters_of_the_function():
    """Names, order, kinds and defaults; type checkers compare the types."""
    functions = [value for name in st.__all__ if inspect.isfunction(value := getattr(st, name))]
    pairs = [(function, overload) for function in functions for overload in get_overloads(function)]
    assert pairs
    for function, overload in pairs:
        for ours, whole in zip(parameters_of(overload), parameters_of(function), strict=True):
            assert ours == whole or ours == (*whole[:2], inspect.Parameter.empty), function


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(AttributeError, match=r"confidnce'. Did you mean 'soft_dice_confidence'\?"):
        _ = st.soft_dice_confidnce
    with pytest.raises(AttributeError, match=r"no attribute 'quux'$"):
        _ = st.quux


def test_submodules_load_on_first_use():
    code = (
        "import sys, segtrust as st; assert 'segtrust.selective' not in sys.modules; "
        "print(st.selective.Target(0.1), st.errors.SegtrustError)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_package_is_a_submodule():
    """Except the command line, and the old path of the tasks."""
    packages = {path.parent.name for path in Path(st.__file__).parent.glob("[a-z]*/__init__.py")}
    assert packages - {"cli"} <= set(dir(st))


def test_bridges_load_on_first_use():
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        _ = st.integrations.tensorflow
    code = (
        "import sys, segtrust as st; sys.modules['torch'] = None\n"
        "try: st.integrations.torch\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "segtrust[torch]" in done.stdout


def test_dir_lists_the_public_names_and_submodules():
    assert set(dir(st)) > set(st.__all__)


def test_every_class_and_function_is_documented():
    for name in st.__all__:
        value = getattr(st, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name


def test_works_where_compiled_kernels_cannot_be_kept():
    """As in a container under an arbitrary user: Numba then finds no place for its files."""
    code = (
        "from numba.core.caching import CacheImpl; CacheImpl._locator_classes = []\n"
        "import numpy as np, segtrust as st; print(st.soft_dice_confidence(np.array([0.9, 0.1])))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 0.9


OLD = {
    "Evidence": "CalibrationEvidence",
    "HashedIds": "HashedIds",
    "Need": "CalibrationPlan",
    "Operation": "SelectedThreshold",
    "Standing": "PolicyStatus",
    "Step": "CandidateTest",
    "refuse_seen": "reject_seen",
}


@pytest.mark.parametrize("old", OLD)
def test_names_of_the_first_release_still_work_with_a_warning(old):
    with pytest.warns(
        DeprecationWarning, match=rf"segtrust.{old} (was renamed|moved): use segtrust"
    ) as caught:
        value = getattr(st, old)
    assert value.__name__ == OLD[old]
    assert Path(caught[0].filename) == Path(__file__)
    assert old not in st.__all__
