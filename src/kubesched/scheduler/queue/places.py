"""The places of a scheduling queue, with their pods for metrics, dumps and the web page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.queue.in_flight import InFlight
from kubesched.scheduler.queue.ordered_queues import DedupedQueue, OrderedQueue
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods


class QueuePlaces:
    """Every pending entity is in exactly one of these."""

    _active: OrderedQueue
    _retry_queue: DedupedQueue
    """Woken after an attempt that found no node. A pod waits here while its class is known to be unschedulable."""
    _backoff: DedupedQueue
    _errors: OrderedQueue
    _unschedulable: UnschedulablePods
    _in_flight: InFlight

    def places(self) -> dict[str, tuple[Collection[QueuedPod], ...]]:
        """All pods that wait, in no order, for metrics."""
        retryable, skipped = self._retry_queue.split()
        return {
            "active": (self._active, _pods(retryable)),
            "backoff": (self._backoff, self._errors),
            "unschedulable": (self._unschedulable, _pods(skipped)),
        }

    def active(self) -> list[QueuedPod]:
        """The pods that may be tried now, in order."""
        retryable, _ = self._retry_queue.split()
        return _pods(sorted((*self._active.in_order(), *retryable), key=self._order))

    def backoff(self) -> list[QueuedPod]:
        """Rejected pods that were woken, but must wait."""
        return _pods(self._backoff.in_order())

    def error_backoff(self) -> list[QueuedPod]:
        """Pods whose attempt ended with an error."""
        return _pods(self._errors.in_order())

    def unschedulable(self) -> list[QueuedPod]:
        """Rejected pods that wait for an event to help them or an equal pod, and gated pods."""
        return _pods(self._waiting_entities())

    def skipped(self) -> list[QueuedPod]:
        """Pods of the retry queue whose class is known to be unschedulable."""
        return _pods(self._retry_queue.split()[1])

    def in_flight(self) -> list[QueuedPod]:
        return self._in_flight.pods()

    def in_flight_events(self) -> list[str]:
        """The log of events for pods in flight: a mark for each pod, labels of events, oldest first."""
        return [
            f"pod:{entry.key}" if isinstance(entry, QueuedPod) else entry.event.label
            for entry in self._in_flight.entries()
        ]

    @property
    def _woken(self) -> tuple[OrderedQueue, ...]:
        """All places but `_unschedulable`: of entities that wait for no event of their own."""
        return self._active, self._retry_queue, self._backoff, self._errors

    def _remove(self, key: str) -> None:
        """Take an entity out of the place where it waits."""
        self._unschedulable.remove(key)
        for place in self._woken:
            place.remove(key)

    def _waiting_entities(self) -> list[QueuedEntity]:
        return [*self._unschedulable.entities(), *self._retry_queue.split()[1]]

    def _order(self, entity: QueuedEntity) -> tuple[Any, ...]:
        """The sort key of an entity among those that may be tried."""
        raise NotImplementedError

    def _is_waiting(self, key: str) -> bool:
        return key in self._unschedulable or any(key in place for place in self._woken)


def _pods(entities: Iterable[QueuedEntity]) -> list[QueuedPod]:
    return [queued for entity in entities for queued in entity.queued_pods]
