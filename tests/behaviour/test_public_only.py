"""The behaviour tests use the command line and public names, so that everything else may change."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
FIXTURES = FOLDER.parent / "io/broken.py"  # files that are broken on purpose
FILES = [*sorted(FOLDER.rglob("*.py")), FIXTURES]
ALLOWED = {"segtrust", "segtrust.errors"}
PATCHES = {"monkeypatch", "mock", "setattr", "delattr", "patch"}


def internal_uses(source):
    """Return the lines that import a part of segtrust or patch something."""
    found = []
    for node in ast.walk(ast.parse(source)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
            if node.module == "segtrust.errors":
                modules = ["segtrust.errors"]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # code that is run in another process, and modules that are imported by name
            modules = [word for word in node.value.split() if word.startswith("segtrust.") and _is_name(word)]
        found += [f"line {node.lineno}: {module}" for module in modules if _is_internal(module)]
        names = {getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "arg", "")}
        found += [f"line {node.lineno}: {name}" for name in sorted(map(str, names & PATCHES))]
    return found


def _is_name(word):
    return all(part.isidentifier() for part in word.split("."))


def _is_internal(module):
    parts = module.split(".")
    if parts[0] == "tools":
        return True
    if parts[0] == "tests":
        allowed = (["commands"], ["behaviour"], ["processes"])
        return parts[1:2] not in allowed and module != "tests.io.broken"
    return parts[0] == "segtrust" and module not in ALLOWED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER.parent).as_posix())
def test_only_commands_and_public_names(path):
    allowed = path.name == "test_public_only.py"  # has examples of what is not
    assert allowed or not internal_uses(path.read_text("utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "from segtrust.io import read_map",
        "from segtrust import cli",
        "import segtrust.io.table as tables",
        "def f():\n    from segtrust.kernels.bounds import DiceBounds",
        "from tests.engine.files import write_maps",
        "from tools.release_fixtures import WEIGHT",
        "import_module('segtrust.engine')",
        "CODE = 'from segtrust.saved import replacing'",
        "def test_a(monkeypatch): pass",
        "mock.patch('x')",
        "setattr(st, 'score', None)",
    ],
)
def test_internal_uses_are_found(source):
    assert internal_uses(source)


@pytest.mark.parametrize(
    "source",
    [
        "import segtrust as st",
        "from segtrust.errors import ReadError",
        "from tests.commands import segtrust, segtrust_process",
        "from tests.behaviour.helpers import assert_golden",
        "import numpy as np",
        "'a table of segtrust. It has rows'",
    ],
)
def test_public_uses_are_allowed(source):
    assert not internal_uses(source)
