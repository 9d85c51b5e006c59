"""Pods leave nodes whose NoExecute taints they do not tolerate, or no longer after a while."""

from __future__ import annotations

import msgspec

from kubesched.api.kinds import NODES, PODS, Object
from kubesched.api.node import Taint
from kubesched.api.pod import Toleration
from kubesched.api.tolerations import tolerates
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.api.stamps import seconds_of
from kubesched.sandbox.controllers.conditions import is_active, with_condition
from kubesched.sandbox.controllers.controller import KeyedController, key_of
from kubesched.sandbox.controllers.ownership import Grouped
from kubesched.sandbox.controllers.recorder import Recorder
from kubesched.sandbox.controllers.work_queue import Key


class TaintEviction(KeyedController):
    """Deletes pods when their time on a tainted node is over."""

    def __init__(self, api: Api, pods_by_node: Grouped) -> None:
        super().__init__(api)
        self.watches = (NODES, PODS)
        self._pods = pods_by_node
        self._tainted: dict[str, float | None] = {}
        """Nodes with such taints, and when that was first looked at."""
        self._recorder = Recorder(api, "taint-eviction-controller")

    def observe(self, event: Event) -> None:
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
        told = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
        status = pod.get("status") or {}
        conditions = with_condition(status.get("conditions") or [], told, self.api.stamps.now())
        pod = self.write_status(PODS, pod, {**status, "conditions": conditions})
        self._recorder.normal(PODS, pod, "TaintManagerEviction", f"Marking for deletion Pod {namespace}/{name}")
        self.api.delete(PODS, namespace, name, uid=pod["metadata"]["uid"])


def leaves_at(pod: Object, node: Object, since: float) -> float | None:
    """When a pod has to leave its node: at `since` or later, or (None) never. `since` is for taints without a time."""
    given = pod["spec"].get("tolerations") or []
    tolerations = [(msgspec.convert(each, Toleration), each.get("tolerationSeconds")) for each in given]
    until: float | None = None
    for taint in _lasting(node):
        read = msgspec.convert(taint, Taint)
        patience = [seconds for each, seconds in tolerations if tolerates(each, read)]
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
