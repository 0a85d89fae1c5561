"""Look into a wheel and an sdist: all that users need is in them, and nothing that they do not.

Run ``python tools/check_dist.py dist`` after a build; `make dist` does.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

IN_WHEEL = (
    "segtrust/py.typed",
    "segtrust/demo/data/scores.csv",
    "segtrust/demo/data/made_with.json",
    "segtrust/report/html/report.css",
    "segtrust/report/html/report.js",
    "segtrust/review/static/index.html",
    "segtrust/review/static/licenses.txt",
)
IN_SDIST = (
    "README.md",
    "LICENSE",
    "CITATION.cff",
    "Makefile",
    "mkdocs.yml",
    "pyproject.toml",
    "web/package.json",
    "benchmarks/__main__.py",
)
NEVER = ("node_modules/", "__pycache__/", ".venv", ".pyc", "segtrust-demo/")
LARGEST = 12_000_000
"""Bytes of a wheel: the page of the review desk and the embedded cases are most of it."""


def problems_of(names: set[str], needed: tuple[str, ...]) -> list[str]:
    """Say what is missing, and what has no place there."""
    missing = [f"{name} is missing" for name in needed if name not in names]
    foreign = [f"{name} has no place there" for name in sorted(names) if any(each in name for each in NEVER)]
    return missing + foreign[:3]


def names_in_wheel(path: Path) -> set[str]:
    """Give the files of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        return set(wheel.namelist())


def names_in_sdist(path: Path) -> set[str]:
    """Give the files of an sdist, without the folder that all are in."""
    with tarfile.open(path) as sdist:
        return {name.partition("/")[2] for name in sdist.getnames()}


def check(folder: Path) -> list[str]:
    """Give all that is wrong with what was built."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    found = [f"{wheel.name}: {each}" for each in problems_of(names_in_wheel(wheel), IN_WHEEL)]
    found += [f"{sdist.name}: {each}" for each in problems_of(names_in_sdist(sdist), IN_SDIST)]
    if wheel.stat().st_size > LARGEST:
        found.append(f"{wheel.name}: expected at most {LARGEST} bytes, got {wheel.stat().st_size}")
    return found


if __name__ == "__main__":
    problems = check(Path(sys.argv[1]))
    sys.exit("\n".join(problems) or 0)
