"""The scheduler on an event loop: pods get their turn, bindings run side by side, the queue is told the time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.attempt.extender_turns import ExtenderTurns
from kubesched.scheduler.scheduler import Scheduler

_log = logging.getLogger(__name__)

_SLICE = 0.02
"""Seconds of deciding after which whatever else runs on the event loop gets its turn."""
_UNFINISHED_AT_MOST = 1000
"""With so many bindings under way, the API server is the bottleneck, and deciding faster would only pile them up."""
_BACKOFF_EVERY = 1.0
"""Seconds; backoff ends with whole ones, so that is when to look."""
_LEFTOVERS_EVERY = 30.0


class SchedulingLoop:
    """Drives one scheduler. Whoever tells the scheduler of a change calls `wake` afterwards.

    There is one writer: all that touches the scheduler runs on the event loop, between two awaits of which nobody else
    does. Deciding is done in slices, so that reading the watch never waits for long.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        on_try: Callable[[Attempt], None] | None = None,
        on_attempt: Callable[[Attempt], None] | None = None,
        slice_seconds: float = _SLICE,
    ) -> None:
        """`on_try` hears of every attempt that begins, and `on_attempt` of every one that is over."""
        self._scheduler = scheduler
        self._on_try = on_try
        self._on_attempt = on_attempt
        self._slice = slice_seconds
        self._awake = asyncio.Event()
        scheduler.waiting.on_settled = self.wake
        self._extender_turns = ExtenderTurns(self.wake)
        self._unfinished: set[asyncio.Task[None]] = set()
        self._telling: dict[str, asyncio.Task[None]] = {}
        """What is being told about pods that wait for a Permit plugin, by their identity."""
        self._alarms: dict[str, asyncio.TimerHandle] = {}
        """When they will have waited long enough."""
        self._stopping = False

    def wake(self) -> None:
        """Something happened: there may be pods to try."""
        self._awake.set()

    @property
    def unfinished(self) -> int:
        """Attempts that wait for extenders, or are decided but not written yet."""
        return len(self._unfinished) + len(self._extender_turns)

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
                self._carry_out(attempt)
            if await self._decide_for_a_slice(until=now() + self._slice):
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(max(next_backoff - now(), 0.0)):
                    await self._awake.wait()
            except TimeoutError:
                pass

    async def stop(self, within: float) -> None:
        """Take no more pods, and finish what is decided. What takes longer than `within` seconds is cut off."""
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
        while len(self._unfinished) < _UNFINISHED_AT_MOST:
            attempt = self._extender_turns.ready() or self._pop()
            if attempt is None:
                return False  # an answer of an extender will wake us
            self._scheduler.decide(attempt)
            if attempt.answers is not None:
                if attempt.phase == "asking":
                    self._extender_turns.ask(attempt)
                    continue
                self._extender_turns.leave(attempt)
            task = self._carry_out(attempt)
            if task is not None and attempt.victims and self._scheduler.evicts_first:
                await asyncio.wait((task,))  # nothing is decided before its victims are on their way out
            elif attempt.phase == "failed":
                # Its nomination must be known before the next decision, or two preemptors choose the same victims.
                # The task that was just made runs up to its first write before we go on.
                await asyncio.sleep(0)
            if now() >= until:
                return True
        return False  # a binding that ends will wake us

    def _pop(self) -> Attempt | None:
        """The next pod's turn. Those that extenders have a say about wait for each other."""
        while not self._extender_turns.is_full and (attempt := self._scheduler.pop()) is not None:
            if self._on_try is not None:
                self._on_try(attempt)
            if attempt.answers is None:
                return attempt
            self._extender_turns.join(attempt)
            if (ready := self._extender_turns.ready()) is not None:
                return ready
        return None

    def _carry_out(self, attempt: Attempt) -> asyncio.Task[None] | None:
        """What is left to be done, under way; None if there is nothing, or not yet."""
        if attempt.phase == "done":
            self._over(attempt)
        elif attempt.phase == "waiting":
            self._telling[attempt.queued.identity] = self._begun(self._scheduler.wait(attempt), attempt)
            self._set_alarm(attempt)
        else:
            return self._begun(self._finish(attempt), attempt)
        return None

    def _set_alarm(self, attempt: Attempt) -> None:
        waiting = self._scheduler.waiting.get(attempt.queued.pod)
        if waiting is not None:
            alarm = asyncio.get_running_loop().call_later(waiting.patience, self.wake)
            self._alarms[attempt.queued.identity] = alarm

    def _begun(self, work: Coroutine[Any, Any, None], attempt: Attempt) -> asyncio.Task[None]:
        task = asyncio.create_task(self._done(work, attempt), name=f"finish {attempt.queued.key}")
        self._unfinished.add(task)
        task.add_done_callback(self._finished)
        return task

    async def _done(self, work: Coroutine[Any, Any, None], attempt: Attempt) -> None:
        try:
            await work
        except Exception:  # all that plugins and writers do is reported; this is a bug of ours, and no reason to stop
            _log.exception("the attempt at pod %s could not be finished", attempt.queued.key)

    async def _finish(self, attempt: Attempt) -> None:
        try:
            if self._telling and (telling := self._telling.pop(attempt.queued.identity, None)) is not None:
                if (alarm := self._alarms.pop(attempt.queued.identity, None)) is not None:
                    alarm.cancel()
                await telling
            await self._scheduler.finish(attempt)
        finally:
            self._over(attempt)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._unfinished.discard(task)
        self.wake()

    def _over(self, attempt: Attempt) -> None:
        if self._on_attempt is not None:
            self._on_attempt(attempt)


def _next_second(now: float) -> float:
    return (now // _BACKOFF_EVERY + 1) * _BACKOFF_EVERY
