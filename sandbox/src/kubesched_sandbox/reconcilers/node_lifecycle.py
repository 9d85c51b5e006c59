"""The node lifecycle controller: expired leases, the taints that follow, and evictions by NoExecute taints."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.api.kinds import LEASES, NODES, PODS, Object
from kubesched.api.node import Taint
from kubesched.api.pod import Toleration
from kubesched.api.tolerations import tolerates
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import (
    condition,
    condition_of,
    is_active,
    is_finished,
    is_ready,
    is_true,
    with_condition,
)
from kubesched_sandbox.api.stamps import seconds_of
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Grouped
from kubesched_sandbox.reconcilers.reconciler import MANAGER, Key, KeyedReconciler, ObjectReconciler, key_of

LEASE_NAMESPACE = "kube-node-lease"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_OURS = frozenset((NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()))
GRACE = 50.0
"""Seconds without a sign of life after which a node counts as lost."""


class NodeLifecycle(ObjectReconciler):
    """Marks nodes that went silent, and keeps the taints of all nodes in step with their conditions."""

    def __init__(self, api: Api, pods_by_node: Grouped, *, grace: float = GRACE) -> None:
        super().__init__(api, NODES, LEASES)
        self._grace = grace
        self._pods = pods_by_node
        self._recorder = Recorder(api, "node-controller")
        self._valid_until: dict[str, float] = {}

    def observe(self, event: ApiEvent) -> None:
        metadata = event.object["metadata"]
        if event.resource.path == NODES.path:
            if event.type == "DELETED":
                self._valid_until.pop(metadata["name"], None)
            self.queue.add(("", metadata["name"]))
        elif metadata["namespace"] == LEASE_NAMESPACE and event.type != "DELETED":
            first = metadata["name"] not in self._valid_until
            self._valid_until[metadata["name"]] = _valid_until(event.object, self._grace)
            if first:
                self.queue.add(("", metadata["name"]))

    def sync_object(self, node: Object, now: float) -> float | None:
        key = key_of(node)
        # A node without a lease has until its grace has passed since it came.
        created = seconds_of(node["metadata"]["creationTimestamp"]) + self._grace
        until = self._valid_until.get(key[1], created)
        if until <= now:
            node = self._lose(node)
        self._taint(node)
        self._mark_pods(node)
        return until if until > now else None

    def _lose(self, node: Object) -> Object:
        """Set the conditions of a node with an expired lease to Unknown."""
        stamp, status = self.api.stamps.now(), node.get("status") or {}
        conditions = status.get("conditions") or []
        for kind in _KUBELET_CONDITIONS:
            known = condition_of(node, kind)
            if known is not None and known.get("status") == "Unknown":
                continue
            cause = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
            if known is None:
                cause = {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
            heartbeat = (known or {}).get("lastHeartbeatTime", node["metadata"]["creationTimestamp"])
            unknown = {"type": kind, "status": "Unknown", **cause, "lastHeartbeatTime": heartbeat}
            conditions = with_condition(conditions, unknown, stamp)
        conditions = [{k: v for k, v in condition.items() if k != "lastProbeTime"} for condition in conditions]
        if conditions != status.get("conditions"):
            name = node["metadata"]["name"]
            self._recorder.normal(NODES, node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        return self.write_status(NODES, node, {**status, "conditions": conditions})

    def _taint(self, node: Object) -> None:
        spec = node.get("spec") or {}
        present = spec.get("taints") or []
        wanted = set(_wanted_taints(node))
        kept = [taint for taint in present if taint["key"] not in _OURS or (taint["key"], taint["effect"]) in wanted]
        there = {(taint["key"], taint["effect"]) for taint in kept}
        added = []
        for key, effect in sorted(wanted - there):
            taint = {"key": key, "effect": effect}
            if effect == "NoExecute" or key == UNSCHEDULABLE:
                taint["timeAdded"] = self.api.stamps.now()
            added.append(taint)
        if kept == present and not added:
            return
        changed = {key: value for key, value in spec.items() if key != "taints"}
        if kept or added:
            changed["taints"] = [*kept, *added]
        self.api.update(NODES, "", node["metadata"]["name"], {**node, "spec": changed}, manager=MANAGER)

    def _mark_pods(self, node: Object) -> None:
        """The pods of a node that is not ready are not ready either."""
        ready = condition_of(node, "Ready")
        if ready is None or ready["status"] == "True":
            return
        for pod in self._pods.of(node["metadata"]["name"]):
            if not is_ready(pod) or is_finished(pod):
                continue
            self.write_condition(PODS, pod, {"type": "Ready", "status": "False", "reason": "NodeNotReady"})
            self._recorder.warning(PODS, pod, "NodeNotReady", "Node is not ready")


def _valid_until(lease: Object, grace: float) -> float:
    """Until when a lease is a sign of life. A lease with a longer duration than usual counts for that long."""
    spec = lease.get("spec") or {}
    renewed = seconds_of(spec.get("renewTime") or lease["metadata"]["creationTimestamp"])
    return float(renewed + max(grace, spec.get("leaseDurationSeconds") or 0))


def _wanted_taints(node: Object) -> Iterable[tuple[str, str]]:
    if (node.get("spec") or {}).get("unschedulable"):
        yield UNSCHEDULABLE, "NoSchedule"
    ready = condition_of(node, "Ready")
    state = "False" if ready is None else ready["status"]
    if state != "True":
        key = UNREACHABLE if state == "Unknown" else NOT_READY
        yield key, "NoSchedule"
        yield key, "NoExecute"
    for kind, key in _PRESSURES.items():
        if is_true(node, kind):
            yield key, "NoSchedule"


class TaintEviction(KeyedReconciler):
    """Deletes pods when their time on a tainted node is over."""

    def __init__(self, api: Api, pods_by_node: Grouped) -> None:
        super().__init__(api)
        self.watches = (NODES, PODS)
        self._pods = pods_by_node
        self._tainted: dict[str, float | None] = {}
        """Nodes with such taints, and when that was first looked at."""
        self._recorder = Recorder(api, "taint-eviction-controller")

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == PODS.path:
            if event.object["spec"].get("nodeName") in self._tainted:
                self.queue.add(key_of(event.object))
            return
        name = event.object["metadata"]["name"]
        tainted = event.type != "DELETED" and bool(_lasting(event.object))
        if not tainted and name not in self._tainted:
            return
        if tainted:
            self._tainted.setdefault(name, None)
        else:
            del self._tainted[name]
        for pod in self._pods.of(name):
            self.queue.add(key_of(pod))

    def sync(self, key: Key, now: float) -> float | None:
        pod = self.api.find(PODS, *key)
        if pod is None or not is_active(pod):
            return None
        name = pod["spec"].get("nodeName", "")
        node = self.api.find(NODES, "", name)
        if node is None or name not in self._tainted:
            return None
        since = self._tainted[name]
        if since is None:
            since = self._tainted[name] = now
        until = leaves_at(pod, node, since)
        if until is None or until > now:
            return until
        self._evict(pod)
        return None

    def _evict(self, pod: Object) -> None:
        namespace, name = key_of(pod)
        message = "Taint manager: deleting due to NoExecute taint"
        leaving = condition("DisruptionTarget", "True", "DeletionByTaintManager", message)
        pod = self.write_condition(PODS, pod, leaving)
        self._recorder.normal(PODS, pod, "TaintManagerEviction", f"Marking for deletion Pod {namespace}/{name}")
        self.api.delete(PODS, namespace, name, uid=pod["metadata"]["uid"])


def leaves_at(pod: Object, node: Object, since: float) -> float | None:
    """When a pod has to leave its node: at `since` or later, or (None) never. `since` is for taints without a time."""
    given = pod["spec"].get("tolerations") or []
    tolerations = [
        (msgspec.convert(toleration, Toleration), toleration.get("tolerationSeconds")) for toleration in given
    ]
    until: float | None = None
    for taint in _lasting(node):
        read = msgspec.convert(taint, Taint)
        patience = [seconds for toleration, seconds in tolerations if tolerates(toleration, read)]
        if not patience:
            return since
        limits = [seconds for seconds in patience if seconds is not None]
        if limits:
            began = seconds_of(taint["timeAdded"]) if taint.get("timeAdded") else since
            leaves = max(began, _placed(pod)) + max(0, min(limits))
            until = leaves if until is None else min(until, leaves)
    return until


def _lasting(node: Object) -> list[Object]:
    return [taint for taint in (node.get("spec") or {}).get("taints") or () if taint["effect"] == "NoExecute"]


def _placed(pod: Object) -> float:
    return seconds_of((pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"])
