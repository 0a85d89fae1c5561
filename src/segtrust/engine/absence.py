"""A cluster without workers: it may be waited for, but not in silence."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

__all__ = ["Absence"]

_LOG = logging.getLogger(__name__)
_SILENCE_S = 30.0
"""In which workers usually come: a batch system may take longer, which is told."""
_AGAIN_S = 60.0
"""How often it is told again."""


@dataclass
class Absence:
    """Tells in the log when no worker has come for a while, and again each minute.

    Attributes
    ----------
    address
        Of the scheduler.
    """

    address: str
    _since: float | None = field(default=None, init=False)
    _next: float = field(default=0.0, init=False)

    def look(self, workers: int) -> None:
        """Take in how many workers there are now."""
        now = time.monotonic()
        if workers:
            self._since = None
        elif self._since is None:
            self._since, self._next = now, now + _SILENCE_S
        elif now >= self._next:
            self._next = now + _AGAIN_S
            _LOG.warning("%s", self._said(now - self._since))

    def _said(self, seconds: float) -> str:
        return (
            f"dask: the scheduler {self.address} has had no worker for {seconds:.0f} s, and cases wait for "
            f"one. Start some: dask worker {self.address}. Or stop this: finished cases are kept."
        )
