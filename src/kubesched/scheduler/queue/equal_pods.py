"""Pods that back off, or were woken after a vain attempt, and which of them is worth being tried now."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from kubesched.scheduler.queue.queued_pod import Entry, OrderedPods, QueuedPod


class EqualPods(OrderedPods):
    """Pods in an order, the first that is worth trying at hand.

    A pod is not while an equal one waits that was tried in vain: what that one waits for has not happened since, so
    this one would fare no better. Where each of many events makes room for one of hundreds of equal pods, all of them
    would be tried after each of the events otherwise. Once there is `hope` for their kind, the first of them is tried,
    and if that finds a node, the next.
    """

    def __init__(
        self,
        order: Callable[[QueuedPod], tuple[Any, ...]],
        kind_of: Callable[[QueuedPod], Hashable],
        is_in_vain: Callable[[Hashable], bool],
    ) -> None:
        """Pods of one kind are equal; call `hope` when it may no longer be in vain to try those of a kind."""
        super().__init__(order)
        self._kind_of = kind_of
        self._is_in_vain = is_in_vain
        self._kinds: dict[str, Hashable] = {}
        """By the name of the pod."""
        self._of_kind: dict[Hashable, list[Entry]] = {}
        """All of a kind, as a heap. Its first entry is never outdated, others may be."""
        self._firsts: list[Entry] = []
        """A heap of the first of each kind, but for those that are in vain."""
        self._in_vain: set[Hashable] = set()

    def put(self, pod: QueuedPod) -> Entry:
        entry = super().put(pod)
        if (was := self._kinds.pop(pod.key, None)) is not None:
            self._find_first(was)
        kind = self._kinds[pod.key] = self._kind_of(pod)
        alike = self._of_kind.setdefault(kind, [])
        heapq.heappush(alike, entry)
        if alike[0] is entry:
            heapq.heappush(self._firsts, entry)
        return entry

    def remove(self, key: str) -> QueuedPod | None:
        if key not in self._kinds:
            return None
        removed = super().remove(key)
        self._find_first(self._kinds.pop(key))
        return removed

    def first_worth_trying(self) -> QueuedPod | None:
        while self._firsts:
            first = self._firsts[0]
            if self._is_current(first):
                kind = self._kinds[first[2]]
                if not self._is_in_vain(kind):
                    return self.get(first[2])
                self._in_vain.add(kind)
            heapq.heappop(self._firsts)
        return None

    def apart(self) -> tuple[list[QueuedPod], list[QueuedPod]]:
        """Those that are worth trying, and those that are not."""
        parts: tuple[list[QueuedPod], list[QueuedPod]] = ([], [])
        for pod in self:
            parts[self._is_in_vain(self._kinds[pod.key])].append(pod)
        return parts

    def pop_worth_trying(self) -> QueuedPod | None:
        first = self.first_worth_trying()
        return None if first is None else self.remove(first.key)

    def hope(self, kind: Hashable) -> None:
        """Something happened that may help pods of this kind."""
        if kind in self._in_vain:
            self._in_vain.discard(kind)
            heapq.heappush(self._firsts, self._of_kind[kind][0])

    def _find_first(self, kind: Hashable) -> None:
        """After one of the kind left."""
        alike = self._of_kind[kind]
        if self._is_current(alike[0]):
            return
        while alike and not self._is_current(alike[0]):
            heapq.heappop(alike)
        if alike:
            heapq.heappush(self._firsts, alike[0])
        else:
            del self._of_kind[kind]
            self._in_vain.discard(kind)
