"""Commands that pages show and no test runs, for want of data or hours, are such as the command line takes.

Those of ``console`` blocks are run by tests/test_docs.py, those of the README by tests/test_readme.py. Here
every command of any block is parsed, whole, by the parser of its command, and nothing is run.
"""

import re
import shlex

import pytest
from typer.main import get_command

from segtrust.cli.loader import _with_address, app
from tests.test_docs import PAGES, ROOT

FENCED = re.compile(r"(?ms)^ *```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```")
ADMONITION = re.compile(r"(?m)^!!! .*\n(?: {4}.*\n|\n)*")
INDENTED = re.compile(r"(?m)^ {4}.*$")
COMMAND = re.compile(r"(?m)^ *(?:\$ )?(?:\w+=\S* )?(segtrust [^\n|;&>]+)")
VARIABLE = re.compile(r"\$\w+")
LARGE_MAP = "segtrust score huge.zarr -o scores.csv --workers 4 --memory 4GiB"


def blocks_of(text):
    """The text of all blocks but those of Python: between fences, and indented."""
    found = [each for each in FENCED.finditer(text) if each["language"] not in ("python", "pycon")]
    fenced = [each["text"] for each in found]
    return "\n".join([*fenced, *INDENTED.findall(ADMONITION.sub("", FENCED.sub("", text)))])


def commands_of(page):
    """The commands of a page, continued lines joined; a variable of the shell stands for a number."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return [VARIABLE.sub("1", found.strip()) for found in COMMAND.findall(blocks_of(text))]


def parse(line):
    """Parse a command as it would be run; raises what the command line would complain of."""
    words = _with_address(shlex.split(line, comments=True)[1:])
    command, names = get_command(app), ["segtrust"]
    while words and words[0] in getattr(command, "commands", {}):
        command, names = command.commands[words[0]], [*names, words.pop(0)]
    if "show" in getattr(command, "commands", {}):
        command = command.commands["show"]  # segtrust nnunet 27
    assert not hasattr(command, "commands") or words[:1] == ["--version"], f"No such command: {words}"
    command.make_context(" ".join(names), words).close()


SHOWN = [(str(page.relative_to(ROOT)), line) for page in PAGES for line in commands_of(page)]


@pytest.mark.parametrize(("page", "line"), SHOWN)
def test_the_command_line_takes_it(page, line):
    parse(line)


def test_there_are_many_and_a_wrong_one_would_be_seen():
    assert len(SHOWN) > 100
    assert ("docs/how-to/large-maps.md", LARGE_MAP) in SHOWN
    for line in ("score maps", "score maps -o a.csv --wrokers 2", "tasks train", "fly"):
        with pytest.raises(Exception, match=r"Missing|No such"):
            parse(f"segtrust {line}")
