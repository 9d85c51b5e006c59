"""A reflector on a server in memory, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.builders import Json
from tests.unit.kube.memory_server import MemoryServer, View

from kubesched.kube.decoding import DictCodec
from kubesched.kube.reflector import Reflector
from kubesched.kube.timing import Timing


class Reflecting:
    """Owns an event loop in which the reflector runs; time passes only when a test says so."""

    def __init__(self, server: MemoryServer, **options: Any) -> None:
        self.server = server
        self.view = View()
        self.now = 0.0
        self.pauses: list[float] = []
        self._sleeper: asyncio.Future[None] | None = None
        self._loop = asyncio.new_event_loop()
        self.reflector: Reflector[Json] = self._loop.run_until_complete(self._made(options))
        self._task = self._loop.create_task(self.reflector.run())
        self.run()

    async def _made(self, options: Any) -> Reflector[Json]:
        return Reflector(
            "pods",
            self.server,
            DictCodec(),
            lambda change: self.view.handle(change),
            timing=Timing(clock=lambda: self.now, sleep=self._sleep, chance=lambda: 0.5),
            **options,
        )

    async def _sleep(self, seconds: float) -> None:
        if not seconds:
            await asyncio.sleep(0)
            return
        self.pauses.append(seconds)
        self._sleeper = asyncio.get_running_loop().create_future()
        await self._sleeper

    def run(self) -> None:
        """Until nothing moves without time passing."""

        async def turns() -> None:
            for _ in range(30):
                await asyncio.sleep(0)

        self._loop.run_until_complete(turns())
        if self._task.done():
            self._task.result()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
        self.run()

    @property
    def is_asleep(self) -> bool:
        return self._sleeper is not None and not self._sleeper.done()

    def settle(self) -> None:
        """Let it recover from whatever happened."""
        self.run()
        for _ in range(50):
            if not self.is_asleep:
                return
            self.pass_time(60)
        raise AssertionError("the reflector does not recover")

    def start_relist(self) -> asyncio.Task[None]:
        (task,) = self.start_relists(1)
        return task

    def start_relists(self, count: int) -> list[asyncio.Task[None]]:
        """One after another, while the first is under way."""
        tasks = []
        for _ in range(count):
            tasks.append(self._loop.create_task(self._relist()))
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(asyncio.sleep(0))
        self.run()
        return tasks

    async def _relist(self) -> None:
        await self.reflector.relist()

    def close(self) -> None:
        self._task.cancel()
        self._loop.run_until_complete(asyncio.gather(self._task, return_exceptions=True))
        self._loop.close()

    def assert_knows_the_truth(self) -> None:
        assert self.view.objects == self.server.objects
        assert {key.removeprefix("ns/") for key in self.reflector.objects} == set(self.server.objects)
