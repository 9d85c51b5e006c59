"""Routes what the watch says: to the state, to the queue, and as events to the pods that wait for them."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.custom import CustomObject
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.cluster_events import node_changes, pod_changes
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.state.cluster import ClusterState

_EVENT_KINDS = {kind.record: Kind(kind.event) for kind in KINDS.values() if kind.event}

ASSIGNED_POD_ADDED = ClusterEvent(Kind.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_GONE = ClusterEvent(Kind.ASSIGNED_POD, Action.DELETE)
NODE_ADDED = ClusterEvent(Kind.NODE, Action.ADD)
NODE_GONE = ClusterEvent(Kind.NODE, Action.DELETE)


class EventRouter:
    """Pods with a node are load, whoever put them there; pods without are work, if they are ours."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        pods: dict[str, Pod],
        waiting: WaitingPods,
        is_ours: Callable[[str], bool],
    ) -> None:
        self._state = state
        self._queue = queue
        self._pods = pods
        self._waiting = waiting
        self._is_ours = is_ours

    def added(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                self._pods[obj.key] = obj
                if obj.spec.node_name:
                    self._assigned(obj)
                elif self._is_ours(obj.spec.scheduler_name):
                    self._queue.add(obj)
            case Node():
                self._state.apply(obj)
                self._queue.happened(NODE_ADDED, None, obj)
            case _:
                self._state.apply(obj)
                self._other(obj, Action.ADD, None, obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if old.metadata.uid != new.metadata.uid and isinstance(new, Pod):
            # A watch that was interrupted tells of a deletion and a creation as if they were one change.
            self.deleted(old)
            self.added(new)
            return
        match old, new:
            case Pod(), Pod():
                self._pods[new.key] = new
                self._pod_updated(old, new)
            case Node(), Node():
                self._state.apply(new)
                for event in node_changes(old, new, self._state.features):
                    self._queue.happened(event, old, new)
            case _:
                self._state.apply(new)
                self._other(new, Action.UPDATE, old, new)

    def deleted(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                if self._pods.get(obj.key) is not None:
                    del self._pods[obj.key]
                self._pod_deleted(obj)
            case Node():
                self._queue.happened(NODE_GONE, obj, None)
                self._state.delete(obj)
            case _:
                self._state.delete(obj)
                self._other(obj, Action.DELETE, obj, None)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name:
            self._state.apply(new)
            for event in pod_changes(old, new, self._state.features):
                self._queue.happened(event, old, new)
        elif new.spec.node_name:
            self._assigned(new)
            if self._is_ours(old.spec.scheduler_name):
                self._queue.delete(old)
        elif self._is_ours(old.spec.scheduler_name):
            self._pending_updated(old, new)

    def _pending_updated(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version and old.metadata.resource_version == new.metadata.resource_version:
            return
        if self._is_assumed(new):
            if new.is_terminating and not old.is_terminating:
                self._assumed_pod_gone(new)
            return
        self._queue.update(old, new)
        promised = old.status.nominated_node_name
        if promised and promised != new.status.nominated_node_name:
            self._promise_gone(old)

    def _pod_deleted(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._state.delete(pod)
            self._queue.happened(ASSIGNED_POD_GONE, pod, None)
        elif self._is_ours(pod.spec.scheduler_name):
            self._queue.delete(pod)
            if self._is_assumed(pod):
                self._assumed_pod_gone(pod)
            elif pod.status.nominated_node_name:
                self._promise_gone(pod)

    def _assigned(self, pod: Pod) -> None:
        self._state.apply(pod)
        self._queue.happened(ASSIGNED_POD_ADDED, None, pod)

    def _assumed_pod_gone(self, pod: Pod) -> None:
        """A pod that is being bound is deleted: it will not arrive."""
        placed = self._state.placed(pod)
        assert placed is not None
        waiting = self._waiting.get(pod)
        if waiting is None or not waiting.reject("", "removed"):
            self._state.delete(pod)
        self._queue.happened(ASSIGNED_POD_GONE, placed.pod, None)

    def _promise_gone(self, pod: Pod) -> None:
        """A nominated pod counted as if it were there, for pods that do not go before it."""
        self._queue.happened(ASSIGNED_POD_GONE, pod, None, lambda waiting: waiting.priority <= pod.priority)

    def _is_assumed(self, pod: Pod) -> bool:
        placed = self._state.placed(pod)
        return placed is not None and placed.assumed

    def _other(self, obj: KubeObject, action: Action, old: KubeObject | None, new: KubeObject | None) -> None:
        kind = obj.resource if isinstance(obj, CustomObject) else _EVENT_KINDS.get(type(obj))
        if kind is not None:
            self._queue.happened(ClusterEvent(kind, action), old, new)
