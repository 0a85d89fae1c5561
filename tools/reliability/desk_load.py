"""Let many reviewers work at a review desk at once, and hold what they were told against what it has kept.

``python -m tools.reliability.desk_load --clients 50 --seconds 60 --out load`` starts ``segtrust review`` over
2,000 cases. Each reviewer does what the page does: follows the log, turns the pages of the worklist, opens
cases, fetches tiles, decides with a comment, takes back, looks at threshold and monitoring, exports; as fast
as the desk answers unless ``--pause`` is given. The exit code is 1 if anything was refused, failed, lost,
doubled or altered.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from segtrust.io import Table, write_table
from tools.reliability.desk_log import Heard, faults, read_kept
from tools.reliability.desk_process import TOKEN, DeskProcess, make_run
from tools.reliability.soaking import MIB, memory_of

__all__ = ["Load", "Reviewer", "Timings", "load", "main"]

PAGE = 100
VERDICTS = ("accept", "reject", "correct")
MOST_DECISIONS = 500
"""Of one reviewer: a fast desk must not be filled without end."""
PATIENCE_S = 60.0
_EVERY_S = 0.5


@dataclass
class Timings:
    """What came of the requests.

    Attributes
    ----------
    seconds
        That each kind of request took, with its answer.
    errors
        How often something else than an answer came: kind of request, and what.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """Of all requests that were answered."""
        return sum(map(len, self.seconds.values()))

    def rows(self) -> list[dict[str, object]]:
        """Give a row for each kind of request, and one for all: milliseconds."""
        every = {**self.seconds, "all": [each for kind in self.seconds.values() for each in kind]}
        return [_row(kind, 1000.0 * np.array(values)) for kind, values in sorted(every.items()) if values]


def _row(kind: str, ms: Any) -> dict[str, object]:
    shares = dict(zip(("p50", "p95", "p99", "max"), np.quantile(ms, (0.5, 0.95, 0.99, 1.0)), strict=True))
    return {"request": kind, "count": len(ms), **{name: round(float(at), 1) for name, at in shares.items()}}


