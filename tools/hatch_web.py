"""Build hook of hatchling: builds the page of the review desk whenever a wheel or an sdist is made.

Whoever installs a wheel needs no Node. A checkout on a machine without Node installs too, without the page:
`segtrust review` then says what is missing. ``python tools/hatch_web.py`` builds by hand, as `make web` does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called by hand
    BuildHookInterface = object  # type: ignore[assignment,misc]

LEAST_NODE = (20, 19)
_SOURCES = ("web/src", "web/public", "web/licences")
_SOURCE_FILES = (
    *("index.html", "licences.ts", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"),
)
_PAGE = "src/segtrust/review/static/index.html"
_COMMANDS = (("ci", "--no-audit", "--no-fund"), ("run", "build"))


class NodeError(RuntimeError):
    """Node is not there, too old, or did not build the page."""


class WebBuildHook(BuildHookInterface):  # type: ignore[type-arg,unused-ignore]
    """Builds the page where that can be done, and goes on where it cannot."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing or older than its sources, before files are collected.

        Not for an editable installation, which `make demo` makes in a minute: there it is `make web`.
        """
        if version == "editable":
            return
        try:
            build(Path(self.root))
        except NodeError as error:
            self.app.display_warning(f"The page of the review desk is not part of this build: {error}")


def build(root: Path) -> bool:
    """Build the page where it is missing or outdated; tell whether that was necessary.

    Raises
    ------
    NodeError
        If it is necessary and Node cannot do it.
    """
    if not (root / "web" / "package.json").is_file() or is_current(root):
        return False
    npm = find_npm()
    for command in _COMMANDS:
        done = subprocess.run([npm, *command], cwd=root / "web", capture_output=True, text=True, check=False)
        if done.returncode:
            raise NodeError(f"npm {' '.join(command)} failed.\n{done.stdout}{done.stderr}".rstrip())
    return True


def is_current(root: Path) -> bool:
    """Whether the built page is there and no source is younger."""
    page = root / _PAGE
    return page.is_file() and all(each.stat().st_mtime <= page.stat().st_mtime for each in sources(root))


def sources(root: Path) -> Iterable[Path]:
    """Everything that the page is built from."""
    for folder in _SOURCES:
        yield from (each for each in (root / folder).rglob("*") if each.is_file())
    yield from (root / "web" / name for name in _SOURCE_FILES)


def find_npm() -> str:
    """Give the path of npm, if the Node beside it is new enough.

    Raises
    ------
    NodeError
        If there is none, or an old one.
    """
    needed = ".".join(map(str, LEAST_NODE))
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NodeError(f"expected Node {needed} or later, found none.")
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = tuple(int(part) for part in re.findall(r"\d+", told)[:2])
    if found < LEAST_NODE:
        raise NodeError(f"expected Node {needed} or later, found {told.strip() or 'one without a version'}.")
    return npm


def main() -> None:
    """Build by hand."""
    try:
        build(Path(__file__).parents[1])
    except NodeError as error:
        sys.exit(f"The page of the review desk was not built: {error}")


if __name__ == "__main__":
    main()
