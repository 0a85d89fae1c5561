"""The public names: one list, typed, and every one of them documented."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import segtrust as st

STUB = Path(st.__file__).with_suffix(".pyi")


def typed_names() -> set[str]:
    nodes = ast.parse(STUB.read_text(encoding="utf-8")).body
    return {alias.asname for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_stub_and_package_name_the_same():
    assert typed_names() | {"__version__"} == set(st.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(st, "soft_dice")


def test_dir_lists_the_public_names():
    assert set(dir(st)) == set(st.__all__)


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
