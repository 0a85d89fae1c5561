"""Programs that tests start and stop."""

import subprocess
import sys
import time
from pathlib import Path

_LISTEN = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


_ABANDON = """
import os, sys
from segtrust._files import atomic_write

with atomic_write(sys.argv[1]) as draft:
    draft.touch()
    print(draft, flush=True)
    os._exit(0)
"""


def abandoned_draft(path):
    """The draft of a file that a process has left behind which is gone."""
    done = subprocess.run([sys.executable, "-c", _ABANDON, path], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def gone_process():
    """Number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        return gone.pid


def interruptible(*arguments):
    """Command for Python that Ctrl-C stops, also where tests run in the background, which ignores it."""
    return [sys.executable, "-c", _LISTEN, *map(str, arguments)]


def wait_until(condition, seconds=60, pause=0.05):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(pause)


def children(pid):
    """Processes that the threads of one have started, by Linux's list."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    try:
        return [int(each) for path in lists for each in path.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return []


def descendants(pid):
    """Those, and all that they have started: workers are begun by a process that is kept for that."""
    found = children(pid)
    return [
        *found,
        *(below for each in found if Path(f"/proc/{each}").exists() for below in descendants(each)),
    ]


def is_running(pid):
    """Whether a process is there, other than as the entry that is left until its parent takes notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
