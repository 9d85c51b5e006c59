"""A pod group in the queue: one entity for all its pending pods, with one place in line and one backoff."""

from __future__ import annotations

from math import sqrt
from typing import Any

from msgspec.structs import replace

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.scheduler.queue.queued_pod import QueuedPod


class QueuedGroup(QueuedPod):
    """The pending pods of a group. While it is in flight, `members` are those that came or came back meanwhile."""

    __slots__ = ("_first", "group", "is_in_flight", "members", "priority")

    def __init__(self, group: PodGroup, priority: int, first: QueuedPod, timestamp: float) -> None:
        super().__init__(first.pod, timestamp)
        self.key = self.identity = f"podgroup/{group.key}"  # unlike that of any pod, whose key has one slash
        self.group = group
        self.priority = priority
        """Its place among other pods and groups goes by this."""
        self.members: dict[str, QueuedPod] = {}
        self.is_in_flight = False
        self.error_count, self.unschedulable_count = first.error_count, first.unschedulable_count
        self.add(first)

    @property
    def stands_alone(self) -> bool:
        return True

    @property
    def backoff_stretch(self) -> float:
        return sqrt(max(1, len(self.members)))

    def add(self, member: QueuedPod) -> None:
        """A new member, or one that changed."""
        is_first = not self.members or _order(member) <= _order(self._first)
        self.members[member.key] = member
        if is_first:
            self._lead(member)
        elif member.key == self._first.key:
            self._lead(min(self.members.values(), key=_order))

    def remove(self, key: str) -> QueuedPod | None:
        removed = self.members.pop(key, None)
        if removed is self._first and self.members:
            self._lead(min(self.members.values(), key=_order))
        return removed

    def take_off(self) -> list[QueuedPod]:
        """An attempt begins: all members in the order in which they are tried."""
        taken = sorted(self.members.values(), key=_order)
        self.members = {}
        self.is_in_flight = True
        return taken

    def renew(self, group: PodGroup, priority: int) -> None:
        """The group's object changed."""
        self.group, self.priority = group, priority
        self._lead(self._first)

    def _lead(self, member: QueuedPod) -> None:
        """The entity is sorted as this pod would be, if it had the priority of the group."""
        self._first = member
        self.pod = with_priority(member.pod, self.priority)


def with_priority(pod: Pod, priority: int) -> Pod:
    """The pod, with another priority."""
    return pod if pod.priority == priority else replace(pod, spec=replace(pod.spec, priority=priority))


def _order(member: QueuedPod) -> tuple[Any, ...]:
    return -member.pod.priority, -member.attempts, member.timestamp, member.pod.name
