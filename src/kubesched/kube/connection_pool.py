"""Connections that requests share: each takes the first that is free, whether it was used before or just made."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from kubesched.kube.errors import UnreachableError
from kubesched.kube.http_connection import HttpConnection

MOST_CONNECTIONS = 64
MOST_DIALED_AT_ONCE = 16
"""Where all connections are lost in one moment (a server died, a certificate was replaced), dozens of requests want a
new one. Most need none of their own: the first few are free again before as many more could be made. And a handshake
costs the server more than most requests do: who has two cores and 64 of them to make is slow to renew our lease."""
LONGEST_IDLE = 60.0  # seconds; servers close idle connections too, and a request sent at that moment is lost

Dial = Callable[[Callable[[HttpConnection], None]], Awaitable[HttpConnection]]


class ConnectionPool:
    """At most so many connections; those who wait get the next that is given back or made, in their order.

    A dial is for whoever waits when it is through. It goes on when a request gives up: the next one needs a connection
    as well, and would otherwise begin where that one began.
    """

    def __init__(self, dial: Dial, *, size: int = MOST_CONNECTIONS, clock: Callable[[], float]) -> None:
        self._dial = dial
        self._size = size
        self._clock = clock
        self._idle: deque[HttpConnection] = deque()
        self._waiting: deque[asyncio.Future[HttpConnection]] = deque()
        self._dials: set[asyncio.Task[None]] = set()
        self._in_use = 0
        self._open: set[HttpConnection] = set()
        self._generation = 0
        """Of certificates. Connections of an earlier one are not in `_open`."""

    async def take(self) -> HttpConnection:
        """A connection for one request. Give it back, whatever happens to it."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and not self._is_stale(connection):
                self._in_use += 1
                return connection
            connection.close()
        waiter: asyncio.Future[HttpConnection] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._dial_for_those_who_wait()
        try:
            return await waiter
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiter)
            if not waiter.cancelled() and waiter.exception() is None:
                self.give_back(waiter.result())  # it came in the very moment in which we gave up
            raise
        finally:
            del waiter  # an error has this frame in its traceback, and would hold itself by it

    def give_back(self, connection: HttpConnection) -> None:
        self._in_use -= 1
        if connection in self._open:
            self._hand_on(connection)
        else:
            connection.close()
        self._dial_for_those_who_wait()

    def retire(self) -> None:
        """Use none of the present connections again: their certificate is outdated."""
        self.close_idle()
        self._open.clear()
        self._generation += 1

    def close_idle(self) -> None:
        """Keep none for later: who should answer on them may be gone."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def close(self) -> None:
        """Hang up everywhere."""
        while self._waiting:
            self._fail_one(UnreachableError("the connection is closed"))
        for connection in tuple(self._open):
            connection.close()
        self._idle.clear()
        dials = tuple(self._dials)
        for dial in dials:
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)

    def _dial_for_those_who_wait(self) -> None:
        while len(self._dials) < min(len(self._waiting), MOST_DIALED_AT_ONCE, self._size - self._in_use):
            dial = asyncio.create_task(self._dial_once())
            self._dials.add(dial)
            dial.add_done_callback(self._dialed)

    def _dialed(self, dial: asyncio.Task[None]) -> None:
        self._dials.remove(dial)
        self._dial_for_those_who_wait()

    async def _dial_once(self) -> None:
        generation = self._generation
        try:
            connection = await self._dial(self._open.discard)
        except Exception as error:  # whatever it is, it is for one of those who wait
            self._fail_one(error)
            return
        if generation == self._generation and connection.usable:
            self._open.add(connection)
        # With a certificate that was replaced meanwhile it is good for one request, if one waits.
        self._hand_on(connection)

    def _hand_on(self, connection: HttpConnection) -> None:
        """To the first who waits; or else it is kept for later, if it may be used then."""
        if connection.usable and (waiter := self._next_waiting()) is not None:
            self._in_use += 1
            waiter.set_result(connection)
        elif connection.usable and connection in self._open:
            connection.idle_since = self._clock()
            self._idle.append(connection)
            while self._is_stale(self._idle[0]):  # it was needed in a busier time
                self._idle.popleft().close()
        else:
            connection.close()

    def _fail_one(self, error: Exception) -> None:
        if (waiter := self._next_waiting()) is not None:
            waiter.set_exception(error)

    def _next_waiting(self) -> asyncio.Future[HttpConnection] | None:
        while self._waiting:
            if not (waiter := self._waiting.popleft()).done():
                return waiter
        return None

    def _is_stale(self, connection: HttpConnection) -> bool:
        return self._clock() - connection.idle_since >= LONGEST_IDLE
