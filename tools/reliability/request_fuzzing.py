"""Send the review desk every kind of request that its own description allows, and many that it forbids.

Schemathesis reads ``/api/openapi.json`` of a desk that really listens, and makes requests of it: at the
limits of each value, beyond them, and by chance. No answer may be an error of the server, of another form
than described, an acceptance of what is forbidden, or a refusal of what is allowed.

    python -m tools.reliability.request_fuzzing --examples 200
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from segtrust.review.limits import RateLimit
from tests.review import desks

__all__ = ["Asked", "ask_counted", "ask_pictured"]

_GENERATED = re.compile(r"(\d+) generated")
_FAILED = re.compile(r"found (\d+) unique failures?")
_OPERATIONS = re.compile(r"Tested: (\d+)")
_UNLIMITED = RateLimit(per_second=1e9, burst=10**9)
"""Requests of one client: how often somebody may ask is tested elsewhere."""


@dataclass(frozen=True)
class Asked:
    """What came of the requests.

    Attributes
    ----------
    desk
        Which.
    operations, requests, failures
        How many: paths and methods, requests, and different failures.
    seconds
        That it took.
    told
        All that Schemathesis says.
    """

    desk: str
    operations: int
    requests: int
    failures: int
    seconds: float
    told: str

    def row(self) -> str:
        """Give a row of the table."""
        return (
            f"| {self.desk} | {self.operations} | {self.requests:,} | {self.failures} | {self.seconds:.0f} |"
        )


def ask_pictured(folder: Path, examples: int, seed: int) -> Asked:
    """Ask a desk on pictures with hostile names, and volumes."""
    desks.make_run(folder)
    with desks.desk_on(folder, rate=_UNLIMITED) as (_, client):
        return _asked("pictures and volumes", str(client.base_url), folder, (examples, seed))


def ask_counted(folder: Path, examples: int, seed: int) -> Asked:
    """Ask a desk on many rows without files, with a policy."""
    folder.mkdir(parents=True, exist_ok=True)
    table = desks.write_scores(folder / "scores.csv", 600)
    policy = desks.write_policy(folder / "policy.json", table)
    with desks.desk_on(folder, rate=_UNLIMITED, policy=policy, predictor=desks.PREDICTOR) as (_, client):
        return _asked("600 rows and a policy", str(client.base_url), folder, (examples, seed))


def _asked(desk: str, address: str, folder: Path, how_many: tuple[int, int]) -> Asked:
    """Let Schemathesis ask; what it keeps for itself goes into the folder of the desk."""
    base, (examples, seed) = address.rstrip("/"), how_many
    options = {"max-examples": examples, "seed": seed, "checks": "all", "workers": 1, "warnings": "off"}
    given = [f"--{name}={value}" for name, value in options.items()]
    headers = ["-H", "X-Segtrust: 1", "-H", f"Origin: {base}"]
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{base}/api/openapi.json", *headers, *given]
    begin = time.monotonic()
    done = subprocess.run(
        [*command, "--continue-on-failure"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
    )
    told = done.stdout + done.stderr
    counts = [_count(each, told) for each in (_OPERATIONS, _GENERATED, _FAILED)]
    if done.returncode and not counts[2]:
        raise RuntimeError(f"Schemathesis ended with {done.returncode}:\n{told[-3000:]}")
    return Asked(desk, *counts, time.monotonic() - begin, told)


def _count(pattern: re.Pattern[str], told: str) -> int:
    found = pattern.search(told)
    return int(found[1]) if found else 0


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> int:
    """Ask both desks, and print a table; the exit code tells whether anything failed."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--examples", type=int, default=50, help="by chance for each path and method (50)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens by chance (1)")
    asked = parser.parse_args()
    _say("| desk | operations | requests | failures | seconds |\n|---|---|---|---|---|")
    failures = 0
    for ask in (ask_pictured, ask_counted):
        with tempfile.TemporaryDirectory() as folder:
            found = ask(Path(folder) / "desk", asked.examples, asked.seed)
        _say(found.row())
        failures += found.failures
        if found.failures:
            sys.stderr.write(found.told)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
