"""The main thread of a daemon, which has the lease, the endpoints and the signals, and the thread that schedules.

A scheduler may be busy for seconds without a pause, with a plugin that computes: so the main thread never waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import uvloop

from kubesched.daemon.cache_debugger import nominated_dump, queue_dump, state_dump
from kubesched.daemon.completion import Completed
from kubesched.daemon.feature_gates import VersionInfo
from kubesched.daemon.log import Log, Logging
from kubesched.daemon.metrics.census import resource_lines
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.page import MakePage, ObservedReplica
from kubesched.daemon.replica import FLUSH_WITHIN, Replica, running
from kubesched.daemon.serving.endpoints import (
    PING,
    HealthCheck,
    Served,
    handlers_check,
    informers_check,
    shutdown_check,
    skipped_check,
    thread_check,
)
from kubesched.daemon.serving.server import SecureServer, ServedPage
from kubesched.kube.authentication import Clients
from kubesched.kube.client import Client
from kubesched.kube.event_record import EventReference
from kubesched.kube.leader_election import LeaderElector
from kubesched.kube.lease import LeaseLock, new_identity

PATIENCE = 5.0
"""Seconds that a thread may take to end its work once it is asked to; then it is left behind."""

_LAST_SECONDS = 1.0
"""Seconds for the tasks that are left when the thread is to end."""

T = TypeVar("T")


class OwnThread:
    """A thread with an event loop: enter it to start the thread, leave it to end it. Other threads call its methods."""

    def __init__(self, name: str, *, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._loop = uvloop.new_event_loop()
        # A thread that is stuck in a plugin must not keep the process from ending.
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._asked_at: float | None = None
        self._patience = patience

    def __enter__(self) -> OwnThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.post(self._loop.stop)
        self._thread.join(self._patience)
        if self._thread.is_alive():
            log.error("A thread did not end in time and is left behind", thread=self._thread.name)

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Call it in the thread, soon."""
        self._loop.call_soon_threadsafe(function, *args)

    async def call(self, function: Callable[[], T]) -> T:
        """Call it in the thread, between two of its callbacks, and return its answer."""

        async def called() -> T:
            return function()

        return await self.run(called())

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the thread and wait for it. If this is cancelled, so is the work, and its end is waited for."""
        here = asyncio.get_running_loop()
        result: asyncio.Future[T] = here.create_future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(work)
            task.add_done_callback(lambda task: here.call_soon_threadsafe(_settle, result, task))
            tasks.append(task)

        self.post(begin)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            if not result.done():
                self.post(lambda: tasks[0].cancel())
                await asyncio.wait((result,), timeout=self._patience)
                if not result.done():
                    self._patience = 0.0  # it is stuck: there is no second wait
            if result.done() and not result.cancelled():
                result.exception()  # retrieved, or asyncio logs it
            raise

    def silence(self) -> float:
        """Seconds since the thread was first asked for a sign of life that it has not given; ask from time to time."""
        if self._asked_at is None:
            self._asked_at = self._clock()
            self.post(self._answer)
            return 0.0
        return self._clock() - self._asked_at

    def _answer(self) -> None:
        self._asked_at = None

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_end_tasks())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


async def _end_tasks() -> None:
    """End tasks that are never awaited, such as closing a connection, while their event loop still runs."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_LAST_SECONDS)


