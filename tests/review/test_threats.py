"""What the threat model claims and no other test backs, over desks that really listen."""

import socket

import httpx
import numpy as np
import pytest
import sqlalchemy

from segtrust.review.limits import RateLimit
from segtrust.review.store import Store
from tests.io.formats.test_image import png
from tests.review import desks
from tests.review.test_access import raw_get

SQL = (
    "'; DROP TABLE segtrust_verdicts; --",
    "' OR '1'='1",
    '"; DELETE FROM segtrust_verdicts; --',
    "%' UNION SELECT sql FROM sqlite_master --",
    "\\'; SELECT pg_sleep(10); --",
)


def test_sql_is_text_wherever_it_is_sent(tmp_path):
    rows = desks.rows_of(20)
    for row, text in zip(rows, SQL, strict=False):
        row["case"] = text
    desks.write_table(tmp_path / "scores.csv", desks.Table.of(rows))
    with desks.desk_on(tmp_path) as (_, client):
        for number, text in enumerate(SQL):
            entry = desks.said(client, number, reviewer=text, comment=text, case=text)
            assert (entry["reviewer"], entry["comment"], entry["case"]) == (text, text, text)
            for name in ("search", "set", "group", "structure", "reviewer"):
                found = client.get("/api/cases", params={name: text}).json()["total"]
                assert found == {"search": 1, "reviewer": 20}.get(name, 0)
            for query in ({"sort": text}, {"verdict": text}, {"decision": text}, {"offset": text}):
                assert client.get("/api/cases", params=query).status_code == 422
            assert client.get("/api/verdicts", params={"after": text}).status_code == 422
        assert [each["comment"] for each in client.get("/api/export.json").json()] == list(SQL)
        assert client.get("/api/cases", params={"search": "%"}).json()["total"] == 1  # no pattern


def test_a_picture_that_announces_too_much_is_not_unpacked(tmp_path):
    folder = desks.make_run(tmp_path / "run", names=["a", "b"])
    (folder / "files/0.png").write_bytes(png(100_000, 100_000, content=b"\0" * 1000))
    (folder / "files/1.npy").write_bytes(_announcing((1 << 20, 1 << 20)))
    with desks.desk_on(folder) as (_, client):
        image = client.get("/api/cases/0").json()["view"]
        assert "image" not in image["layers"]
        assert "The image is not shown." in image["note"]
        bomb = client.get("/api/cases/1").json()
        assert (bomb["view"], bomb["problem"] != "") == (None, True)
        assert client.get("/api/cases/1/tiles/mask/0/0/0/0.png").status_code in (409, 413)
        assert client.get("/api/run").status_code == 200


def _announcing(shape):
    """A NumPy file that says it holds four TiB."""
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little") + header.encode()


def test_links_that_lead_out_of_the_page_are_not_followed(tmp_path):
    static, secret = tmp_path / "static", tmp_path / "secret.txt"
    static.mkdir()
    secret.write_text("secret")
    (static / "index.html").write_text("<!doctype html>")
    (static / "link.txt").symlink_to(secret)
    (static / "folder").symlink_to(tmp_path)
    desks.write_scores(tmp_path / "scores.csv", 5)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        for path in ("/link.txt", "/folder/secret.txt", "/folder/scores.csv"):
            answer = client.get(path)
            assert (answer.status_code, "secret" in answer.text) == (404, False)
        assert client.get("/").status_code == 200


def test_pictures_and_logs_are_not_kept_by_browsers(pictured):
    _, client = pictured
    for path in (
        "cases/0/tiles/image/0/0/0/0.png",
        "cases/6/volumes/image.nii",
        "cases/0",
        "export.csv",
        "export.json",
    ):
        answer = client.get(f"/api/{path}")
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


def test_an_unforeseen_error_tells_nothing(tmp_path, monkeypatch):
    desks.write_scores(tmp_path / "scores.csv", 5)
    with desks.desk_on(tmp_path) as (desk, client):
        monkeypatch.setattr(desk, "page", lambda *_, **__: 1 / 0)
        answer = client.get("/api/cases")
        assert (answer.status_code, answer.text) == (500, "Internal Server Error")
        assert answer.headers["content-security-policy"]
        assert httpx.get(client.base_url.join("/api/run")).status_code == 200  # and the desk goes on


@pytest.mark.needs("psycopg")
def test_a_database_that_goes_away_tells_neither_its_password_nor_its_place(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 5)
    address = "postgresql+psycopg://ann:secret@127.0.0.1:9/verdicts"
    with desks.desk_on(tmp_path) as (desk, client):
        desk.store.close()
        desk.store = Store(sqlalchemy.create_engine(address))
        for answer in (
            client.get("/api/export.json"),
            client.post("/api/verdicts", json={"number": 0, "verdict": "accept", "reviewer": "ann"}),
        ):
            assert answer.status_code == 503
            assert not [each for each in ("secret", "ann", "127.0.0.1") if each in answer.text]


def test_another_page_can_neither_read_nor_let_the_desk_work(pictured):
    _, client = pictured
    evil = {"Origin": "http://evil.example"}
    asked = client.options("/api/verdicts", headers={**evil, "Access-Control-Request-Method": "POST"})
    told = client.get("/api/run", headers=evil)
    for answer in (asked, told):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert told.headers["cross-origin-resource-policy"] == "same-origin"
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert client.get("/api/run", headers={"Sec-Fetch-Site": site}).status_code == status


def test_headers_are_bounded(pictured):
    _, client = pictured
    long = "x" * (1 << 20)
    with socket.create_connection(("127.0.0.1", client.base_url.port)) as connection:
        try:
            connection.sendall(f"GET / HTTP/1.1\r\nX-Long: {long}".encode())
            answer = connection.recv(65536)
        except OSError:  # closed in the midst of it
            answer = b"HTTP/1.1 400 "
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert raw_get(client.base_url.port, "/api/run", "").startswith(b"HTTP/1.1 200")


def test_the_memory_of_rates_is_bounded():
    limit = RateLimit(clock=lambda: 0.0)
    assert all(limit.allows(f"10.0.{number >> 8}.{number & 255}") for number in range(10_000))
    assert len(limit._left) == 4096
    assert limit.knows("10.0.39.15")
    assert not limit.knows("10.0.0.0")
