"""Where the pods of a scheduling queue are, for those who look at it: metrics, dumps, the web page."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kubesched.scheduler.queue.equal_pods import EqualPods
from kubesched.scheduler.queue.in_flight import InFlight
from kubesched.scheduler.queue.queued_pod import OrderedPods, QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods


class QueuePlaces:
    """Every pending pod is in exactly one of these."""

    _active: OrderedPods
    _again: EqualPods
    """Woken after a vain attempt. If an equal pod was tried in vain since, they wait for what helps that one."""
    _backoff: EqualPods
    _errors: OrderedPods
    _unschedulable: UnschedulablePods
    _in_flight: InFlight

    def places(self) -> dict[str, tuple[Collection[QueuedPod], ...]]:
        """All pods that wait, in no order, for metrics."""
        again, spared = self._again.apart()
        return {
            "active": (self._active, again),
            "backoff": (self._backoff, self._errors),
            "unschedulable": (self._unschedulable, spared),
        }

    def active(self) -> list[QueuedPod]:
        """In the order in which they will be tried."""
        again, _ = self._again.apart()
        return sorted((*self._active.in_order(), *again), key=self._order) if again else self._active.in_order()

    def backoff(self) -> list[QueuedPod]:
        """Rejected pods that were woken, but must wait."""
        return self._backoff.in_order()

    def error_backoff(self) -> list[QueuedPod]:
        """Pods whose attempt ended with an error."""
        return self._errors.in_order()

    def unschedulable(self) -> list[QueuedPod]:
        """Rejected pods that wait for an event, themselves or through an equal one, and gated ones."""
        return [*self._unschedulable, *self.spared()]

    def spared(self) -> list[QueuedPod]:
        """Those of them that wait through an equal one."""
        return self._again.apart()[1]

    def in_flight(self) -> list[QueuedPod]:
        return self._in_flight.pods()

    def in_flight_events(self) -> list[str]:
        """The log of events for pods in flight: a mark for each pod, labels of events, oldest first."""
        return [f"pod:{e.key}" if isinstance(e, QueuedPod) else e.event.label for e in self._in_flight.entries()]

    @property
    def _woken(self) -> tuple[OrderedPods, ...]:
        """All places of pods that wait for no event, or for none of their own."""
        return self._active, self._again, self._backoff, self._errors

    def _order(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Its place in line."""
        raise NotImplementedError

    def _is_waiting(self, key: str) -> bool:
        return key in self._unschedulable or any(key in place for place in self._woken)
