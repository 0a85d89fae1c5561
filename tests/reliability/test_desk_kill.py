"""The desk killed while decisions are sent: each that was answered is there once."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="kills by SIGKILL")
@pytest.mark.needs("fastapi", "uvicorn", "sqlalchemy", "httpx", "PIL")
def test_what_was_answered_is_kept_once_over_kills(tmp_path, record_property):
    from tools.reliability.desk_kill import kill_desk

    found = kill_desk(tmp_path, decisions=120, kills=2, seed=1)
    record_property("kept", len(found.kept.rows))
    assert not found.wrong
    assert found.kills == 2
    assert sum(each.repeated for each in found.writers) > 0
    assert len(found.kept.rows) >= 100


@pytest.fixture
def listening():
    """Give the address of a desk that says yes to everything, and what was sent to it."""
    sent = []

    class Desk(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Desk) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


@pytest.mark.needs("httpx", "fastapi")
@pytest.mark.parametrize("has_names", [True, False])
def test_requests_have_names_unless_they_are_not_to(listening, has_names):
    from tools.reliability.desk_kill import Writer
    from tools.reliability.desk_log import Heard

    base, sent = listening
    row = dict.fromkeys(("number", "set", "case", "structure", "digest"), "")
    writer = Writer(base, Heard("anna"), [row], np.random.default_rng(0), has_names)
    writer.work(5)
    assert len(sent) == len(writer.heard.answered) == 5
    assert len({body.get("request") for body in sent}) == (5 if has_names else 1)
    assert all(("request" in body) == has_names for body in sent)
