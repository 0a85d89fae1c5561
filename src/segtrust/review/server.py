"""The desk as a server on this machine."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segtrust._optional import require
from segtrust.errors import ParameterError
from segtrust.review.access import Access, Guard, is_loopback
from segtrust.review.desk import Desk

__all__ = ["Serving", "addresses_of", "page_files", "serve", "server_of"]

_STATIC = Path(__file__).parent / "static"
_MOST_HEADER = 32 << 10
_REST_S = 75
"""Seconds that a connection may rest: longer than proxies let theirs rest (60). The desk must not be the
first to close it, or a verdict that comes at that moment is lost on its way."""
_EVERYWHERE = "0.0.0.0"  # nosec B104  # looked for, not bound to


@dataclass(frozen=True)
class Serving:
    """Where the desk listens, and to whom.

    Attributes
    ----------
    host, port
        Where; port 0 is one that is free.
    token
        That everybody must know. Where it is empty one is made up, unless only this machine can ask.
    names
        Further names that the desk is reached by.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    names: tuple[str, ...] = ()

    def listen(self) -> socket.socket:
        """Take the port, or say that it is taken."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            found = socket.create_server((self.host.strip("[]"), self.port), family=family)
        except OSError as error:
            is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
            remedy = (
                "another --port; 0 is one that is free" if is_port else "another --host, one of this machine"
            )
            raise ParameterError(
                f"{self.host}:{self.port}: expected a place to listen, got: {error.strerror or error}. "
                f"Choose {remedy}."
            ) from None
        # Connections inherit it: without it each answer of two parts waits 40 ms for an acknowledgement.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    def access(self, port: int) -> Access:
        """Say who is let in at a port."""
        needs_token = not is_loopback(self.host)
        token = self.token or (secrets.token_urlsafe(24) if needs_token else "")
        own = (socket.gethostname().lower(),) if needs_token else ()
        return Access(self.host, port, token, (*own, *(each.lower() for each in self.names)))


def page_files() -> Path:
    """Give the folder of the built page.

    Raises
    ------
    ParameterError
        If it was not built, as in a checkout of the sources.
    """
    if not (_STATIC / "index.html").is_file():
        raise ParameterError(
            "The page of the review desk was not built: it is in every release, but not in the sources. With "
            "Node 20.19 or later on the path, install segtrust again (pip install '.[review]'), or in an "
            "editable checkout: make web. Or serve the interface alone: --api-only."
        )
    return _STATIC


def server_of(desk: Desk, access: Access, static: Path | None) -> Any:
    """Give a server of a desk that is not running yet; with the page, where its built files are given."""
    uvicorn = require("uvicorn", extra="review")
    require("fastapi", extra="review")
    from segtrust.review.app import create_app

    config = uvicorn.Config(
        Guard(create_app(desk, static), access),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http="h11",  # the other implementation has no limit for headers
        h11_max_incomplete_event_size=_MOST_HEADER,
        timeout_keep_alive=_REST_S,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def serve(desk: Desk, where: Serving, static: Path | None, announce: Callable[[list[str]], object]) -> None:
    """Serve the desk until it is stopped.

    Parameters
    ----------
    desk
        What is served.
    where
        Where it listens.
    static
        The built page; ``None`` for the interface alone.
    announce
        Told the addresses, with the token, once they can be opened: first that of this machine.
    """
    with where.listen() as listening:
        access = where.access(listening.getsockname()[1])
        server = server_of(desk, access, static)
        announce(addresses_of(access))
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:  # it is how a desk is closed
            return


def addresses_of(access: Access) -> list[str]:
    """Give the address that a browser on this machine opens, then those of others, by its names.

    Examples
    --------
    >>> addresses_of(Access("127.0.0.1", 8765))
    ['http://127.0.0.1:8765/']
    >>> addresses_of(Access("0.0.0.0", 80, token="not a secret", names=("desk",)))
    ['http://127.0.0.1:80/?token=not%20a%20secret', 'http://desk:80/?token=not%20a%20secret']
    """
    everywhere = {_EVERYWHERE: "127.0.0.1", "::": "::1"}
    others = access.names if access.host in everywhere else ()
    return [_address(host, access) for host in (everywhere.get(access.host, access.host), *others)]


def _address(host: str, access: Access) -> str:
    from urllib.parse import quote

    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    query = f"?token={quote(access.token, safe='')}" if access.token else ""
    return f"http://{bracketed}:{access.port}/{query}"