@dataclass
class Reviewer:
    """Somebody in front of a page.

    Attributes
    ----------
    client
        A browser of their own.
    heard
        Their own log.
    timings
        Of all reviewers.
    rng
        What they do next.
    """

    client: httpx.AsyncClient
    heard: Heard
    timings: Timings
    rng: np.random.Generator
    _last: int = 0
    _decided: int = 0

    async def ask(self, kind: str, path: str, **query: Any) -> Any:
        """Ask for something; ``None`` where it does not come."""
        return await self._sent(kind, "GET", path, params=query)

    async def _sent(self, kind: str, method: str, path: str, **more: Any) -> Any:
        begin = time.monotonic()
        try:
            answer = await self.client.request(method, path, **more)
        except httpx.HTTPError as error:
            self.timings.errors[kind, type(error).__name__] += 1
            return None
        self.timings.seconds[kind].append(time.monotonic() - begin)
        if answer.status_code != httpx.codes.OK:
            self.timings.errors[kind, f"{answer.status_code}: {answer.text[:200]}"] += 1
            return None
        is_json = answer.headers["content-type"] == "application/json"
        return answer.json() if is_json else answer.content

    async def work(self, until: float, pause_s: float) -> None:
        """Sign in, and work until a moment; not all begin at the same one."""
        await asyncio.sleep(self.rng.uniform(0.0, pause_s))
        await self.ask("sign in", "/", token=TOKEN)
        run = await self.ask("run", "/api/run")
        while run is not None and time.monotonic() < until and self._decided < MOST_DECISIONS:
            await self._follow()
            row = await self._choose(run["rows"])
            if row is not None:
                await self._look_at(row)
                await self._decide(row)
            await self._look_around()
            await asyncio.sleep(pause_s)

    async def _follow(self) -> None:
        """Hear what others have said."""
        fresh = await self.ask("log", "/api/verdicts", after=self._last)
        self._last = max([self._last, *(entry["id"] for entry in fresh or ())])

    async def _choose(self, rows: int) -> Mapping[str, Any] | None:
        """Turn to some page of the list, in some order, and choose a case of it."""
        order = {"sort": str(self.rng.choice(["worklist", "case", "confidence", "verdict"]))}
        offset = int(self.rng.integers(0, max(1, rows - PAGE)))
        query = {"offset": offset, "limit": PAGE, "reviewer": self.heard.reviewer, **order}
        page = await self.ask("worklist", "/api/cases", **query)
        return page["rows"][int(self.rng.integers(len(page["rows"])))] if page and page["rows"] else None

    async def _look_at(self, row: Mapping[str, Any]) -> None:
        """Open a case, and fetch all layers as a whole, and a piece of each at full size, all at once."""
        number = row["number"]
        case = await self.ask("case", f"/api/cases/{number}")
        if case is None or case["view"] is None:
            self.timings.errors["case", "cannot be opened"] += 1
            return
        levels = {0, case["view"]["levels"] - 1}
        paths = [f"tiles/{layer}/0/{level}/0/0.png" for layer in case["view"]["layers"] for level in levels]
        await asyncio.gather(*(self.ask("tile", f"/api/cases/{number}/{path}") for path in paths))

    async def _decide(self, row: Mapping[str, Any]) -> None:
        """Give a verdict; one in ten is taken back at once."""
        self._decided += 1
        comment = f'{self.heard.reviewer} on {row["case"]}, no. {self._decided}: <b>"ß"</b>,\nsecond line'
        said = {
            "verdict": str(self.rng.choice(VERDICTS)),
            "comment": comment,
            "reviewer": self.heard.reviewer,
        }
        meant = {name: row[name] for name in ("number", "set", "case", "structure", "digest")}
        body = {**meant, **said, "request": secrets.token_hex(16)}
        entry = await self._sent("verdict", "POST", "/api/verdicts", json=body)
        self._keep(entry, body)
        if entry is not None and self.rng.random() < 0.1:
            path, who = f"/api/verdicts/{entry['id']}/undo", {"reviewer": self.heard.reviewer}
            self._keep(
                await self._sent("undo", "POST", path, json=who), {"comment": "", "undoes": entry["id"]}
            )

    def _keep(self, entry: Any, body: Mapping[str, Any]) -> None:
        (self.heard.unanswered if entry is None else self.heard.answered).append(entry or body)

    async def _look_around(self) -> None:
        """Now and then try a threshold, look at the monitoring, or take the log along."""
        chance = self.rng.random()
        if chance < 0.15:
            await self.ask("curve", "/api/curve")
            await self.ask("threshold", "/api/threshold", value=float(self.rng.random()))
            await self.ask("budget", "/api/budget", per_day=int(self.rng.integers(1, 500)))
        elif chance < 0.25:
            await self.ask("monitoring", "/api/monitoring")
        elif chance < 0.27:
            await self.ask("export", f"/api/export.{self.rng.choice(['json', 'csv'])}")


