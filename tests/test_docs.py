"""The documentation runs: its code, its commands, its site.

The blocks of a page share one namespace and one folder and run in order. ``python`` blocks are executed,
``pycon`` blocks (with ``>>>``) are also held to their output, and the ``$ segtrust`` lines of ``console``
blocks must succeed, or end with the code that ``$ echo $?`` shows after them; where the page shows what a
command prints, that is compared. The desk, which runs until it is stopped, is stopped once it has said so.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest

import segtrust

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<info>\S[^\n`]*)\n(?P<text>.*?)^(?P=indent)``` *$")
ANCHOR = re.compile(r'id="segtrust\.[\w.]*?(\w+)"')
LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
STEP = re.compile(r"(?m)^\$ (.+)\n((?:(?!\$ ).*\n)*)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

LISTS = sorted((ROOT / "docs").glob("*/index.md"))
# What the public names rest on, and what has no names to be called: the command line has a page of its own.
WITHOUT_REFERENCE = {
    "__init__",
    "__main__",
    "cli",
    "tasks",
}

# Pages and first lines of the blocks that must not run, each with its reason.
NO_RUN: dict[tuple[str, str], str] = {
    (
        "docs/how-to/nnunet.md",
        "from pathlib import Path",
    ): "a trained model; tests/nnunet/hook.py is run instead",
    (
        "docs/how-to/write-a-plug-in.md",
        '"""The estimator keeps the contract of segtrust."""',
    ): "imports the package, which tests/test_plug_in_package.py installs and runs",
}


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


@dataclass(frozen=True)
class Command:
    """A line to be typed, and what the page shows of it."""

    text: str
    shown: str = ""
    exit_code: int = 0

    @property
    def serves(self) -> bool:
        return self.text.startswith("segtrust review")


def commands(block: Block) -> list[Command]:
    """The ``$ segtrust`` lines of a console block, continued lines joined."""
    found: list[Command] = []
    for step in STEP.findall(block.text.replace("\\\n", " ")) if block.language == "console" else []:
        command = Command(*step)
        if command.text == "echo $?":
            found[-1] = replace(found[-1], exit_code=int(command.shown))
        else:
            found.append(command)
    return [each for each in found if each.text.startswith("segtrust")]


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


def start(command: str) -> subprocess.Popen:
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": os.pathsep.join([scripts, os.environ["PATH"]])}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "encoding": "utf-8"}
    return subprocess.Popen(f"exec {command}", shell=True, env=environment, **streams)


def run_command(command: Command) -> None:
    if command.serves:
        printed = run_server(command)
    else:
        process = start(command.text)
        printed, _ = process.communicate()
        assert process.returncode == command.exit_code, f"{command.text}\n{printed}"
    if command.shown:
        assert doctest.OutputChecker().check_output(command.shown, printed, FLAGS), (
            f"{command.text}\nExpected:\n{command.shown}Got:\n{printed}"
        )


def run_server(command: Command) -> str:
    """Read as many lines as the page shows, and stop it; at a free port, without what Node builds."""
    with start(command.text + " --api-only --port 0") as process:
        printed = "".join(process.stdout.readline() for _ in command.shown.splitlines())
        process.terminate()
    return printed


def shows_output(page: Path) -> bool:
    return any(command.shown for block in blocks(page, page.read_text()) for command in commands(block))


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# The code of a lesson at the command line reads what its commands have written, and runs with them alone.
@pytest.mark.parametrize("page", [page for page in PAGES if not shows_output(page)], ids=page_name)
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


@pytest.mark.parametrize("page", LISTS, ids=page_name)
def test_lists_name_every_page_beside_them(page):
    beside = {each.name for each in page.parent.glob("*.md")} - {"index.md"}
    assert not beside - set(re.findall(r"\]\(([\w-]+\.md)\)", page.read_text()))


def test_every_public_module_has_a_reference():
    named = [
        each.split(".")[1]
        for page in PAGES
        for each in re.findall(r"(?m)^::: (segtrust\.\S+)", page.read_text())
    ]
    modules = {
        path.stem
        for path in Path(segtrust.__file__).parent.iterdir()
        if path.suffix == ".py" or path.is_dir()
    }
    assert not {name for name in modules if not name.startswith("_")} - WITHOUT_REFERENCE - set(named)


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
    (command,) = commands(block)
    assert shlex.split(command.text) == ["segtrust", "score", "a.npy"]
    assert command.shown == "id  sdc\n"


def test_exit_codes_are_read():
    text = "```console\n$ segtrust calibrate a.csv\nNo.\n$ echo $?\n1\n$ segtrust demo\n```\n"
    (block,) = blocks(ROOT / "README.md", text)
    assert commands(block) == [Command("segtrust calibrate a.csv", "No.\n", 1), Command("segtrust demo")]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Command("segtrust --version", "segtrust 99\n"), "Expected"),
        (Command("segtrust --version", "", 1), "segtrust --version"),
    ],
)
def test_wrong_output_of_a_command_fails(command, message):
    run_command(Command("segtrust --version", "segtrust ...\n"))
    with pytest.raises(AssertionError, match=message):
        run_command(command)
