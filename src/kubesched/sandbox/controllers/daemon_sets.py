"""DaemonSets: a pod on every node that will have it, placed by the scheduler."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubesched.api.kinds import DAEMON_SETS, NODES, PODS, Object
from kubesched.api.node import Taint
from kubesched.api.pod import Toleration
from kubesched.api.tolerations import has_untolerated
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.controllers.conditions import available_at, is_active, is_finished, is_going, is_ready
from kubesched.sandbox.controllers.controller import KeyedController, key_of
from kubesched.sandbox.controllers.node_choice import NodeChoice
from kubesched.sandbox.controllers.ownership import Owned, owner_key
from kubesched.sandbox.controllers.pod_control import PodControl, pod_from
from kubesched.sandbox.controllers.recorder import Recorder
from kubesched.sandbox.controllers.revisions import HASH, Revisions, hash_in
from kubesched.sandbox.controllers.templates import share_of
from kubesched.sandbox.controllers.work_queue import Key

_BATCH = 100
_REST_PER_NODE = 200e-6
"""Looking at every node takes a while, so changes are gathered: seconds per node."""
_EVERYWHERE = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_NAME_FIELD = "metadata.name"


class DaemonSets(KeyedController):
    """Keeps a pod of every DaemonSet on every node that fits."""

    def __init__(self, api: Api, pods: Owned, revisions: Owned) -> None:
        super().__init__(api)
        self.watches = (DAEMON_SETS, PODS, NODES)
        self._pods = pods
        self._revisions = Revisions(api, DAEMON_SETS, revisions)
        self._recorder = Recorder(api, "daemonset-controller")
        self._control = PodControl(api, DAEMON_SETS, self._recorder)

    def observe(self, event: Event) -> None:
        if event.resource.path == DAEMON_SETS.path:
            self.queue.add(key_of(event.object))
        elif event.resource.path == PODS.path:
            if (key := owner_key(event.object, DAEMON_SETS)) is not None:
                self.queue.add(key)
        elif event.old is None or event.type == "DELETED" or _face(event.old) != _face(event.object):
            for daemon_set in self.api.select(DAEMON_SETS):
                self.queue.add(key_of(daemon_set))

    def sync(self, key: Key, now: float) -> float | None:
        daemon_set = self.api.find(DAEMON_SETS, *key)
        if daemon_set is None:
            return None
        self._pods.claim(DAEMON_SETS, daemon_set, daemon_set["spec"]["selector"])
        mark = hash_in(self._revisions.current(daemon_set))
        eligible = Eligibility(daemon_set)
        nodes = {node["metadata"]["name"]: eligible.of(node) for node in self.api.select(NODES)}
        self.queue.rest(key, now, _REST_PER_NODE * len(nodes))
        if not is_going(daemon_set):
            self._place(daemon_set, nodes, mark)
            self._update(daemon_set, nodes, mark, now)
        return self._report(key, nodes, mark, now)

    def _by_node(self, daemon_set: Object) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for pod in self._pods.of(daemon_set):
            if (target := target_of(pod)) is not None:
                found.setdefault(target, []).append(pod)
        return found

    def _place(self, daemon_set: Object, nodes: dict[str, tuple[bool, bool]], mark: str) -> None:
        """Create pods where there should be one, and delete those that should not be."""
        there = self._by_node(daemon_set)
        changes = 0
        for name, (should_run, may_stay) in nodes.items():
            pods = there.get(name, [])
            for pod in pods:
                if is_finished(pod) and not is_going(pod):
                    self._replace_ended(daemon_set, pod)
            alive = [pod for pod in pods if not is_finished(pod)]
            if should_run and not alive:
                if changes == _BATCH:
                    self.queue.add(key_of(daemon_set))
                    return
                changes += 1
                if self._control.create(daemon_set, daemon_pod(daemon_set, name, mark)) is None:
                    return
            elif not may_stay:
                for pod in alive:
                    if not is_going(pod):
                        self._control.delete(daemon_set, pod)
            elif len([pod for pod in alive if not is_going(pod)]) > 1 and not _surge(daemon_set, len(nodes)):
                for pod in sorted(filter(is_active, alive), key=_age)[1:]:
                    self._control.delete(daemon_set, pod)
        for name in there.keys() - nodes.keys():
            for pod in there[name]:
                if not is_going(pod):
                    self._control.delete(daemon_set, pod)

    def _replace_ended(self, daemon_set: Object, pod: Object) -> None:
        if pod["status"]["phase"] == "Failed":
            name, node = pod["metadata"]["name"], target_of(pod)
            told = f"Found failed daemon pod {pod['metadata']['namespace']}/{name} on node {node}, will try to kill it"
            self._recorder.warning(DAEMON_SETS, daemon_set, "FailedDaemonPod", told)
        self._control.delete(daemon_set, pod)

    def _update(self, daemon_set: Object, nodes: dict[str, tuple[bool, bool]], mark: str, now: float) -> None:
        """Replace pods of an older template: old before new, or with a surge new before old."""
        if daemon_set["spec"]["updateStrategy"]["type"] != "RollingUpdate":
            return
        wanted = [name for name, (should_run, _) in nodes.items() if should_run]
        there, patience = self._by_node(daemon_set), daemon_set["spec"].get("minReadySeconds") or 0
        surge = _surge(daemon_set, len(wanted))
        rolling = daemon_set["spec"]["updateStrategy"].get("rollingUpdate") or {}
        allowed = surge or share_of(rolling.get("maxUnavailable"), len(wanted), round_up=True)
        pods = {name: [pod for pod in there.get(name, ()) if is_active(pod)] for name in wanted}
        if surge:
            busy = sum(any(_mark_of(p) == mark for p in each) and len(each) > 1 for each in pods.values())
        else:
            busy = sum(not any(_is_available(p, patience, now) for p in each) for each in pods.values())
        for name in wanted:
            new = [pod for pod in pods[name] if _mark_of(pod) == mark]
            old = [pod for pod in pods[name] if _mark_of(pod) != mark]
            if not old:
                continue
            if surge and new:
                if any(_is_available(pod, patience, now) for pod in new):
                    self._control.delete(daemon_set, old[0])
            elif surge and busy < allowed:
                busy += 1
                self._control.create(daemon_set, daemon_pod(daemon_set, name, mark))
            elif not surge and (busy < allowed or not _is_available(old[0], patience, now)):
                busy += _is_available(old[0], patience, now)
                self._control.delete(daemon_set, old[0])

    def _report(self, key: Key, nodes: dict[str, tuple[bool, bool]], mark: str, now: float) -> float | None:
        daemon_set = self.api.find(DAEMON_SETS, *key)
        if daemon_set is None:
            return None
        patience = daemon_set["spec"].get("minReadySeconds") or 0
        there = {name: [p for p in pods if is_active(p)] for name, pods in self._by_node(daemon_set).items()}
        wanted = [name for name, (should_run, _) in nodes.items() if should_run]
        serving = [pods for name in wanted if (pods := there.get(name))]
        available = sum(any(_is_available(p, patience, now) for p in pods) for pods in serving)
        status = {
            "currentNumberScheduled": len(serving),
            "numberMisscheduled": sum(bool(pods) for name, pods in there.items() if name not in set(wanted)),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(any(map(is_ready, pods)) for pods in serving),
            "updatedNumberScheduled": sum(any(_mark_of(p) == mark for p in pods) for pods in serving),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
            "observedGeneration": daemon_set["metadata"]["generation"],
        }
        always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        self.write_status(DAEMON_SETS, daemon_set, {k: v for k, v in status.items() if v or k in always})
        in_use = {f"{key[1]}-{_mark_of(pod)}" for pod in self._pods.of(daemon_set)}
        self._revisions.forget(daemon_set, {*in_use, f"{key[1]}-{mark}"})
        times = [available_at(pod, patience) for pods in serving for pod in pods]
        return min((time for time in times if time is not None and time > now), default=None)


class Eligibility:
    """Which nodes a DaemonSet wants a pod on, and on which one may stay that is there."""

    def __init__(self, daemon_set: Object) -> None:
        spec = daemon_set["spec"]["template"]["spec"]
        self._choice = NodeChoice(spec)
        self._tolerations = msgspec.convert(_tolerations(spec), tuple[Toleration, ...])

    def of(self, node: Object) -> tuple[bool, bool]:
        if not self._choice.allows(node):
            return False, False
        taints = msgspec.convert((node.get("spec") or {}).get("taints") or [], list[Taint])
        lasting = [taint for taint in taints if taint.effect == "NoExecute"]
        should_run = not has_untolerated(taints, self._tolerations)
        return should_run, not has_untolerated(lasting, self._tolerations)


def _tolerations(spec: Object) -> list[Object]:
    given: list[Object] = list(spec.get("tolerations") or [])
    everywhere = [*_EVERYWHERE, *([_ON_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    own = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in everywhere]
    return [*given, *(each for each in own if each not in given)]


def daemon_pod(daemon_set: Object, node: str, mark: str) -> Object:
    """The pod for one node: only that node will do."""
    pod = pod_from(daemon_set["spec"]["template"], prefix=daemon_set["metadata"]["name"])
    generation = {"pod-template-generation": str(daemon_set["metadata"]["generation"])}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), HASH: mark, **generation}
    spec = pod["spec"]
    spec["tolerations"] = _tolerations(spec)
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    fields = [{"key": _NAME_FIELD, "operator": "In", "values": [node]}]
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [{**term, "matchFields": fields} for term in required.get("nodeSelectorTerms") or ()]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": terms or [{"matchFields": fields}]
    }
    spec["affinity"] = {**affinity, "nodeAffinity": node_affinity}
    return pod


def target_of(pod: Object) -> str | None:
    """The node that a daemon pod is on or meant for."""
    if node := pod["spec"].get("nodeName"):
        return str(node)
    node_affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == _NAME_FIELD and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return None


def _surge(daemon_set: Object, nodes: int) -> int:
    rolling = daemon_set["spec"]["updateStrategy"].get("rollingUpdate") or {}
    return share_of(rolling.get("maxSurge"), nodes, round_up=True)


def _is_available(pod: Object, patience: int, now: float) -> bool:
    since = available_at(pod, patience)
    return since is not None and since <= now


def _mark_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH, ""))


def _age(pod: Object) -> tuple[bool, str]:
    return not pod["spec"].get("nodeName"), pod["metadata"]["creationTimestamp"]


def _face(node: Object) -> tuple[object, Sequence[Object]]:
    """What of a node decides whether it gets a pod."""
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints") or ()
