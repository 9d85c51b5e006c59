"""Measures what an open page costs a scheduler at work, per bound pod.

Two runs of a daemon differ by more than a page costs, even two minutes of one. So what the page adds is measured by
itself: what the thread that serves it uses, in a real daemon; and what it adds to the thread that schedules, where
decisions are noted and questions answered, in process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec

from bench import clusters
from bench.loop import Loop
from bench.processes import ApiServer, SchedulerProcess, free_port, wait_for
from kubesched import config
from kubesched.api.change import Change
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.listener import SchedulerListener
from kubesched.ui.model.decisions import DecisionLog
from kubesched.ui.sources import observe_scheduler
from kubesched.ui.stream import TICK, Follower
from kubesched.ui.views import PageViews

NODES, RUNNING, PODS, PER_SECOND = 5_000, 10_000, 4_000, 1_500
LONGEST_RUN = 300.0
_PENDING_EVERY, _HEADROOM_EVERY = 1.5, 6.0
"""Seconds between two questions of the overview."""


class Spent(NamedTuple):
    """CPU microseconds of a daemon per bound pod: in all, and of the thread that serves."""

    in_all: float
    serving: float


class Added(NamedTuple):
    """CPU microseconds per bound pod that a page adds to the thread that schedules."""

    noting: float
    answering: float


def spent(*, serves: bool, looks: bool = False) -> Spent:
    """`serves` is whether there is a page at all, `looks` whether it is open."""
    with _Daemon(serves=serves) as daemon:
        daemon.bind()
        with _overview(daemon.port) if looks else contextlib.nullcontext():
            return daemon.bind()


def added(pods: int = 4 * PODS) -> Added:
    """While a scheduler decides, as many pods a second as above, and all those that are left wait for their turn."""
    loop = Loop(NODES)
    scheduler = loop.scheduler
    for i in range(RUNNING):
        scheduler.handle(Change(new=clusters.pod(i, "running", node_name=f"node-{i % NODES:05d}")))
    for i in range(pods):
        scheduler.handle(Change(new=clusters.PLACED["basic"](i)))
    scheduler.listeners.append(_Measuring())
    views = PageViews(observe_scheduler(scheduler, config.default(), kind="daemon", title="", clock=time.monotonic))
    log = views.observed.log
    assert isinstance(log, DecisionLog)
    log.viewers = 1
    follower = Follower(views, None, 0, "")
    noting = _Timed(log)
    scheduler.listeners.remove(log)
    scheduler.listeners.append(noting)
    answering = 0.0
    tick = round(TICK * PER_SECOND)
    for done in range(0, pods - tick, tick):
        loop.run(tick)
        before = time.thread_time()
        msgspec.json.encode(follower.news(views))
        for questions, seconds in ((views.pending_groups, _PENDING_EVERY), (views.rooms, _HEADROOM_EVERY)):
            every = round(seconds * PER_SECOND / tick)
            if (done // tick) % every == 0:
                questions()
        answering += time.thread_time() - before
    bound = loop.binder.bound
    return Added(noting.seconds * 1e6 / bound, answering * 1e6 / bound)


class _Measuring(SchedulerListener):
    """As metrics do in a daemon: each attempt is measured."""

    def popped(self, attempt: Attempt) -> None:
        attempt.watch = Stopwatch(time.perf_counter)


class _Timed(SchedulerListener):
    """Tells another listener, and measures how long that takes."""

    def __init__(self, other: SchedulerListener) -> None:
        self._other = other
        self.seconds = 0.0

    def popped(self, attempt: Attempt) -> None:
        before = time.perf_counter()
        self._other.popped(attempt)
        self.seconds += time.perf_counter() - before

    def handled(self, change: Change[Any], events: Any, seconds: float) -> None:
        before = time.perf_counter()
        self._other.handled(change, events, seconds)
        self.seconds += time.perf_counter() - before

    def finished(self, attempt: Attempt) -> None:
        before = time.perf_counter()
        self._other.finished(attempt)
        self.seconds += time.perf_counter() - before


class _Daemon:
    """A scheduler at work on a large cluster. It ends with the `with` block."""

    def __init__(self, *, serves: bool) -> None:
        self._serves = serves
        self._made = 0

    def __enter__(self) -> Self:
        self._ends = contextlib.ExitStack()
        with self._ends:
            directory = Path(self._ends.enter_context(tempfile.TemporaryDirectory()))
            self._server = self._ends.enter_context(ApiServer())
            self._server.ask("nodes", count=NODES)
            self._server.ask("running", count=RUNNING, nodes=NODES)
            self.port = free_port()
            page = ("--ui-port", str(self.port), "--authorization-always-allow-paths", "/healthz,/ui/*")
            flags = ("--leader-elect=false", *(page if self._serves else ()))
            self._scheduler = self._ends.enter_context(SchedulerProcess(self._server.url, directory, flags=flags))
            self._scheduler.wait_until_ready()
            self._ends = self._ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def bind(self) -> Spent:
        """From the creation of the first of many pods until all are bound and all events are written."""
        before, serving = self._scheduler.cpu_seconds(), self._scheduler.main_thread_seconds()
        self._server.ask("pods", kind="basic", count=PODS, per_second=PER_SECOND, first=self._made)
        self._made += PODS

        def is_done() -> bool:
            if not self._scheduler.is_alive:
                raise RuntimeError("the scheduler ended before all pods were bound")
            return bool(self._server.ask("tell")["events"] == self._made)

        wait_for(is_done, LONGEST_RUN, f"{self._made} pods and events")
        spent = self._scheduler.cpu_seconds() - before, self._scheduler.main_thread_seconds() - serving
        return Spent(*(seconds * 1e6 / PODS for seconds in spent))


@contextlib.contextmanager
def _overview(port: int) -> Iterator[None]:
    """A client with the overview open, in a thread: it sends the requests of the page, as often as the page does."""
    opened, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_look(f"https://127.0.0.1:{port}/ui/", opened, ended)))
    thread.start()
    try:
        if not opened.wait(60):
            raise TimeoutError("the page did not open")
        yield
    finally:
        ended.set()
        thread.join(30)


async def _look(root: str, opened: threading.Event, ended: threading.Event) -> None:
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(root, connector=connector, raise_for_status=True) as client:
        about = await _got(client, "api/about")
        shown = await _got(client, f"api/map?group={about['groupBy']}")
        version = ",".join(map(str, shown["version"]))
        asking = [
            asyncio.create_task(_ask_often(client, "api/pending", _PENDING_EVERY)),
            asyncio.create_task(_ask_often(client, "api/headroom", _HEADROOM_EVERY)),
        ]
        patience = aiohttp.ClientTimeout(total=None)
        async with client.get(f"api/stream?version={version}&decision=0", timeout=patience) as stream:
            opened.set()
            decisions = 0
            while not ended.is_set():
                line = await stream.content.readline()
                if line.startswith(b"data:"):
                    decisions += len(json.loads(line[5:]).get("decisions", ()))
        for task in asking:
            task.cancel()
    if not decisions:
        raise RuntimeError("nobody saw a decision")


async def _ask_often(client: aiohttp.ClientSession, path: str, seconds: float) -> None:
    while True:
        await _got(client, path)
        await asyncio.sleep(seconds)


async def _got(client: aiohttp.ClientSession, path: str) -> Any:
    async with client.get(path) as response:
        return await response.json()
