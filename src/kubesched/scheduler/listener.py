"""Listeners of a scheduler: metrics, recordings, the log, shadow mode, the scheduling loop.

Listeners are in `Scheduler.listeners`, and are called in that order, in the middle of the work: they must be quick, and
must not call the scheduler. Without any, the scheduler does not even look at its stopwatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.groups.group_attempt import GroupAttempt
from kubesched.scheduler.queue.queued_pod import QueuedPod


class SchedulerListener:
    """Derive from it, and override what is of interest. All durations are in seconds."""

    # -- changes of the cluster ---------------------------------------------------------------------------------------

    def handling(self, change: Change[KubeObject]) -> None:
        """A change is about to be handled: cache and queue are still as they were before it."""

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        """Cache and queue know of the change, which amounted to these events."""

    # -- the queue ----------------------------------------------------------------------------------------------------

    def flushing_backoff(self) -> None:
        """Pods whose backoff is over are about to become active."""

    def flushing_leftovers(self) -> None:
        """Pods that have waited too long for an event are about to be requeued without one."""

    def pre_enqueued(self, profile: str, seconds: float) -> None:
        """The PreEnqueue plugins of a profile said whether a pod may become active."""

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        """A plugin that rejected the pod said whether an event may help: `Queue`, `QueueSkip`, or `Error`."""

    def caught_up(self, queued: QueuedPod, events: Sequence[ClusterEvent]) -> None:
        """A pod that failed is about to be held against the events of the time when it was in flight."""

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        """A pod came to a place of the queue (Active, Backoff, Unschedulable) because of an event."""

    def held_back(self, pods: Sequence[QueuedPod], event: str, seconds: float) -> None:
        """An event woke pods, and each came back at once: a PreEnqueue plugin held it back as before.

        These may be very many. A listener that only counts them need not be told of each.
        """
        for queued in pods:
            self.pre_enqueued(queued.pod.spec.scheduler_name, seconds)
            self.moved(queued, event, "Unschedulable")

    def passed_over(self, pods: Iterator[QueuedPod], event: str) -> None:
        """Pods skipped by an event because PreEnqueue would still reject them.

        There may be very many, and each class costs a hint: only those that a listener takes are found.
        """

    # -- attempts -----------------------------------------------------------------------------------------------------

    def popped(self, attempt: Attempt) -> None:
        """An attempt begins. A listener that measures gives it a stopwatch now."""

    def decided(self, attempt: Attempt) -> None:
        """A node was found for the pod and is assumed, or was not; or the pod was skipped, which ends the attempt."""

    def group_decided(self, attempt: GroupAttempt) -> None:
        """A pod group was decided: each of its attempts is about to be reported as `decided`."""

    def waiting(self, attempt: Attempt) -> None:
        """The pod waits for a Permit plugin: its expected node is about to be written to its status."""

    def settled(self) -> None:
        """A pod need not wait for Permit plugins any longer, one way or the other: `Scheduler.permitted` has it."""

    def permitted(self, attempts: Sequence[Attempt]) -> None:
        """These attempts, at least one, wait no longer for Permit plugins: they may be finished."""

    def finishing(self, attempt: Attempt) -> None:
        """What was decided is about to be written: the binding, or the failure."""

    def finished(self, attempt: Attempt) -> None:
        """The attempt is over, and has its outcome."""

    def broken_off(self, attempt: Attempt) -> None:
        """The attempt is over without an outcome: it was cancelled, or finishing it raised an error."""

    # -- plugins ------------------------------------------------------------------------------------------------------

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        """A plugin counted something that only it sees, under the name of a metric."""

    def measured(self, metric: str, seconds: float, labels: Sequence[str]) -> None:
        """A plugin measured something that only it sees, under the name of a metric."""
