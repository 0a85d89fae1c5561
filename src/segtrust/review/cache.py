"""Values that are kept until their place is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["ByteCache"]

T = TypeVar("T")


@dataclass
class ByteCache(Generic[T]):
    """Keeps what was used last, up to so many bytes; several who want the same wait for the first.

    Attributes
    ----------
    most
        Bytes that are kept together. The last value is kept in any case.

    Examples
    --------
    >>> cache = ByteCache(most=10)
    >>> [cache.get(name, lambda: name * 4, len) for name in "abca"]
    ['aaaa', 'bbbb', 'cccc', 'aaaa']
    >>> cache.keys()
    ['c', 'a']
    """

    most: int
    _lock: Lock = field(default_factory=Lock, init=False)
    _being_made: dict[Hashable, Lock] = field(default_factory=dict, init=False)
    _kept: OrderedDict[Hashable, tuple[T, int]] = field(default_factory=OrderedDict, init=False)
    _bytes: int = field(default=0, init=False)

    def get(self, key: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        """Give the value of a key; it is made where it is not kept."""
        with self._lock:
            own = self._being_made.setdefault(key, Lock())
        with own:
            try:
                found = self._find(key)
                return self._keep(key, make(), size_of) if found is None else found[0]
            finally:
                with self._lock:
                    self._being_made.pop(key, None)

    def keys(self) -> list[Hashable]:
        """Give what is kept, that used last at the end."""
        with self._lock:
            return list(self._kept)

    def _find(self, key: Hashable) -> tuple[T, int] | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: Hashable, value: T, size_of: Callable[[T], int]) -> T:
        size = size_of(value)
        with self._lock:
            self._kept[key] = value, size
            self._bytes += size
            while len(self._kept) > 1 and self._bytes > self.most:
                self._bytes -= self._kept.popitem(last=False)[1][1]
        return value
