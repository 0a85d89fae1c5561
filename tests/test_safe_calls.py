"""No code that comes with data is run: what could run it is called at a few places only, each named here."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/segtrust"
FILES = sorted(SOURCE.rglob("*.py"))

ALLOWED = {
    # Loads what a person has allowed by --allow-pickle; nothing else calls it.
    ("io/formats/pickle.py", "_loaded"): {"pickle.loads", "numpy.load"},
    # Looks whether an error of a worker can be sent to its parent: loads what it has just written itself.
    ("engine/executors.py", "_run_task"): {"pickle.loads"},
    # Begins nnU-Net's own commands, as a list of words.
    ("paper/tasks/nnunet.py", "_run"): {"subprocess.run"},
    # Runs the file of a task that a person has named on the command line.
    ("paper/tasks/registry.py", "_run"): {"exec_module"},
}
"""By file and function."""
BUILTINS = {"eval", "exec", "compile", "__import__"}
MODULES = {
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "jsonpickle",
    "yaml",
    "code",
    "codeop",
    "pty",
    "xml",
    "tarfile",
    "fsspec",
    "requests",
    "httpx",
}
"""Modules that would load code, entities, links or what lies elsewhere, and that nothing here needs."""
CALLS = {
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "pandas.read_pickle", "numpy.loads"),
    *("os.system", "os.popen", "os.execv", "os.execvp", "os.execl", "os.spawnv", "os.posix_spawn"),
    *("subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call"),
    *("subprocess.check_output", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("runpy.run_path", "runpy.run_module", "torch.hub.load", "torch.jit.load"),
    *("tempfile.mktemp", "shutil.unpack_archive", "urllib.request.urlopen"),
    *("zarr.open", "zarr.load", "zarr.open_group", "zarr.storage.FsspecStore"),  # which take addresses
}


@cache
def tree_of(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


def imported(tree: ast.AST) -> dict[str, str]:
    """Names of a file, and what they stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.asname: each.name for each in node.names if each.asname}
            names |= {top: top for each in node.names if (top := each.name.partition(".")[0])}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return names


def called(node: ast.Call, names: dict[str, str]) -> str:
    """The dotted name of what is called; empty where it is not one."""
    parts, function = [], node.func
    while isinstance(function, ast.Attribute):
        parts, function = [function.attr, *parts], function.value
    if not isinstance(function, ast.Name):
        return ""
    return ".".join([names.get(function.id, function.id), *parts])


def says(node: ast.Call, name: str, value: object) -> bool:
    """Whether a keyword is given with this very value."""
    return any(
        each.arg == name and isinstance(each.value, ast.Constant) and each.value.value is value
        for each in node.keywords
    )


def offences(node: ast.Call, names: dict[str, str]) -> Iterator[str]:
    what = called(node, names)
    has = {each.arg for each in node.keywords}
    if what in BUILTINS or what in CALLS:
        yield what
    if what == "numpy.load" and "allow_pickle" in has:
        yield what
    if what == "torch.load" and not says(node, "weights_only", True):
        yield what
    if what.endswith(".exec_module"):
        yield "exec_module"
    if what.endswith((".extract", ".extractall")):
        yield "extract"
    if "shell" in has:
        yield f"{what}(shell=…)"


def found_in(tree: ast.AST) -> set[tuple[str, str]]:
    """Functions of a file, with what they call that they should not."""
    names, found = imported(tree), set()

    def walk(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.Call):
                found.update((inner, what) for what in offences(child, names))
            walk(child, inner)

    walk(tree, "")
    return found


def test_nothing_runs_what_comes_with_data():
    found = {}
    for path in FILES:
        for function, what in found_in(tree_of(path)):
            found.setdefault((path.relative_to(SOURCE).as_posix(), function), set()).add(what)
    assert found == ALLOWED


def test_no_module_is_used_that_loads_code():
    used = {
        (path.relative_to(SOURCE).as_posix(), meant.partition(".")[0])
        for path in FILES
        for meant in imported(tree_of(path)).values()
    }
    assert not {(path, module) for path, module in used if module in MODULES}


def test_only_who_was_allowed_to_reaches_the_loader_of_pickles():
    """The loader is asked where a place is trusted, and nothing but the flag makes one so."""
    callers = {
        (path.relative_to(SOURCE).as_posix(), function)
        for path in FILES
        for function in functions_calling(path, {"open_trusted", "read_trusted", "cases_of_pickle"})
    }
    assert callers == {
        ("io/volume.py", "open_volume"),  # where the location is trusted
        ("io/formats/pickle.py", "open_trusted"),
        ("io/stacks.py", "cases_of_pickle"),
        ("io/dataset.py", "_find_in"),  # if the request allows pickles
        ("io/dataset.py", "_cases_in_folder"),
        ("paper/medical/sources.py", "_paired_lists"),
    }


def functions_calling(path: Path, wanted: set[str]) -> Iterator[str]:
    for function in ast.walk(tree_of(path)):
        if isinstance(function, ast.FunctionDef):
            calls = (each for each in ast.walk(function) if isinstance(each, ast.Call))
            if any(isinstance(each.func, ast.Name) and each.func.id in wanted for each in calls):
                yield function.name


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("eval('1')", "eval"),
        ("import pickle as p\ndef f(): p.loads(b'')", "pickle.loads"),
        ("from pickle import loads\nloads(b'')", "pickle.loads"),
        ("from os import system\nsystem('ls')", "os.system"),
        ("import subprocess\nsubprocess.run('ls', shell=True)", "subprocess.run(shell=…)"),
        ("import numpy as np\nnp.load('a', allow_pickle=True)", "numpy.load"),
        ("import torch\ntorch.load('a')", "torch.load"),
        ("import torch\ntorch.load('a', weights_only=False)", "torch.load"),
        ("import zipfile\nfile = zipfile.ZipFile('a')\nfile.extractall()", "extract"),
        ("import zarr\nzarr.open('https://a')", "zarr.open"),
        ("from tempfile import mktemp\nmktemp()", "tempfile.mktemp"),
    ],
)
def test_what_is_looked_for_is_found(text, what):
    assert what in {found for _, found in found_in(ast.parse(text))}


@pytest.mark.parametrize(
    "text",
    [
        "model.eval()",
        "import re\nre.compile('a')",
        "import torch\ntorch.load('a', weights_only=True)",
        "import numpy as np\nnp.load('a')",
    ],
)
def test_what_does_no_harm_is_left_alone(text):
    assert not found_in(ast.parse(text))
