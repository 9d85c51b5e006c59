"""Connections that requests share, in virtual time: who gets which, how many are dialed, and what is kept."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.virtual_time import now, run

from kubesched.kube.connection_pool import LONGEST_IDLE, MOST_DIALED_AT_ONCE, ConnectionPool, OnConnection
from kubesched.kube.errors import UnreachableError
from kubesched.kube.http_connection import HttpConnection


class Line(asyncio.Transport):
    """A transport that says nothing."""

    def __init__(self, connection: HttpConnection) -> None:
        super().__init__()
        self._connection = connection
        self._closed = False

    def is_closing(self) -> bool:
        return self._closed

    def abort(self) -> None:
        self._closed = True
        self._connection.connection_lost(None)


def connected(lost: OnConnection = lambda _: None) -> HttpConnection:
    connection = HttpConnection(asyncio.get_running_loop(), lost, bytearray(1024))
    connection.connection_made(Line(connection))
    return connection


class Dials:
    """Makes a connection in so many seconds, or an error."""

    def __init__(self, *takes: float) -> None:
        self._takes = list(takes)
        self.error: Exception | None = None
        self.begun = 0
        self.under_way = 0
        self.most_at_once = 0

    async def __call__(self, lost: OnConnection, spare: OnConnection) -> HttpConnection:
        self.spare = spare
        takes = self._takes[min(self.begun, len(self._takes) - 1)]
        self.begun += 1
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await asyncio.sleep(takes)
        finally:
            self.under_way -= 1
        if self.error is not None:
            raise self.error
        return connected(lost)


def pooled(test: Callable[[ConnectionPool, Dials], Coroutine[Any, Any, None]], *takes: float, size: int = 64) -> None:
    async def main() -> None:
        dials = Dials(*takes)
        await test(ConnectionPool(dials, size=size, clock=now), dials)

    run(main())


async def used_for(pool: ConnectionPool, seconds: float) -> HttpConnection:
    connection = await pool.take()
    await asyncio.sleep(seconds)
    pool.give_back(connection)
    return connection


def test_request_that_waits_takes_what_another_gives_back() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        first = await pool.take()
        waiting = asyncio.create_task(pool.take())
        await asyncio.sleep(1)
        pool.give_back(first)
        assert await waiting is first
        assert now() == 1, "and not when its own dial would have been through"

    pooled(test, 0, 1000)


def test_dial_goes_on_when_its_request_gives_up() -> None:
    """Where a handshake takes longer than a question about the lease may, each would begin where the last began."""

    async def test(pool: ConnectionPool, dials: Dials) -> None:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    await pool.take()
        await pool.take()
        assert (dials.begun, now()) == (1, 7)

    pooled(test, 7)


def test_dial_that_is_not_trusted_any_more_keeps_no_other_from_being_begun() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        first = asyncio.create_task(pool.take())
        await asyncio.sleep(1)
        pool.distrust()
        second = asyncio.create_task(pool.take())
        await asyncio.sleep(1)
        assert dials.begun == 3, "one for each who waits, besides"
        assert first.done()
        assert second.done()
        await pool.close()

    pooled(test, 1000, 0)


def test_there_are_only_so_many_dials_however_often_they_are_distrusted() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        waiting = [asyncio.create_task(pool.take()) for _ in range(3)]
        for _ in range(20):
            await asyncio.sleep(1)
            pool.distrust()
            waiting.append(asyncio.create_task(pool.take()))
        assert dials.under_way == MOST_DIALED_AT_ONCE
        await pool.close()
        await asyncio.gather(*waiting, return_exceptions=True)

    pooled(test, 1000)


def test_connection_that_lost_the_race_is_for_the_next_request() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        await pool.take()
        spare = connected()
        dials.spare(spare)
        assert await pool.take() is spare
        too_many = connected()
        dials.spare(too_many)
        assert not too_many.usable

    pooled(test, 0, size=2)


def test_many_who_wait_have_a_few_connections_dialed() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        await asyncio.gather(*(used_for(pool, 0.001) for _ in range(60)))
        assert dials.most_at_once == MOST_DIALED_AT_ONCE
        assert dials.begun <= 2 * MOST_DIALED_AT_ONCE

    pooled(test, 1)


def test_there_are_as_many_connections_as_are_needed_but_not_more_than_allowed() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        used = await asyncio.gather(*(used_for(pool, 100) for _ in range(30)))
        assert dials.begun == len(set(used)) == 20

    pooled(test, 1, size=20)


def test_those_who_wait_are_served_in_their_order() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        served: list[int] = []

        async def request(number: int) -> None:
            await used_for(pool, 1)
            served.append(number)

        await asyncio.gather(*(request(number) for number in range(9)))
        assert served == [*range(9)]

    pooled(test, 1, size=1)


def test_request_that_gives_up_when_it_is_served_leaves_the_connection_to_the_next() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        first = await pool.take()
        served, next_one = (asyncio.create_task(pool.take()) for _ in range(2))
        await asyncio.sleep(0)
        pool.give_back(first)
        served.cancel()
        assert await next_one is first
        pool.give_back(first)
        assert await pool.take() is first

    pooled(test, 0, 1000, size=1)


def test_who_waits_until_its_time_is_over_waits_no_more() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        for until in (3, 6):
            with pytest.raises(TimeoutError):
                await pool.take(until)
            assert now() == until
        await pool.take(until=9)
        assert (dials.begun, now()) == (1, 7), "nothing is dialed for those who are gone"

    pooled(test, 7)


def test_failed_dial_is_told_to_one_who_waits_and_the_others_get_theirs() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        dials.error = UnreachableError("refused")
        told = await asyncio.gather(*(pool.take() for _ in range(20)), return_exceptions=True)
        assert [type(each) for each in told] == [UnreachableError] * 20
        dials.error = None
        assert await pool.take()

    pooled(test, 0)


def test_error_of_a_dial_is_freed_with_its_last_use() -> None:
    """It holds whatever its traceback holds, and garbage is collected seldom."""

    async def test(pool: ConnectionPool, dials: Dials) -> None:
        dials.error = UnreachableError("refused")
        refusal = weakref.ref(dials.error)
        gc.disable()
        try:
            with pytest.raises(UnreachableError):
                await pool.take()
            await asyncio.sleep(1)
            dials.error = None
            assert refusal() is None
        finally:
            gc.enable()

    pooled(test, 0)


def test_connection_with_a_replaced_certificate_is_used_until_there_is_one_with_the_new() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        used, idle = await pool.take(), await pool.take()
        pool.give_back(idle)
        pool.retire()
        assert await pool.take() is idle, "nobody waits for a handshake"
        pool.give_back(idle)
        await asyncio.sleep(6)
        pool.give_back(used)
        assert not used.usable
        assert not idle.usable
        assert await pool.take() not in (used, idle)
        assert (dials.begun, now()) == (3, 6)

    pooled(test, 0, 0, 5)


def test_connection_with_a_replaced_certificate_is_kept_while_none_can_be_made() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        connection = await used_for(pool, 0)
        pool.retire()
        dials.error = UnreachableError("refused")
        for _ in range(3):
            assert await used_for(pool, 1) is connection
        assert dials.begun == 4, "one for each request, and none without"

    pooled(test, 0)


def test_connection_that_the_server_refuses_for_its_certificate_is_used_no_more() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        first, second = await pool.take(), await pool.take()
        assert not pool.refused(first), "its certificate is the present one: another connection would fare no better"
        pool.retire()
        assert pool.refused(first)
        assert pool.refused(second)
        for connection in (first, second):
            pool.give_back(connection)
            assert not connection.usable
        assert await pool.take() not in (first, second)

    pooled(test, 0)


def test_connection_dialed_with_a_certificate_that_was_replaced_meanwhile_is_used_all_the_same() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        waiting = asyncio.create_task(pool.take())
        await asyncio.sleep(1)
        pool.retire()
        connection = await waiting
        assert (connection.usable, now()) == (True, 5), "nobody has to begin anew"
        pool.give_back(connection)
        assert await pool.take() is connection
        await asyncio.sleep(6)
        pool.give_back(connection)
        assert not connection.usable

    pooled(test, 5)


def test_connections_of_a_busier_time_are_closed() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        busy = await asyncio.gather(*(used_for(pool, 1) for _ in range(5)))
        for _ in range(4):
            await asyncio.sleep(LONGEST_IDLE / 3)
            await used_for(pool, 0)
        assert [connection.usable for connection in busy].count(True) == 1

    pooled(test, 0)


def test_who_waits_when_everything_ends_is_told() -> None:
    async def test(pool: ConnectionPool, dials: Dials) -> None:
        waiting = asyncio.create_task(pool.take())
        await asyncio.sleep(1)
        await pool.close()
        with pytest.raises(UnreachableError):
            await waiting
        assert dials.under_way == 0

    pooled(test, 1000)


def test_closed_pool_makes_no_connection_that_nobody_would_close() -> None:
    async def story() -> None:
        dials = Dials(1.0)
        pool = ConnectionPool(dials, clock=now)
        first = asyncio.ensure_future(pool.take())
        await asyncio.sleep(0.5)
        await pool.close()
        with pytest.raises(UnreachableError):
            await first
        with pytest.raises(UnreachableError):  # one that tries again
            await pool.take()
        late = connected()
        dials.spare(late)
        assert not late.usable
        assert dials.begun == 1

    run(story())