@dataclass(frozen=True)
class Load:
    """What came of it.

    Attributes
    ----------
    timings
        Of the requests.
    seconds
        That the reviewers worked.
    memory
        MiB of the desk, every half second; the first before anybody came.
    cpu_s
        Seconds of a processor that the desk took: on a busy machine these tell more than the clock.
    heard
        Logs of the reviewers.
    wrong
        What is not as they were told.
    """

    timings: Timings
    seconds: float
    memory: Sequence[float]
    cpu_s: float
    heard: Sequence[Heard]
    wrong: Sequence[str]

    @property
    def is_well(self) -> bool:
        """Whether nothing failed, all is kept, and there was something to be kept: each has decided."""
        return not self.wrong and not self.timings.errors and all(each.answered for each in self.heard)

    def tell(self) -> None:
        """Print it."""
        print("| request | count | p50, ms | p95, ms | p99, ms | max, ms |\n|---|---|---|---|---|---|")
        for row in self.timings.rows():
            print(f"| {' | '.join(map(str, row.values()))} |")
        said = sum(len(each.answered) for each in self.heard)
        print(f"requests      {self.timings.count} in {self.seconds:.1f} s", end="")
        print(f", {self.timings.count / self.seconds:.1f} a second")
        each_ms = 1000.0 * self.cpu_s / self.timings.count
        print(f"processor     {self.cpu_s:.1f} s of the desk, {each_ms:.1f} ms a request")
        print(f"decisions     {said}, with those that were taken back")
        middle = self.memory[len(self.memory) // 2]
        print(f"memory        {self.memory[0]:.0f} MiB at first, {middle:.0f} in the middle, ", end="")
        print(f"{self.memory[-1]:.0f} at the end, {max(self.memory):.0f} at most")
        print(f"errors        {sum(self.timings.errors.values())} {dict(self.timings.errors) or ''}")
        print(f"reviewers who decided nothing  {sum(not each.answered for each in self.heard)}")
        print(f"lost, doubled or altered  {len(self.wrong)} {list(self.wrong[:5]) or ''}")


def load(folder: Path, *, clients: int, seconds: float, pause_s: float = 0.0, cases: int = 2000) -> Load:
    """Make a run, let so many reviewers work on it for so long, and compare."""
    desk = DeskProcess(make_run(folder / "run", cases=cases, maps=min(100, cases)))
    desk.start()
    try:
        timings, memory, before_s = Timings(), [memory_of(desk.pid) / MIB], _cpu_s(desk.pid)
        heard = [Heard(f"reviewer {number:02d}") for number in range(clients)]
        with ThreadPoolExecutor(1) as apart:  # who calls may have a loop of his own
            work = _all_at_once(desk, heard, timings, memory, (seconds, pause_s))
            taken = apart.submit(asyncio.run, work).result()
        cpu_s = _cpu_s(desk.pid) - before_s
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=desk.base, headers=bearer, timeout=PATIENCE_S) as client:
            kept = read_kept(client, desk.folder / "verdicts.sqlite")
        memory.append(memory_of(desk.pid) / MIB)
    finally:
        desk.stop()
    for each in heard:
        each.write(folder / "clients")
    complaints = desk.log.read_text(encoding="utf-8").splitlines()
    return Load(timings, taken, memory, cpu_s, heard, [*faults(heard, kept), *complaints])


def _cpu_s(pid: int) -> float:
    """Seconds of a processor that a process has taken so far."""
    values = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


async def _all_at_once(
    desk: DeskProcess,
    heard: Sequence[Heard],
    timings: Timings,
    memory: list[float],
    how_long: tuple[float, float],
) -> float:
    """Let all reviewers work side by side, and look at the memory of the desk; give the seconds of that."""
    seconds, pause_s = how_long
    headers = {"X-Segtrust": "1", "Origin": desk.base}
    browsers = [
        httpx.AsyncClient(base_url=desk.base, headers=headers, timeout=PATIENCE_S, trust_env=False)
        for _ in heard
    ]
    reviewers = [
        Reviewer(browser, own, timings, np.random.default_rng(number))
        for number, (browser, own) in enumerate(zip(browsers, heard, strict=True))
    ]
    watching = asyncio.create_task(_watch(desk.pid, memory))
    begin = time.monotonic()  # browsers take long to be made
    await asyncio.gather(*(each.work(begin + seconds, pause_s) for each in reviewers))
    taken = time.monotonic() - begin
    watching.cancel()
    await asyncio.gather(*(each.aclose() for each in browsers))
    return taken


async def _watch(pid: int, memory: list[float]) -> None:
    while True:
        await asyncio.sleep(_EVERY_S)
        memory.append(memory_of(pid) / MIB)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, run, print, and fail where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clients", type=int, default=50, help="reviewers at once (50)")
    parser.add_argument("--seconds", type=float, default=60.0, help="that they work (60)")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of thought after each case (0)")
    parser.add_argument("--cases", type=int, default=2000, help="of the run (2,000)")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    asked = parser.parse_args(arguments)
    how = {"clients": asked.clients, "seconds": asked.seconds, "pause_s": asked.pause, "cases": asked.cases}
    found = load(asked.out, **how)
    write_table(asked.out / "requests.csv", Table.of(found.timings.rows()))
    found.tell()
    return 0 if found.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
