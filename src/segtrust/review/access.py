"""Who may ask, and how: checked before any route is, for every request."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
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
_WELCOME = b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>segtrust</title>'


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
        How often a client may ask.

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

    @property
    def cookie_value(self) -> str:
        """What the cookie holds, of which the token cannot be told."""
        return hashlib.sha256(b"segtrust cookie\0" + self.token.encode()).hexdigest()

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

    def is_known(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a request knows the token, where one is needed."""
        if not self.token:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.is_token(given.strip())
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.cookie_value.encode())

    def refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        """Say why a request is refused; ``None`` where it is not."""
        client = (scope.get("client") or ("",))[0]
        if not self.rate.allows(client):
            return 429, "Too many requests: wait a moment."
        if not self.is_host(headers.get("host", "")):
            return 400, "The desk is not reached by this name. Allow it: --allow-host."
        if scope["path"].startswith("/api/") and not self.is_known(headers):
            return 401, "A token is needed: open the address that `segtrust review` has printed."
        if scope["method"] not in _SAFE:
            return _foreign(headers)
        return None


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
            if self.access.is_token(given):
                await self._welcome(scope, guarded)
                return
            refusal = 401, "This token is not right."
        body = None if refusal else await _whole_body(receive)
        if refusal is None and body is None:
            refusal = 413, f"Expected a request of at most {MOST_BODY} bytes."
        if refusal is not None:
            await _answer(guarded, refusal)
        else:
            await self.app(scope, _replay(body or b"", receive), guarded)

    async def _welcome(self, scope: Mapping[str, Any], send: Send) -> None:
        """Set the cookie, and lead to the page, so that the token does not stay in the address."""
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{self.access.cookie}={self.access.cookie_value}; HttpOnly; SameSite=Strict; Path=/{secure}"
        more = {"content-type": "text/html; charset=utf-8", "set-cookie": cookie, "cache-control": "no-store"}
        await _send(send, 200, more, _WELCOME)


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


async def _answer(send: Send, refusal: Refusal) -> None:
    status, reason = refusal
    more = {"content-type": "application/json"}
    more |= {"retry-after": "1"} if status == 429 else {}
    more |= {"www-authenticate": "Bearer"} if status == 401 else {}
    more |= {"connection": "close"} if status == 413 else {}
    await _send(send, status, more, json.dumps({"detail": reason}).encode())


async def _send(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    listed = {**headers, "content-length": str(len(body))}
    encoded = [(name.encode(), value.encode()) for name, value in listed.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
