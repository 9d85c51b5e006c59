"""Events do not stay: after an hour they go, and sooner when there are too many."""

from __future__ import annotations

from collections import OrderedDict

from kubesched.api.kinds import CORE_EVENTS, Object, Resource
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.api.stamps import seconds_of
from kubesched.sandbox.controllers.controller import key_of
from kubesched.sandbox.controllers.work_queue import Key

LIFETIME = 3600.0
MOST = 20_000
_SLICE = 200


class EventExpiry:
    """Removes events from the one that was last heard of longest ago."""

    watches: tuple[Resource, ...] = (CORE_EVENTS,)

    def __init__(self, api: Api, *, lifetime: float = LIFETIME, most: int = MOST) -> None:
        self._api = api
        self._lifetime, self._most = lifetime, most
        self._heard: OrderedDict[Key, float] = OrderedDict()

    def observe(self, event: Event) -> None:
        key = key_of(event.object)
        self._heard.pop(key, None)
        if event.type != "DELETED":
            self._heard[key] = _last(event.object)

    def reconcile(self, now: float) -> float | None:
        for _ in range(_SLICE):
            if not self._heard:
                return None
            key, heard = next(iter(self._heard.items()))
            if heard + self._lifetime > now and len(self._heard) <= self._most:
                return heard + self._lifetime
            del self._heard[key]
            if self._api.find(CORE_EVENTS, *key) is not None:
                self._api.delete(CORE_EVENTS, *key)
        return now


def _last(event: Object) -> float:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return seconds_of(next((time for time in times if time), event["metadata"]["creationTimestamp"]))
