"""The pool of unschedulable pods, those that are alike together: what wakes one of them wakes them all.

A hundred thousand pods of one Job wait for the same thing. So an event asks once per kind of pod, not once per pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


class Group(NamedTuple):
    """What pods in the pool have in common: their definition, who rejected them, who holds them back."""

    facts: PodFacts
    rejectors: frozenset[str]
    gating_plugin: str
    apart: str
    """The name of a pod that cannot be lumped together with others, since its name or its status matters too."""


class UnschedulablePods:
    """Pods by name, and by group."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: dict[str, tuple[QueuedPod, Group]] = {}
        self._groups: dict[Group, dict[str, QueuedPod]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([pod for pod, _ in self._pods.values()])

    def get(self, key: str) -> QueuedPod | None:
        return self._pods[key][0] if key in self._pods else None

    def put(self, pod: QueuedPod) -> None:
        """Add a pod, or find its new group after it changed."""
        self.remove(pod.key)
        spec, facts = pod.pod.spec, self._state.facts(pod.pod)
        apart = spec.resource_claims or pod.pending_plugins or any(volume.ephemeral for volume in spec.volumes)
        group = Group(facts, frozenset(pod.rejectors), pod.gating_plugin, pod.key if apart else "")
        self._pods[pod.key] = (pod, group)
        self._groups.setdefault(group, {})[pod.key] = pod

    def remove(self, key: str) -> QueuedPod | None:
        found = self._pods.pop(key, None)
        if found is None:
            return None
        pod, group = found
        members = self._groups[group]
        del members[key]
        if not members:
            del self._groups[group]
        return pod

    def groups(self) -> list[tuple[Group, dict[str, QueuedPod]]]:
        """All groups with their members, by name."""
        return list(self._groups.items())
