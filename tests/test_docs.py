"""The documentation runs: its code, its commands, its site.

The blocks of a page share one namespace and one folder and run in order. ``python`` blocks are executed,
``pycon`` blocks (with ``>>>``) are also held to their output, and the ``$ segtrust`` lines of ``console``
blocks must succeed.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

import segtrust

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<info>\S[^\n`]*)\n(?P<text>.*?)^(?P=indent)``` *$")
ANCHOR = re.compile(r'id="segtrust\.[\w.]*?(\w+)"')
LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Pages and first lines of the blocks that must not run, each with its reason.
NO_RUN: dict[tuple[str, str], str] = {}


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    options: str
    text: str
    line: int

    @property
    def may_stay_unrun(self) -> bool:
        return (self.page, self.text.partition("\n")[0]) in NO_RUN


def blocks(page: Path, text: str) -> list[Block]:
    """The fenced blocks of a page that name a language."""
    return [
        Block(
            page=str(page.relative_to(ROOT)),
            language=found["info"].split()[0],
            options=" ".join(found["info"].split()[1:]),
            text=dedent(found["text"]),
            line=text.count("\n", 0, found.start("text")),
        )
        for found in FENCE.finditer(text)
    ]


def commands(block: Block) -> list[str]:
    """The ``$ segtrust`` lines of a console block, continued lines joined."""
    lines = block.text.replace("\\\n", " ").splitlines() if block.language == "console" else []
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ segtrust")]


def run_code(block: Block, namespace: dict) -> None:
    code = compile("\n" * block.line + block.text, str(ROOT / block.page), "exec")
    exec(code, namespace)


def run_session(block: Block, namespace: dict) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, block.page, block.page, block.line)
    test.globs = namespace  # get_doctest would copy it, and the next block would not see the names
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def run_python(block: Block, namespace: dict) -> None:
    if "no-run" in block.options:
        where = f"{block.page}:{block.line}"
        assert block.options == "{.no-run}", f"{where}: write {{.no-run}}, the form that the site can render"
        assert block.may_stay_unrun, f"{where}: a block that does not run needs a reason in NO_RUN"
        return
    {"python": run_code, "pycon": run_session}.get(block.language, lambda *_: None)(block, namespace)


def run_command(command: str) -> None:
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": os.pathsep.join([scripts, os.environ["PATH"]])}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_code_runs(page):
    namespace = {"__name__": "__main__"}
    for block in blocks(page, page.read_text()):
        run_python(block, namespace)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if "$ segtrust" in page.read_text()], ids=page_name)
def test_commands_run(page):
    namespace = {"__name__": "__main__"}
    for block in blocks(page, page.read_text()):
        run_python(block, namespace)
        for command in commands(block):
            run_command(command)


@pytest.mark.slow
@pytest.mark.needs("mkdocs")
def test_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, shlex.join(command) + "\n" + done.stdout + done.stderr
    pages = {path: LOADED.findall(path.read_text()) for path in tmp_path.rglob("*.html")}
    assert pages
    assert not {path.name: urls for path, urls in pages.items() if urls}
    anchors = {each for path in pages for each in ANCHOR.findall(path.read_text())}
    assert not [name for name in segtrust.__all__ if name not in anchors and name != "__version__"]


def test_blocks_share_a_namespace():
    first = "```python\nx = 1\n```\n"
    indented = "- item\n\n    ```pycon\n    >>> x + 1\n    2\n    >>> y = 3\n    ```\n"
    last = "```python\nz = x + y\n```\n"
    namespace: dict = {}
    for block in blocks(ROOT / "README.md", "\n".join([first, indented, last])):
        run_python(block, namespace)
    assert namespace["z"] == 4


def test_wrong_output_fails():
    (block,) = blocks(ROOT / "README.md", "```pycon\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_python(block, {})


def test_failure_names_the_line():
    (block,) = blocks(ROOT / "README.md", "# Title\n\n```python\n\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as error:
        run_python(block, {})
    assert error.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize(("mark", "message"), [("{.no-run}", "needs a reason"), ("no-run", "write")])
def test_unlisted_no_run_is_refused(mark, message):
    (block,) = blocks(ROOT / "README.md", f"```python {mark}\nx\n```\n")
    with pytest.raises(AssertionError, match=message):
        run_python(block, {})


def test_listed_no_run_does_not_run(monkeypatch):
    monkeypatch.setitem(NO_RUN, ("README.md", "1 / 0"), "would fail")
    (block,) = blocks(ROOT / "README.md", "```python {.no-run}\n1 / 0\n```\n")
    run_python(block, {})


def test_commands_are_found():
    (block,) = blocks(ROOT / "README.md", "```console\n$ segtrust score \\\n  a.npy\nid  sdc\n$ ls\n```\n")
    assert [shlex.split(command) for command in commands(block)] == [["segtrust", "score", "a.npy"]]
