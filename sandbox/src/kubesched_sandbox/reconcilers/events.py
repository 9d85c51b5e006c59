"""Events about objects, as `kubectl describe` shows them: equal ones are counted, and old ones are removed."""

from __future__ import annotations

from collections import OrderedDict

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CORE_EVENTS, Object, Resource
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.stamps import seconds_of
from kubesched_sandbox.reconcilers.reconciler import Key, key_of

LIFETIME = 3600.0
MOST = 20_000
_SLICE = 200
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
        """Store an event under a name that sorts by time, as lists of events are read."""
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


class EventExpiry:
    """Removes events, the one that was last observed longest ago first."""

    watches: tuple[Resource, ...] = (CORE_EVENTS,)

    def __init__(self, api: Api, *, lifetime: float = LIFETIME, most: int = MOST) -> None:
        self._api = api
        self._lifetime, self._most = lifetime, most
        self._observed: OrderedDict[Key, float] = OrderedDict()

    def observe(self, event: ApiEvent) -> None:
        key = key_of(event.object)
        self._observed.pop(key, None)
        if event.type != "DELETED":
            self._observed[key] = _last(event.object)

    def reconcile(self, now: float) -> float | None:
        for _ in range(_SLICE):
            if not self._observed:
                return None
            key, observed = next(iter(self._observed.items()))
            if observed + self._lifetime > now and len(self._observed) <= self._most:
                return observed + self._lifetime
            del self._observed[key]
            if self._api.find(CORE_EVENTS, *key) is not None:
                self._api.delete(CORE_EVENTS, *key)
        return now


def _last(event: Object) -> float:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return seconds_of(next((time for time in times if time), event["metadata"]["creationTimestamp"]))
