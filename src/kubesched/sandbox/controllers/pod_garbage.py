"""Pods that nobody would ever remove: on nodes that are gone, and too many that have ended."""

from __future__ import annotations

from collections import OrderedDict

from kubesched.api.kinds import NODES, PODS, Object
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.controllers.conditions import is_finished, with_condition
from kubesched.sandbox.controllers.controller import KeyedController, key_of
from kubesched.sandbox.controllers.work_queue import Key

_QUARANTINE = 40.0
"""Seconds that a node may be missing before its pods are given up."""
KEPT = 12_500
"""Pods that have ended and may stay for people to look at."""


class PodGarbage(KeyedController):
    """Removes pods that are in nobody's hands any more."""

    def __init__(self, api: Api, *, kept: int = KEPT) -> None:
        super().__init__(api)
        self.watches = (PODS, NODES)
        self._kept = kept
        self._ended: OrderedDict[Key, None] = OrderedDict()
        self._missing: dict[str, float] = {}
        """Since when a node that pods are on has been missing."""
        self._by_node: dict[str, set[Key]] = {}

    def observe(self, event: Event) -> None:
        if event.resource.path == NODES.path:
            name = event.object["metadata"]["name"]
            if event.type == "DELETED":
                for key in self._by_node.get(name, ()):
                    self.queue.add(key)
            else:
                self._missing.pop(name, None)
            return
        pod, key = event.object, key_of(event.object)
        node = pod["spec"].get("nodeName")
        if event.type == "DELETED":
            self._ended.pop(key, None)
            if node in self._by_node:
                self._by_node[node].discard(key)
                if not self._by_node[node]:
                    del self._by_node[node]
            return
        if node and (event.old is None or not event.old["spec"].get("nodeName")):
            self._by_node.setdefault(node, set()).add(key)
            self.queue.add(key)
        if is_finished(pod):
            self._ended[key] = None
            if len(self._ended) > self._kept:
                self.queue.add(next(iter(self._ended)))

    def sync(self, key: Key, now: float) -> float | None:
        pod = self.api.find(PODS, *key)
        if pod is None:
            return None
        if key in self._ended and len(self._ended) > self._kept:
            self._remove(pod)
            return None
        node = pod["spec"].get("nodeName")
        if not node or self.api.find(NODES, "", node) is not None:
            return None
        until = self._missing.setdefault(node, now) + _QUARANTINE
        if until > now:
            return until
        self._give_up(pod)
        return None

    def _give_up(self, pod: Object) -> None:
        """A pod on a node that is gone has failed."""
        if not is_finished(pod):
            told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            told["message"] = "PodGC: node no longer exists"
            status = pod.get("status") or {}
            conditions = with_condition(status.get("conditions") or [], told, self.api.stamps.now())
            pod = self.write_status(PODS, pod, {**status, "phase": "Failed", "conditions": conditions})
        self._remove(pod)

    def _remove(self, pod: Object) -> None:
        self.api.delete(PODS, *key_of(pod), grace=0, uid=pod["metadata"]["uid"])