def _settle(result: asyncio.Future[T], task: asyncio.Task[T]) -> None:
    if result.done():
        return
    if task.cancelled():
        result.cancel()
    elif (error := task.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(task.result())


log = Log(__name__)


class Supervisor:
    """The lease, the endpoints and the signals. Of the thread that schedules it waits only for the end."""

    def __init__(
        self,
        settings: Completed,
        replica: Replica,
        connections: Clients,
        registry: MetricsRegistry,
        scheduling: OwnThread,
        make_page: MakePage | None = None,
    ) -> None:
        """The replica lives in the thread `scheduling`, as do all connections but those of leases."""
        self._make_page = make_page
        self._settings = settings
        self._replica = replica
        self._registry = registry
        self._scheduling = scheduling
        self._stopping = asyncio.Event()
        self._elector = self._elector_on(connections) if settings.elects else None

    async def run(self, logging: Logging, *, authentication: Client | None, authorization: Client | None) -> None:
        """Serve, lead and schedule until a signal stops it or the lease is lost.

        The clients ask the API server about users of the endpoints; without them no user is known.
        """
        self._listen_to_signals()
        served = self._make_served(logging.set_verbosity)
        clients = {"authentication": authentication, "authorization": authorization}
        async with (
            SecureServer(served, **clients, clock=time.monotonic, page=self._page())
            if self._settings.serves
            else contextlib.nullcontext(),
            running(logging.keep_flushing(float(self._settings.options.log_flush_frequency))),
            running(self._scheduling.run(self._replica.listen())),
        ):
            release = self._settings.gates.release
            log.info(
                "Starting Kubernetes Scheduler",
                version=VersionInfo.of(release).git_version,
                release=release.name,
                releaseSource=self._settings.release_source,
            )
            if self._elector is None:
                await self._scheduling.run(self._replica.act())
            else:
                await act_when_elected(self._stopping, self._elector, lambda: self._scheduling.run(self._replica.act()))
        await self._scheduling.run(self._replica.events.flush(FLUSH_WITHIN))

    # -- the lease ----------------------------------------------------------------------------------------------------

    def _elector_on(self, connections: Clients) -> LeaderElector:
        election, post = self._settings.configuration.leader_election, self._scheduling.post
        lock = LeaseLock(connections.leases, namespace=election.resource_namespace, name=election.resource_name)
        identity, name = new_identity(), election.resource_name
        is_leading = self._registry.family("leader_election_master_status").child(name)
        slow_paths = self._registry.family("leader_election_slowpath_total").child(name)

        def new_leader(leader: str) -> None:
            log.info("New leader elected", identity=leader)
            post(is_leading.set, leader == identity)
            if leader == identity:
                post(record, lock.reference, f"{identity} became leader")

        def stopped_leading() -> None:
            post(is_leading.set, False)
            post(record, lock.reference, f"{identity} stopped leading")

        def record(lease: EventReference, note: str) -> None:
            self._replica.events.record(
                lease, type="Normal", reason="LeaderElection", action="LeaderElection", note=note
            )

        elector = LeaderElector(
            lock,
            identity,
            election,
            on_new_leader=new_leader,
            on_stopped_leading=stopped_leading,
            on_waiting=lambda: post(self._replica.stand_by),
        )
        connections.scheduler.may_write = lambda: elector.may_act
        self._registry.on_scrape(lambda: slow_paths.set(elector.slow_paths))
        return elector

    # -- endpoints ----------------------------------------------------------------------------------------------------

    def _make_served(self, set_verbosity: Callable[[int], None]) -> Served:
        replica, settings, elector = self._replica, self._settings, self._elector
        scheduler, informers = replica.scheduler, replica.watch.informers
        liveness = (thread_check(self._scheduling.silence),)
        leadership = (HealthCheck("leaderElection", elector.check),) if elector is not None else ()
        readiness = (
            shutdown_check(self._stopping.is_set),
            handlers_check(lambda: informers.have_synced),
            informers_check(informers.not_synced),
            skipped_check(lambda: len(replica.watch.handling.skipped) + informers.unreadable),
        )
        dumps = {
            "queue": lambda: queue_dump(scheduler),
            "state": lambda: state_dump(scheduler),
            "nominated": lambda: nominated_dump(scheduler),
        }
        if replica.shadow is not None:
            dumps["shadow"] = replica.shadow.to_plain
        return Served(
            options=settings.options,
            configuration=settings.configuration,
            gates=settings.gates,
            metrics=self._registry,
            release_source=settings.release_source,
            healthz=(*(leadership or (PING,)), *liveness),
            livez=(PING, *liveness),
            readyz=(*leadership, *readiness),
            resource_lines=self._resource_lines,
            dumps=dumps,
            set_verbosity=set_verbosity,
            call=self._scheduling.call,
        )

    def _page(self) -> ServedPage | None:
        if not self._settings.options.ui_port or self._make_page is None:
            return None
        elector = self._elector
        leads = (lambda: True) if elector is None else (lambda: elector.is_leader)
        return self._make_page(ObservedReplica(self._replica, self._settings, self._scheduling.call, leads))

    def _resource_lines(self) -> Iterable[str]:
        if self._elector is not None and not self._elector.is_leader:
            return ()
        scheduler = self._replica.scheduler
        return resource_lines(list(scheduler.pods.values()), scheduler.state)

    # -- signals ------------------------------------------------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGUSR2, self._scheduling.post, self._dump)

    def _stop(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            log.warning("Stopping at once", signal=number.name)
            os._exit(1)
        log.info("Stopping", signal=number.name)
        self._stopping.set()
        self._scheduling.post(self._replica.stop)

    def _dump(self) -> None:
        log.info("Dump of the queue", **queue_dump(self._replica.scheduler))
        log.info("Dump of the cache", nodes=state_dump(self._replica.scheduler))
        self._replica.watch.comparer.compare_soon()


async def act_when_elected(stopping: asyncio.Event, elector: LeaderElector, act: Callable[[], Awaitable[None]]) -> None:
    """Act while leading. If stopped while still waiting for the lease, wait no longer."""
    electing, stopped = asyncio.create_task(elector.run(act)), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((electing, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not elector.is_leader:
            electing.cancel()
        # A leader stops as well, and ends by itself once all is finished.
        await asyncio.wait((electing,))
    finally:
        stopped.cancel()
        electing.cancel()
        await asyncio.wait((electing,))
    if not electing.cancelled():
        electing.result()
