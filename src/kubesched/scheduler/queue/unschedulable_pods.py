"""Pods that wait for an event, by name and by group, and for which kinds of them another attempt would be in vain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.waiting_groups import Group, OpenedBy, WaitingGroups
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


class UnschedulablePods:
    """Pods by name, and by group."""

    def __init__(
        self, state: ClusterState, groups: WaitingGroups, on_hope: Callable[[PodFacts], None] = lambda facts: None
    ) -> None:
        """`on_hope` is called with those for which `is_in_vain` may no longer hold."""
        self._state = state
        self._waiting = groups
        self._on_hope = on_hope
        self._in_vain: dict[Hashable, QueuedPod] = {}
        """By their facts, the last pod that found no node; none if one of the same facts left since."""
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
        if self._in_vain.pop(group.facts, None) is not None:
            self._on_hope(group.facts)
        members = self._groups[group][1]
        del members[key]
        if not members:
            del self._groups[group]
            self._waiting.remove(group)
        return queued

    def tried_in_vain(self, pod: QueuedPod) -> None:
        """A pod that is here has just found no node. One apart says nothing about others."""
        group = self._pods[pod.key][1]
        if not group.apart and not group.gating_plugin:
            self._in_vain[group.facts] = pod

    def is_in_vain(self, facts: Hashable) -> bool:
        """Whether a pod with these facts would only fail as an equal one that was tried, and was not helped since.

        Nor was any other of them: an event that helps one of those who were rejected earlier, and by others, counts.
        One with a nominated node says nothing about others: there may be victims for them, too.
        """
        equal = self._in_vain.get(facts)
        return equal is not None and not self._state.nominated.node_of(equal.pod)

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


def subjects(change: Change[Any], pods: Mapping[str, QueuedPod]) -> dict[str, QueuedPod]:
    """Those of the pods, by name, that a change is about."""
    return {
        obj.key: queued
        for obj in change
        if isinstance(obj, Pod) and (queued := pods.get(obj.key)) is not None and queued.identity == obj.identity
    }
