"""The direction of the imports, and how light ``import segtrust`` stays."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

import segtrust

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

# In the order of the flow: a module imports from its own row and from those above it.
# "segtrust" is the package's own __init__, the public names.
LAYERS = (
    "errors",
    "_types",
    "_arguments",
    "_files",
    "_optional",
    "_display",
    "_storage",
    "_params",
    "_compile",
    "_progress",
    "_processes",
    "plugins",
    "kernels",
    "maps",
    "risks",
    "calibration",
    "features",
    "ensembles",
    "confidence",
    "selective",
    "policy",
    "io",
    "engine",
    "evaluation",
    "report",
    "workflows",
    "review",
    "segtrust",
    "integrations",
    "testing",
    "demo",
    "cli",
    "paper",
    "tasks",
    "__main__",
)
# Packages with one door: other packages import their names from these modules only.
DOORS = {
    "segtrust.calibration",
    "segtrust.confidence",
    "segtrust.engine",
    "segtrust.evaluation",
    "segtrust.features",
    "segtrust.io",
    "segtrust.kernels",
    "segtrust.paper.commands",
    "segtrust.paper.tasks",
    "segtrust.policy",
    "segtrust.selective",
}
# Who may import the paper's wing, which is built on everything else, the command line included.
IMPORTS_PAPER = {
    "segtrust.cli.loader",
    "segtrust.cli.plugins",  # lists the tasks that other packages add
    "segtrust.tasks",  # the path of the tasks in release 0.1
    "segtrust.testing",  # and of their contract suite
}
NEVER = {"selective": {"maps", "kernels", "features", "calibration", "ensembles", "confidence", "io"}}
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
    """The row of a dotted module name: 'kernels' for 'segtrust.kernels.bounds'."""
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


def is_exported(module: str, name: str) -> bool:
    """Whether a door lists a name, which may be that of one of its modules: the function ``certify``."""
    return (
        module in DOORS and f'"{name}",' in (SOURCE.joinpath(*module.split(".")) / "__init__.py").read_text()
    )


def modules_named(nodes: Iterable[ast.AST], path: Path) -> list[str]:
    """The modules that import statements name, a submodule by its own name."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = origin(node, path)
            full = [f"{module}.{alias.name}" for alias in node.names if not is_exported(module, alias.name)]
            found += [name if names_a_module(name) else module for name in full]
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


def names_a_module(module: str) -> bool:
    path = SOURCE.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def needed_to_import(path: Path) -> set[str]:
    """The modules of segtrust that importing a file imports, with the packages that they are in."""
    found = set(modules_named(module_level(ast.parse(path.read_text()).body), path))
    for name in list(found):
        found |= {name[:end] for end in range(len(name)) if name[end] == "."}
    # While a module is imported, the packages that it is in are being imported already.
    own = f"{module_of(path)}."
    return {name for name in found if names_a_module(name) and not own.startswith(f"{name}.")}


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported; not those that only type checkers read."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from module_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            inner = [*node.body, *node.orelse, *node.finalbody]
            yield from module_level(inner + [each for handler in node.handlers for each in handler.body])
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from module_level(node.body)


def find_cycle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Modules each of which imports the next, the last one the first; none if there is no cycle."""
    done: set[str] = set()

    def follow(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        cycles = (follow(each, [*trail, module]) for each in sorted(graph.get(module, ())))
        found = next(filter(None, cycles), [])
        done.add(module)
        return found

    return next(filter(None, (follow(module, []) for module in sorted(graph))), [])


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_nothing_imports_what_stands_after_it(path):
    layer = layer_of(module_of(path))
    assert layer in LAYERS, f"{layer} has no place in LAYERS yet"
    allowed = set(LAYERS[: LAYERS.index(layer) + 1]) - NEVER.get(layer, set())
    if module_of(path) in IMPORTS_PAPER:
        allowed.add("paper")
    assert own_layers(path) <= allowed


def test_nothing_imports_itself_through_others():
    cycle = find_cycle({module_of(path): needed_to_import(path) for path in FILES})
    assert not cycle, " -> ".join(cycle)


def test_a_cycle_is_found():
    assert find_cycle({"a": ["b"], "b": ["c", "d"], "c": [], "d": ["b"]}) == ["b", "d", "b"]
    assert find_cycle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_packages_are_entered_by_their_doors():
    behind = [
        f"{module_of(path)} imports {module}"
        for path in FILES
        for module in modules_named(ast.walk(ast.parse(path.read_text())), path)
        if module.startswith("segtrust.") and layer_of(module) in {layer_of(door) for door in DOORS}
        if layer_of(module) != layer_of(module_of(path)) and module not in DOORS
    ]
    assert not behind


@pytest.mark.parametrize("path", sorted((SOURCE / "segtrust/kernels").rglob("*.py")), ids=module_of)
def test_kernels_know_only_arrays(path):
    assert {module.split(".")[0] for module in imports(path)} <= KERNEL_PACKAGES
    assert own_layers(path) <= {
        "errors",
        "_arguments",
        "_compile",
        "kernels",
    }


def test_only_the_command_line_prints():
    prints = [
        f"{module_of(path)}:{node.lineno}"
        for path in FILES
        if path.parent not in {SOURCE / "segtrust/cli", SOURCE / "segtrust/paper/commands"}
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
