"""What reconcilers share: a queue of keys, timers, and writes of statuses and metadata."""

from __future__ import annotations

import heapq
import logging
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Generic, Protocol, TypeVar

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import with_condition
from kubesched_sandbox.api.reviewing import ReviewPendingError

log = logging.getLogger(__name__)
MANAGER = "kube-controller-manager"
"""Who controllers write as."""
SLICE = 0.02
"""Seconds of real time after which a controller lets the others have their turn."""


Key = tuple[str, str]
"""Namespace (empty for objects of the cluster) and name."""

_FIRST_RETRY = 0.05
_LAST_RETRY = 30.0
_SHORTEST_REST = 0.01
_REVIEW = 0.02
"""Seconds after which it is looked whether webhooks have answered."""


class Reconciler(Protocol):
    """Driven by events and by time; all times are those of the cluster's clock, in seconds."""

    watches: tuple[Resource, ...]

    def observe(self, event: ApiEvent) -> None:
        """Remember what became dirty; no work here."""

    def reconcile(self, now: float) -> float | None:
        """Do a slice of the work. Returns when to be called next even without events; None: only on events."""


T = TypeVar("T")


class Timers(Generic[T]):
    """Timers by key. A key has one time at most: the earliest that was set, unless it was replaced."""

    def __init__(self) -> None:
        self._times: dict[T, float] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def at(self, when: float, thing: T, *, replace: bool = False) -> None:
        if not replace and self._times.get(thing, float("inf")) <= when:
            return
        self._times[thing] = when
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, thing))

    def __contains__(self, thing: T) -> bool:
        return thing in self._times

    def cancel(self, thing: T) -> None:
        self._times.pop(thing, None)

    def due(self, now: float, *, most: int = sys.maxsize) -> list[T]:
        """Things whose time has come, earliest first, each no longer waiting."""
        found: list[T] = []
        while len(found) < most and (when := self.next) is not None and when <= now:
            _, _, thing = heapq.heappop(self._heap)
            del self._times[thing]
            found.append(thing)
        return found

    @property
    def next(self) -> float | None:
        """When the next thing is due."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


class WorkQueue:
    """Each key waits once, however often it was added. Keys that are due are taken in the order they became so."""

    def __init__(self) -> None:
        self._dirty: dict[Key, None] = {}
        self._timers: Timers[Key] = Timers()
        self._failures: dict[Key, int] = {}
        self._rests: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        if key in self._rests:
            self.add_at(key, self._rests[key])
        else:
            self._dirty[key] = None

    def hurry(self, key: Key) -> None:
        """Work on a key next, even if it rests."""
        self._dirty[key] = None

    def rest(self, key: Key, now: float, seconds: float) -> None:
        """Delay a key that is expensive to work on for a while, so that many changes are handled in one go."""
        if seconds >= _SHORTEST_REST:
            self._rests[key] = now + seconds

    def add_at(self, key: Key, when: float) -> None:
        """Look at the key at a time, unless an earlier one is already set."""
        self._timers.at(when, key)

    def take(self, now: float) -> Key | None:
        """The next key to work on, or None when nothing is due."""
        for key in self._timers.due(now):
            self._dirty[key] = None
        if not self._dirty:
            return None
        key = next(iter(self._dirty))
        del self._dirty[key]
        self._rests.pop(key, None)
        return key

    def succeeded(self, key: Key) -> None:
        self._failures.pop(key, None)

    def failed(self, key: Key, now: float) -> None:
        """Try the key again later, each time after a longer wait."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_at(key, now + min(_FIRST_RETRY * 2 ** min(failures - 1, 62), _LAST_RETRY))

    def next_due(self, now: float) -> float | None:
        """When there will be something to take; None if nothing waits."""
        return now if self._dirty else self._timers.next


