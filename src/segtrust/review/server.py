"""The desk as a server on this machine."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segtrust.errors import ParameterError
from segtrust.optional import require
from segtrust.review.access import Access, Guard, is_loopback
from segtrust.review.desk import Desk

__all__ = ["Serving", "address_of", "page_files", "serve", "server_of"]

_STATIC = Path(__file__).parent / "static"
_MOST_HEADER = 32 << 10


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
            raise ParameterError(
                f"{self.host}:{self.port}: expected a place to listen, got: {error.strerror or error}. "
                "Choose another --port; 0 is one that is free."
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
            "The page of the review desk was not built: it is in every release, but not in the sources. "
            "Build it, which needs Node 20 or later: make web. Or serve the interface alone: --api-only."
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
        h11_max_incomplete_event_size=_MOST_HEADER,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def serve(desk: Desk, where: Serving, static: Path | None, announce: Callable[[str], object]) -> None:
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
        Told the address, with the token, once it can be opened.
    """
    with where.listen() as listening:
        access = where.access(listening.getsockname()[1])
        server = server_of(desk, access, static)
        announce(address_of(access))
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:  # it is how a desk is closed
            return


def address_of(access: Access) -> str:
    """Give the address that a browser opens.

    Examples
    --------
    >>> address_of(Access("127.0.0.1", 8765))
    'http://127.0.0.1:8765/'
    >>> address_of(Access("0.0.0.0", 80, token="not a secret"))
    'http://127.0.0.1:80/?token=not%20a%20secret'
    """
    from urllib.parse import quote

    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(access.host, access.host)
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    query = f"?token={quote(access.token, safe='')}" if access.token else ""
    return f"http://{bracketed}:{access.port}/{query}"
