"""Each claim of the threat model names a test that is there."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/design/threat-model.md"
NODE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
DANGERS = ("network", "browser", "run", "machine", "record", "once")
"""Last words of the sections that make claims."""


def claims(text):
    """The rows of all tables: of each its cells."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if row != ["danger", "what guards", "test"]]


@cache
def functions_of(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8")) if (ROOT / file).is_file() else ast.Module([])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def faults(text):
    """Claims without a test, and tests that are not there."""
    bare = [
        row[0] for row in claims(text) if len(row) != 3 or not all(map(NODE.fullmatch, row[2].split(", ")))
    ]
    named = NODE.findall(text)
    loose = len(re.findall(r"tests/[\w/]+\.py::", text)) - len(named)
    absent = [f"{file}::{name}" for file, name in named if not _is_test(file, name)]
    return [*bare, *absent, *(["a test that is not named in full"] if loose else [])]


def _is_test(file, name):
    return name.startswith("test_") and name in functions_of(file)


def test_every_claim_names_tests_that_are_there():
    assert faults(PAGE.read_text(encoding="utf-8")) == []


def test_every_kind_of_attacker_has_claims():
    sections = re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))[1:]
    with_claims = [each.partition("\n")[0].split()[-1] for each in sections if len(claims(each)) >= 3]
    assert with_claims == list(DANGERS)
    assert sections[-1].startswith("Not guarded against")
    assert sections[-1].count("\n- **") >= 5


def test_what_is_wrong_with_a_page_would_be_seen():
    row = "| danger | guard | {} |"
    assert (
        faults(row.format("`tests/test_threat_model.py::test_what_is_wrong_with_a_page_would_be_seen`")) == []
    )
    assert faults(row.format("")) != []
    assert faults("| danger | guard |") != []
    for wrong in (
        "tests/test_threat_model.py::test_none",
        "tests/none.py::test_a",
        "tests/test_docs.py::blocks",
    ):
        assert faults(row.format(f"`{wrong}`")) == [wrong]
    assert faults(f"{row.format('`tests/test_docs.py::`')}") != []
