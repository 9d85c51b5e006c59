"""A pod group in the queue: one entity for all its pending pods, with one place and one backoff."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import sqrt
from typing import Any, TypeAlias

from msgspec.structs import replace

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.scheduler.queue.queued_pod import QueuedPod, QueueEntry


class QueuedPodGroup(QueueEntry):
    """The pending pods of a group. While it is in flight, `members` are those added meanwhile.

    A gated group is one with a gated member: the queue asks PreEnqueue plugins about each of them.
    """

    __slots__ = ("_first", "group", "is_in_flight", "members", "priority")

    def __init__(self, group: PodGroup, priority: int, first: QueuedPod, timestamp: float) -> None:
        key = f"podgroup/{group.key}"  # unlike that of any pod, whose key has one slash
        super().__init__(key, key, timestamp)
        self.group = group
        self.priority = priority
        """The queue sorts the group by it."""
        self.members: dict[str, QueuedPod] = {}
        self.is_in_flight = False
        self.error_count, self.unschedulable_count = first.error_count, first.unschedulable_count
        self._first: QueuedPod | None = None
        """The member that sorts first; None if it must be found again."""
        self.add(first)

    # -- as an entity of the queue ------------------------------------------------------------------------------------

    @property
    def queued_pods(self) -> Collection[QueuedPod]:
        return self.members.values()

    @property
    def waiting_pods(self) -> Collection[QueuedPod]:
        return [member for member in self.members.values() if member.is_gated]

    @property
    def lookup_pod(self) -> Pod | None:
        return None

    @property
    def sort_pod(self) -> Pod:
        """QueueSort plugins compare pods: the first member, as if it had the priority of the group."""
        pod = self._leader.pod
        return pod if pod.priority == self.priority else replace(pod, spec=replace(pod.spec, priority=self.priority))

    @property
    def scheduler_name(self) -> str:
        return self._leader.pod.spec.scheduler_name

    @property
    def gating_plugin(self) -> str:
        """The gating plugin of the last gated member: the events of this plugin wake the group."""
        last = self._last_gated
        return "" if last is None else last.gating_plugin

    @property
    def gated_pod(self) -> Pod | None:
        last = self._last_gated
        return None if last is None else last.pod

    @property
    def _last_gated(self) -> QueuedPod | None:
        return next((member for member in reversed(self.members.values()) if member.is_gated), None)

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def rejectors(self) -> set[str]:
        return {self.gating_plugin} - {""}

    @property
    def backoff_stretch(self) -> float:
        return sqrt(max(1, len(self.members)))

    def take_off(self) -> Sequence[QueuedPod]:
        """All members in the order in which they are tried; they are in flight now."""
        tried = sorted(self.members.values(), key=_order)
        self.members = {}
        self._first = None
        self.is_in_flight = True
        return tried

    # -- members come and go ------------------------------------------------------------------------------------------

    def add(self, member: QueuedPod) -> None:
        """A new member, or one that changed."""
        if not self.members:
            self._first = member
        elif self._first is not None and self._first.key == member.key:
            self._first = None  # it may sort later now
        elif self._first is not None and _order(member) <= _order(self._first):
            self._first = member
        self.members[member.key] = member

    def remove(self, key: str) -> QueuedPod | None:
        if self._first is not None and self._first.key == key:
            self._first = None
        return self.members.pop(key, None)

    @property
    def _leader(self) -> QueuedPod:
        if self._first is None:
            self._first = min(self.members.values(), key=_order)
        return self._first


QueuedEntity: TypeAlias = QueuedPod | QueuedPodGroup
"""What the scheduling queue holds: a pod that is scheduled by itself, or a pod group."""


def _order(member: QueuedPod) -> tuple[Any, ...]:
    return -member.pod.priority, -member.attempts, member.timestamp, member.pod.name
