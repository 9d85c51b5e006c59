"""Listeners of a scheduler: metrics, recordings, the log, shadow mode, the scheduling loop.

The scheduler calls `Scheduler.listeners` in their order, in the middle of its work: they must be quick, and must not
call the scheduler. Without any, it does not read `Listeners.stopwatch`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.groups.group_attempt import GroupAttempt
from kubesched.scheduler.queue.queued_pod import QueuedPod


class SchedulerListener:
    """Derive from it, and override the hooks of interest. All durations are in seconds."""

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

    def activating(self, pod: Pod) -> None:
        """A pod that waits is about to become active, though no event may have helped it."""

    def pre_enqueued(self, profile: str, seconds: float) -> None:
        """The PreEnqueue plugins of a profile said whether a pod may become active."""

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        """A plugin that rejected the pod said whether an event may help: `Queue`, `QueueSkip`, or `Error`."""

    def caught_up(self, queued: QueuedPod, events: Sequence[ClusterEvent]) -> None:
        """The hints are about to be asked about a pod that failed, for the events while it was in flight."""

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        """A pod came to a place of the queue (Active, Backoff, Unschedulable) because of an event."""

    def held_back(self, pods: Sequence[QueuedPod], event: str, seconds: float) -> None:
        """An event woke pods, and PreEnqueue plugins held all of them back as before.

        These may be very many. A listener that only counts them need not be called for each.
        """
        for queued in pods:
            self.pre_enqueued(queued.pod.spec.scheduler_name, seconds)
            self.moved(queued, event, "Unschedulable")

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
        """Permit plugins allowed or rejected a pod that waited, or it timed out: `Scheduler.permitted` has it."""

    def permitted(self, attempts: Sequence[Attempt]) -> None:
        """These attempts, at least one, wait no longer for Permit plugins: they may be finished."""

    def finishing(self, attempt: Attempt) -> None:
        """The binding, or the failure, is about to be written."""

    def finished(self, attempt: Attempt) -> None:
        """The attempt is over, and has its outcome."""

    def broken_off(self, attempt: Attempt) -> None:
        """The attempt is over without an outcome: it was cancelled, or finishing it raised an error."""

    # -- plugins ------------------------------------------------------------------------------------------------------

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        """A plugin added to a counter, by the name of a metric."""

    def measured(self, metric: str, seconds: float, labels: Sequence[str]) -> None:
        """A plugin observed a duration, by the name of a metric."""


_HOOKS = [name for name in vars(SchedulerListener) if not name.startswith("_")]
_BATCHED_HOOKS = {"held_back": ("pre_enqueued", "moved")}
"""Batched hooks, and the per-pod hooks that they fall back to."""


class Listeners(SchedulerListener):
    """Calls each hook of its listeners, in the order in which they were added.

    The scheduler calls a dozen hooks for every pod, and a listener overrides a few: so each hook has its own list.
    """

    def __init__(
        self, listeners: Iterable[SchedulerListener] = (), stopwatch: Callable[[], float] = time.monotonic
    ) -> None:
        """`stopwatch` is for the durations that listeners get."""
        self.stopwatch = stopwatch
        self._all = list(listeners)
        self._bind_hooks()

    def append(self, *listeners: SchedulerListener) -> None:
        self._all += listeners
        self._bind_hooks()

    def remove(self, listener: SchedulerListener) -> None:
        self._all.remove(listener)
        self._bind_hooks()

    def __iter__(self) -> Iterator[SchedulerListener]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _bind_hooks(self) -> None:
        for hook in _HOOKS:
            methods = [getattr(listener, hook) for listener in self._all if _overrides(listener, hook)]
            setattr(self, hook, _one_call(methods))


def _overrides(listener: SchedulerListener, hook: str) -> bool:
    names = (hook, *_BATCHED_HOOKS.get(hook, ()))
    return any(getattr(type(listener), name) is not getattr(SchedulerListener, name) for name in names)


def _one_call(methods: list[Callable[..., None]]) -> Callable[..., None]:
    """One function that calls all of these, one after another."""
    if len(methods) == 1:
        return methods[0]

    def call_all(*args: Any) -> None:
        for method in methods:
            method(*args)

    return call_all
