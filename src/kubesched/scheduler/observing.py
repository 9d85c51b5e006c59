"""A scheduler that is watched: every call is measured and told to an observer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.observer import PERMIT_WAIT, SchedulerObserver
from kubesched.scheduler.scheduler import Scheduler


class _Labels:
    """The queue's side of an observer: what events a change amounts to, besides all else."""

    def __init__(self, observer: SchedulerObserver) -> None:
        self.seen: set[str] = set()
        self.now, self.moved = observer.now, observer.moved
        self.hinted, self.pre_enqueued = observer.hinted, observer.pre_enqueued

    def happened(self, event: str) -> None:
        self.seen.add(event)

    def taken(self) -> set[str]:
        seen, self.seen = self.seen, set()
        return seen


class ObservedScheduler:
    """Drivers use it in the place of the scheduler."""

    def __init__(self, scheduler: Scheduler, observer: SchedulerObserver) -> None:
        self._scheduler = scheduler
        self._observer = observer
        self._labels = _Labels(observer)
        scheduler.queue.observe(self._labels)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def added(self, obj: KubeObject) -> None:
        before = self._begin()
        self._scheduler.added(obj)
        self._handled(None, obj, before)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        before = self._begin()
        self._scheduler.updated(old, new)
        self._handled(old, new, before)

    def deleted(self, obj: KubeObject) -> None:
        before = self._begin()
        self._scheduler.deleted(obj)
        self._handled(obj, None, before)

    def pop(self) -> Attempt | None:
        attempt = self._scheduler.pop()
        if attempt is not None:
            attempt.watch = self._observer.stopwatch()
            if attempt.queued.first_tried is None:
                attempt.queued.first_tried = attempt.watch.started
        return attempt

    def decide(self, attempt: Attempt) -> None:
        before = self._observer.now()
        self._scheduler.decide(attempt)
        self._observer.decided(attempt, self._observer.now() - before)

    def permitted(self) -> list[Attempt]:
        over = self._scheduler.permitted()
        for attempt in over:
            assert attempt.watch is not None
            attempt.watch.lap(PERMIT_WAIT, attempt.failure.status if attempt.failure is not None else None)
        return over

    async def finish(self, attempt: Attempt) -> None:
        binds = attempt.phase == "assumed"
        if binds:
            self._observer.bindings_changed(1)
        try:
            await self._scheduler.finish(attempt)
        finally:
            if binds:
                self._observer.bindings_changed(-1)
        self._observer.finished(attempt)

    def _begin(self) -> float:
        self._labels.seen.clear()
        return self._observer.now()

    def _handled(self, old: KubeObject | None, new: KubeObject | None, before: float) -> None:
        events = self._labels.taken()
        if isinstance(old or new, Pod):
            changes = pod_changes(cast(Pod | None, old), cast(Pod | None, new), self._scheduler.engine.knows)
            events.update(_OF_PODS[change] for change in changes)
        if events:
            self._observer.handled(events, self._observer.now() - before)


PodChange = tuple[bool, Action]
"""Whether it is about an assigned pod or one that waits, and what happened to it."""


def pod_changes(old: Pod | None, new: Pod | None, is_ours: Callable[[str], bool]) -> tuple[PodChange, ...]:
    """What a change of a pod amounts to: one that is bound leaves the queue and comes to the cache.

    Nothing, for pods that wait for another scheduler.
    """
    pod = new or old
    assert pod is not None
    if old is not None and new is not None and new.spec.node_name and not old.spec.node_name:
        came = ((True, Action.ADD),)
        return (*came, (False, Action.DELETE)) if is_ours(old.spec.scheduler_name) else came
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    is_assigned = bool(pod.spec.node_name)
    return ((is_assigned, action),) if is_assigned or is_ours(pod.spec.scheduler_name) else ()


_OF_PODS = {
    (is_assigned, action): ClusterEvent(kind, action).label
    for is_assigned, kind in ((True, Kind.ASSIGNED_POD), (False, Kind.PENDING_POD))
    for action in (Action.ADD, Action.UPDATE, Action.DELETE)
}


def observed(scheduler: Scheduler, observer: SchedulerObserver) -> Scheduler:
    """The scheduler, but watched."""
    return cast(Scheduler, ObservedScheduler(scheduler, observer))
