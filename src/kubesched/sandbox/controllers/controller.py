"""What a controller is: something that remembers what changed, and does a bounded piece of work when asked."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from typing import Protocol

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.controllers.work_queue import Key, WorkQueue

_LOG = logging.getLogger(__name__)
MANAGER = "kube-controller-manager"
"""Who controllers write as."""
SLICE = 0.02
"""Seconds of real time after which a controller lets the others have their turn."""


class Controller(Protocol):
    """Driven by events and by time; all times are those of the cluster's clock, in seconds."""

    watches: tuple[Resource, ...]

    def observe(self, event: Event) -> None:
        """Remember what became dirty; no work here."""

    def reconcile(self, now: float) -> float | None:
        """Do a slice of the work. Returns when to be called next even without events; None: only on events."""


class KeyedController(ABC):
    """Reconciles one object at a time. A key whose work fails is tried again later; the others go on."""

    watches: tuple[Resource, ...]

    def __init__(self, api: Api) -> None:
        self.api = api
        self.queue = WorkQueue()

    @abstractmethod
    def observe(self, event: Event) -> None: ...

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
        metadata = obj["metadata"]
        return self.api.update(
            resource,
            metadata.get("namespace", ""),
            metadata["name"],
            {**obj, "status": status},
            subresource="status",
            manager=MANAGER,
        )

    def _attempt(self, key: Key, now: float) -> None:
        try:
            again = self.sync(key, now)
        except ApiError as error:
            _LOG.debug("%s of %s will be tried again: %s", type(self).__name__, "/".join(key), error)
            self.queue.failed(key, now)
        except Exception:
            # A bug in the treatment of one object must not stop the treatment of the others.
            _LOG.exception("%s of %s failed and will be tried again", type(self).__name__, "/".join(key))
            self.queue.failed(key, now)
        else:
            self.queue.succeeded(key)
            if again is not None:
                self.queue.add_at(key, again)


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
