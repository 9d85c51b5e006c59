"""A pod in the queue, pods kept in an order, and how long a pod backs off."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from kubesched.api.pod import Pod


class QueuedPod:
    """A pending pod and what became of its attempts so far."""

    __slots__ = (
        "attempts",
        "backoff_until",
        "error_count",
        "first_tried",
        "flushed",
        "flushed_at",
        "found_no_node",
        "gating_plugin",
        "identity",
        "key",
        "pending_plugins",
        "pod",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
    )

    def __init__(self, pod: Pod, timestamp: float) -> None:
        self.pod = pod
        self.key = pod.key
        self.identity = pod.identity
        self.timestamp = timestamp
        """When the pod was added, or last came back from a failed attempt: its place in line."""
        self.attempts = 0
        self.unschedulable_count = 0
        """Attempts that ended with a rejection."""
        self.error_count = 0
        """Attempts in a row that ended with an error instead."""
        self.first_tried: float | None = None
        """When the first attempt began, if it was measured."""
        self.backoff_until: float | None = None
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""
        self.flushed = False
        """Whether the pod was last woken only because it had waited so long."""
        self.flushed_at = 0.0
        self.found_no_node = False
        """Whether its last attempt failed because no node was good enough, so that one at an equal pod would, too.

        No longer if something happened to this pod alone, such as a change of its own.
        """

    @property
    def rejectors(self) -> set[str]:
        """The plugins whose word could wake the pod."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def stands_alone(self) -> bool:
        """Whether what wakes it cannot be told from what wakes pods that look the same."""
        return False

    @property
    def backoff_stretch(self) -> float:
        """By how much longer than others it may have to wait at most."""
        return 1.0

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""


Entry = tuple[tuple[Any, ...], int, str]
"""Of a heap: the pod's place in the order, a number of its own, and its name."""


class OrderedPods:
    """Pods by name, the first in a given order at hand. Entries that were removed or moved are skipped in time."""

    def __init__(self, order: Callable[[QueuedPod], tuple[Any, ...]]) -> None:
        self._order = order
        self._pods: dict[str, tuple[int, QueuedPod]] = {}
        self._heap: list[Entry] = []
        self._entries = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([pod for _, pod in self._pods.values()])

    def get(self, key: str) -> QueuedPod | None:
        return self._pods[key][1] if key in self._pods else None

    def put(self, pod: QueuedPod) -> Entry:
        """Add a pod, or find its new place after it changed. If its order cannot be told, all stays as it was."""
        order = self._order(pod)
        self._entries += 1
        self._pods[pod.key] = (self._entries, pod)
        entry = (order, self._entries, pod.key)
        heapq.heappush(self._heap, entry)
        return entry

    def remove(self, key: str) -> QueuedPod | None:
        found = self._pods.pop(key, None)
        return found[1] if found else None

    def first(self) -> QueuedPod | None:
        while self._heap:
            if self._is_current(self._heap[0]):
                return self._pods[self._heap[0][2]][1]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        first = self.first()
        return None if first is None else self.remove(first.key)

    def _is_current(self, entry: Entry) -> bool:
        known = self._pods.get(entry[2])
        return known is not None and known[0] == entry[1]

    def in_order(self) -> list[QueuedPod]:
        return [pod for _, pod in sorted(self._pods.values(), key=lambda entry: (self._order(entry[1]), entry[0]))]


class Backoff:
    """How long pods wait after they failed: twice as long each time. A longest wait of 0 means that none has to."""

    def __init__(self, clock: Callable[[], float], initial: float, longest: float, *, by_the_second: bool) -> None:
        """`by_the_second` lets all that ends within a second end together, so that the queue's order counts there."""
        self._clock = clock
        self._initial, self._longest = initial, longest
        self._by_the_second = by_the_second

    def until(self, queued: QueuedPod) -> float:
        """The moment until which the pod must wait; 0 if it need not."""
        failures = queued.error_count or queued.unschedulable_count
        if not failures or not self._longest:
            return 0.0
        if queued.backoff_until is None:
            delay = min(self._initial * 2 ** min(failures - 1, 62), self._longest * queued.backoff_stretch)
            queued.backoff_until = self._aligned(queued.timestamp + delay)
        return queued.backoff_until

    def is_under_way(self, queued: QueuedPod) -> bool:
        until = self.until(queued)
        return until > 0 and until >= self._aligned(self._clock())

    def _aligned(self, time: float) -> float:
        return float(time // 1) if self._by_the_second else time
