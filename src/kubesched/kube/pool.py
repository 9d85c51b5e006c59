"""Connections kept for the next request: the one used last goes first, so that the others may fall idle and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubesched.kube.http_connection import HttpConnection

MOST_CONNECTIONS = 64
LONGEST_IDLE = 60.0  # seconds; servers close idle connections too, and a request sent at that moment is lost

Dial = Callable[[Callable[[HttpConnection], None]], Awaitable[HttpConnection]]


class ConnectionPool:
    """At most so many connections; whoever needs one more waits for its turn."""

    def __init__(self, dial: Dial, *, size: int = MOST_CONNECTIONS, clock: Callable[[], float]) -> None:
        self._dial = dial
        self._clock = clock
        self._turns = asyncio.Semaphore(size)
        self._idle: list[HttpConnection] = []
        self._open: set[HttpConnection] = set()

    async def take(self) -> HttpConnection:
        """A connection for one request. Give it back, whatever happens to it."""
        await self._turns.acquire()
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.usable and self._clock() - connection.idle_since < LONGEST_IDLE:
                    return connection
                connection.close()
            connection = await self._dial(self._open.discard)
            self._open.add(connection)
            return connection
        except BaseException:
            self._turns.release()
            raise

    def give_back(self, connection: HttpConnection) -> None:
        if connection.usable and connection in self._open:
            connection.idle_since = self._clock()
            self._idle.append(connection)
        else:
            connection.close()
        self._turns.release()

    def retire(self) -> None:
        """Use none of the present connections again: their certificate is outdated."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        self._open.clear()

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in tuple(self._open):
            connection.close()
        self._idle.clear()
