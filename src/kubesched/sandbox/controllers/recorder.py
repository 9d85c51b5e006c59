"""Events about objects, as a person reads them in `kubectl describe`: equal ones are counted, old ones go."""

from __future__ import annotations

from collections import OrderedDict

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CORE_EVENTS, Object, Resource
from kubesched.sandbox.api import Api

_REMEMBERED = 4096


class Recorder:
    """Writes events on behalf of one component."""

    def __init__(self, api: Api, component: str) -> None:
        self._api = api
        self._component = component
        self._last_name = 0
        self._recent: OrderedDict[tuple[str, str, str], tuple[str, str]] = OrderedDict()

    def normal(self, resource: Resource, obj: Object, reason: str, message: str, *, host: str = "") -> None:
        self._record("Normal", resource, obj, reason, message, host)

    def warning(self, resource: Resource, obj: Object, reason: str, message: str, *, host: str = "") -> None:
        self._record("Warning", resource, obj, reason, message, host)

    def _record(self, kind: str, resource: Resource, obj: Object, reason: str, message: str, host: str) -> None:
        metadata = obj["metadata"]
        identity = (metadata["uid"], reason, message)
        known = self._recent.get(identity)
        try:
            if known is not None and self._count(known):
                self._recent.move_to_end(identity)
                return
            created = self._create(self._event(kind, resource, obj, reason, message, host))
        except ApiError:
            # An event is a remark: where it cannot be stored (its namespace is going), the work goes on without it.
            return
        self._recent[identity] = (created["metadata"]["namespace"], created["metadata"]["name"])
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)

    def _create(self, event: Object) -> Object:
        """Store an event under a name that sorts by time, as everybody expects of lists of events."""
        involved = event["involvedObject"]
        namespace = involved.get("namespace") or "default"
        self._last_name = max(self._last_name + 1, int(self._api.stamps.time() * 1e9))
        while self._api.find(CORE_EVENTS, namespace, name := f"{involved['name'][:230]}.{self._last_name:x}"):
            self._last_name += 1
        return self._api.create(CORE_EVENTS, namespace, {**event, "metadata": {"name": name}})

    def _count(self, key: tuple[str, str]) -> bool:
        event = self._api.find(CORE_EVENTS, *key)
        if event is None:
            return False
        again = {**event, "count": event.get("count", 1) + 1, "lastTimestamp": self._api.stamps.now()}
        self._api.update(CORE_EVENTS, *key, again)
        return True

    def _event(self, kind: str, resource: Resource, obj: Object, reason: str, message: str, host: str) -> Object:
        metadata, now = obj["metadata"], self._api.stamps.now()
        involved = {"kind": resource.kind, "apiVersion": resource.api_version, "name": metadata["name"]}
        involved |= {"uid": metadata["uid"], "resourceVersion": metadata.get("resourceVersion", "")}
        if metadata.get("namespace"):
            involved["namespace"] = metadata["namespace"]
        source = {"component": self._component}
        if host:
            source["host"] = host
        return {
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": kind,
            "source": source,
            "reportingComponent": self._component,
            "reportingInstance": host,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
