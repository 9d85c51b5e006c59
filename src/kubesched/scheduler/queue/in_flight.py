"""Pods that are being tried, and the events meanwhile: a pod that fails must not have missed its event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kubesched.api.change import Change
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.queue.queued_pod import QueuedPod


class InFlightEvent(NamedTuple):
    """An event, and the change that it follows from."""

    event: ClusterEvent
    change: Change[Any]


class InFlight:
    """One log of events for all attempts: a mark where each pod was popped, and the events after it."""

    def __init__(self) -> None:
        self._log: dict[int, QueuedPod | InFlightEvent] = {}
        self._marks: dict[str, int] = {}
        self._next = 0

    def __contains__(self, identity: str) -> bool:
        return identity in self._marks

    def __len__(self) -> int:
        return len(self._marks)

    def begin(self, pod: QueuedPod) -> None:
        self._marks[pod.identity] = self._append(pod)

    def record(self, event: ClusterEvent, change: Change[Any]) -> None:
        """Keep an event as long as a pod is in flight that was popped before it."""
        if self._marks:
            self._append(InFlightEvent(event, change))

    def since(self, identity: str) -> list[InFlightEvent]:
        """The events since the pod was popped."""
        mark = self._marks[identity]
        return [entry for at, entry in self._log.items() if at > mark and isinstance(entry, InFlightEvent)]

    def end(self, identity: str) -> None:
        """The attempt is over: forget events that are older than all attempts in flight."""
        mark = self._marks.pop(identity, None)
        if mark is None:
            return
        del self._log[mark]
        while self._log:
            at = next(iter(self._log))
            if not isinstance(self._log[at], InFlightEvent):
                break
            del self._log[at]

    def pods(self) -> list[QueuedPod]:
        return [entry for entry in self._log.values() if isinstance(entry, QueuedPod)]

    def entries(self) -> Sequence[QueuedPod | InFlightEvent]:
        """The log, oldest first."""
        return list(self._log.values())

    def _append(self, entry: QueuedPod | InFlightEvent) -> int:
        self._next += 1
        self._log[self._next] = entry
        return self._next
