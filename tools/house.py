"""Measure how large and how fragmented the source tree is: the table of docs/design/house.md.

    python -m tools.house                    # this checkout
    python -m tools.house ../other/checkout  # another one, with the environment of this one

Code lines are lines without docstrings, comments and blank lines. These numbers describe; nothing enforces
them.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef

COUNT_CALLS = """
import sys, os
root = os.path.join({source!r}, "segtrust") + os.sep
seen = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
        seen.add((code.co_filename, code.co_firstlineno, code.co_name))
{prepare}
import threading
threading.setprofile(note)
sys.setprofile(note)
{run}
sys.setprofile(None)
print(len(seen), len({{name for name, *_ in seen}}), file=sys.__stdout__)
"""

PREPARE_SDC = """
import numpy as np, segtrust
p = np.random.default_rng(0).random((64, 64), np.float32)
segtrust.soft_dice_confidence(p)  # compiled, and everything imported
"""
PREPARE_COMMANDS = """
import io, contextlib
from segtrust.cli import main
def command(*words):
    sys.argv = ["segtrust", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
"""


PREPARE_CASE = """
from segtrust.confidence import get_estimators
from segtrust.engine.scoring import ScoreJob
try:
    from segtrust.io import find_cases
except ImportError:  # release 0.1
    from segtrust.io.datasets import find_cases
job = ScoreJob(tuple(get_estimators(["sdc", "idc", "amsp"])))
(case,) = find_cases([Path({one!r})]).cases
job(case)
"""


def code_lines(text: str) -> int:
    """Return the number of lines that hold code."""
    tree = ast.parse(text)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, Documented | ast.Module) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def body_lines(function: Function) -> int:
    """Return the lines of a function's body without its docstring."""
    body = [
        node
        for node in function.body
        if not isinstance(node, ast.Pass)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def import_lines(tree: ast.Module) -> int:
    """Return the lines of imports and of ``__all__``."""
    count = 0
    for node in ast.walk(tree):
        is_all = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        )
        if isinstance(node, ast.Import | ast.ImportFrom) or is_all:
            count += (node.end_lineno or node.lineno) - node.lineno + 1
    return count


def imported_modules(path: Path, source: Path) -> set[str]:
    """Return the modules of segtrust that a file imports from, by their dotted names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("segtrust"):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in below if is_module(name, source)}
            names |= modules or {node.module}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("segtrust.")}
    return names


def is_module(name: str, source: Path) -> bool:
    """Return whether a dotted name is a module or package of the source tree."""
    place = source.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def count_outside_imports(package: str, source: Path) -> tuple[int, int]:
    """Return how many modules of a package are imported from outside it, and how many it has."""
    folder = source / "segtrust" / package
    own = {
        ".".join(path.relative_to(source).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    }
    outside: set[str] = set()
    for path in (source / "segtrust").rglob("*.py"):
        if folder not in path.parents:
            outside |= imported_modules(path, source)
    return len(own & outside), len(list(folder.rglob("*.py")))


def measure_text(source: Path) -> dict[str, str]:
    """Return the measures that need only the text of the source files."""
    files = sorted((source / "segtrust").rglob("*.py"))
    texts = [path.read_text() for path in files]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, Function)]
    bodies = [lines for lines in map(body_lines, functions) if lines]
    words = Counter(re.findall(r"\w+", "\n".join(texts)))
    names = Counter(function.name for function in functions)
    private = [name for name in names if name.startswith("_") and not name.startswith("__")]
    once = [name for name in private if names[name] == 1 and words[name] == 2]
    docstrings = [ast.get_docstring(node) for node in nodes if isinstance(node, Documented)]
    written = [text for text in docstrings if text]
    stilted = [text for text in written if text.startswith("Give")]
    code = sum(map(code_lines, texts))
    return {
        "files / code lines": f"{len(files)} / {code:,}",
        "functions; mean body (lines)": f"{len(functions):,}; {sum(bodies) / len(bodies):.1f}",
        "private functions referenced once": f"{len(once) / len(functions):.0%}",
        "share of code that is imports and __all__": f"{sum(map(import_lines, trees)) / code:.0%}",
        'docstrings that begin with "Give"': f"{len(stilted)} of {len(written):,}",
        "modules imported from outside their package": ", ".join(
            f"{name} {outside} of {total}"
            for name in sorted(path.name for path in (source / "segtrust").iterdir() if path.is_dir())
            if (source / "segtrust" / name / "__init__.py").is_file()
            for outside, total in [count_outside_imports(name, source)]
        ),
    }


def count_calls(source: Path, prepare: str, run: str) -> str:
    """Return how many functions, in how many modules, some code runs; ``prepare`` runs before, uncounted."""
    script = COUNT_CALLS.format(source=str(source), prepare=prepare, run=run)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    functions, modules = done.stdout.split()[-2:]
    return f"{functions} ({modules})"


def measure_runs(source: Path) -> dict[str, str]:
    """Return how many functions (modules) run for one confidence, one PNG case and an evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        prepare_files = f"""
import numpy as np
from pathlib import Path
from PIL import Image
for name, count in (("one", 1), ("maps", 8)):
    for i in range(count):
        y, x = np.mgrid[-16:16, -16:16]
        p = 1 / (1 + np.exp(np.hypot(y, x) - 5 - i))
        for kind, values in (("p", p * 255), ("truth", 255 * (np.hypot(y, x) < 6 + i / 2))):
            path = Path({folder!r}, name, kind, f"case_{{i}}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(values.astype(np.uint8)).save(path)
"""
        one, maps, truth, out = (
            str(Path(folder, *parts)) for parts in (("one", "p"), ("maps", "p"), ("maps", "truth"), ("out",))
        )
        before = PREPARE_COMMANDS + prepare_files
        score = f'command("score", {one!r}, "-o", {out!r} + "/%s.csv")\n'
        evaluate = f'command("evaluate", {maps!r}, "--truth", {truth!r}, "-o", {out!r} + "/%s")\n'
        return {
            "functions (modules) for soft_dice_confidence(p)": count_calls(
                source, PREPARE_SDC, "segtrust.soft_dice_confidence(p)"
            ),
            "functions (modules) for one PNG case": count_calls(
                source, before + PREPARE_CASE.format(one=one), "job(case)"
            ),
            "functions (modules) for segtrust score on one PNG, without its worker": count_calls(
                source, before + score % "first", score % "second"
            ),
            "functions (modules) for evaluate": count_calls(
                source, before + evaluate % "first", evaluate % "second"
            ),
        }


def main() -> None:
    """Print the measures as a table in Markdown."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    measures = {**measure_text(root / "src"), **measure_runs(root / "src")}
    sys.stdout.write("| measure | value |\n|---|---|\n")
    for name, value in measures.items():
        sys.stdout.write(f"| {name} | {value} |\n")


if __name__ == "__main__":
    main()