class KeyedReconciler(ABC):
    """Reconciles one object at a time. A key whose work fails is tried again later; the others go on."""

    watches: tuple[Resource, ...]

    def __init__(self, api: Api) -> None:
        self.api = api
        self.queue = WorkQueue()

    @abstractmethod
    def observe(self, event: ApiEvent) -> None: ...

    @abstractmethod
    def sync(self, key: Key, now: float) -> float | None:
        """Bring one object a step closer to what it should be; returns when to look again without an event."""

    def reconcile(self, now: float) -> float | None:
        began = time.perf_counter()
        while (key := self.queue.take(now)) is not None:
            self._attempt(key, now)
            if time.perf_counter() - began > SLICE:
                break
        return self.queue.next_due(now)

    def write_status(self, resource: Resource, obj: Object, status: Object) -> Object:
        """Store a new status; one that says nothing new is not written."""
        if obj.get("status") == status:
            return obj
        changed = {**obj, "status": status}
        return self.api.update(resource, *key_of(obj), changed, subresource="status", manager=MANAGER)

    def write_counts(self, resource: Resource, obj: Object, status: Object, *, always: Collection[str]) -> Object:
        """Store a new status without what is zero or empty, but for the fields that are always there."""
        return self.write_status(resource, obj, {k: v for k, v in status.items() if v or k in always})

    def write_condition(self, resource: Resource, obj: Object, condition: Object, **status: object) -> Object:
        """Store a condition, and what else of the status comes with it."""
        old = obj.get("status") or {}
        conditions = with_condition(old.get("conditions") or [], condition, self.api.stamps.now())
        return self.write_status(resource, obj, {**old, **status, "conditions": conditions})

    def write_metadata(self, resource: Resource, obj: Object, **fields: object) -> Object:
        """Store an object with these fields of its metadata changed."""
        changed = {**obj, "metadata": {**obj["metadata"], **fields}}
        return self.api.update(resource, *key_of(obj), changed, manager=MANAGER)

    def drop_finalizer(self, resource: Resource, obj: Object, finalizer: str) -> Object:
        others = [other for other in obj["metadata"].get("finalizers") or () if other != finalizer]
        return self.write_metadata(resource, obj, finalizers=others)

    def _attempt(self, key: Key, now: float) -> None:
        try:
            with self.api.as_controller():
                again = self.sync(key, now)
        except ReviewPendingError:
            self.queue.add_at(key, now + _REVIEW)
        except ApiError as error:
            log.debug("%s of %s will be tried again: %s", type(self).__name__, "/".join(key), error)
            self.queue.failed(key, now)
        except Exception:
            # A bug in the treatment of one object must not stop the treatment of the others.
            log.exception("%s of %s failed and will be tried again", type(self).__name__, "/".join(key))
            self.queue.failed(key, now)
        else:
            self.queue.succeeded(key)
            if again is not None:
                self.queue.add_at(key, again)


class ObjectReconciler(KeyedReconciler):
    """Reconciles the objects of one resource. One that is gone needs nothing any more."""

    def __init__(self, api: Api, resource: Resource, *others: Resource) -> None:
        """`others` are watched as well: their events say something about objects of the resource."""
        super().__init__(api)
        self.resource = resource
        self.watches = (resource, *others)

    def observe(self, event: ApiEvent) -> None:
        """Queue the object, or for one of the others the object that controls it."""
        is_own = event.resource.path == self.resource.path
        key = key_of(event.object) if is_own else owner_key(event.object, self.resource)
        if key is not None:
            self.queue.add(key)

    @abstractmethod
    def sync_object(self, obj: Object, now: float) -> float | None:
        """`sync` of an object that exists."""

    def sync(self, key: Key, now: float) -> float | None:
        obj = self.api.find(self.resource, *key)
        return None if obj is None else self.sync_object(obj, now)


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def controller_of(obj: Object) -> Object | None:
    """The owner reference of the controller that manages an object, if one does."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Object = reference
            return found
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def owner_key(obj: Object, resource: Resource) -> Key | None:
    """The key of the controller of an object, if that is of this resource."""
    reference = controller_of(obj)
    if reference is None or reference["kind"] != resource.kind or reference["apiVersion"] != resource.api_version:
        return None
    return obj["metadata"]["namespace"], reference["name"]
