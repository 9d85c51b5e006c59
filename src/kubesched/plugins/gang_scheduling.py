"""GangScheduling: a gang is not tried before enough of its pods exist, and placed only if enough of them fit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.framework.events import Action, Hint, Interest, Kind, Lookup
from kubesched.framework.groups import GroupProgress, PlacementFeasiblePlugin, group_of
from kubesched.framework.plugin import PreEnqueuePlugin
from kubesched.framework.status import Code, Status, unresolvable, unschedulable
from kubesched.plugins.shared.hinting import queue_if, waits_for
from kubesched.state.cluster import ClusterState

TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")


class GangScheduling(PreEnqueuePlugin, PlacementFeasiblePlugin):
    """All or nothing, for groups that are gangs."""

    name = "GangScheduling"

    def events_to_register(self) -> tuple[Interest, ...]:
        return (
            waits_for(Kind.POD, Action.ADD, _after_pod_added, OWN_GROUP),
            waits_for(Kind.POD_GROUP, Action.ADD, _after_group_added, OWN_GROUP),
            waits_for(Kind.POD_GROUP, Action.UPDATE, _after_group_updated, OWN_GROUP),
        )

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        key = group_key(pod)
        if not key:
            return None
        group = group_of(pod, state)
        if group is None:
            return unresolvable(f"waiting for pods's pod group {_quoted(key)} to appear in scheduling queue")
        return TOO_FEW if group.is_gang and state.groups.count(key) < group.min_count else None

    def placement_feasible(self, group: PodGroup, progress: GroupProgress) -> Status | None:
        min_count, scheduled, remaining = group.min_count, progress.scheduled, progress.remaining
        if scheduled >= min_count:
            return None
        so_far = f"{scheduled} scheduled, {remaining} remaining"
        if scheduled + remaining < min_count:
            return unschedulable(f"minCount ({min_count}) cannot be satisfied: {so_far}")
        return Status(Code.WAIT, (f"minCount ({min_count}) is not yet satisfied: {so_far}",))


def _quoted(key: str) -> str:
    return f'"{key.partition("/")[2]}"'


def _after_pod_added(pod: Pod, old: None, new: Pod, state: ClusterState) -> Hint:
    return queue_if(group_key(new) == group_key(pod))


def _after_group_added(pod: Pod, old: None, new: PodGroup, state: ClusterState) -> Hint:
    return queue_if(new.key == group_key(pod))


def _after_group_updated(pod: Pod, old: PodGroup, new: PodGroup, state: ClusterState) -> Hint:
    return queue_if(new.key == group_key(pod) and new.min_count < old.min_count)


def _own_group(pod: Pod, state: ClusterState) -> Iterator[Hashable]:
    yield group_key(pod)


def _group_brought(old: Pod | PodGroup | None, new: Pod | PodGroup, state: ClusterState) -> Iterator[Hashable]:
    key = group_key(new) if isinstance(new, Pod) else new.key
    if key:
        yield key


OWN_GROUP = Lookup(_own_group, _group_brought)
"""For all hints: of thousands of gangs that wait, only the one that a pod or a PodGroup belongs to is asked about."""
