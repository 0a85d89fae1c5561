"""``segtrust review`` as a person starts it."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from segtrust.demo.nuclei import prepare_run
from segtrust.review import server
from tests.engine.files import segtrust
from tests.review import desks

pytestmark = pytest.mark.slow


@contextmanager
def started(*arguments, **more):
    """Start a desk; give its address and its process."""
    command = [sys.executable, "-m", "segtrust", "review", *map(str, arguments), "--port", "0", "--no-open"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    ) as process:
        try:
            yield address_in(process), process
        finally:
            process.kill()


def address_in(process):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1.0)[0]:
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert line, process.stderr.read()
            if found:
                return found.group()
    raise AssertionError("no address")


def test_serves_until_it_is_stopped(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 10)
    with started(tmp_path, "--api-only", "--reviewer", "Ann", "--minutes", "3") as (address, process):
        run = httpx.get(f"{address}api/run").json()
        assert (run["rows"], run["reviewer"], run["minutes"], run["title"]) == (10, "Ann", 3.0, tmp_path.name)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    assert (tmp_path / "verdicts.sqlite").exists()


@pytest.mark.slow
def test_a_connection_that_has_rested_still_takes_a_verdict(tmp_path):
    """Under load that of a browser rests for seconds, and that of a proxy for a minute."""
    desks.write_scores(tmp_path / "scores.csv", 10)
    with desks.desk_on(tmp_path) as (_, client):
        port = client.base_url.port
        body = '{"number": 0, "verdict": "accept", "reviewer": "ann"}'
        own = {"Origin": f"http://127.0.0.1:{port}", "X-Segtrust": "1"}
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            connection.auto_open = 0  # one that was closed is not opened again
            connection.connect()
            connection.request("GET", "/api/verdicts")
            assert connection.getresponse().read() == b"[]"
            time.sleep(6.0)
            connection.request("POST", "/api/verdicts", body, own | {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
        assert len(client.get("/api/verdicts").json()) == 1


def test_beyond_loopback_the_address_has_a_token(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 10)
    clean = {name: value for name, value in os.environ.items() if name != "SEGTRUST_TOKEN"}
    for given, environment in (
        ("", clean),
        ("of the environment", clean | {"SEGTRUST_TOKEN": "of the environment"}),
    ):
        with started(tmp_path / "scores.csv", "--api-only", "--host", "0.0.0.0", env=environment) as (
            address,
            _,
        ):
            base, token = address.split("?token=")
            assert httpx.get(f"{base}api/run").status_code == 401
            assert len(token) >= 16
            assert not given or token == given.replace(" ", "%20")
            with httpx.Client(base_url=base) as client:
                assert client.get(f"/?token={token}").status_code == 200
                assert client.get("/api/run").status_code == 200


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="asks Linux for its processes")
def test_neither_token_nor_password_is_told_in_logs_or_to_who_lists_processes(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 10)
    token, database = "of the environment", f"sqlite:///{tmp_path}/secret-place.sqlite"
    secrets = {"SEGTRUST_TOKEN": token, "SEGTRUST_DATABASE": database}
    with started(tmp_path, "--api-only", env=os.environ | secrets) as (address, process):
        base = address.partition("?")[0]
        with httpx.Client(base_url=base) as client:
            assert client.get("/", params={"token": "a wrong one"}).status_code == 401
            assert client.get("/", params={"token": token}).status_code == 200
            assert client.get("/api/run").status_code == 200
        httpx.get(f"{base}api/run", headers={"Authorization": f"Bearer {token}"})
        with socket.create_connection(("127.0.0.1", httpx.URL(base).port)) as connection:
            connection.sendall(f"GET /?token={token} no HTTP\r\n\r\n".encode())
            connection.recv(1000)
        listed = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert not [each for each in (token, "secret-place", "token=") if each in listed + out + err]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--api-only"], "run: expected a folder of `evaluate` or `triage`, or --demo"),
        (["absent", "--api-only"], "expected a folder of `evaluate`"),
        (["scores.csv", "--api-only", "--database", "mysql://x"], "database: expected postgresql://"),
        (["scores.csv", "--api-only", "--policy", "absent.json"], "expected a policy"),
        (["scores.csv", "--api-only", "--token", "short"], "token: expected at least 8"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(tmp_path, arguments, message):
    desks.write_scores(tmp_path / "scores.csv", 10)
    done = segtrust("review", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_page_that_was_not_built_says_how(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "_STATIC", tmp_path)
    with pytest.raises(server.ParameterError, match=r"Node 20\.19 or later .* make web"):
        server.page_files()
    (tmp_path / "index.html").write_text("<!doctype html>")
    assert server.page_files() == tmp_path


def test_help_has_examples_and_exit_codes():
    told = segtrust("review", "--help").stdout
    for text in ("--policy", "--database", "segtrust review --demo", "Exit codes: 0"):
        assert text in told


def test_demo(tmp_path):
    prepare_run(tmp_path / "segtrust-review-demo")  # one that is there is made anew
    with started("--demo", "--api-only", cwd=tmp_path) as (address, _):
        run = httpx.get(f"{address}api/run").json()
        assert (run["rows"], run["sets"], run["title"]) == (100, ["ID", "bright"], "demo")
        assert run["policies"]["foreground"]["standing"] == "certified"
        deferred = httpx.get(f"{address}api/cases?decision=defer").json()["total"]
        assert 5 <= deferred <= 60
        view = httpx.get(f"{address}api/cases/0").json()["view"]
        assert view["layers"] == ["image", "probabilities", "mask", "truth"]
        monitoring = httpx.get(f"{address}api/monitoring").json()
        assert (monitoring["drift"]["alarm"], monitoring["left_out"], len(monitoring["new"])) == (
            True,
            30,
            70,
        )
