"""Nobody gets in who should not, and nothing gets out that should not."""

import socket

import httpx
import pytest

from segtrust.errors import ParameterError
from segtrust.review.access import MOST_BODY, Access
from segtrust.review.limits import RateLimit
from segtrust.review.server import Serving
from tests.review import desks

TOKEN = "a long enough token"
BODY = {"number": 0, "verdict": "accept", "reviewer": "ann"}


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    (folder / "index.html").write_text("<!doctype html><title>desk</title>")
    (folder.parent / "secret.txt").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def locked(tmp_path_factory, static):
    """A client of a desk that needs a token, and does not know it."""
    folder = tmp_path_factory.mktemp("locked")
    desks.write_scores(folder / "scores.csv", 20)
    with desks.desk_on(folder, token=TOKEN, static=static) as (_, client):
        yield client


@pytest.fixture
def bearer():
    return {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong token"},
        {"Authorization": "Bearer"},
        {"Authorization": TOKEN},
        {"Authorization": "Basic YTpi"},
        {"Cookie": f"segtrust-1={TOKEN}"},
        {"Cookie": "=;;;\x7f"},
    ],
)
@pytest.mark.parametrize(
    "path", ["/api/run", "/api/cases/0", "/api/export.csv", "/api/openapi.json", "/api/none"]
)
def test_without_the_token_nothing_is_told(locked, path, headers):
    answer = locked.get(path, headers=headers)
    assert answer.status_code == 401
    assert "token" in desks.detail(answer)


def test_the_token_opens(locked, bearer):
    assert locked.get("/api/run", headers=bearer).status_code == 200
    assert locked.post("/api/verdicts", json=BODY, headers=bearer).status_code == 200


def test_the_address_with_the_token_sets_a_cookie(locked):
    with httpx.Client(base_url=locked.base_url) as browser:
        assert browser.get("/", params={"token": "wrong token"}).status_code == 401
        assert browser.get("/api/run").status_code == 401
        welcome = browser.get("/", params={"token": TOKEN})
        cookie = welcome.headers["set-cookie"]
        assert (welcome.status_code, 'url=/"' in welcome.text) == (200, True)
        assert "HttpOnly; SameSite=Strict" in cookie
        assert TOKEN not in cookie
        assert browser.get("/api/run").status_code == 200


def test_behind_a_proxy_with_tls_the_cookie_is_sent_through_tls_alone(locked):
    for proto, is_secure in (("https", True), ("http", False)):
        welcome = httpx.get(
            locked.base_url, params={"token": TOKEN}, headers={"X-Forwarded-Proto": proto}
        ).headers["set-cookie"]
        assert ("; Secure" in welcome) == is_secure


def test_the_page_itself_holds_no_data(locked):
    assert locked.get("/").text == "<!doctype html><title>desk</title>"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""],
)
def test_other_names_of_the_desk_are_refused(pictured, host):
    _, client = pictured
    answer = client.get("/api/run", headers={"Host": host.format(port=client.base_url.port)})
    assert answer.status_code == 400


def test_own_names_of_the_desk(pictured):
    _, client = pictured
    port = client.base_url.port
    for host in ("localhost", "127.0.0.1", "LOCALHOST", "[::1]"):
        assert client.get("/api/run", headers={"Host": f"{host}:{port}"}).status_code == 200


def test_beyond_loopback_any_address_but_not_any_name():
    access = Access("0.0.0.0", 8765, TOKEN, ("desk.example",))
    hosts = ("10.1.2.3:8765", "desk.example", "desk.example:443", "evil.example:8765", "10.1.2.3:80", "[::1")
    assert [access.is_host(each) for each in hosts] == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("missing", "given"),
    [
        ("X-Segtrust", {}),
        ("Origin", {}),
        ("Origin", {"Origin": "http://evil.example"}),
        ("Origin", {"Origin": "null"}),
        ("Origin", {"Origin": "http://127.0.0.1"}),
        ("Origin", {"Origin": "http://[bad"}),
    ],
)
@pytest.mark.parametrize("path", ["/api/verdicts", "/api/verdicts/1/undo"])
def test_changes_that_another_page_may_have_sent(pictured, path, missing, given):
    desk, client = pictured
    headers = {name: value for name, value in client.headers.items() if name.lower() != missing.lower()}
    answer = httpx.post(client.base_url.join(path), json=BODY, headers=headers | given)
    assert answer.status_code == 403
    assert missing in desks.detail(answer)
    assert desk.store.entries() == []


def test_requests_are_bounded(pictured):
    _, client = pictured
    large = {**BODY, "comment": "x" * MOST_BODY}
    assert client.post("/api/verdicts", json=large).status_code == 413
    assert client.post("/api/verdicts", content=iter([b"x" * 50_000] * 3)).status_code == 413
    assert client.get("/api/run").status_code == 200


