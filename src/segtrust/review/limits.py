"""How often somebody may ask."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["RateLimit"]

_MOST_CLIENTS = 4096


@dataclass
class RateLimit:
    """A bucket of tokens for each client, which fills at a steady rate; each request takes one.

    Attributes
    ----------
    per_second
        Requests that a client may go on making.
    burst
        Requests that it may make at once.
    clock
        Seconds, from whenever on.

    Examples
    --------
    >>> limit = RateLimit(per_second=1.0, burst=2, clock=lambda: 0.0)
    >>> [limit.allows("somebody") for _ in range(3)], limit.allows("somebody else")
    ([True, True, False], True)
    """

    per_second: float = 200.0
    burst: int = 1000
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict, init=False)

    def knows(self, client: str) -> bool:
        """Tell whether a client has asked before, not too long ago."""
        return client in self._left

    def has_left(self, client: str) -> bool:
        """Tell whether a client may ask now, without counting it."""
        return self._left_to(client, self.clock()) >= 1.0

    def _left_to(self, client: str, now: float) -> float:
        left, then = self._left.get(client, (float(self.burst), now))
        return min(float(self.burst), left + (now - then) * self.per_second)

    def allows(self, client: str) -> bool:
        """Tell whether a client may ask now, and count it."""
        now = self.clock()
        left = self._left_to(client, now)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left), now
        self._left.move_to_end(client)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return allowed
