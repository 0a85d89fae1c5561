"""The direction of the imports, and how light ``import segtrust`` stays."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import segtrust

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

# In the order of the flow: a module imports from its own row and from those above it.
# "segtrust" is the package's own __init__, the public names.
LAYERS = (
    "errors",
    "limits",
    "saved",
    "optional",
    "params",
    "plugins",
    "settings",
    "threads",
    "compiled",
    "kernels",
    "maps",
    "risks",
    "calibration",
    "features",
    "ensembles",
    "confidence",
    "selective",
    "io",
    "engine",
    "models",
    "tasks",
    "evaluation",
    "experiments",
    "report",
    "review",
    "segtrust",
    "integrations",
    "testing",
    "demo",
    "bench",
    "cli",
    "__main__",
)
NEVER = {"selective": {"maps", "kernels", "io"}}
KERNEL_PACKAGES = {
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "array_api_compat",
    "segtrust",
} | sys.stdlib_module_names
HEAVY = ("torch", "matplotlib", "pandas", "scipy", "numba")
IMPORT_LIMIT_S = 0.3


def layer_of(module: str) -> str:
    """The row of a dotted module name: 'kernels' for 'segtrust.kernels.entropy'."""
    return module.split(".")[1] if "." in module else module


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def origin(node: ast.ImportFrom, path: Path) -> str:
    """The absolute name of the module a ``from`` import names."""
    package = path.relative_to(SOURCE).parts[:-1]
    above = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*above, *filter(None, [node.module])])


def imports(path: Path) -> list[str]:
    """The modules a file imports, anywhere in it; a submodule of segtrust by its own name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = origin(node, path)
            found += [resolve(module, alias.name) for alias in node.names]
    return found


def resolve(module: str, name: str) -> str:
    is_module = module == "segtrust" and name in {*LAYERS, "__version__"}
    return f"segtrust.{name}" if is_module else module


def own_layers(path: Path) -> set[str]:
    """The rows a file imports from; the version belongs to none."""
    own = {layer_of(module) for module in imports(path) if module.split(".")[0] == "segtrust"}
    return own - {"__version__"}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def import_seconds() -> float:
    """The time that ``import segtrust`` takes in a new process."""
    lines = python("-X", "importtime", "-c", "import segtrust").stderr.splitlines()
    (cumulative,) = (line.split("|")[1] for line in lines if line.split("|")[-1].strip() == "segtrust")
    return int(cumulative) / 1e6


def public(kind) -> list[str]:
    return [name for name in segtrust.__all__ if kind(getattr(segtrust, name, None))]


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_nothing_imports_what_stands_after_it(path):
    layer = layer_of(module_of(path))
    assert layer in LAYERS, f"{layer} has no place in LAYERS yet"
    allowed = set(LAYERS[: LAYERS.index(layer) + 1]) - NEVER.get(layer, set())
    assert own_layers(path) <= allowed


@pytest.mark.parametrize("path", sorted((SOURCE / "segtrust/kernels").rglob("*.py")), ids=module_of)
def test_kernels_know_only_arrays(path):
    assert {module.split(".")[0] for module in imports(path)} <= KERNEL_PACKAGES
    assert own_layers(path) <= {"errors", "optional", "settings", "threads", "compiled", "kernels"}


def test_only_the_command_line_prints():
    prints = [
        f"{module_of(path)}:{node.lineno}"
        for path in FILES
        if path.parent != SOURCE / "segtrust/cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not prints


def test_import_loads_nothing_heavy():
    loaded = python("-c", "import sys, segtrust; print(*sys.modules)").stdout.split()
    assert not set(HEAVY) & set(loaded)


def test_import_is_quick():
    assert any(import_seconds() < IMPORT_LIMIT_S for _ in range(10)), "ten runs, none below the limit"


def test_public_names_resolve():
    assert all(hasattr(segtrust, name) for name in segtrust.__all__)
    assert set(segtrust.__all__) <= set(dir(segtrust))


@pytest.mark.parametrize("name", public(inspect.isfunction))
def test_public_function_has_an_example(name):
    text = inspect.getdoc(getattr(segtrust, name)) or ""
    assert re.search(r"^Examples\n-{8}\n(.*\n)*?>>> ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import numpy.linalg", ["numpy.linalg"]),
        ("def f():\n    from scipy import special", ["scipy"]),
        ("from segtrust import maps, dice", ["segtrust.maps", "segtrust"]),
        ("from segtrust.maps import Case", ["segtrust.maps"]),
        ("from . import entropy", ["segtrust.kernels"]),
        ("from ..errors import SegtrustError", ["segtrust.errors"]),
        ("from .. import maps", ["segtrust.maps"]),
    ],
)
def test_imports_are_found_in_every_form(tmp_path, monkeypatch, line, expected):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    path = tmp_path / "segtrust/kernels/pass.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert imports(path) == expected
