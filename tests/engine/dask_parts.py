"""Parts of a Dask cluster, each a program of its own."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.processes import wait_until

ROOT = Path(__file__).parents[2]


@contextmanager
def dask(*arguments):
    """A part of a cluster, as a program of its own that finds segtrust and the tests."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "dask", *map(str, arguments)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def scheduler(folder):
    with dask(
        *("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"),
        *("--scheduler-file", folder / "scheduler.json"),
    ) as process:
        wait_until((folder / "scheduler.json").exists)
        wait_until(lambda: (folder / "scheduler.json").read_text().strip())
        yield process, json.loads((folder / "scheduler.json").read_text())["address"]


@contextmanager
def small_cluster(workers):
    """A cluster in this process, and a client of it."""
    import distributed

    how = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=workers, host="127.0.0.1", protocol="tcp://", **how) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


@contextmanager
def worker(address, folder, *, declared=0):
    """A worker that may declare its memory as a resource."""
    with dask(
        *("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"),
        *("--local-directory", folder, "--host", "127.0.0.1"),
        *(("--resources", f"memory={declared}") if declared else ()),
    ) as process:
        yield process