def test_too_many_requests(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 5)
    with desks.desk_on(tmp_path, rate=RateLimit(per_second=0.001, burst=3)) as (_, client):
        answers = [client.get("/api/run") for _ in range(4)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    assert answers[-1].headers["retry-after"] == "1"


def test_behind_a_proxy_each_browser_has_a_rate_of_its_own(tmp_path):
    """All come from one address; strangers of that address share what is left to it."""
    desks.write_scores(tmp_path / "scores.csv", 5)
    rate = RateLimit(per_second=0.001, burst=6)
    with desks.desk_on(tmp_path, token=TOKEN, rate=rate) as (_, client):
        browsers = [httpx.Client(base_url=client.base_url) for _ in range(2)]
        assert [each.get("/", params={"token": TOKEN}).status_code for each in browsers] == [200, 200]
        told = [[each.get("/api/run").status_code for _ in range(7)] for each in browsers]
        strangers = [client.get("/api/run").status_code for _ in range(3)]
        for each in browsers:
            each.close()
    assert told == [[200] * 6 + [429]] * 2
    assert strangers == [401, 401, 429]  # of six, four were taken by those who signed in and were let in


def test_a_rate_does_not_tell_whether_a_cookie_is_right(tmp_path):
    """Also where no token is needed, at the page itself, a guess that is right is treated as any other."""
    desks.write_scores(tmp_path / "scores.csv", 5)
    rate = RateLimit(per_second=0.001, burst=3)
    with desks.desk_on(tmp_path, token=TOKEN, rate=rate) as (_, client):
        port = client.base_url.port
        right = Access("127.0.0.1", port, TOKEN).new_session()
        answers = [
            client.get("/", headers={"Cookie": f"segtrust-{port}={cookie}"}).status_code
            for cookie in (f"00.{'0' * 64}", right, right, right, f"00.{'0' * 64}")
        ]
    assert answers[:3] == [404] * 3  # there is no page
    assert answers[3:] == [429] * 2


def test_tokens_cannot_be_guessed_for_long_and_nobody_is_locked_out_by_it(tmp_path, monkeypatch):
    monkeypatch.setattr("segtrust.review.access._GUESSES_A_SECOND", 0.001)  # however long the test takes
    desks.write_scores(tmp_path / "scores.csv", 5)
    with (
        desks.desk_on(tmp_path, token=TOKEN) as (_, client),
        httpx.Client(base_url=client.base_url) as browser,
    ):
        assert browser.get("/", params={"token": TOKEN}).status_code == 200
        assert browser.get("/api/run").status_code == 200
        cookie = f"segtrust-{client.base_url.port}"
        ways = [
            {"headers": {"Authorization": "Bearer a wrong token"}},
            {"headers": {"Cookie": f"{cookie}=00.{'0' * 64}"}},
        ]
        told = [client.get("/api/run", **ways[i % 2]).status_code for i in range(110)]
        assert set(told[:100]) == {401}
        assert told[-1] == 429
        right = client.get("/api/run", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (right.status_code, "Too many wrong tokens" in desks.detail(right)) == (429, True)
        assert client.get("/", params={"token": TOKEN}).status_code == 429
        assert browser.get("/api/run").status_code == 200  # was let in before


def test_a_cookie_of_another_token_is_forgotten(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 5)
    with (
        desks.desk_on(tmp_path, token=TOKEN) as (_, client),
        httpx.Client(base_url=client.base_url) as browser,
    ):
        browser.cookies.set(
            f"segtrust-{client.base_url.port}", "00." + "0" * 64, domain="127.0.0.1", path="/"
        )
        assert browser.get("/api/run").status_code == 401
        assert not browser.cookies


def test_secrets_are_compared_in_constant_time(monkeypatch):
    """Which a clock could not tell: so it is seen that all comparisons go through what does so."""
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("segtrust.review.access.hmac.compare_digest", compare)
    access = Access("127.0.0.1", 80, TOKEN)
    assert access.is_token(TOKEN)
    assert not access.is_token(TOKEN[:-1])
    session = access.new_session()
    name, _, seal = session.partition(".")
    assert access.session_of({"cookie": f"segtrust-80={session}"}) == name
    assert access.session_of({"cookie": f"segtrust-80={name}.{seal[:-1]}"}) is None
    assert access.session_of({"cookie": f"segtrust-80={'0' * 32}.{seal}"}) is None
    assert [given for given, _ in compared[:3]] == [TOKEN.encode(), TOKEN[:-1].encode(), seal.encode()]


def test_a_rate_comes_back_with_time():
    now = [0.0]
    limit = RateLimit(per_second=2.0, burst=2, clock=lambda: now[0])
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    now[0] = 1e6
    assert [limit.allows("a") for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    "path", ["/api/run", "/api/cases/0/tiles/mask/0/0/0/0.png", "/", "/none", "/api/none"]
)
def test_what_browsers_shall_heed(locked, bearer, path):
    headers = locked.get(path, headers=bearer).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-store" if path.startswith("/api") else "no-cache")
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2fsecret.txt",
        "/..%5csecret.txt",
        "//secret.txt",
        "/index.html/../../secret.txt",
        "/api/cases/0/tiles/..%2f..%2fsecret.txt/0/0/0/0.png",
        "/api/cases/../../secret.txt",
        "/api/cases/0/volumes/..%2fsecret.nii",
    ],
)
def test_paths_lead_nowhere_else(locked, bearer, path):
    answer = raw_get(locked.base_url.port, path, bearer["Authorization"])
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 422"))
    assert b"secret" not in answer.split(b"\r\n\r\n", 1)[1]


def raw_get(port, path, authorization):
    """Ask for a path that clients would tidy up."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {authorization}\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{request}Connection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_beyond_loopback_a_token_is_made_up_or_must_be_good():
    assert len(Serving("0.0.0.0").access(80).token) >= 32
    assert Serving("0.0.0.0", token=TOKEN).access(80).token == TOKEN
    assert Serving().access(80).token == ""
    with pytest.raises(ParameterError, match="token: expected one"):
        Access("192.0.2.1", 80)
    with pytest.raises(ParameterError, match="at least 8"):
        Access("127.0.0.1", 80, "short")
    assert TOKEN not in repr(Access("127.0.0.1", 80, TOKEN))


def test_a_port_that_is_taken():
    with Serving(port=0).listen() as first, pytest.raises(ParameterError, match="Choose another --port"):
        Serving(port=first.getsockname()[1]).listen()
