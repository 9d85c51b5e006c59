"""One address with several servers behind it, of which any may die without a word: its connections just hang."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import cycle

_PIECE = 1 << 16
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer:
    """Hands each new connection to one of the servers, whether or not that is alive: it does not know.

    A server that has died sends nothing, not even a refusal: as a machine that lost its power. When it comes back, it
    hangs up on the connections that it knows nothing of.
    """

    def __init__(self, ports: Sequence[int], rng: random.Random | None = None) -> None:
        """By chance, if there is an `rng`; or else in turns."""
        self._ports = ports
        self._turns = cycle(range(len(ports)))
        self._rng = rng
        self._dead: set[int] = set()
        self._connections: dict[asyncio.StreamWriter, int] = {}
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._listening: asyncio.Server | None = None
        self._thawed = asyncio.Event()
        self._thawed.set()
        self.port = 0
        self.delay = 0.0
        """Seconds for which every piece of an answer is held back."""
        self.hung = 0
        """Connections that met a dead server, or had one die on them."""

    async def start(self) -> None:
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        for task, writer in self._tasks.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def kill(self, server: int) -> None:
        """From now on nothing comes from that server, on any connection."""
        self.hung += sum(1 for of in self._connections.values() if of == server)
        self._dead.add(server)

    def revive(self, server: int) -> None:
        """Nothing changes for a server that is alive."""
        if server in self._dead:
            self._dead.discard(server)
            self.cut(server)

    def cut(self, server: int) -> None:
        """Hang up on all connections to that server."""
        for writer, of in list(self._connections.items()):
            if of == server:
                writer.transport.abort()

    def freeze(self) -> None:
        """Nothing passes any more, in any direction; nothing of it is lost."""
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = next(self._turns) if self._rng is None else self._rng.randrange(len(self._ports))
        task = asyncio.create_task(self._serve(server, reader, writer))
        self._tasks[task] = writer
        task.add_done_callback(self._tasks.pop)

    async def _serve(self, server: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = server
        try:
            if server in self._dead:
                self.hung += 1
                while await reader.read(_PIECE):
                    pass
                return
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._ports[server])
            try:
                await self._join(server, (reader, writer), (to_reader, to_writer))
            finally:
                to_writer.transport.abort()
        except OSError:
            pass
        finally:
            del self._connections[writer]
            writer.transport.abort()

    async def _join(self, server: int, client: _Streams, backend: _Streams) -> None:
        """Until either side hangs up; but nothing is heard of a dead server, not even its end."""
        there = asyncio.create_task(self._pipe(server, client[0], backend[1]))
        back = asyncio.create_task(self._pipe(server, backend[0], client[1], is_answer=True))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            if server in self._dead:
                await there
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)

    async def _pipe(
        self, server: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False
    ) -> None:
        try:
            while data := await reader.read(_PIECE):
                if is_answer and self.delay:
                    await asyncio.sleep(self.delay)
                await self._thawed.wait()
                if server not in self._dead:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
