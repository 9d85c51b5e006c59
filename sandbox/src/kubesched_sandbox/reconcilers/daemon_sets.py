"""DaemonSets: a pod on every node that will have it, placed by the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kubesched.api.kinds import DAEMON_SETS, NODES, PODS, Object
from kubesched.api.node import Node
from kubesched.controllers.pod_templates import Eligibility, daemon_pod, share_of, target_of
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import (
    available_at,
    is_active,
    is_available,
    is_finished,
    is_ready,
    is_terminating,
    next_available,
)
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Owned, PodControl, Revisions, hash_in, revision_of
from kubesched_sandbox.reconcilers.reconciler import Key, ObjectReconciler, key_of

_BATCH = 100
_REST_PER_NODE = 200e-6
"""Looking at every node takes a while, so changes are gathered: seconds per node."""

Eligible = Mapping[str, tuple[bool, bool]]
"""Per node whether it should have a pod, and whether one that is there may stay."""


class DaemonSets(ObjectReconciler):
    """Keeps a pod of every DaemonSet on every node that fits."""

    def __init__(self, api: Api, pods: Owned, revisions: Owned) -> None:
        super().__init__(api, DAEMON_SETS, PODS, NODES)
        self._pods = pods
        self._revisions = Revisions(api, DAEMON_SETS, revisions)
        self._recorder = Recorder(api, "daemonset-controller")
        self._control = PodControl(api, DAEMON_SETS, self._recorder)

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path != NODES.path:
            super().observe(event)
        elif event.old is None or event.type == "DELETED" or _face(event.old) != _face(event.object):
            for daemon_set in self.api.select(DAEMON_SETS):
                self.queue.add(key_of(daemon_set))

    def sync_object(self, daemon_set: Object, now: float) -> float | None:
        key = key_of(daemon_set)
        self._pods.claim(DAEMON_SETS, daemon_set, daemon_set["spec"]["selector"])
        revision_hash = hash_in(self._revisions.current(daemon_set))
        eligible = Eligibility(daemon_set)
        nodes = {node["metadata"]["name"]: eligible.of(_record(node)) for node in self.api.select(NODES)}
        self.queue.rest(key, now, _REST_PER_NODE * len(nodes))
        if not is_terminating(daemon_set):
            self._place(daemon_set, nodes, revision_hash)
            self._update(daemon_set, nodes, revision_hash, now)
        return self._report(key, nodes, revision_hash, now)

    def _by_node(self, daemon_set: Object) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for pod in self._pods.owned_by(daemon_set):
            if (target := target_of(pod)) is not None:
                found.setdefault(target, []).append(pod)
        return found

    def _place(self, daemon_set: Object, nodes: Eligible, revision_hash: str) -> None:
        """Create pods where there should be one, and delete those that should not be."""
        there = self._by_node(daemon_set)
        surges = _max_surge(daemon_set, len(nodes)) > 0
        missing = []
        for name, (should_run, may_stay) in nodes.items():
            pods = there.pop(name, [])
            alive = self._without_ended(daemon_set, pods)
            if should_run and not alive:
                missing.append(name)
            elif not may_stay:
                self._delete(daemon_set, alive)
            elif not surges:
                self._delete(daemon_set, sorted(filter(is_active, alive), key=_age)[1:])
        for pods in there.values():
            self._delete(daemon_set, pods)
        for name in missing[:_BATCH]:
            if self._control.create(daemon_set, daemon_pod(daemon_set, name, revision_hash)) is None:
                return
        if len(missing) > _BATCH:
            self.queue.add(key_of(daemon_set))

    def _delete(self, daemon_set: Object, pods: Iterable[Object]) -> None:
        for pod in pods:
            if not is_terminating(pod):
                self._control.delete(daemon_set, pod)

    def _without_ended(self, daemon_set: Object, pods: list[Object]) -> list[Object]:
        """The pods that have not ended; the others are deleted, to be replaced."""
        for pod in pods:
            if is_finished(pod) and not is_terminating(pod):
                if pod["status"]["phase"] == "Failed":
                    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                    message = f"Found failed daemon pod {name} on node {target_of(pod)}, will try to kill it"
                    self._recorder.warning(DAEMON_SETS, daemon_set, "FailedDaemonPod", message)
                self._control.delete(daemon_set, pod)
        return [pod for pod in pods if not is_finished(pod)]

    # -- rolling updates ----------------------------------------------------------------------------------------------

    def _update(self, daemon_set: Object, nodes: Eligible, revision_hash: str, now: float) -> None:
        """Replace pods of an older template: old before new, or with a surge new before old."""
        strategy = daemon_set["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        there, patience = self._by_node(daemon_set), daemon_set["spec"].get("minReadySeconds") or 0
        wanted = [name for name, (should_run, _) in nodes.items() if should_run]
        updates = [_NodeUpdate.of(name, there.get(name, ()), revision_hash, patience, now) for name in wanted]
        if surge := _max_surge(daemon_set, len(wanted)):
            self._update_with_surge(daemon_set, updates, surge, revision_hash)
        else:
            rolling = strategy.get("rollingUpdate") or {}
            allowed = share_of(rolling.get("maxUnavailable"), len(wanted), round_up=True)
            self._update_in_place(daemon_set, updates, allowed)

    def _update_with_surge(
        self, daemon_set: Object, updates: list[_NodeUpdate], allowed: int, revision_hash: str
    ) -> None:
        surging = sum(bool(update.new and update.old) for update in updates)
        for update in updates:
            if update.old and update.new:
                if update.new_is_available:
                    self._control.delete(daemon_set, update.old[0])
            elif update.old and surging < allowed:
                surging += 1
                self._control.create(daemon_set, daemon_pod(daemon_set, update.node, revision_hash))

    def _update_in_place(self, daemon_set: Object, updates: list[_NodeUpdate], allowed: int) -> None:
        unavailable = sum(not update.is_available for update in updates)
        for update in updates:
            if update.old and (unavailable < allowed or not update.old_is_available):
                unavailable += update.old_is_available
                self._control.delete(daemon_set, update.old[0])

    def _report(self, key: Key, nodes: Eligible, revision_hash: str, now: float) -> float | None:
        daemon_set = self.api.find(DAEMON_SETS, *key)
        if daemon_set is None:
            return None
        patience = daemon_set["spec"].get("minReadySeconds") or 0
        there = {name: [p for p in pods if is_active(p)] for name, pods in self._by_node(daemon_set).items()}
        wanted = [name for name, (should_run, _) in nodes.items() if should_run]
        serving = [pods for name in wanted if (pods := there.get(name))]
        available = sum(any(is_available(p, patience, now) for p in pods) for pods in serving)
        status = {
            "currentNumberScheduled": len(serving),
            "numberMisscheduled": sum(bool(pods) for name, pods in there.items() if name not in set(wanted)),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(any(map(is_ready, pods)) for pods in serving),
            "updatedNumberScheduled": sum(any(revision_of(p) == revision_hash for p in pods) for pods in serving),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
            "observedGeneration": daemon_set["metadata"]["generation"],
        }
        always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        self.write_counts(DAEMON_SETS, daemon_set, status, always=always)
        in_use = {f"{key[1]}-{revision_of(pod)}" for pod in self._pods.owned_by(daemon_set)}
        self._revisions.forget(daemon_set, {*in_use, f"{key[1]}-{revision_hash}"})
        return next_available((available_at(pod, patience) for pods in serving for pod in pods), now)


class _NodeUpdate(NamedTuple):
    """The active pods of one node in an update."""

    node: str
    old: list[Object]
    new: list[Object]
    old_is_available: bool
    """Whether the first of the old ones is, which is the one to go next."""
    new_is_available: bool
    is_available: bool
    """Whether any of them is."""

    @classmethod
    def of(cls, node: str, pods: Iterable[Object], revision_hash: str, patience: int, now: float) -> _NodeUpdate:
        active = [pod for pod in pods if is_active(pod)]
        old = [pod for pod in active if revision_of(pod) != revision_hash]
        new = [pod for pod in active if revision_of(pod) == revision_hash]
        return cls(
            node,
            old,
            new,
            bool(old) and is_available(old[0], patience, now),
            any(is_available(pod, patience, now) for pod in new),
            any(is_available(pod, patience, now) for pod in active),
        )


def _max_surge(daemon_set: Object, nodes: int) -> int:
    rolling = daemon_set["spec"]["updateStrategy"].get("rollingUpdate") or {}
    return share_of(rolling.get("maxSurge"), nodes, round_up=True)


def _age(pod: Object) -> tuple[bool, str]:
    return not pod["spec"].get("nodeName"), pod["metadata"]["creationTimestamp"]


def _record(node: Object) -> Node:
    """Only what eligibility depends on is read: there may be thousands of nodes."""
    metadata = {key: node["metadata"].get(key) for key in ("name", "labels") if node["metadata"].get(key)}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"taints": (node.get("spec") or {}).get("taints") or ()}}, Node
    )


def _face(node: Object) -> tuple[object, Sequence[Object]]:
    """What of a node decides whether it gets a pod."""
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints") or ()
