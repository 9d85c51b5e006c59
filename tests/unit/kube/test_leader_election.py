"""Leader election in virtual time: one leader at a time, whatever happens to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.virtual_time import now, run

from kubesched.config.configuration import LeaderElection
from kubesched.kube.errors import AnswerTimeoutError, ApiStatusError, UnreachableError
from kubesched.kube.leader_election import LeaderElector, LeaseLostError
from kubesched.kube.lease import LeaseRecord
from kubesched.kube.timing import Timing

CONFLICT = ApiStatusError(409, "Conflict", "the object has been modified")


class SharedLease:
    """A lease in memory that several locks see."""

    def __init__(self, record: LeaseRecord | None = None) -> None:
        self.record = record
        self.version = 0
        self.writes: list[LeaseRecord] = []

    def lock(self) -> MemoryLock:
        return MemoryLock(self)

    def write(self, record: LeaseRecord) -> None:
        self.record = record
        self.version += 1
        self.writes.append(record)


class MemoryLock:
    """A lock whose network may be cut, hang, or carry out what was asked for and be slow or silent about it."""

    name = "kube-system/kube-scheduler"

    def __init__(self, lease: SharedLease) -> None:
        self.lease = lease
        self.version = -1
        self.is_cut = False
        self.hangs = False
        self.answers_late = False
        self.loses_answers = False
        self.distrusted = 0

    def distrust(self) -> None:
        self.distrusted += 1

    async def _answer(self, timeout: float) -> None:
        if self.loses_answers:
            await asyncio.sleep(timeout)
            raise AnswerTimeoutError("no answer")
        if self.answers_late:
            await asyncio.sleep(0.9 * timeout)

    async def _reach(self, timeout: float) -> None:
        if self.hangs:
            await asyncio.sleep(timeout)
            raise AnswerTimeoutError("no answer")
        if self.is_cut:
            raise UnreachableError("connection refused")

    async def read(self, timeout: float) -> LeaseRecord | None:
        await self._reach(timeout)
        self.version = self.lease.version
        return self.lease.record

    async def create(self, record: LeaseRecord, timeout: float) -> None:
        await self._reach(timeout)
        if self.lease.record is not None:
            raise ApiStatusError(409, "AlreadyExists", "already exists")
        self.lease.write(record)
        version = self.lease.version
        await self._answer(timeout)
        self.version = version

    async def update(self, record: LeaseRecord, timeout: float) -> None:
        await self._reach(timeout)
        if self.version != self.lease.version:
            raise CONFLICT
        self.lease.write(record)
        version = self.lease.version
        await self._answer(timeout)
        self.version = version


TIMING = Timing(clock=now, wall_clock=lambda: int((1.8e9 + now()) * 1e9), chance=lambda: 0.5)


def elector(lock: MemoryLock, identity: str = "me", **more: object) -> LeaderElector:
    return LeaderElector(
        lock,
        identity,
        LeaderElection(),
        timing=TIMING,
        **more,  # type: ignore[arg-type]
    )


def leading_for(seconds: float, *log: list[tuple[str, float]]) -> Callable[[], Awaitable[None]]:
    async def lead() -> None:
        for notes in log:
            notes.append(("starts", now()))
        try:
            await asyncio.sleep(seconds)
        finally:
            for notes in log:
                notes.append(("ends", now()))

    return lead


def held_by(identity: str, **more: int) -> LeaseRecord:
    return LeaseRecord(holder_identity=identity, lease_duration_seconds=15, renew_time="long ago", **more)  # type: ignore[arg-type]


def test_first_comer_creates_the_lease_renews_it_and_gives_it_up() -> None:
    lease = SharedLease()
    run(elector(lease.lock()).run(leading_for(5)))
    first, *renewals, last = lease.writes
    assert (first.holder_identity, first.lease_duration_seconds, first.lease_transitions) == ("me", 15, 0)
    assert first.acquire_time == first.renew_time == "2027-01-15T08:00:00.000000Z"
    assert [record.renew_time[17:19] for record in renewals] == ["02", "04"]
    assert {record.acquire_time for record in renewals} == {first.acquire_time}
    assert (last.holder_identity, last.lease_duration_seconds) == ("", 1)


def test_lease_of_somebody_alive_is_waited_for() -> None:
    async def main() -> None:
        lease = SharedLease()
        log: list[tuple[str, float]] = []
        other = asyncio.create_task(elector(lease.lock(), "other").run(leading_for(60)))
        await asyncio.sleep(1)
        await elector(lease.lock()).run(leading_for(1, log))
        await other
        assert 60 <= log[0][1] < 60 + 2 * 2.2
        assert lease.writes[-1].lease_transitions == 1

    run(main())


def test_replica_hears_of_each_try_that_was_in_vain_and_of_no_other() -> None:
    async def main() -> None:
        lease = SharedLease()
        heard: list[float] = []
        other = asyncio.create_task(elector(lease.lock(), "other").run(leading_for(5)))
        await asyncio.sleep(1)
        await elector(lease.lock(), on_waiting=lambda: heard.append(now())).run(leading_for(60))
        await other
        assert heard
        assert heard[0] == 1
        assert max(heard) < 5

    run(main())


def test_lease_of_somebody_dead_is_taken_when_it_has_run_out_by_our_clock() -> None:
    async def main() -> None:
        lease = SharedLease(held_by("dead", lease_transitions=4))
        log: list[tuple[str, float]] = []
        leaders: list[str] = []
        await elector(lease.lock(), on_new_leader=leaders.append).run(leading_for(1, log))
        assert 15 <= log[0][1] <= 15 + 2
        assert lease.writes[0].lease_transitions == 5
        assert leaders == ["dead", "me"]

    run(main())


def test_lease_that_was_given_up_is_taken_at_once() -> None:
    async def main() -> None:
        lease = SharedLease(LeaseRecord(lease_duration_seconds=1, lease_transitions=2))
        await elector(lease.lock()).acquire()
        assert now() == 0
        assert lease.writes[0].lease_transitions == 3

    run(main())


@pytest.mark.parametrize("trouble", ["is_cut", "hangs"])
def test_leader_that_cannot_renew_stops_within_the_deadline(trouble: str) -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        log: list[tuple[str, float]] = []
        task = asyncio.create_task(elector(lock).run(leading_for(1000, log)))
        await asyncio.sleep(5)
        setattr(lock, trouble, True)
        with pytest.raises(LeaseLostError, match=r"kube-system/kube-scheduler: not renewed within 10 s"):
            await task
        last_renewal = 4
        assert log[-1][0] == "ends"
        assert log[-1][1] <= last_renewal + 2 + 10
        assert log[-1][1] < last_renewal + 15  # before anybody else may take it

    run(main())


def test_leader_that_was_asleep_for_too_long_does_not_go_on() -> None:
    async def main() -> None:
        asleep = 0.0
        lock = SharedLease().lock()
        timing = Timing(clock=lambda: now() + asleep, chance=lambda: 0.5)
        me = LeaderElector(lock, "me", LeaderElection(), timing=timing)
        task = asyncio.create_task(me.run(leading_for(1000)))
        await asyncio.sleep(5)
        asleep, lock.is_cut = 60.0, True
        assert not me.is_lease_valid
        with pytest.raises(LeaseLostError, match="it ran out"):
            await task
        assert now() == pytest.approx(6)

    run(main())


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_time_for_which_the_machine_was_suspended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    awake = {time.CLOCK_BOOTTIME: 0.0}
    monkeypatch.setattr(time, "clock_gettime", awake.__getitem__)

    async def main() -> None:
        me = LeaderElector(SharedLease().lock(), "me", LeaderElection())
        await me.acquire()
        assert me.may_act
        awake[time.CLOCK_BOOTTIME] = 60.0
        assert not me.may_act

    run(main())


def test_short_trouble_is_outlived() -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        task = asyncio.create_task(elector(lock).run(leading_for(30)))
        await asyncio.sleep(5)
        lock.is_cut = True
        await asyncio.sleep(8)
        lock.is_cut = False
        await task
        assert lease.record is not None
        assert lease.record.holder_identity == ""

    run(main())


def test_leader_stops_at_once_when_somebody_else_has_the_lease() -> None:
    async def main() -> None:
        lease = SharedLease()
        task = asyncio.create_task(elector(lease.lock()).run(leading_for(1000)))
        await asyncio.sleep(5)
        lease.write(held_by("usurper"))
        with pytest.raises(LeaseLostError, match="usurper holds it"):
            await task
        assert now() == pytest.approx(6)
        assert lease.record == held_by("usurper")

    run(main())


def test_lease_touched_by_somebody_who_does_not_want_it_is_renewed_after_reading() -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        task = asyncio.create_task(me.run(leading_for(10)))
        await asyncio.sleep(3)
        lease.version += 1  # a label was added
        await task
        assert me.slow_paths == 1

    run(main())


def test_work_ends_before_the_lease_is_given_up() -> None:
    async def main() -> None:
        lease = SharedLease()

        async def lead() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(7)  # finishing bindings
                assert lease.record is not None
                assert lease.record.holder_identity == "me"

        task = asyncio.create_task(elector(lease.lock()).run(lead))
        await asyncio.sleep(20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert now() == pytest.approx(27)
        assert lease.record is not None
        assert lease.record.holder_identity == ""
        assert lease.writes[-2].renew_time[17:19] == "26"  # renewed while the work was ending

    run(main())


def test_error_of_the_work_is_raised_and_the_lease_given_up() -> None:
    async def main() -> None:
        lease = SharedLease()

        async def lead() -> None:
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await elector(lease.lock()).run(lead)
        assert lease.record is not None
        assert lease.record.holder_identity == ""

    run(main())


def test_conflict_while_giving_up_is_tried_again() -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        original, conflicts = lock.update, [True]

        async def contested(record: LeaseRecord, timeout: float) -> None:
            if conflicts:
                conflicts.pop()
                raise CONFLICT
            await original(record, timeout)

        lock.update = contested  # type: ignore[method-assign]
        await me.release()
        assert lease.record is not None
        assert lease.record.holder_identity == ""

    run(main())


def test_health_check_fails_when_a_leader_should_have_died_long_ago() -> None:
    async def main() -> None:
        me = elector(SharedLease().lock())
        assert me.check() is None
        await me.acquire()
        await asyncio.sleep(34)
        assert me.check() is None
        await asyncio.sleep(2)
        assert me.check() == "failed election to renew leadership on lease kube-system/kube-scheduler"

    run(main())


def test_health_check_does_not_mind_being_second() -> None:
    async def main() -> None:
        me = elector(SharedLease(held_by("other")).lock())
        task = asyncio.create_task(me.acquire())
        await asyncio.sleep(1)
        assert me.leader == "other"
        assert me.check() is None
        task.cancel()

    run(main())


TROUBLES = ["is_cut", "hangs", "answers_late", "loses_answers"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    troubles=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TROUBLES), st.floats(1, 25)), min_size=1, max_size=8)
)
@example(troubles=[(0, "is_cut", 1.0), (1, "is_cut", 4.0), (1, "hangs", 6.0)])  # two requests past the deadline
def test_never_two_leaders(troubles: list[tuple[int, str, float]]) -> None:
    async def main() -> None:
        lease = SharedLease()
        locks = [lease.lock() for _ in range(3)]
        leading: set[int] = set()

        electors: dict[int, LeaderElector] = {}

        async def lead(number: int) -> None:
            assert not leading
            assert [other for other, each in electors.items() if each.may_act] == [number]
            leading.add(number)
            try:
                await asyncio.sleep(10_000)
            finally:
                leading.remove(number)

        async def replica(number: int) -> None:
            while True:  # restarted by somebody whenever it exits
                try:
                    electors[number] = elector(locks[number], f"replica-{number}")
                    await electors[number].run(lambda: lead(number))
                except LeaseLostError:
                    await asyncio.sleep(1)

        tasks = [asyncio.create_task(replica(number)) for number in range(3)]
        for number, trouble, seconds in troubles:
            setattr(locks[number], trouble, True)
            await asyncio.sleep(seconds)
            setattr(locks[number], trouble, False)
        await asyncio.sleep(40)
        assert len(leading) == 1
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())


def test_lease_that_somebody_else_took_meanwhile_is_not_given_up() -> None:
    async def main() -> None:
        lease = SharedLease()
        me = elector(lease.lock())
        await me.acquire()
        lease.write(held_by("usurper"))
        await me.release()
        assert lease.record == held_by("usurper")

    run(main())


def test_renewal_whose_server_died_is_asked_for_again_beside_it() -> None:
    """By default every 1.25 s in the five of a request: the rest of them is for the server that lives."""

    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        asked: list[tuple[float, float]] = []
        update = lock.update

        async def first_hangs(record: LeaseRecord, timeout: float) -> None:
            asked.append((now(), timeout))
            await (update(record, timeout) if len(asked) > 1 else asyncio.sleep(1000))

        lock.update = first_hangs  # type: ignore[method-assign]
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(3.3)
        assert asked == [(2.0, 5.0), (3.25, 3.75)]
        assert lock.distrusted == 1, "other idle connections may lead to the same server"
        assert len(lease.writes) == 2
        assert me.slow_paths == 0
        renewing.cancel()

    run(main())


def test_connection_on_which_the_lease_was_renewed_is_trusted_with_the_next_renewal() -> None:
    """On a clock that never stands still: a new connection for every renewal would be one more thing to wait for."""

    async def main() -> None:
        ticks = count()
        lock = SharedLease().lock()
        me = LeaderElector(lock, "me", LeaderElection(), timing=Timing(clock=lambda: now() + 1e-6 * next(ticks)))
        await me.acquire()
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(11)
        renewing.cancel()
        assert len(lock.lease.writes) == 6
        assert lock.distrusted == 0

    run(main())


def test_conflict_is_an_answer_and_nothing_else_is_waited_for() -> None:
    """The first write took effect, and its server died before it said so: the second finds the lease changed."""

    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        update = lock.update
        asked: list[float] = []

        async def first_is_lost(record: LeaseRecord, timeout: float) -> None:
            asked.append(now())
            lock.loses_answers = len(asked) == 1
            await update(record, timeout)

        lock.update = first_is_lost  # type: ignore[method-assign]
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(3.3)
        assert asked == [2.0, 3.25, 3.25], "asked again, told of a conflict, read, and written at once"
        assert len(lease.writes) == 3
        assert me.slow_paths == 1
        renewing.cancel()

    run(main())


def test_error_of_one_server_does_not_end_the_question_to_another() -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        update = lock.update
        asked: list[float] = []

        async def slow_then_ill(record: LeaseRecord, timeout: float) -> None:
            asked.append(now())
            if len(asked) > 1:
                raise ApiStatusError(503, "ServiceUnavailable", "starting")
            await asyncio.sleep(2)
            await update(record, timeout)

        lock.update = slow_then_ill  # type: ignore[method-assign]
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(4.1)
        assert len(lease.writes) == 2
        renewing.cancel()

    run(main())


def test_lease_counts_from_when_it_was_sent_even_if_that_is_learned_later() -> None:
    """Who waits for it may have seen it at once: reading it later must not make it longer for us."""

    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        lock.loses_answers = True
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(3.5)  # the first was sent at 2 and took effect; the second, at 3.25, was told of a conflict
        assert me._observed == lease.writes[1]
        lock.is_cut = True
        await asyncio.gather(renewing, return_exceptions=True)
        assert me._runs_out() == 2 + 15 * 0.95

    run(main())


def test_server_that_is_slow_keeps_its_time_to_answer() -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        update = lock.update

        async def slow(record: LeaseRecord, timeout: float) -> None:
            await asyncio.sleep(4)
            await update(record, timeout)

        lock.update = slow  # type: ignore[method-assign]
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(6.1)
        assert len(lease.writes) == 2
        assert me.slow_paths == 0
        renewing.cancel()

    run(main())


def test_try_that_waited_in_vain_is_followed_by_another_at_once() -> None:
    async def main() -> None:
        lease = SharedLease()
        lock = lease.lock()
        me = elector(lock)
        await me.acquire()
        lock.is_cut = True
        tries: list[float] = []

        async def hang(timeout: float) -> LeaseRecord | None:
            if timeout == 5.0:
                tries.append(now())
            await asyncio.sleep(timeout)
            raise AnswerTimeoutError("no answer")

        lock.read = hang  # type: ignore[method-assign]
        renewing = asyncio.create_task(me._renew())
        await asyncio.sleep(8)
        assert tries == [2.0, 7.0]
        renewing.cancel()

    run(main())
