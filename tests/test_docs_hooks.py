"""The reference of the command line, which is made while the documentation is built."""

import importlib.util
from pathlib import Path

import pytest
import typer

from segtrust.cli import app

ROOT = Path(__file__).parents[1]


def names_of(command, path="segtrust"):
    """Every command, and every command of its groups."""
    yield path
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from names_of(each, f"{path} {name}")


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "tools/docs_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(hooks):
    return hooks.on_page_markdown((ROOT / "docs/reference/command-line.md").read_text())


def test_every_command_is_on_the_page(page):
    headings = {line.lstrip("# ").strip("`") for line in page.splitlines() if line.startswith("##")}
    commands = set(names_of(typer.main.get_command(app))) - {"segtrust"}
    assert commands
    assert not commands - headings


def test_options_examples_and_exit_codes_are_on_the_page(page):
    assert "`-o, --output" in page
    assert "\n    segtrust score predictions/ -o scores.parquet\n" in page
    assert "Exit codes: 0 all cases scored" in page


def test_there_is_one_title(page, hooks):
    assert [line for line in page.splitlines() if line.startswith("# ")] == ["# Command line"]
    assert hooks.MARK not in page


def test_other_pages_stay_as_they_are(hooks):
    assert hooks.on_page_markdown("# A page\n") == "# A page\n"
