"""The log of verdicts on a real PostgreSQL server."""

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import httpx
import pytest
import sqlalchemy

from segtrust.errors import UndoneVerdictError
from segtrust.review.entries import Seen, Verdict
from segtrust.review.store import Store, database_url
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("postgres", "psycopg")]
USER = "nobody"
KEY = ("", "a", "organ")
SAID = {"comment": "", "reviewer": "ann"}


def as_user(command):
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return list(map(str, command))
    return ["setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups", *map(str, command)]


@pytest.fixture(scope="module")
def database(tool):
    """The address of a server of its own, on a socket in a short path that its user can reach."""
    programs = Path(tool("postgres")).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="segtrust-pg-", dir="/tmp"))
    if not os.geteuid():
        shutil.chown(folder, USER)
    data = folder / "data"

    def run(*command):
        subprocess.run(as_user(command), check=True, capture_output=True, cwd=folder)

    run(programs / "initdb", "-D", data, "-U", "desk", "--auth=trust", "--no-sync", "-E", "UTF8")
    control = [programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    run(*control, "-o", options, "start")
    try:
        yield f"postgresql://desk@/postgres?host={folder}"
    finally:
        run(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def test_writers_undo_and_triggers(database, tmp_path):
    url = database_url(database, tmp_path)
    stores = [Store.open(url, "run") for _ in range(4)]

    def write(store, name):
        for number in range(25):
            key = ("", str(number), "organ")
            store.add(key, Verdict.REJECT, Seen(confidence=0.1), comment="ß\n<b>", reviewer=name)

    threads = [threading.Thread(target=write, args=(each, f"r{i}")) for i, each in enumerate(stores)]
    seen, last = [], 0
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        new = stores[0].entries(after=last)
        seen, last = seen + new, max([last, *(entry.id for entry in new)])
    seen += stores[0].entries(after=last)
    assert seen == stores[1].entries()  # who asks for what is new misses nothing
    assert len({(entry.reviewer, entry.case) for entry in seen}) == 100
    stores[0].undo(seen[0].id, seen[0].reviewer)
    with pytest.raises(UndoneVerdictError):
        stores[1].undo(seen[0].id, seen[0].reviewer)
    named = [each.add(KEY, Verdict.ACCEPT, Seen(), **SAID, request="0123456789abcdef") for each in stores]
    assert len({entry.id for entry in named}) == 1
    for change in (
        "UPDATE segtrust_verdicts SET comment = ''",
        "TRUNCATE segtrust_verdicts CASCADE",
        "DELETE FROM segtrust_requests",
    ):
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="append-only"), stores[0].engine.begin() as both:
            both.execute(sqlalchemy.text(change))
    for each in stores:
        each.close()


def test_two_desks_on_one_database(database, tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 50)
    with (
        desks.desk_on(tmp_path, database=database, name="shared") as (_, ann),
        desks.desk_on(tmp_path, database=database, name="shared") as (_, bob),
    ):
        entry = desks.said(ann, 3)
        assert bob.get("/api/cases", params={"verdict": "decided"}).json()["rows"][0]["number"] == 3
        assert [each["id"] for each in bob.get("/api/verdicts").json()] == [entry["id"]]
        refused = bob.post(f"/api/verdicts/{entry['id']}/undo", json={"reviewer": "bob"})
        assert refused.status_code == httpx.codes.FORBIDDEN
