"""Functions and files stay small enough to read."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

MEDIAN_LINES = 8
NINETIETH_PERCENTILE_LINES = 25
MOST_LINES = 60
MOST_FILE_LINES = 500
MOST_PARAMETERS = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function))


def body_lines(function: Function) -> int:
    """Lines of the body without the docstring; 0 for a declaration that has no other."""
    body = [
        node
        for node in function.body
        if not isinstance(node, ast.Pass)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def parameters(function: Function) -> list[str]:
    listed = function.args
    named = [*listed.posonlyargs, *listed.args, listed.vararg, *listed.kwonlyargs, listed.kwarg]
    return [argument.arg for argument in named if argument and argument.arg not in {"self", "cls"}]


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(SOURCE)}:{node.lineno} {getattr(node, 'name', '')}".strip()


@pytest.fixture(scope="module")
def lengths() -> dict[str, int]:
    """Lines of each function body that has any."""
    every = {place(path, function): body_lines(function) for path in FILES for function in functions(path)}
    return {where: lines for where, lines in every.items() if lines}


def test_most_functions_are_short(lengths):
    assert median(lengths.values()) <= MEDIAN_LINES
    assert quantiles(lengths.values(), n=10)[-1] <= NINETIETH_PERCENTILE_LINES


def test_no_function_is_long(lengths):
    assert not {where: lines for where, lines in lengths.items() if lines > MOST_LINES}


def test_no_file_is_long():
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    lengths = {str(path): len(path.read_text().splitlines()) for path in [*FILES, *tests]}
    assert not {name: lines for name, lines in lengths.items() if lines > MOST_FILE_LINES}


def test_no_function_takes_many_parameters():
    counts = {place(path, f): len(parameters(f)) for path in FILES for f in functions(path)}
    assert not {where: count for where, count in counts.items() if count > MOST_PARAMETERS}


def test_only_the_command_line_prints():
    prints = [
        place(path, node)
        for path in FILES
        if path.parent != SOURCE / "segtrust/cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not prints


def test_lines_are_counted_without_docstring():
    text = 'def f(self, a, *rest, b=1, **more):\n    """Say\n    more."""\n\n    x = a\n\n    return x\n'
    (function,) = ast.parse(text).body
    assert body_lines(function) == 3
    assert parameters(function) == ["a", "rest", "b", "more"]
