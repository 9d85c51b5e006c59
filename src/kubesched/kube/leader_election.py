"""client-go's leader election: replicas agree on one leader, by a clock that cannot be set back."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from kubesched.config.configuration import LeaderElection
from kubesched.kube.errors import AnswerTimeoutError, ApiStatusError, KubeError
from kubesched.kube.event_record import micro_time
from kubesched.kube.hedging import first_of_several
from kubesched.kube.lease import LeaseRecord, Lock
from kubesched.kube.timing import Timing

JITTER = 0.5
"""The part of the retry period by which the pause of a standby may be shorter. client-go makes the pause longer, by up
to 1.2 of the period, and a successor takes over that much later: here within leaseDuration + retryPeriod."""
DRIFT = 0.05
"""The part of its duration by which a lease ends earlier for its holder than for standbys: clocks differ in speed."""
TOLERANCE = 20.0
"""Seconds that a lease may be expired before the health check fails, as in kube-scheduler."""
TRIES = 4
"""How often a request about the lease is sent within its timeout, each time on another connection."""

T = TypeVar("T")

log = logging.getLogger(__name__)


def _boot_time() -> float:
    """Seconds, those included for which this machine was suspended: the lease runs out meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


CLOCK: Callable[[], float] = _boot_time if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
LEASE_TIME = Timing(clock=CLOCK)


class LeaseLostError(KubeError):
    """Another replica may act now."""


