"""The pods on hollow nodes: taken or refused, started, finished, and ended when they are deleted."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice

import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, Object
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import is_finished, is_ready, is_terminating
from kubesched_sandbox.api.stamps import seconds_of
from kubesched_sandbox.nodes import pod_status
from kubesched_sandbox.nodes.accounts import NodeAccount
from kubesched_sandbox.nodes.manifests import DURATION, STARTUP, exit_code_of, seconds_in
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.reconciler import Key, Timers, key_of

_SLICE = 20


class PodTimings(msgspec.Struct, frozen=True):
    """How long things take, in seconds: each a range to draw from."""

    startup: tuple[float, float] = (0.5, 2.5)
    stop: tuple[float, float] = (0.2, 1.0)
    resize: tuple[float, float] = (0.2, 1.0)
    job: tuple[float, float] = (3.0, 10.0)
    """How long pods of Jobs run that do not say."""


class HollowPods:
    """Runs the pods of many nodes. What happens next to a pod is always read from the pod itself."""

    def __init__(self, api: Api, rng: random.Random, timings: PodTimings, *, events: bool) -> None:
        self._api, self._rng, self._timings = api, rng, timings
        self._recorder = Recorder(api, "kubelet") if events else None
        self._hosts: dict[str, NodeAccount] = {}
        self._on_node: dict[str, dict[str, Key]] = {}
        self._paused: set[str] = set()
        self._deferred: dict[str, dict[str, Key]] = {}
        """Pods by node that wait to be resized, until another one there gives something back."""
        self._dirty: dict[tuple[Key, str], None] = {}
        self._timers: Timers[tuple[str, Key, str]] = Timers()

    # -- nodes --------------------------------------------------------------------------------------------------------

    def observe_node(self, node: Object) -> None:
        host = self._hosts.setdefault(node["metadata"]["name"], NodeAccount())
        status = node.get("status") or {}
        host.node = node
        addresses = status.get("addresses") or ()
        host.address = next((address["address"] for address in addresses if address["type"] == "InternalIP"), "")
        host.network = str((node.get("spec") or {}).get("podCIDR", "10.0.0.0/24")).rpartition(".")[0]
        self._retry_deferred(node["metadata"]["name"])

    def forget_node(self, name: str) -> None:
        self._hosts.pop(name, None)
        self._deferred.pop(name, None)
        self._paused.discard(name)

    def pause(self, node: str) -> None:
        self._paused.add(node)

    def resume(self, node: str) -> None:
        self._paused.discard(node)
        for uid, key in self._on_node.get(node, {}).items():
            self._dirty[(key, uid)] = None

    # -- the work -----------------------------------------------------------------------------------------------------

    def observe(self, event: ApiEvent) -> None:
        (key, uid), node = _identity(event.object), event.object["spec"]["nodeName"]
        if event.type == "DELETED":
            there = self._on_node.get(node, {})
            there.pop(uid, None)
            if not there:
                self._on_node.pop(node, None)
            self._dirty.pop((key, uid), None)
            self._deferred.get(node, {}).pop(uid, None)
            for kind in ("start", "finish", "resize", "stop"):
                self._timers.cancel((kind, key, uid))
            self._free(node, uid)
            return
        self._on_node.setdefault(node, {})[uid] = key
        self._dirty[(key, uid)] = None

    def reconcile(self, now: float) -> float | None:
        for entry in list(islice(self._dirty, _SLICE)):
            del self._dirty[entry]
            pod = self._find(*entry)
            if pod is not None:
                self._look(pod, now)
        steps: dict[str, Callable[[Object, float], None]] = {
            "start": self._start,
            "finish": self._finish,
            "resize": self._finish_resize,
            "stop": self._stop,
        }
        for kind, key, uid in self._timers.due(now, most=_SLICE):
            pod = self._find(key, uid)
            if pod is not None and pod["spec"]["nodeName"] not in self._paused:
                steps[kind](pod, now)
        return now if self._dirty else self._timers.next

    def _find(self, key: Key, uid: str) -> Object | None:
        pod = self._api.find(PODS, *key)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    def _look(self, pod: Object, now: float) -> None:
        """Decide what is next for a pod, and when."""
        node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
        host = self._hosts.get(node)
        if host is None or node in self._paused:
            return
        if is_finished(pod):
            self._free(node, uid)
        elif not is_terminating(pod) and not (pod.get("status") or {}).get("startTime"):
            self._admit(pod, host, now)
            return
        if is_terminating(pod):
            self._plan_stop(pod, now)
            return
        if is_finished(pod):
            return
        if uid not in host:
            host.take(pod_status.as_allocated(pod))
        if pod["status"]["phase"] == "Pending":
            if ("start", *_identity(pod)) not in self._timers:
                self._timers.at(now + self._startup(pod), ("start", *_identity(pod)))
        else:
            self._keep_running(self._resize(pod, host, now))

    def _admit(self, pod: Object, host: NodeAccount, now: float) -> None:
        refusal = host.refusal(pod)
        if refusal is not None:
            self._write(pod, pod_status.rejected(pod, *refusal, self._api.stamps.now()))
            self._record_warning(pod, *refusal)
            return
        host.take(pod)
        self._timers.at(now + self._startup(pod), ("start", *_identity(pod)))
        self._write(pod, pod_status.creating(pod, host.address, self._api.stamps.now()))

    def _startup(self, pod: Object) -> float:
        own = seconds_in(pod, STARTUP)
        return self._rng.uniform(*self._timings.startup) if own is None else own

    def _start(self, pod: Object, now: float) -> None:
        if is_terminating(pod) or is_finished(pod) or pod["status"]["phase"] == "Running":
            return
        host = self._hosts.get(pod["spec"]["nodeName"])
        if host is None:  # the node went while the pod was starting; the pod will be collected
            return
        address = host.address if pod["spec"].get("hostNetwork") else host.address_for(pod["metadata"]["uid"])
        host.take(pod)
        self._record_starts(pod, pod["spec"]["containers"])
        self._plan_finish(pod, now)
        self._write(pod, pod_status.running(pod, address, self._api.stamps.now()))

    def _keep_running(self, pod: Object) -> None:
        """Continue a pod that was running before this process was restarted, or before its node failed."""
        pod = self._debug(pod)
        if not is_ready(pod) and not pod["spec"].get("readinessGates"):
            self._write(pod, pod_status.ready_again(pod, self._api.stamps.now()))
        states = [(status.get("state") or {}).get("running") for status in pod["status"].get("containerStatuses") or ()]
        started = next((state["startedAt"] for state in states if state), pod["status"]["startTime"])
        self._plan_finish(pod, seconds_of(started))

    def _debug(self, pod: Object) -> Object:
        """Start ephemeral containers that were added to a pod that runs."""
        known = {status["name"] for status in pod["status"].get("ephemeralContainerStatuses") or ()}
        new = [
            container for container in pod["spec"].get("ephemeralContainers") or () if container["name"] not in known
        ]
        if not new:
            return pod
        self._record_starts(pod, new)
        return self._write(pod, pod_status.debugged(pod, new, self._api.stamps.now()))

    def _resize(self, pod: Object, host: NodeAccount, now: float) -> Object:
        """Give a pod that runs the resources that it asks for now, if its node has them."""
        if not pod_status.is_resized(pod):
            return pod
        node, stamp = pod["spec"]["nodeName"], self._api.stamps.now()
        if (shortage := host.shortage(pod)) is not None:
            reason = "Infeasible" if shortage.requested > shortage.capacity else "Deferred"
            self._deferred.setdefault(node, {})[pod["metadata"]["uid"]] = key_of(pod)
            status = pod_status.resize_pending(pod, reason, shortage.message, stamp)
        else:
            host.take(pod)
            self._retry_deferred(node)
            if ("resize", *_identity(pod)) not in self._timers:
                self._timers.at(now + self._rng.uniform(*self._timings.resize), ("resize", *_identity(pod)))
            status = pod_status.resizing(pod, stamp)
        return pod if status == pod["status"] else self._write(pod, status)

    def _finish_resize(self, pod: Object, now: float) -> None:
        if not is_finished(pod):
            self._write(pod, pod_status.resized(pod, self._api.stamps.now()))

    def _retry_deferred(self, node: str) -> None:
        for uid, key in self._deferred.pop(node, {}).items():
            self._dirty[(key, uid)] = None

    def _plan_finish(self, pod: Object, started: float) -> None:
        if ("finish", *_identity(pod)) in self._timers:
            return
        duration = seconds_in(pod, DURATION)
        if duration is None and _is_of_job(pod):
            duration = self._rng.uniform(*self._timings.job)
        if duration is not None:
            self._timers.at(started + duration, ("finish", *_identity(pod)))

    def _finish(self, pod: Object, now: float) -> None:
        if is_terminating(pod) or is_finished(pod):
            return
        code, stamp = exit_code_of(pod), self._api.stamps.now()
        if code != 0 and pod["spec"].get("restartPolicy") == "OnFailure":
            restarts = max(status.get("restartCount", 0) for status in pod["status"]["containerStatuses"]) + 1
            self._plan_finish(pod, now)
            self._write(pod, pod_status.running(pod, pod["status"]["podIP"], stamp, restarts=restarts))
            return
        self._write(pod, pod_status.ended(pod, code, stamp))

    def _plan_stop(self, pod: Object, now: float) -> None:
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        identity = ("stop", *_identity(pod))
        if grace == 0:
            return  # the server keeps it for its finalizers only
        if not is_finished(pod):
            for container in pod["spec"]["containers"]:
                self._record(pod, "Killing", f"Stopping container {container['name']}")
        latest = max(now, seconds_of(pod["metadata"]["deletionTimestamp"]))
        self._timers.at(min(latest, now + self._rng.uniform(*self._timings.stop)), identity)

    def _stop(self, pod: Object, now: float) -> None:
        if pod["metadata"].get("finalizers") and not is_finished(pod):
            # Its finalizers are there to see how it ended.
            self._write(pod, pod_status.ended(pod, 143, self._api.stamps.now()))
        try:
            self._api.delete(PODS, *key_of(pod), grace=0, uid=pod["metadata"]["uid"])
        except ApiError as error:
            if error.code != 404:
                raise

    def _free(self, node: str, uid: str) -> None:
        host = self._hosts.get(node)
        if host is not None:
            host.give_back(uid)
            self._retry_deferred(node)

    def _write(self, pod: Object, status: Object) -> Object:
        changed = {**pod, "status": status}
        return self._api.update(PODS, *key_of(pod), changed, subresource="status", manager="kubelet")

    def _record_starts(self, pod: Object, containers: list[Object]) -> None:
        for container in containers:
            name, image = container["name"], container.get("image", "")
            self._record(pod, "Pulled", f'Container image "{image}" already present on machine')
            self._record(pod, "Created", f"Created container: {name}")
            self._record(pod, "Started", f"Started container {name}")

    def _record(self, pod: Object, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.normal(PODS, pod, reason, message, host=pod["spec"]["nodeName"])

    def _record_warning(self, pod: Object, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.warning(PODS, pod, reason, message, host=pod["spec"]["nodeName"])


def _identity(pod: Object) -> tuple[Key, str]:
    return key_of(pod), pod["metadata"]["uid"]


def _is_of_job(pod: Object) -> bool:
    return any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences") or ())
