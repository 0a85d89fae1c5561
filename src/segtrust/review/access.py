"""Who may ask, and how: checked before any route is, for every request."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from segtrust.errors import ParameterError
from segtrust.review.limits import RateLimit

__all__ = ["Access", "Guard", "is_loopback"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Refusal = tuple[int, str]

MOST_BODY = 64 << 10
"""Bytes of a request."""
_SHORTEST_TOKEN = 8
_GUESSES_AT_ONCE, _GUESSES_A_SECOND = 100, 1.0
_NEEDED = "A token is needed: open the address that `segtrust review` has printed."
_ELSEWHERE = ("cross-site", "same-site")
"""What browsers say of requests that another page lets them send: its answers could not be read, but it could
let the desk work, and learn from how long that takes."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_MARK = "x-segtrust"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self' data:; "
    "img-src 'self' blob: data:; connect-src 'self' blob: data:; worker-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# The cookie is not sent along by a redirect that another site has led to, but it is by this page.
_WELCOME = (
    b'<!doctype html><link rel="icon" href="/icon.svg"><meta http-equiv="refresh" content="0;url=/">'
    b"<title>segtrust</title>"
)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Access:
    """What a request must bring along.

    Attributes
    ----------
    host
        That the desk listens on.
    port
        Of the desk.
    token
        That everybody must know; empty where none is needed, which is on loopback only.
    names
        Further names that the desk is reached by, as through a proxy; with any port.
    rate
        How often a client may ask: each browser that is signed in, and of all others each address. Behind a
        proxy everybody has the same address.
    guesses
        How often tokens and cookies of an address may be wrong.

    Examples
    --------
    >>> access = Access("127.0.0.1", 8765)
    >>> access.is_host("localhost:8765"), access.is_host("evil.example:8765"), access.is_host("localhost:80")
    (True, False, False)
    """

    host: str
    port: int
    token: str = field(default="", repr=False)
    names: tuple[str, ...] = ()
    rate: RateLimit = field(default_factory=RateLimit)
    guesses: RateLimit = field(default_factory=lambda: RateLimit(_GUESSES_A_SECOND, _GUESSES_AT_ONCE))

    def __post_init__(self) -> None:
        """Refuse to let everybody in."""
        if not self.token and not is_loopback(self.host):
            raise ParameterError(f"token: expected one where others can reach the desk ({self.host}).")
        if self.token and (len(self.token) < _SHORTEST_TOKEN or not self.token.isascii()):
            raise ParameterError(f"token: expected at least {_SHORTEST_TOKEN} plain characters.")

    @property
    def cookie(self) -> str:
        """Name of the cookie; desks on other ports of a machine have others."""
        return f"segtrust-{self.port}"

    def new_session(self) -> str:
        """Make a cookie for a browser, another one for each: its name, and a seal that needs the token."""
        name = secrets.token_hex(16)
        return f"{name}.{self._seal(name)}"

    def _seal(self, name: str) -> str:
        key = b"segtrust cookie\0" + self.token.encode()
        return hmac.new(key, name.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def session_of(self, headers: Mapping[str, str]) -> str | None:
        """Give the name of the browser that has sent a cookie; ``None`` where its seal is not right."""
        name, _, seal = self._cookie_in(headers).partition(".")
        is_right = hmac.compare_digest(seal.encode("utf-8", "replace"), self._seal(name).encode())
        return name if self.token and is_right else None

    def _cookie_in(self, headers: Mapping[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def is_host(self, given: str) -> bool:
        """Tell whether the desk is reached by a name: others may lead here by a trick of the name server.

        Beyond loopback it may be any address, which no name server has a say in.
        """
        try:
            parts = urlsplit(f"//{given}")
            name, port = (parts.hostname or "").rstrip("."), parts.port or 80
        except ValueError:
            return False
        if name in self.names:
            return True
        own = {"localhost", "127.0.0.1", "::1", self.host.strip("[]")}
        return port == self.port and (name in own or (not is_loopback(self.host) and _is_address(name)))

    def is_token(self, given: str) -> bool:
        """Compare in a time that does not tell how much of it is right."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        """Say why a request is refused; ``None`` where it is not.

        A cookie that is new is treated as any other until it is let in: otherwise how often it may ask would
        tell whether it is right, and guesses would not be counted.
        """
        address, session = _address_of(scope), self.session_of(headers)
        is_known = session is not None and self.rate.knows(session)
        if not self.rate.allows(session if session and is_known else address):
            return 429, "Too many requests: wait a moment."
        if not self.is_host(headers.get("host", "")):
            return 400, "The desk is not reached by this name. Allow it: --allow-host."
        is_api = scope["path"].startswith("/api/")
        if is_api and headers.get("sec-fetch-site", "") in _ELSEWHERE:
            return 403, "Another page has asked for this."
        strange = self._strange(headers, address) if is_api and not is_known else None
        return strange or (None if scope["method"] in _SAFE else _foreign(headers))

    def _strange(self, headers: Mapping[str, str], address: str) -> Refusal | None:
        """Refuse who does not know the token, where one is needed."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if not self.token:
            return None
        if kind.lower() == "bearer":
            return self.wrong_token(given.strip(), address)
        if not self._cookie_in(headers):
            return 401, _NEEDED
        session = self.session_of(headers)
        refusal = self._wrong(address, is_right=session is not None)
        if session is not None and refusal is None:
            self.rate.allows(session)  # from now on it has a rate of its own
        return refusal

    def wrong_token(self, given: str, address: str) -> Refusal | None:
        """Refuse a token that is not right; ``None`` for that which is."""
        return self._wrong(address, is_right=self.is_token(given))

    def _wrong(self, address: str, *, is_right: bool) -> Refusal | None:
        """Refuse what is wrong, and after too much of it also what is right: else guessing could go on.

        Browsers that were let in before are not asked, so that nobody can lock them out.
        """
        if not self.guesses.has_left(address):
            return 429, "Too many wrong tokens: wait a moment."
        if is_right:
            return None
        self.guesses.allows(address)
        return 401, _NEEDED


def _address_of(scope: Mapping[str, Any]) -> str:
    """Give the address that a request comes from, or that of the proxy through which it came."""
    return str((scope.get("client") or ("",))[0])


def _foreign(headers: Mapping[str, str]) -> Refusal | None:
    """Refuse changes that a page of somebody else may have sent, with the rights of who looks at it."""
    if not headers.get(_MARK):
        return 403, "Changes need the header X-Segtrust."
    try:
        origin = urlsplit(headers.get("origin", ""))
    except ValueError:
        origin = urlsplit("")
    if origin.scheme not in ("http", "https") or origin.netloc.lower() != headers.get("host", "").lower():
        return 403, "Changes need an Origin that is the desk's own."
    return None


@dataclass(frozen=True)
class Guard:
    """Stands before an application: refuses, bounds what is sent, and adds what browsers shall heed."""

    app: App
    access: Access

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        guarded = _with_headers(send, is_api=scope["path"].startswith("/api"))
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self.access.refusal(scope, headers)
        given = _token_in(scope) if scope["path"] == "/" else None
        if refusal is None and given is not None and self.access.token:
            await self._greet(scope, guarded, given)
            return
        body = None if refusal else await _whole_body(receive)
        if refusal is None and body is None:
            refusal = 413, f"Expected a request of at most {MOST_BODY} bytes."
        if refusal is not None:
            await _answer(guarded, refusal, self._forgetting(refusal, headers))
        else:
            await self.app(scope, _replay(body or b"", receive), guarded)

    def _forgetting(self, refusal: Refusal, headers: Mapping[str, str]) -> dict[str, str]:
        """Let a browser forget a cookie that is not right any more: each time it came it was a guess."""
        if refusal[0] != 401 or self.access.cookie not in headers.get("cookie", ""):
            return {}
        return {"set-cookie": f"{self.access.cookie}=; Max-Age=0; Path=/"}

    async def _greet(self, scope: Mapping[str, Any], send: Send, given: str) -> None:
        """Let in a person who has opened an address with a token, or say why not."""
        refusal = self.access.wrong_token(given, _address_of(scope))
        if refusal is None:
            await self._welcome(scope, send)
            return
        status, reason = refusal
        wrong = "This token is not right. Open the address that `segtrust review` has printed."
        await _say(send, status, wrong if status == 401 else reason)

    async def _welcome(self, scope: Mapping[str, Any], send: Send) -> None:
        """Set the cookie, and lead to the page, so that the token does not stay in the address."""
        secure = "; Secure" if _is_encrypted(scope) else ""
        value = self.access.new_session()
        cookie = f"{self.access.cookie}={value}; HttpOnly; SameSite=Strict; Path=/{secure}"
        more = {"content-type": "text/html; charset=utf-8", "set-cookie": cookie, "cache-control": "no-store"}
        await _send(send, 200, more, _WELCOME)


def _is_encrypted(scope: Mapping[str, Any]) -> bool:
    """Tell whether a browser asks through TLS, as a proxy says; who lies about it harms only themselves."""
    return scope.get("scheme") == "https" or (b"x-forwarded-proto", b"https") in scope["headers"]


def _token_in(scope: Mapping[str, Any]) -> str | None:
    """Give the token of ``/?token=…``."""
    found = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=None)
    return found["token"][0] if "token" in found else None


async def _whole_body(receive: Receive) -> bytes | None:
    """Take in a request; ``None`` for one that is too large, of which no more is read."""
    body: bytes = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BODY:
            return None
        if message["type"] != "http.request" or not message.get("more_body"):
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a request that was taken in once more; after it, whatever comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def _with_headers(send: Send, *, is_api: bool) -> Send:
    """Add to each answer what browsers shall heed; those of the API are not kept."""
    extra = {**_HEADERS, "cache-control": "no-store" if is_api else "no-cache"}

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message.get("headers", ())}
            added = [(name.encode(), value.encode()) for name, value in extra.items()]
            kept = [(name, value) for name, value in added if name not in own]
            message = {**message, "headers": [*message.get("headers", ()), *kept]}
        await send(message)

    return adding


async def _say(send: Send, status: int, words: str) -> None:
    """Answer a person who has opened an address."""
    await _send(send, status, {"content-type": "text/plain; charset=utf-8"}, words.encode())


async def _answer(send: Send, refusal: Refusal, headers: Mapping[str, str]) -> None:
    status, reason = refusal
    more = {"content-type": "application/json", **headers}
    more |= {"retry-after": "1"} if status == 429 else {}
    more |= {"www-authenticate": "Bearer"} if status == 401 else {}
    more |= {"connection": "close"} if status == 413 else {}
    await _send(send, status, more, json.dumps({"detail": reason}).encode())


async def _send(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    listed = {**headers, "content-length": str(len(body))}
    encoded = [(name.encode(), value.encode()) for name, value in listed.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
