"""The scheduler on an event loop: it decides pods in slices, writes in tasks, and flushes the queue in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.attempt import Asking, Attempt, Done, Failed, Paused, WaitingOnPermit
from kubesched.scheduler.attempt.waiting_attempts import ExtenderTurns, PausedAttempts
from kubesched.scheduler.groups.group_attempt import EntityAttempt, GroupAttempt
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)

_SLICE = 0.02
"""Seconds of deciding after which other tasks on the event loop run."""
_WRITES_AT_MOST = 1000
"""With so many under way, the API server is the bottleneck, and deciding faster would only pile them up. Attempts that
wait for something else (volumes, devices, an extender's binding) are not among them."""
_BACKOFF_EVERY = 1.0
"""Seconds; backoffs end with whole ones."""
_LEFTOVERS_EVERY = 30.0
_YIELDS = 3
"""Rounds of the event loop that a watch line needs: one to be read, one to be handled, one to wake its waiters."""


class SchedulingLoop(SchedulerListener):
    """Drives one scheduler, and wakes up when the scheduler handled a change or a pod has waited long enough.

    There is one writer: all code that touches the scheduler runs on the event loop, and between two awaits nothing
    else does. It decides in slices, so that reading the watch never waits for long.
    """

    def __init__(self, scheduler: Scheduler, *, slice_seconds: float = _SLICE) -> None:
        self._scheduler = scheduler
        scheduler.listeners.append(self)
        self._slice = slice_seconds
        self._awake = asyncio.Event()
        self._backoff_timer: asyncio.TimerHandle | None = None
        """Wakes the loop when backoffs may be over."""
        self._extender_turns = ExtenderTurns(self.wake)
        self._paused = PausedAttempts()
        self._unfinished: set[asyncio.Task[None]] = set()
        self._not_begun = 0
        """How many tasks of `_unfinished` have not run yet: most begin with a write."""
        self._held_back = False
        """Whether the loop decides nothing because too many writes are under way."""
        self._writes = scheduler.writes
        self._writes.on_end = self._write_ended
        self._waits: dict[str, tuple[asyncio.Task[None], asyncio.TimerHandle]] = {}
        """`Scheduler.wait` for pods that wait for a Permit plugin, and the alarm for its timeout, by identity."""
        self._stopping = False

    def wake(self) -> None:
        """There may be pods to try."""
        self._awake.set()

    def _on_backoff_timer(self) -> None:
        self._backoff_timer = None
        self._awake.set()

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        # Most changes are about pods that were bound, and no reason to wake up.
        if not self._awake.is_set() and self._scheduler.queue.has_next:
            self._awake.set()

    def settled(self) -> None:
        self._awake.set()

    def activating(self, pod: Pod) -> None:
        self._awake.set()

    @property
    def unfinished(self) -> int:
        """Attempts that wait for extenders or are paused, or are decided and not over yet."""
        return len(self._unfinished) + len(self._extender_turns) + len(self._paused)

    async def run(self) -> None:
        """Until `stop`, or until cancelled."""
        now = asyncio.get_running_loop().time
        next_backoff, next_leftovers = _next_second(now()), now() + _LEFTOVERS_EVERY
        while not self._stopping:
            self._awake.clear()
            if now() >= next_backoff:
                self._scheduler.flush_backoff()
                next_backoff = _next_second(now())
            if now() >= next_leftovers:
                self._scheduler.flush_leftovers()
                next_leftovers = now() + _LEFTOVERS_EVERY
            for attempt in self._scheduler.permitted():
                self._start(attempt)
            if await self._decide_for_a_slice(until=now() + self._slice):
                await asyncio.sleep(0)
                continue
            if self._backoff_timer is None:
                self._backoff_timer = asyncio.get_running_loop().call_at(next_backoff, self._on_backoff_timer)
            await self._awake.wait()
            await self._yield()

    async def _yield(self) -> None:
        """Let the informers read and handle what has arrived before the next pod is decided."""
        for _ in range(_YIELDS):
            await asyncio.sleep(0)

    async def stop(self, within: float) -> None:
        """Take no more pods, and finish decided attempts, but cancel those that take longer than `within` seconds."""
        self._stopping = True
        self.wake()
        await self._extender_turns.stop()
        if self._unfinished:
            _, late = await asyncio.wait(self._unfinished, timeout=within)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _decide_for_a_slice(self, until: float) -> bool:
        """Whether there is, or may be, more to decide."""
        now = asyncio.get_running_loop().time
        while self._may_write_more() and not self._stopping:
            attempt = self._next()
            if attempt is None:
                return False  # an answer of an extender wakes the loop
            spent = attempt.spent
            self._scheduler.decide(attempt)
            if isinstance(attempt.state, Paused):
                self._paused.add(attempt, now(), attempt.spent - spent)
                await self._yield()
                return True
            if attempt.extender_answers:
                if isinstance(attempt.state, Asking):
                    self._extender_turns.ask(attempt, attempt.state.questions)
                    continue
                self._extender_turns.leave(attempt)
            tasks = [(pod_attempt, self._start(pod_attempt)) for pod_attempt in attempt.attempts]
            if isinstance(attempt, GroupAttempt):
                self._start(attempt)
            evicting = [task for pod_attempt, task in tasks if task is not None and pod_attempt.victims]
            if evicting and self._scheduler.evicts_first:
                await asyncio.wait(evicting)  # decide nothing before the victims are deleted
            elif any(isinstance(pod_attempt.state, Failed) for pod_attempt in attempt.attempts):
                # Its nomination must be known before the next decision, or two preemptors choose the same victims.
                # The new task runs up to its first write before the loop goes on.
                await asyncio.sleep(0)
            if now() >= until:
                return True
        self._held_back = not self._stopping
        return self._not_begun > 0  # if all have begun, the end of a write wakes the loop

    def _may_write_more(self) -> bool:
        return self._writes.under_way + self._not_begun < _WRITES_AT_MOST

    def _write_ended(self) -> None:
        if self._held_back:
            self._held_back = False
            self.wake()

    def _next(self) -> EntityAttempt | None:
        """The attempt to decide next: a paused one in half of the turns, or in all if no other pod waits."""
        if self._paused and self._paused.is_due(asyncio.get_running_loop().time()):
            return self._paused.take()
        return self._extender_turns.ready() or self._pop() or self._paused.take()

    def _pop(self) -> EntityAttempt | None:
        """Pop the next pod. Pods that an extender is interested in are decided in the order of the queue."""
        while not self._extender_turns.is_full and (attempt := self._scheduler.pop()) is not None:
            if not attempt.extender_answers:
                return attempt
            self._extender_turns.join(attempt)
            if (ready := self._extender_turns.ready()) is not None:
                return ready
        return None

    def _start(self, attempt: EntityAttempt) -> asyncio.Task[None] | None:
        """Start a task that writes the decision; None if there is nothing to write, or not before Permit."""
        if isinstance(attempt.state, Done):
            return None
        if isinstance(attempt, Attempt) and isinstance(attempt.state, WaitingOnPermit):
            task = self._spawn(self._scheduler.wait(attempt), attempt)
            self._waits[attempt.queued.identity] = task, self._permit_timer(attempt)
            return None
        return self._spawn(self._finish(attempt), attempt)

    def _spawn(self, work: Coroutine[Any, Any, None], attempt: EntityAttempt) -> asyncio.Task[None]:
        task = asyncio.create_task(self._run(work, attempt), name=f"finish {attempt.queued.key}")
        self._unfinished.add(task)
        self._not_begun += 1
        task.add_done_callback(self._on_end)
        return task

    def _permit_timer(self, attempt: Attempt) -> asyncio.TimerHandle:
        """Wakes the loop when a Permit plugin has had all the time that it asked for."""
        waiting = self._scheduler.waiting.get(attempt.queued.pod)
        patience = 0.0 if waiting is None else waiting.patience
        return asyncio.get_running_loop().call_later(patience, self.wake)

    async def _run(self, work: Coroutine[Any, Any, None], attempt: EntityAttempt) -> None:
        self._not_begun -= 1
        try:
            await work
        except Exception:  # failures of plugins and writes are reported: this is a bug of ours, and no reason to stop
            log.exception("the attempt at %s could not be finished", attempt.queued.key)

    async def _finish(self, attempt: EntityAttempt) -> None:
        if self._waits and (entry := self._waits.pop(attempt.queued.identity, None)) is not None:
            wait, timer = entry
            timer.cancel()
            await wait
        await self._scheduler.finish(attempt)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._unfinished.discard(task)
        if self._scheduler.queue.has_next:
            self.wake()


def _next_second(now: float) -> float:
    return (now // _BACKOFF_EVERY + 1) * _BACKOFF_EVERY