class LeaderElector:
    """Waits for the lease, keeps it while leading, and gives it up.

    Each replica measures time on its own clock, as others may be wrong: a standby from when it saw the leader's record
    change, a leader from before it sent the record. So the leader counts from an earlier moment than its standbys,
    however late the answer to its request comes, and never acts beside its successor.
    """

    def __init__(
        self,
        lock: Lock,
        identity: str,
        config: LeaderElection,
        *,
        on_new_leader: Callable[[str], None] = lambda identity: None,
        on_stopped_leading: Callable[[], None] = lambda: None,
        on_waiting: Callable[[], None] = lambda: None,
        timing: Timing = LEASE_TIME,
    ) -> None:
        self._lock = lock
        self._identity = identity
        self._lease_duration = float(config.lease_duration)
        self._renew_deadline = float(config.renew_deadline)
        self._retry_period = float(config.retry_period)
        # One request that hangs must not cost the lease.
        self._request_timeout = max(1.0, self._renew_deadline / 2)
        self._on_new_leader = on_new_leader
        self._on_stopped_leading = on_stopped_leading
        self._on_waiting = on_waiting
        self._clock = timing.clock
        self._wall_clock = timing.wall_clock
        self._sleep = timing.sleep
        self._chance = timing.chance
        self._observed = LeaseRecord()
        self._observed_at = float("-inf")
        self._in_doubt_since = math.inf
        """When this replica first sent a record that may or may not have been written."""
        self._reported = ""
        self._complaint = ""
        """The message to log if the request under way fails."""
        self.slow_paths = 0
        """Renewals that had to read the lease first."""

    @property
    def leader(self) -> str:
        """The identity of the leader, as last seen."""
        return self._observed.holder_identity

    @property
    def is_leader(self) -> bool:
        return self.leader == self._identity

    @property
    def is_lease_valid(self) -> bool:
        """Whether the lease, whoever holds it, has not run out since its record was last seen to change."""
        return self._observed_at + self._observed.lease_duration_seconds > self._clock()

    @property
    def may_act(self) -> bool:
        """Whether this replica holds the lease, and no other can have taken it. Any thread may ask before a write."""
        return self.is_leader and self._clock() < self._runs_out()

    def check(self, tolerance: float = TOLERANCE) -> str | None:
        """For health checks: what is wrong if this replica leads, and should have renewed or ended long ago."""
        if self.is_leader and self._clock() - self._observed_at > self._lease_duration + tolerance:
            return f"failed election to renew leadership on lease {self._lock.name}"
        return None

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run `lead` while it is renewed.

        When `lead` ends, or this is cancelled, the lease is given up, but only after `lead` has finished. When it is
        lost, `lead` is cancelled and LeaseLostError raised.
        """
        await self.acquire()
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel_and_wait(leading)
            is_lost = renewing.done()
            await _cancel_and_wait(renewing)
            if not is_lost:
                await self.release()
            self._on_stopped_leading()
        if is_lost:
            renewing.result()
        leading.result()

    async def acquire(self) -> None:
        """Wait until this replica leads. `on_waiting` is called after each try in vain."""
        log.info("Attempting to acquire leader lease...", extra={"lock": self._lock.name})
        while not await self._try(deadline=math.inf):
            self._on_waiting()
            await self._sleep(self._pause())
        log.info("Successfully acquired lease", extra={"lock": self._lock.name})

    def _pause(self) -> float:
        """Seconds until the next look at the lease: with jitter, and not beyond its end."""
        pause = self._retry_period * (1 - JITTER * self._chance())
        runs_out = self._observed_at + self._observed.lease_duration_seconds - self._clock()
        return min(pause, runs_out) if runs_out > 0 else pause

    async def release(self) -> None:
        """Give up the lease, if this replica holds it, so that the next leader need not wait for its end."""
        deadline = self._clock() + self._renew_deadline
        while self.is_leader and (timeout := deadline - self._clock()) > 0:
            try:
                current = await self._lock.read(timeout)
                if current is None or current.holder_identity != self._identity:
                    return
                now = micro_time(self._wall_clock() / 1e9)
                free = LeaseRecord(
                    lease_duration_seconds=1,
                    renew_time=now,
                    acquire_time=now,
                    lease_transitions=current.lease_transitions,
                )
                await self._lock.update(free, timeout)
                self._observe(free, self._clock())
            except KubeError as error:
                if not (isinstance(error, ApiStatusError) and error.reason == "Conflict"):
                    log.error("Failed to release lease", extra={"err": error, "lock": self._lock.name})
                    return

    async def _renew(self) -> None:
        """Renew the lease until it is lost. Raises LeaseLostError."""
        while True:
            await self._sleep(self._retry_period)
            if not self.may_act:  # this machine was asleep
                raise LeaseLostError(f"lost lease {self._lock.name}: it ran out")
            deadline = min(self._clock() + self._renew_deadline, self._runs_out())
            while True:
                began = self._clock()
                if await self._try(deadline):
                    break
                if self.leader and not self.is_leader:
                    raise LeaseLostError(f"lost lease {self._lock.name}: {self.leader} holds it")
                if self._clock() >= deadline:
                    raise LeaseLostError(f"lost lease {self._lock.name}: not renewed within {self._renew_deadline:g} s")
                # The period counts from the beginning of the try, which may have waited for an answer.
                await self._sleep(max(0.0, min(began + self._retry_period, deadline) - self._clock()))

    def _runs_out(self) -> float:
        """When the lease ends for this replica as its holder."""
        return self._observed_at + self._observed.lease_duration_seconds * (1 - DRIFT)

    async def _try(self, deadline: float) -> bool:
        """Acquire the lease or renew it. False if another replica holds it, or no request succeeds by the deadline."""
        try:
            return await self._acquire_or_renew(deadline)
        except KubeError as error:
            log.error(self._complaint, extra={"err": error, "lock": self._lock.name})
            return False
        finally:
            self._report()

    async def _acquire_or_renew(self, deadline: float) -> bool:
        if self.is_leader and self.is_lease_valid and await self._renew_at_once(deadline):
            return True
        self._complaint = "Error retrieving lease lock"
        current = await self._ask_until_answered(self._lock.read, deadline)
        if current is None:
            self._complaint = "Error initially creating lease lock"
            await self._write(self._lock.create, self._record(acquire_time="", transitions=0), deadline)
            return True
        if current != self._observed:
            # A record of this replica whose write had no answer: others may have seen it as soon as it was sent.
            is_ours = current.holder_identity == self._identity
            self._observe(current, min(self._in_doubt_since, self._clock()) if is_ours else self._clock())
        if current.holder_identity and self.is_lease_valid and not self.is_leader:
            return False
        if self.is_leader:
            self.slow_paths += 1
            ours = self._record(acquire_time=current.acquire_time, transitions=current.lease_transitions)
        else:
            ours = self._record(acquire_time="", transitions=current.lease_transitions + 1)
        self._complaint = "Failed to update lease"
        await self._write(self._lock.update, ours, deadline)
        return True

    async def _renew_at_once(self, deadline: float) -> bool:
        """Write without reading first: most of the time no other replica has written."""
        ours = self._record(acquire_time=self._observed.acquire_time, transitions=self._observed.lease_transitions)
        try:
            await self._write(self._lock.update, ours, deadline)
        except KubeError as error:
            message = "Failed to update lease optimistically, falling back to slow path"
            log.info(message, extra={"lock": self._lock.name, "err": error})
            return False
        return True

    async def _write(
        self, write: Callable[[LeaseRecord, float], Coroutine[Any, Any, None]], ours: LeaseRecord, deadline: float
    ) -> None:
        sent_at = self._clock()
        self._in_doubt_since = min(self._in_doubt_since, sent_at)
        await self._ask_until_answered(lambda timeout: write(ours, timeout), deadline)
        self._observe(ours, sent_at)
        self._in_doubt_since = math.inf

    async def _ask_until_answered(self, ask: Callable[[float], Coroutine[Any, Any, T]], deadline: float) -> T:
        """The first good answer.

        The server may have died silently, before or after the request: so it is sent again beside the first one, well
        before that times out. That costs a server that is merely slow little. Writes are compare-and-swap: of several
        only one takes effect, and if the answer of that is lost, the next is a conflict. A conflict is an answer, too:
        no other is waited for.
        """
        if (remaining := deadline - self._clock()) <= 0:
            raise AnswerTimeoutError("no time left to renew it")
        began = self._clock()
        until = began + min(self._request_timeout, remaining)
        tries = itertools.count()

        async def once() -> T | ApiStatusError:
            if next(tries):
                self._lock.distrust()
            try:
                return await ask(until - self._clock())
            except ApiStatusError as error:
                if error.code == 409:
                    return error
                raise  # perhaps this server is ill, and another is not

        answer = await first_of_several(once, next_after=(until - began) / TRIES, most=TRIES)
        if isinstance(answer, ApiStatusError):
            raise answer
        return answer

    def _record(self, *, acquire_time: str, transitions: int) -> LeaseRecord:
        now = micro_time(self._wall_clock() / 1e9)
        return LeaseRecord(
            holder_identity=self._identity,
            lease_duration_seconds=int(self._lease_duration),
            acquire_time=acquire_time or now,
            renew_time=now,
            lease_transitions=transitions,
        )

    def _observe(self, record: LeaseRecord, at: float) -> None:
        self._observed = record
        self._observed_at = at

    def _report(self) -> None:
        if self.leader != self._reported:
            self._reported = self.leader
            self._on_new_leader(self.leader)


async def _cancel_and_wait(task: asyncio.Future[None]) -> None:
    """Cancel it and wait until it is over."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("Leader election ends with an error: %s", error)
