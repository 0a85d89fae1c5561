"""Programs that tests start and stop."""

import sys

_LISTEN = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def interruptible(*arguments):
    """Command for Python that Ctrl-C stops, also where tests run in the background, which ignores it."""
    return [sys.executable, "-c", _LISTEN, *map(str, arguments)]
