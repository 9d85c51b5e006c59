"""What happens for every pod is noted in passing, and counted later together with many others of its kind.

Between two pods other programs have had the processor's caches, so that thirty observations cost several times what
they cost in a row; and most of many in a row have the same labels, which are looked up once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Note = TypeVar("Note")
Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

MOST_NOTES = 128
"""How many are kept before they are counted, even if nobody wants to see the metrics. More would save little, and those
of 128 pods take about a millisecond, for which the next pod waits."""


class Batch(Generic[Note]):
    """Notes of one kind that are yet to be counted. They are plain values: a note of a pod would keep it alive."""

    __slots__ = ("_count", "_notes")

    def __init__(self, count: Callable[[list[Note]], None]) -> None:
        self._count = count
        self._notes: list[Note] = []

    def note(self, note: Note) -> None:
        """To be counted soon, and before the next scrape at the latest."""
        self._notes.append(note)
        if len(self._notes) >= MOST_NOTES:
            self.count()

    def count(self) -> None:
        """Count all that was noted."""
        if self._notes:
            notes, self._notes = self._notes, []
            self._count(notes)


def alike(notes: Iterable[tuple[Key, T]]) -> dict[Key, list[T]]:
    """The notes by what most of them have in common."""
    found: dict[Key, list[T]] = defaultdict(list)
    for key, rest in notes:
        found[key].append(rest)
    return found
