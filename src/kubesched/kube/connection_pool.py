"""Connections that requests share: each takes the first that is free, whether it was used before or just made."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from kubesched.kube.deadlines import Deadlines
from kubesched.kube.errors import UnreachableError
from kubesched.kube.http_connection import HttpConnection

MOST_CONNECTIONS = 64
MOST_DIALED_AT_ONCE = 8
"""When all connections are lost at once (a server died, a certificate was replaced), dozens of requests want a new one.
Most need none of their own: the first few are free again before as many more could be made. And a handshake costs the
server more than most requests do: with two cores and 64 to make, a server is slow to renew the lease."""
LONGEST_IDLE = 60.0  # seconds; servers close idle connections too, and a request sent at that moment is lost

_CLOSED = "the connection is closed"

OnConnection = Callable[[HttpConnection], None]
Dial = Callable[[OnConnection, OnConnection], Awaitable[HttpConnection]]
"""Calls the first with each connection that is lost, the second with those that it makes besides the one it returns."""


class ConnectionPool:
    """At most `size` connections. Requests that wait get the next that is given back or made, in their order.

    A dial is for the first request that waits when it is done, whoever began it: so it goes on when a request gives up.

    When a certificate is replaced, connections that showed the last one are used until there is one with the new, or
    the server refuses them: nothing has to wait for a handshake, least of all the lease.
    """

    def __init__(self, dial: Dial, *, size: int = MOST_CONNECTIONS, clock: Callable[[], float]) -> None:
        self._dial = dial
        self._size = size
        self._clock = clock
        self._idle: deque[HttpConnection] = deque()
        self._waiting: deque[asyncio.Future[HttpConnection]] = deque()
        self._dials: set[asyncio.Task[None]] = set()
        self._deadlines = Deadlines()
        self._distrusted: set[asyncio.Task[None]] = set()
        """Dials that were under way at `distrust`: their server may be gone."""
        self._in_use = 0
        self._open: set[HttpConnection] = set()
        """With the present certificate."""
        self._outdated: set[HttpConnection] = set()
        """With an earlier one."""
        self._uses_outdated = False
        self._generation = 0
        """How many certificates there were before."""
        self._is_closed = False

    def take_idle(self) -> HttpConnection | None:
        """An idle connection for one request, if there is one. Give it back, whatever happens to it."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and self._clock() - connection.idle_since < LONGEST_IDLE:
                self._in_use += 1
                if connection in self._outdated:
                    self._dial_more(at_least=1)
                return connection
            connection.close()
        return None

    async def take(self, until: float = math.inf) -> HttpConnection:
        """As `take_idle`, but waits for one until that time of the loop. Raises UnreachableError, TimeoutError."""
        if self._is_closed:
            raise UnreachableError(_CLOSED)
        if (connection := self.take_idle()) is not None:
            return connection
        waiter: asyncio.Future[HttpConnection] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._deadlines.keep(waiter, until)
        self._dial_more()
        try:
            return await waiter
        except (asyncio.CancelledError, TimeoutError):
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiter)
            if not waiter.cancelled() and waiter.exception() is None:
                self.give_back(waiter.result())  # it came just when the wait ended
            raise
        finally:
            self._deadlines.drop(waiter)
            del waiter  # an error has this frame in its traceback, and would hold itself by it

    def give_back(self, connection: HttpConnection) -> None:
        self._in_use -= 1
        if self._is_good(connection):
            self._hand_on(connection)
        else:
            connection.close()
        if self._waiting:
            self._dial_more()

    def retire(self) -> None:
        """The certificate was replaced."""
        self._outdated |= self._open
        self._open.clear()
        self._uses_outdated = True
        self._generation += 1

    def refused(self, connection: HttpConnection) -> bool:
        """The server refused the credentials. Whether a connection with the present certificate may do better."""
        if connection not in self._outdated:
            return False
        self._leave_outdated()
        return True

    def close_idle(self) -> None:
        """Close idle connections: the server at their other end may be gone."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def distrust(self) -> None:
        """Close idle connections, and dial anew instead of waiting for dials under way."""
        self.close_idle()
        self._distrusted |= self._dials

    async def close(self) -> None:
        """Close all connections, and make no more: a retry would leave one that nobody closes."""
        self._is_closed = True
        self._deadlines.close()
        while self._waiting:
            self._fail_one(UnreachableError(_CLOSED))
        for connection in (*self._open, *self._outdated):
            connection.close()
        self._idle.clear()
        dials = tuple(self._dials)
        for dial in dials:
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)

    def _dial_more(self, at_least: int = 0) -> None:
        if self._is_closed:
            return
        if needed := min(max(at_least, len(self._waiting)), MOST_DIALED_AT_ONCE, self._size - self._in_use):
            missing = needed - sum(not dial.done() for dial in self._dials - self._distrusted)
            for _ in range(min(missing, MOST_DIALED_AT_ONCE - len(self._dials))):
                dial = asyncio.create_task(self._dial_once())
                self._dials.add(dial)
                dial.add_done_callback(self._on_dialed)

    def _on_dialed(self, dial: asyncio.Task[None]) -> None:
        self._dials.remove(dial)
        self._distrusted.discard(dial)
        self._dial_more()

    async def _dial_once(self) -> None:
        add = partial(self._add, self._generation)
        try:
            connection = await self._dial(self._lost, add)
        except Exception as error:  # whatever it is, one of the requests that wait gets it
            self._fail_one(error)
        else:
            add(connection)

    def _add(self, generation: int, connection: HttpConnection) -> None:
        if self._is_closed:
            connection.close()
            return
        if generation != self._generation:
            self._outdated.add(connection)
        else:
            self._open.add(connection)
            self._leave_outdated()
        if not connection.usable:
            self._lost(connection)  # it was lost before it was added
        if self._in_use + len(self._idle) < self._size:
            self._hand_on(connection)
        else:
            connection.close()

    def _lost(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        self._outdated.discard(connection)

    def _leave_outdated(self) -> None:
        self._uses_outdated = False
        for connection in [idle for idle in self._idle if idle in self._outdated]:
            self._idle.remove(connection)
            connection.close()

    def _is_good(self, connection: HttpConnection) -> bool:
        return connection in self._open or (self._uses_outdated and connection in self._outdated)

    def _hand_on(self, connection: HttpConnection) -> None:
        """Give it to the first request that waits; or else keep it for later, if it may be used then."""
        if not connection.usable:
            connection.close()
        elif self._waiting and (waiter := self._next_waiting()) is not None:
            self._in_use += 1
            waiter.set_result(connection)
        elif self._is_good(connection):
            now = connection.idle_since = self._clock()
            self._idle.append(connection)
            while now - self._idle[0].idle_since >= LONGEST_IDLE:  # it was needed in a busier time
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
