"""Which mutants: drawn from all that cosmic-ray can make of a package, but for those that change nothing.

They are of a copy of the source, and are kept in a session of cosmic-ray's, which another run goes on with.
"""

import ast
import hashlib
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec, WorkItem

__all__ = ["BUDGET_S", "SLOW_S", "Place", "begin", "lines_of"]

COPIED = ("src", "tests", "tools", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
SLOW_S = 0.3
BUDGET_S = 2.0
COMPILES = {"elementwise", "entry", "plain", "reduction", "wary"}
"""Decorators that only compile."""


@dataclass(frozen=True)
class Place:
    """Where a session of a package lives: the source it is of, its copy, and what is written."""

    root: Path
    out: Path
    package: str
    slow: float = SLOW_S
    budget: float = BUDGET_S

    @property
    def tree(self) -> Path:
        """The copy that is mutated."""
        return self.out / f"{self.package}-tree"

    @property
    def source(self) -> Path:
        """The package within the copy."""
        return self.tree / "src" / "segtrust" / self.package

    def file(self, ending: str) -> Path:
        """Name a file of the session."""
        return self.out / f"{self.package}{ending}"


def copy_source(place: Place) -> None:
    """Put a copy of the source and the tests in place; what is compiled of them stays valid."""
    place.tree.mkdir(parents=True, exist_ok=True)
    left = shutil.ignore_patterns("__pycache__", "static")
    for name in COPIED:
        path = place.root / name
        if path.is_dir():
            shutil.copytree(path, place.tree / name, ignore=left, dirs_exist_ok=True)
        elif path.exists():
            shutil.copy2(path, place.tree / name)


@cache
def parsed(path: Path) -> ast.Module:
    """Parse a file, as it was at first."""
    return ast.parse(path.read_text(encoding="utf-8"))


def never_run(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Parts of a module that are not evaluated: annotations, and imports for the type checker."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (("for the type checker", each) for each in node.body)
        for name in ("annotation", "returns"):
            if part := getattr(node, name, None):
                yield "annotation", part
        for part in getattr(node, "decorator_list", ()):
            if isinstance(part, ast.Name) and part.id in COMPILES:
                yield "only compiles", part


def is_within(spec: MutationSpec, node: ast.AST) -> bool:
    """Whether a mutation lies within a part of the source; a decorator's begins one sign before."""
    return (node.lineno, node.col_offset - 1) <= spec.start_pos <= (node.end_lineno, node.end_col_offset)


def why_not(spec: MutationSpec) -> str | None:
    """Say why a mutation changes nothing that a module does, or is no program; None where it is a mutant."""
    tree = parsed(spec.module_path)
    inside = next((why for why, node in never_run(tree) if is_within(spec, node)), None)
    if inside:
        return inside
    try:
        return "the same program" if ast.dump(ast.parse(mutated(spec))) == ast.dump(tree) else None
    except SyntaxError:
        return "no program"


def mutated(spec: MutationSpec) -> str:
    """Give the source with the mutation."""
    operator = get_operator(spec.operator_name)(**spec.operator_args)
    return mutate_code(spec.module_path.read_text(encoding="utf-8"), operator, spec.occurrence) or ""


def draw(place: Place, sample: int, seed: int) -> tuple[list[WorkItem], Counter[str]]:
    """Draw mutants of a package; give them, and how many there are, those set aside counted by why."""
    with use_db(":memory:") as every:
        init(sorted(place.source.rglob("*.py")), every, {})
        items = sorted(every.work_items, key=lambda item: _order(item.mutations[0]))
    random.Random(seed).shuffle(items)  # nosec B311  # to be repeated, not to be secret
    drawn, counts = [], Counter({"all": len(items)})
    for item in items:
        if len(drawn) == sample:
            break
        why = why_not(item.mutations[0])
        counts["looked at"] += 1
        if why:
            counts[why] += 1
        else:
            drawn.append(item)
    return drawn, counts


def _order(spec: MutationSpec) -> tuple[object, ...]:
    return str(spec.module_path), spec.operator_name, json.dumps(spec.operator_args), spec.occurrence


def begin(place: Place, sample: int, seed: int) -> None:
    """Begin a session, or go on with the one that is there, if it is of this source."""
    copy_source(place)
    stamp = {"sample": sample, "seed": seed, "source": digest(place.source)}
    about = place.file(".about.json")
    if about.exists():
        found = json.loads(about.read_text(encoding="utf-8"))
        if {name: found[name] for name in stamp} != stamp:
            sys.exit(f"{about}: expected a session of {stamp}, got {found}. Choose another --out.")
        return
    drawn, counts = draw(place, sample, seed)
    with use_db(place.file(".sqlite")) as session:
        session.clear()
        session.add_work_items(drawn)
    about.write_text(json.dumps({**stamp, "counts": counts}, indent=1), encoding="utf-8")


def digest(folder: Path) -> str:
    """Fingerprint of the source in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def lines_of(spec: MutationSpec) -> set[int]:
    """Lines of the innermost statement that is mutated; of one with a body, its head."""
    best = range(spec.start_pos[0], spec.end_pos[0] + 1)
    statements = [node for node in ast.walk(parsed(spec.module_path)) if isinstance(node, ast.stmt)]
    around = [head for node in statements if spec.start_pos[0] in (head := head_of(node))]
    return set(min(around, key=len, default=best)) | set(best)


def head_of(node: ast.stmt) -> range:
    """Lines of a statement without its body."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno
    return range(node.lineno, max(node.lineno, last or 0) + 1)
