"""The event handlers: a change of the cluster goes to the cache and to the queue, and its events wake pods there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.custom import CustomObject
from kubesched.api.devices import DeviceTaintRule
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.framework.client import SchedulerMode
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.framework.groups import GroupAliasPlugin
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.cluster_events import (
    ASSIGNED_POD_ADDED,
    ASSIGNED_POD_DELETED,
    ASSIGNED_POD_UPDATED,
    NODE_ADDED,
    NODE_DELETED,
    PendingPodEvents,
    event_of,
    node_events,
    pod_events,
)
from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.state.cluster import ClusterState
from kubesched.state.taint_rules import TaintedSlices

log = logging.getLogger(__name__)

_EVENT_KINDS = {kind.record: Kind(kind.event) for kind in KINDS.values() if kind.event}
_ACTIONS = {"added": Action.ADD, "updated": Action.UPDATE, "deleted": Action.DELETE}


class EventHandlers:
    """Pods with a node go to the cache, whichever scheduler bound them; others to the queue, if a profile is theirs."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        pods: dict[str, Pod],
        waiting: WaitingPods,
        is_ours: Callable[[str], bool],
        aliases: Sequence[GroupAliasPlugin],
        mode: SchedulerMode,
    ) -> None:
        """`aliases` say which pods belong to groups, besides those with a `schedulingGroup`."""
        self._state = state
        self._queue = queue
        self.pods = pods
        """All pods by key, as the watch last showed them."""
        self._waiting = waiting
        self._is_ours = is_ours
        self._pending = PendingPodEvents(state.features.release)
        self._has_groups = state.features.pod_groups
        self._slices = TaintedSlices(state.objects, by_rules=state.features.device_taint_rules)
        self._aliases = aliases
        self._beyond_parity = mode is SchedulerMode.BATCHED
        """Whether changes of a nominated or assumed pod wake pods for which it left no room, unlike kube-scheduler."""
        self._logged_remarks: set[str] = set()
        self._events: list[ClusterEvent] = []

    def handle(self, change: Change[KubeObject]) -> list[ClusterEvent]:
        """Bring cache and queue up to date, and requeue pods that the change may help. Returns the events it was."""
        events: list[ClusterEvent] = []
        self._events = events
        old, new = change = Change(*(self._as_member(obj) for obj in change)) if self._aliases else change
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            # An interrupted watch may show a deletion and a creation as if they were one change.
            self._handle(Change(old=old))
            self._handle(Change(new=new))
        else:
            self._handle(change)
        return events

    def _handle(self, change: Change[Any]) -> None:
        match change.obj:
            case Pod():
                self._pod_changed(change)
            case Node():
                self._node_changed(change)
            case _:
                self._other_changed(change)

    def _as_member(self, obj: KubeObject | None) -> KubeObject | None:
        for alias in self._aliases:
            obj = alias.as_member(obj) if isinstance(obj, Pod) else obj
        return obj

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _pod_changed(self, change: Change[Pod]) -> None:
        old, new = change
        if new is None:
            self.pods.pop(change.obj.key, None)
            self._pod_deleted(change.obj)
            return
        self.pods[new.key] = new
        if old is None:
            self._pod_added(new)
        else:
            self._pod_updated(old, new)

    def _pod_added(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._assigned(pod)
        elif self._is_ours(pod.spec.scheduler_name):
            if not self._has_groups:
                self._events.append(self._pending.added)
                self._queue.add(pod)
                return
            self._state.groups.seen(pod)
            self._queue.add(pod)
            self._move_all(self._pending.added, Change(None, pod))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name:
            self._events.append(ASSIGNED_POD_UPDATED)
            self._state.apply(new)
            for event in pod_events(old, new, self._state.features):
                self._move_all(event, Change(old, new))
        elif new.spec.node_name:
            nominated = self._nominated_node(old)
            self._assigned(new)
            if self._is_ours(old.spec.scheduler_name):
                self._events.append(self._pending.deleted)
                self._queue.delete(old)
            if nominated and nominated != new.spec.node_name:  # another scheduler bound it elsewhere
                self._nomination_cleared(old, nominated)
        elif self._is_ours(old.spec.scheduler_name):
            self._events.append(self._pending.updated)
            self._pending_updated(old, new)

    def _pending_updated(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version and old.metadata.resource_version == new.metadata.resource_version:
            return
        if self._is_assumed(new):
            if new.is_terminating and not old.is_terminating:
                self._assumed_pod_deleted(new)
            elif (nominated := self._nominated_node(old)) and nominated != new.status.nominated_node_name:
                self._nomination_cleared(old, nominated)  # it found another node, and waits there to be bound
            return
        if self._has_groups:
            if group_key(old) != group_key(new):
                self._state.groups.gone(old)
            self._state.groups.seen(new)
        nominated = self._nominated_node(old)
        self._queue.update(old, new)
        status_node = old.status.nominated_node_name
        if status_node and status_node != new.status.nominated_node_name:
            self._nomination_cleared(old, status_node)
        elif nominated and (old.spec != new.spec or old.metadata.labels != new.metadata.labels):
            self._nomination_cleared(old, nominated)  # it may need less, or keep other pods away no longer

    def _pod_deleted(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._state.delete(pod)
            self._move_all(ASSIGNED_POD_DELETED, Change(old=pod))
        elif self._is_ours(pod.spec.scheduler_name):
            self._events.append(self._pending.deleted)
            nominated = pod.status.nominated_node_name or self._nominated_node(pod)
            self._state.groups.gone(pod)
            self._queue.delete(pod)
            if self._is_assumed(pod):
                self._assumed_pod_deleted(pod)
            elif nominated:
                self._nomination_cleared(pod, nominated)

    def _assigned(self, pod: Pod) -> None:
        placed = self._state.placed(pod) if self._beyond_parity else None
        assumed, facts = (placed.pod, placed.facts) if placed is not None else (None, None)
        self._state.apply(pod)
        self._move_all(ASSIGNED_POD_ADDED, Change(None, pod))
        if assumed is None:
            return
        if assumed.spec.node_name != pod.spec.node_name:  # another scheduler bound it elsewhere
            self._move_all(ASSIGNED_POD_DELETED, Change(old=assumed))
        elif facts is not self._state.facts(pod):  # it changed while it was being bound
            for event in pod_events(assumed, pod, self._state.features):
                self._move_all(event, Change(assumed, pod))

    def _assumed_pod_deleted(self, pod: Pod) -> None:
        """A pod that is being bound was deleted: forget it, or reject it if it waits for a Permit plugin."""
        placed = self._state.placed(pod)
        assert placed is not None
        waiting = self._waiting.get(pod)
        if waiting is None or not waiting.reject("", "removed"):
            self._state.delete(pod)
        self._move_all(ASSIGNED_POD_DELETED, Change(old=placed.pod))

    def _nomination_cleared(self, pod: Pod, node_name: str) -> None:
        """Wake pods for which the nominated pod left no room: those that do not go before it.

        Hints read the nomination in its status, where it may not be written yet.
        """
        if pod.status.nominated_node_name != node_name:
            pod = replace(pod, status=replace(pod.status, nominated_node_name=node_name))
        self._move_all(ASSIGNED_POD_DELETED, Change(old=pod), lambda waiting: waiting.priority <= pod.priority)

    def _nominated_node(self, pod: Pod) -> str:
        if not self._beyond_parity:
            return ""
        return pod.status.nominated_node_name or self._state.nominated.node_of(pod)

    def _is_assumed(self, pod: Pod) -> bool:
        placed = self._state.placed(pod)
        return placed is not None and placed.assumed

    # -- nodes and all else -------------------------------------------------------------------------------------------

    def _node_changed(self, change: Change[Node]) -> None:
        old, new = change
        if new is None:
            self._move_all(NODE_DELETED, change)
            self._state.delete(change.obj)
            return
        self._state.apply(new)
        for event in (NODE_ADDED,) if old is None else node_events(old, new, self._state.features):
            self._move_all(event, change)

    def _other_changed(self, change: Change[Any]) -> None:
        obj = change.obj
        slices = self._slices.all() if isinstance(obj, DeviceTaintRule) else {}
        if change.new is None:
            self._state.delete(obj)
        else:
            self._state.apply(obj)
        for after in self._slices.all().values() if slices else ():
            if after != (before := slices[after.key]):
                self._move_all(event_of(Kind.RESOURCE_SLICE, Action.UPDATE), Change(before, after))
        if isinstance(obj, PodGroup):
            self._queue.group_changed(change)
        for alias in self._aliases if isinstance(obj, CustomObject) else ():
            groups = Change(*(None if version is None else alias.as_group(version) for version in change))
            if groups != Change():
                self._other_changed(groups)
                self._log_once(alias.remark(obj), obj)
        kind = obj.resource if isinstance(obj, CustomObject) else _EVENT_KINDS.get(type(obj))
        if kind is not None:
            self._move_all(event_of(kind, _ACTIONS[change.verb]), change)

    def _log_once(self, remark: str, obj: KubeObject) -> None:
        if remark and remark not in self._logged_remarks:
            self._logged_remarks.add(remark)
            log.warning("%s, as in %s; this is said only once", remark, obj.key)

    def _move_all(
        self, event: ClusterEvent, change: Change[KubeObject], concerns: Callable[[QueuedEntity], bool] | None = None
    ) -> None:
        self._events.append(event)
        self._queue.move_all_to_active_or_backoff(event, change, concerns)
