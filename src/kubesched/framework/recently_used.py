"""Values by key, the least recently used forgotten first: limited in number, and in bytes of large keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from kubesched.state.facts import PodFacts

V = TypeVar("V")

_OBJECT = 64
"""Bytes that any object takes, about."""
_PER_DEFINITION = 16
"""How many bytes the facts of a pod take, with all that plugins derive from them, for each of its definition."""


class RecentlyUsed(Generic[V]):
    """An LRU limited by bytes as well as by entries, because keys can be large."""

    def __init__(self, *, ordinary: int, large: int) -> None:
        """Keys of more bytes than `ordinary` are kept apart, and take at most `large` bytes all together."""
        self._ordinary = ordinary
        self._large_bytes = large
        self._held = 0
        self._values: dict[Hashable, V] = {}
        self._large: dict[Hashable, tuple[V, int]] = {}

    def __len__(self) -> int:
        return len(self._values) + len(self._large)

    def get(self, key: Hashable) -> V | None:
        """The value of the key, which then is the most recently used one."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
            return value
        entry = self._large.pop(key, None) if self._large else None
        if entry is None:
            return None
        self._large[key] = entry
        return entry[0]

    def put(self, key: Hashable, value: V, most: int) -> None:
        """Keep a value, and at most `most` of each kind."""
        self.discard(key)
        size = size_of(key)
        if size <= self._ordinary:
            while len(self._values) >= most:
                del self._values[next(iter(self._values))]
            self._values[key] = value
        elif size <= self._large_bytes:
            self._held += size
            self._large[key] = (value, size)
            while self._held > self._large_bytes or len(self._large) > most:
                self.discard(next(iter(self._large)))

    def discard(self, key: Hashable) -> None:
        self._values.pop(key, None)
        entry = self._large.pop(key, None)
        if entry is not None:
            self._held -= entry[1]


def size_of(key: Any) -> int:
    """The bytes that a key holds on to, about."""
    parts = [key]
    size = 0
    for part in parts:  # which grows meanwhile
        if isinstance(part, (tuple, frozenset)):
            parts += part
        elif isinstance(part, (str, bytes)):
            size += len(part)
        elif isinstance(part, PodFacts):
            size += _PER_DEFINITION * len(part.fingerprint)
    return size + _OBJECT * len(parts)
