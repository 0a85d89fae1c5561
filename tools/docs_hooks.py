"""What the documentation takes from the program while it is built: the reference of the command line.

MkDocs calls ``on_page_markdown`` for every page (``hooks`` in ``mkdocs.yml``). The text is made by Typer's
own ``utils docs`` from the commands as they are, so that the page cannot fall behind them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

__all__ = ["command_reference", "on_page_markdown"]

MARK = "<!-- commands -->"
_EXAMPLE = re.compile(r"(?m)^  (?=segtrust )")
_TITLE = re.compile(r"\A# .*\n")


def command_reference() -> str:
    """Give all commands with their arguments, options, examples and exit codes, as Markdown."""
    command = [sys.executable, "-m", "typer", "segtrust.cli.loader", "utils", "docs", "--name", "segtrust"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    return _EXAMPLE.sub("    ", _TITLE.sub("", done.stdout))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the commands where a page asks for them."""
    return markdown.replace(MARK, command_reference()) if MARK in markdown else markdown
