"""`kubesched run` from its command line to its exit code: the composition root of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import IO, Any

import msgspec
import uvloop

from kubesched import config, garbage
from kubesched.daemon.beside import beside
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.command import options_or_exit_code
from kubesched.daemon.completion import POLICY_KEY, Completed, completed, with_policy, write_configuration
from kubesched.daemon.connecting import connect, review_client
from kubesched.daemon.dumps import nominated_dump, queue_dump, state_dump
from kubesched.daemon.logging import Log, Logging, start_logging
from kubesched.daemon.metrics.client import ClientMetrics, LeaderElectionMetrics, ToldElsewhere
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.metrics.resources import resource_lines
from kubesched.daemon.metrics.setup import registry_of
from kubesched.daemon.own_thread import OwnThread
from kubesched.daemon.replica import FLUSH_WITHIN, Replica
from kubesched.daemon.serving.endpoints import Served
from kubesched.daemon.serving.health import (
    PING,
    HealthCheck,
    handlers_check,
    informers_check,
    shutdown_check,
    thread_check,
)
from kubesched.daemon.serving.server import SecureServer, ServingError
from kubesched.daemon.version import VersionInfo
from kubesched.framework.profile import ProfileError
from kubesched.framework.registry import DuplicatePluginError, NotAPluginError
from kubesched.kube.clients import Clients
from kubesched.kube.errors import KubeError
from kubesched.kube.event_record import ObjectReference
from kubesched.kube.leader_election import LeaderElector, LeaseLostError
from kubesched.kube.lease import LeaseLock, new_identity
from kubesched.kube.observer import Observer
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.recording_file import open_recording

HANG_UP_WITHIN = 2.0
"""Seconds after which connections are left to the end of the process: the thread that has them may be stuck."""

log = Log(__name__)

_WRONG_INPUT = (
    config.ConfigError,
    OptionsError,
    ProfileError,
    DuplicatePluginError,
    NotAPluginError,
    ServingError,
    KubeError,
    ValueError,
    OSError,
)
"""Whatever somebody who runs this can put right: one line says what."""


def main(arguments: Sequence[str], command: str = "kubesched run") -> int:
    """Run the scheduler and return the code to exit with: 0 when told to stop, 1 for everything else."""
    options = options_or_exit_code(arguments, command, sys.stdout, sys.stderr)
    if isinstance(options, int):
        return options
    try:
        settings = completed(options)
        logging = start_logging(options)
    except _WRONG_INPUT as problem:
        return _refuse(problem)
    try:
        for name, value in sorted(options.shown().items()):
            log.text(f'FLAG: --{name}="{value}"', v=1)
        for warning in settings.warnings:
            log.warning(warning)
        if options.write_config_to:
            log.info("Wrote configuration to", file=write_configuration(settings))
            return 0
        garbage.collect_seldom()
        with OwnThread("scheduling") as scheduling:
            uvloop.run(_run(settings, logging, os.environ, scheduling))
        log.info("Requested to terminate, exiting")
        return 0
    except LeaseLostError as problem:
        log.error("Leaderelection lost", err=problem)
        return 1
    except _WRONG_INPUT as problem:
        return _refuse(problem)
    finally:
        logging.stop()


def _refuse(problem: BaseException) -> int:
    lines = problem.lines if isinstance(problem, config.ConfigError) else [str(problem)]
    sys.stderr.write("".join(f"Error: {line}\n" for line in lines))
    return 1


async def _run(settings: Completed, logging: Logging, environ: Mapping[str, str], scheduling: OwnThread) -> None:
    """The main thread has the lease, the endpoints and the signals; all the rest has the thread that schedules."""
    registry = registry_of(settings.options, settings.gates)
    counted = ClientMetrics(registry)
    told = ToldElsewhere(counted, scheduling.post)
    connections = connect(settings.configuration, settings.master, environ, observer=counted, observer_of_leases=told)
    stopping = asyncio.Event()
    try:
        settings = await scheduling.run(_with_policy_of_cluster(settings, connections))
        with _record_file(settings) as record:
            replica = await scheduling.call(
                lambda: Replica(settings, connections, registry, plugins=all_plugins(), record=record)
            )
            _listen_to_signals(stopping, replica, scheduling)
            elector = _elector(settings, connections, registry, replica, scheduling)
            server = _server(settings, registry, replica, elector, stopping, logging, environ, told, scheduling)
            try:
                await _live(settings, replica, elector, server, stopping, logging, scheduling)
            except (KubeError, OptionsError, ServingError):
                raise
            except Exception as mistake:  # ours, whatever its type: nobody should take it for theirs
                raise RuntimeError("the scheduler broke") from mistake
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_WITHIN):
                await scheduling.run(connections.transport.close())
        await connections.transport_of_leases.close()


async def _live(
    settings: Completed,
    replica: Replica,
    elector: LeaderElector | None,
    server: SecureServer | None,
    stopping: asyncio.Event,
    logging: Logging,
    scheduling: OwnThread,
) -> None:
    """Everything at work, until told to stop or until the lease is lost."""

    async def act() -> None:
        await scheduling.run(replica.act())

    async with (
        _serving(server),
        beside(logging.keep_flushing(float(settings.options.log_flush_frequency))),
        beside(scheduling.run(replica.listen())),
    ):
        log.info("Starting Kubernetes Scheduler", version=VersionInfo().git_version)
        if elector is None:
            await act()
        else:
            await act_when_elected(stopping, elector, act)
    await scheduling.run(replica.events.flush(FLUSH_WITHIN))


async def act_when_elected(stopping: asyncio.Event, elector: LeaderElector, act: Callable[[], Awaitable[None]]) -> None:
    """Act while leading. If told to stop while still waiting for the lease, wait no longer."""
    electing, told = asyncio.create_task(elector.run(act)), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((electing, told), return_when=asyncio.FIRST_COMPLETED)
        if not elector.is_leader:
            electing.cancel()
        # Whoever leads hears of `stopping` too, and ends by itself once all is finished.
        await asyncio.wait((electing,))
    finally:
        told.cancel()
        electing.cancel()
        await asyncio.wait((electing,))
    if not electing.cancelled():
        electing.result()


@contextlib.asynccontextmanager
async def _serving(server: SecureServer | None) -> AsyncIterator[None]:
    if server is not None:
        await server.start()
    try:
        yield
    finally:
        if server is not None:
            await server.stop()


async def _with_policy_of_cluster(settings: Completed, connections: Clients) -> Completed:
    """The settings with the legacy Policy of a config map worked in, if there is to be one."""
    where = settings.policy
    if where is None:
        return settings
    path = f"/api/v1/namespaces/{where.namespace}/configmaps/{where.name}"
    found = msgspec.json.decode(await connections.scheduler.get(path), type=dict[str, Any])
    text = (found.get("data") or {}).get(POLICY_KEY)
    if text is None:
        raise OptionsError([f'config map {where.namespace}/{where.name}: missing "{POLICY_KEY}"'])
    return with_policy(settings, text, source=f"config map {where.namespace}/{where.name}")


def _elector(
    settings: Completed, connections: Clients, registry: MetricsRegistry, replica: Replica, scheduling: OwnThread
) -> LeaderElector | None:
    if not settings.elects:
        return None
    wanted = settings.configuration.leader_election
    lock = LeaseLock(connections.leases, namespace=wanted.resource_namespace, name=wanted.resource_name)
    metrics, identity = LeaderElectionMetrics(registry, wanted.resource_name), new_identity()

    def new_leader(leader: str) -> None:
        log.info("New leader elected", identity=leader)
        scheduling.post(metrics.leading, leader == identity)
        if leader == identity:
            tell_everybody("became leader")

    def stopped_leading() -> None:
        scheduling.post(metrics.leading, False)
        tell_everybody("stopped leading")

    def tell_everybody(what: str) -> None:
        scheduling.post(record, lock.reference, f"{identity} {what}")

    def record(lease: ObjectReference, note: str) -> None:
        replica.events.record(lease, type="Normal", reason="LeaderElection", action="LeaderElection", note=note)

    elector = LeaderElector(lock, identity, wanted, on_new_leader=new_leader, on_stopped_leading=stopped_leading)
    connections.scheduler.may_write = lambda: elector.may_act
    registry.on_scrape(lambda: metrics.slow_paths(elector.slow_paths))
    return elector


def _server(
    settings: Completed,
    registry: MetricsRegistry,
    replica: Replica,
    elector: LeaderElector | None,
    stopping: asyncio.Event,
    logging: Logging,
    environ: Mapping[str, str],
    observer: Observer,
    scheduling: OwnThread,
) -> SecureServer | None:
    if not settings.serves:
        return None
    scheduler, options = replica.scheduler, settings.options
    lives = (thread_check(scheduling.silence),)
    leads = (HealthCheck("leaderElection", elector.check),) if elector is not None else ()
    synced = (
        shutdown_check(stopping.is_set),
        handlers_check(lambda: replica.informers.have_synced),
        informers_check(replica.informers.not_synced),
    )
    dumps = {
        "queue": lambda: queue_dump(scheduler),
        "state": lambda: state_dump(scheduler),
        "nominated": lambda: nominated_dump(scheduler),
    }
    if replica.shadow is not None:
        dumps["shadow"] = replica.shadow.to_plain
    served = Served(
        options=options,
        configuration=settings.configuration,
        gates=settings.gates,
        metrics=registry,
        healthz=(*(leads or (PING,)), *lives),
        livez=(PING, *lives),
        readyz=(*leads, *synced),
        resource_lines=lambda: _resource_lines(replica, elector),
        dumps=dumps,
        set_verbosity=logging.set_verbosity,
        call=scheduling.call,
    )
    return SecureServer(
        served,
        authentication=review_client(options.authentication_kubeconfig, environ, observer),
        authorization=review_client(options.authorization_kubeconfig, environ, observer),
        clock=time.monotonic,
    )


def _resource_lines(replica: Replica, elector: LeaderElector | None) -> Any:
    if elector is not None and not elector.is_leader:
        return ()
    return resource_lines(list(replica.scheduler.pods.values()), replica.scheduler.state)


def _listen_to_signals(stopping: asyncio.Event, replica: Replica, scheduling: OwnThread) -> None:
    running = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        if stopping.is_set():
            log.warning("Stopping at once", signal=number.name)
            os._exit(1)
        log.info("Stopping", signal=number.name)
        stopping.set()
        scheduling.post(replica.stop)

    def dump() -> None:
        log.info("Dump of the queue", **queue_dump(replica.scheduler))
        log.info("Dump of the belief", nodes=state_dump(replica.scheduler))
        replica.compare_soon()

    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, stop, number)
    running.add_signal_handler(signal.SIGUSR2, scheduling.post, dump)


def _record_file(settings: Completed) -> contextlib.AbstractContextManager[IO[str] | None]:
    if not settings.options.record:
        return contextlib.nullcontext()
    return open_recording(settings.options.record, lambda kept: log.info("Kept the earlier recording", file=str(kept)))
