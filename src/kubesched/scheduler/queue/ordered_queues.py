"""Entities in an order: all of them, or without those whose class is known to be unschedulable."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.queue.queued_pod import QueuedPod

Entry = tuple[tuple[Any, ...], int, str]
"""Of a heap: the entity's place in the order, a number of its own, and its key."""


class OrderedQueue:
    """Entities by key, the first in an order at hand. Entries of the heap that are outdated are dropped at its top."""

    def __init__(self, order: Callable[[QueuedEntity], tuple[Any, ...]]) -> None:
        self._order = order
        self._entities: dict[str, tuple[int, QueuedEntity]] = {}
        self._heap: list[Entry] = []
        self._entries = 0

    def __len__(self) -> int:
        return len(self._entities)

    def __contains__(self, key: object) -> bool:
        return key in self._entities

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, those of groups among them."""
        return iter([queued for entity in self.entities() for queued in entity.queued_pods])

    def entities(self) -> list[QueuedEntity]:
        return [entity for _, entity in self._entities.values()]

    def get(self, key: str) -> QueuedEntity | None:
        return self._entities[key][1] if key in self._entities else None

    def put(self, entity: QueuedEntity) -> Entry:
        """Add an entity, or find its new place after it changed. If the order raises, nothing changes."""
        order = self._order(entity)
        self._entries += 1
        self._entities[entity.key] = (self._entries, entity)
        entry = (order, self._entries, entity.key)
        heapq.heappush(self._heap, entry)
        return entry

    def remove(self, key: str) -> QueuedEntity | None:
        numbered = self._entities.pop(key, None)
        return numbered[1] if numbered else None

    def first(self) -> QueuedEntity | None:
        while self._heap:
            if self._is_current(self._heap[0]):
                return self._entities[self._heap[0][2]][1]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedEntity | None:
        first = self.first()
        return None if first is None else self.remove(first.key)

    def _is_current(self, entry: Entry) -> bool:
        numbered = self._entities.get(entry[2])
        return numbered is not None and numbered[0] == entry[1]

    def in_order(self) -> list[QueuedEntity]:
        ordered = sorted(self._entities.values(), key=lambda entry: (self._order(entry[1]), entry[0]))
        return [entity for _, entity in ordered]


class DedupedQueue(OrderedQueue):
    """Entities in an order, the first that is retryable at hand.

    A pod whose class is known to be unschedulable is not: it would fail as an equal pod did. Where each of many events
    makes room for one of hundreds of equal pods, all of them would be tried after each event otherwise. Once the class
    is retryable, its first pod is tried, and if that finds a node, the next.
    """

    def __init__(
        self,
        order: Callable[[QueuedEntity], tuple[Any, ...]],
        class_of: Callable[[QueuedEntity], Hashable],
        is_unschedulable: Callable[[Hashable], bool],
    ) -> None:
        """Call `mark_retryable` when a class may no longer be unschedulable."""
        super().__init__(order)
        self._class_of = class_of
        self._is_unschedulable = is_unschedulable
        self._classes: dict[str, Hashable] = {}
        """By the key of the entity."""
        self._of_class: dict[Hashable, list[Entry]] = {}
        """The entries of a class, as a heap. The first is never outdated, others may be."""
        self._firsts: list[Entry] = []
        """A heap of the first entry of each class that is not in `_skipped`."""
        self._skipped: set[Hashable] = set()
        """Classes that were found to be unschedulable."""

    def put(self, entity: QueuedEntity) -> Entry:
        entry = super().put(entity)
        if (old_class := self._classes.pop(entity.key, None)) is not None:
            self._find_first(old_class)
        equivalence_class = self._classes[entity.key] = self._class_of(entity)
        entries = self._of_class.setdefault(equivalence_class, [])
        heapq.heappush(entries, entry)
        if entries[0] is entry:
            heapq.heappush(self._firsts, entry)
        return entry

    def remove(self, key: str) -> QueuedEntity | None:
        if key not in self._classes:
            return None
        removed = super().remove(key)
        self._find_first(self._classes.pop(key))
        return removed

    def first_retryable(self) -> QueuedEntity | None:
        while self._firsts:
            first = self._firsts[0]
            if self._is_current(first):
                equivalence_class = self._classes[first[2]]
                if not self._is_unschedulable(equivalence_class):
                    return self.get(first[2])
                self._skipped.add(equivalence_class)
            heapq.heappop(self._firsts)
        return None

    def split(self) -> tuple[list[QueuedEntity], list[QueuedEntity]]:
        """The entities that are retryable, and those that are not."""
        parts: tuple[list[QueuedEntity], list[QueuedEntity]] = ([], [])
        for entity in self.entities():
            parts[self._is_unschedulable(self._classes[entity.key])].append(entity)
        return parts

    def pop_retryable(self) -> QueuedEntity | None:
        first = self.first_retryable()
        return None if first is None else self.remove(first.key)

    def mark_retryable(self, equivalence_class: Hashable) -> None:
        """An event may help pods of this class."""
        if equivalence_class in self._skipped:
            self._skipped.discard(equivalence_class)
            heapq.heappush(self._firsts, self._of_class[equivalence_class][0])

    def _find_first(self, equivalence_class: Hashable) -> None:
        """Find the first entry of a class again, after one of its pods left."""
        entries = self._of_class[equivalence_class]
        if self._is_current(entries[0]):
            return
        while entries and not self._is_current(entries[0]):
            heapq.heappop(entries)
        if entries:
            heapq.heappush(self._firsts, entries[0])
        else:
            del self._of_class[equivalence_class]
            self._skipped.discard(equivalence_class)
