"""The command line, in this process or, where that is the point, in one of its own."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import typer

from segtrust.cli import app, main


def segtrust_process(*arguments, **more):
    """Run the command line as a user does; takes a second or two to start."""
    command = [sys.executable, "-m", "segtrust", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def segtrust(*arguments):
    """Run the command line in this process, with output and exit code as ``segtrust_process`` gives them.

    What would end there as a traceback is raised here.
    """
    out, err = _stream("strict"), _stream("backslashreplace")
    command = ["segtrust", *map(str, arguments)]
    replaced = (mock.patch.object(sys, "argv", command), mock.patch.object(sys, "excepthook", sys.excepthook))
    with replaced[0], replaced[1], redirect_stdout(out), redirect_stderr(err):  # Typer sets an excepthook
        code = _exit_code()
    return subprocess.CompletedProcess(command, code, _text(out), _text(err))


def command_tree():
    """Return the whole command line as Click's commands, for tests that list its commands and options."""
    return typer.main.get_command(app)


def _exit_code():
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


def _stream(errors):
    """Like a pipe: bytes below, so that what cannot be encoded fails as it does there."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text(stream):
    return stream.buffer.getvalue().decode().replace("\r\n", "\n")
