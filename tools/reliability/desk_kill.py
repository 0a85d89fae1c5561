"""Kill a review desk again and again while decisions are sent to it, and see that each is kept once.

``python -m tools.reliability.desk_kill --decisions 2000 --kills 20 --out kill`` starts ``segtrust review``,
kills it by SIGKILL at moments that are drawn, and starts it again at the same address. Reviewers whose
request is not answered send the same once more when the desk is back, as the page does; one in four gives
up. What was answered must be kept once; what was given up once or not at all; nothing else may be there.
With ``--nameless`` requests have no names, as they had none once: what is sent again is then another verdict,
and told as such.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tools.reliability.desk_log import Heard, Kept, faults, read_kept
from tools.reliability.desk_process import TOKEN, DeskProcess, make_run

__all__ = ["Killed", "kill_desk", "main"]

WRITERS = 8
VERDICTS = ("accept", "reject", "correct")
_CASES = 200
_GIVES_UP = 0.25
_PATIENCE_S = 120.0
_POLL_S = 0.001
_LONGEST_S = 0.02
"""From a decision that is drawn to the kill: about as long as another one takes."""


@dataclass
class Writer:
    """A reviewer who decides, one case after the other.

    Attributes
    ----------
    base
        Address of the desk.
    heard
        Their own log.
    rows
        Of the table, as the page knows them.
    rng
        What they say, and when they give up.
    has_names
        Whether requests have names, by which the desk knows one that is sent again.
    repeated, found
        Decisions that were sent more than once, and those of them that had been written before.
    refused
        Answers that are no yes.
    """

    base: str
    heard: Heard
    rows: Sequence[Mapping[str, Any]]
    rng: np.random.Generator
    has_names: bool = True
    repeated: int = 0
    found: int = 0
    refused: list[str] = field(default_factory=list)

    def work(self, decisions: int) -> None:
        """Send so many decisions."""
        headers = {"X-Segtrust": "1", "Origin": self.base, "Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(
            base_url=self.base, headers=headers, timeout=_PATIENCE_S, trust_env=False
        ) as client:
            for number in range(decisions):
                self._decide(client, number)

    def _decide(self, client: httpx.Client, number: int) -> None:
        row = self.rows[int(self.rng.integers(len(self.rows)))]
        meant = {name: row[name] for name in ("number", "set", "case", "structure", "digest")}
        said = {"verdict": str(self.rng.choice(VERDICTS)), "comment": f"{self.heard.reviewer}, no. {number}"}
        name = {"request": secrets.token_hex(16)} if self.has_names else {}
        body = {**meant, **said, "reviewer": self.heard.reviewer, **name}
        gives_up = self.rng.random() < _GIVES_UP
        answer = self._sent(client, body)
        if answer is None and not gives_up:
            answer = self._sent_again(client, body)
        if answer is None:
            self.heard.unanswered.append(body)
        elif answer.status_code == httpx.codes.OK:
            self.heard.answered.append(answer.json())
        else:
            self.refused.append(f"{answer.status_code}: {answer.text[:200]}")

    def _sent_again(self, client: httpx.Client, body: Mapping[str, Any]) -> httpx.Response | None:
        """Send the same until the desk is back, as often as it is killed meanwhile."""
        self.repeated += 1
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            begin = datetime.now(UTC).isoformat(timespec="milliseconds")
            answer = self._sent(client, body)
            if answer is not None:
                self.found += answer.is_success and answer.json()["time"] < begin
                return answer
            time.sleep(0.2)
        return None

    @staticmethod
    def _sent(client: httpx.Client, body: Mapping[str, Any]) -> httpx.Response | None:
        try:
            return client.post("/api/verdicts", json=body)
        except httpx.HTTPError:
            return None


@dataclass(frozen=True)
class Killed:
    """What came of it.

    Attributes
    ----------
    kills
        How often the desk was killed before all had been sent.
    writers
        Who sent.
    kept
        What the desk has kept.
    wrong
        What is not as it must be.
    """

    kills: int
    writers: Sequence[Writer]
    kept: Kept
    wrong: Sequence[str]

    @property
    def lost_but_kept(self) -> int:
        """Decisions that were given up, and are there."""
        given_up = {sent["comment"] for each in self.writers for sent in each.heard.unanswered}
        return sum(entry["comment"] in given_up for entry in self.kept.exported)

    @property
    def doubled(self) -> int:
        """Decisions that are kept more than once."""
        return sum(each.startswith("doubled: ") for each in self.wrong)

    def tell(self) -> None:
        """Print it."""
        answered = sum(len(each.heard.answered) for each in self.writers)
        given_up = sum(len(each.heard.unanswered) for each in self.writers)
        print(f"kills                            {self.kills}")
        print(f"decisions answered with yes      {answered}")
        repeated, found = (
            sum(getattr(each, name) for each in self.writers) for name in ("repeated", "found")
        )
        told = found if all(each.has_names for each in self.writers) else "not told"
        print(f"sent more than once, of them had been written before {repeated}, {told}")
        print(f"given up, of them kept           {given_up}, {self.lost_but_kept}")
        print(f"entries of the log, without holes {len(self.kept.rows)}")
        print(f"integrity                        {' '.join(self.kept.integrity)}")
        print(f"doubled                          {self.doubled}")
        print(f"lost, doubled, altered, foreign  {len(self.wrong)} {list(self.wrong[:5]) or ''}")


def kill_desk(folder: Path, *, decisions: int, kills: int, seed: int, has_names: bool = True) -> Killed:
    """Send so many decisions to a desk that is killed so many times meanwhile, and compare."""
    desk = DeskProcess(make_run(folder / "run", cases=_CASES, maps=50))
    desk.start()
    try:
        writers = _writers(desk, seed, has_names=has_names)
        share = decisions // len(writers)
        threads = [threading.Thread(target=each.work, args=(share,)) for each in writers]
        for each in threads:
            each.start()
        done = _kill(desk, writers, kills, np.random.default_rng(seed), share * len(writers))
        for each in threads:
            each.join()
        with _client(desk) as client:
            kept = read_kept(client, desk.folder / "verdicts.sqlite")
    finally:
        desk.kill()
    heard = [each.heard for each in writers]
    for each in heard:
        each.write(folder / "clients")
    refused = [said for each in writers for said in each.refused]
    return Killed(done, writers, kept, [*faults(heard, kept), *refused])


def _writers(desk: DeskProcess, seed: int, *, has_names: bool) -> list[Writer]:
    with _client(desk) as client:
        rows = client.get("/api/cases", params={"limit": 500}).raise_for_status().json()["rows"]
    return [
        Writer(desk.base, Heard(f"reviewer {number}"), rows, np.random.default_rng([seed, number]), has_names)
        for number in range(WRITERS)
    ]


def _client(desk: DeskProcess) -> httpx.Client:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=desk.base, headers=headers, timeout=_PATIENCE_S, trust_env=False)


def _kill(
    desk: DeskProcess, writers: Sequence[Writer], kills: int, rng: np.random.Generator, decisions: int
) -> int:
    """Kill the desk shortly after decisions that are drawn, in their order, and start it again each time."""
    moments = np.sort(rng.choice(np.arange(1, int(0.9 * decisions)), kills, replace=False))
    for moment in moments:
        end = time.monotonic() + _PATIENCE_S
        while _said_by(writers) < moment:
            if time.monotonic() > end:
                raise RuntimeError(f"no more decisions come after {_said_by(writers)}")
            time.sleep(_POLL_S)
        time.sleep(float(rng.uniform(0.0, _LONGEST_S)))
        desk.kill()
        desk.start()
    return len(moments)


def _said_by(writers: Sequence[Writer]) -> int:
    return sum(len(each.heard.answered) + len(each.heard.unanswered) for each in writers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, run, print, and fail where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--decisions", type=int, default=2000, help="that are sent (2,000)")
    parser.add_argument("--kills", type=int, default=20, help="meanwhile (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    parser.add_argument("--nameless", action="store_true", help="send requests without names")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    asked = parser.parse_args(arguments)
    found = kill_desk(
        asked.out,
        decisions=asked.decisions,
        kills=asked.kills,
        seed=asked.seed,
        has_names=not asked.nameless,
    )
    found.tell()
    return 0 if not found.wrong else 1


if __name__ == "__main__":
    sys.exit(main())
