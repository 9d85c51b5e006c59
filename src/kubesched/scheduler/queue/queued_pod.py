"""A pod in the queue, pods kept in an order, pods that wait for an event, and how long a pod backs off."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from operator import itemgetter
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.queue.waiting_groups import Group, OpenedBy, WaitingGroups
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


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
        """Whether its last attempt failed because no node was good enough, so that one at an equal pod would, too."""

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


class UnschedulablePods:
    """Pods by name, and by group."""

    def __init__(
        self, state: ClusterState, groups: WaitingGroups, on_hope: Callable[[PodFacts], None] = lambda facts: None
    ) -> None:
        """`on_hope` is called with those for which `is_in_vain` may no longer hold."""
        self._state = state
        self._waiting = groups
        self._on_hope = on_hope
        self._in_vain: dict[Hashable, dict[str, QueuedPod]] = {}
        """Pods that found no node and wait for what may help them, by their facts and by name, the last one last."""
        self._pods: dict[str, tuple[QueuedPod, Group, Pod]] = {}
        self._groups: dict[Group, tuple[int, dict[str, QueuedPod]]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([pod for pod, _, _ in self._pods.values()])

    def get(self, key: str) -> QueuedPod | None:
        return self._pods[key][0] if key in self._pods else None

    def put(self, pod: QueuedPod) -> None:
        """Add a pod, or find its new group after it changed."""
        spec, facts = pod.pod.spec, self._state.facts(pod.pod)
        apart = (
            pod.stands_alone
            or spec.resource_claims
            or pod.pending_plugins
            or any(volume.ephemeral for volume in spec.volumes)
        )
        group = Group(facts, frozenset(pod.rejectors), pod.gating_plugin, pod.key if apart else "")
        known = self._pods.get(pod.key)
        # What a pod apart waits for may follow from its status, which makes no difference to its group.
        if known is not None and known[1] == group and not apart:  # as most updates leave it
            self._state.facts.release(known[2])
        else:
            self.remove(pod.key)
            if known is not None and known[1].facts is not facts:
                pod.found_no_node = False  # what it is now was never tried
        if pod.found_no_node and not apart and not pod.is_gated:
            self._in_vain.setdefault(facts, {})[pod.key] = pod
        self._pods[pod.key] = (pod, group, pod.pod)
        self._state.facts.hold(pod.pod, facts)
        if group not in self._groups:
            self._arrivals += 1
            self._groups[group] = (self._arrivals, {})
            self._waiting.put(group, None if pod.stands_alone else pod.pod)
        self._groups[group][1][pod.key] = pod

    def remove(self, key: str) -> QueuedPod | None:
        found = self._pods.pop(key, None)
        if found is None:
            return None
        queued, group, pod = found
        self._state.facts.release(pod)
        in_vain = self._in_vain.get(group.facts)
        if in_vain is not None and in_vain.pop(key, None) is not None:
            if not in_vain:
                del self._in_vain[group.facts]
            self._on_hope(group.facts)
        members = self._groups[group][1]
        del members[key]
        if not members:
            del self._groups[group]
            self._waiting.remove(group)
        return queued

    def is_in_vain(self, facts: Hashable) -> bool:
        """Whether a pod with these facts would only fail as an equal one that waits here.

        One with a nominated node says nothing about others: there may be victims for them, too.
        """
        equal = self._in_vain.get(facts)
        if not equal:
            return False
        return not self._state.nominated.node_of(next(reversed(equal.values())).pod)

    def groups(self) -> list[tuple[Group, dict[str, QueuedPod]]]:
        """All groups with their members, by name."""
        return [(group, members) for group, (_, members) in self._groups.items()]

    def awaiting(
        self, event: ClusterEvent, change: Change[Any], opened_by: OpenedBy
    ) -> tuple[list[dict[str, QueuedPod]], bool]:
        """The members, by name, of all groups that an event may help or is about, in order of arrival.

        Of groups that are held back by a gate which can tell, only those members for whom it may open; and whether
        there are such groups.
        """
        if not self._groups:
            return [], False
        groups, released = self._waiting.find(event, change, opened_by)
        for obj in change:
            if isinstance(obj, Pod) and (known := self._pods.get(obj.key)) is not None:
                groups[known[1]] = None
        found = {group: self._groups[group] for group in groups}
        for key in released or ():
            if (known := self._pods.get(key)) is not None and (group := known[1]) not in groups and group.gating_plugin:
                found.setdefault(group, (self._groups[group][0], {}))[1][key] = known[0]
        return [members for _, members in sorted(found.values(), key=itemgetter(0))], released is not None
