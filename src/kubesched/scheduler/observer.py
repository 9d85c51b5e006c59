"""What a scheduler tells whoever counts and measures: the metrics themselves are made elsewhere."""

from __future__ import annotations

from typing import Protocol

from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Attempt

EVICTION = "Eviction"
"""What a stopwatch calls the time that the eviction of victims took."""

PERMIT_WAIT = "PermitWait"
"""What a stopwatch calls the time that a pod waited for Permit plugins."""


class QueueObserver(Protocol):
    """Told about the moves of pods in the queue."""

    def now(self) -> float:
        """Seconds, for durations only."""

    def happened(self, event: str) -> None:
        """The queue heard of an event."""

    def moved(self, event: str, place: str) -> None:
        """A pod came to a place of the queue (Active, Backoff, Unschedulable) because of an event."""

    def pre_enqueued(self, profile: str, seconds: float) -> None:
        """All plugins were asked whether a pod may come to the queue."""

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A plugin said whether an event may help a pod."""


class SchedulerObserver(QueueObserver, Protocol):
    """Told about attempts, events, and calls that plugins and writers make."""

    def stopwatch(self) -> Stopwatch:
        """To run along with one attempt; a detailed one now and then."""

    def decided(self, attempt: Attempt, seconds: float) -> None:
        """A node was found or not, which took so long."""

    def bindings_changed(self, by: int) -> None:
        """One more binding is under way, or one less."""

    def finished(self, attempt: Attempt) -> None:
        """The attempt is over; its stopwatch has all extension points, evictions and waits."""

    def handled(self, events: set[str], seconds: float) -> None:
        """The watch told of a change that amounted to these events."""

    def writing(self, call: str, by: int) -> None:
        """One more call to the API server (`pod_binding`, `pod_status_patch`) is under way, or one less."""

    def wrote(self, call: str, result: str, seconds: float) -> None:
        """Such a call ended with `success` or `error`."""
