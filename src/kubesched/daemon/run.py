"""`kubesched run` from its command line to its exit code: the composition root of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

import msgspec
import uvloop

from kubesched import config, garbage
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.command import options_or_exit_code
from kubesched.daemon.completion import POLICY_KEY, Completed, completed, with_policy, write_configuration
from kubesched.daemon.connecting import connect, review_client
from kubesched.daemon.logging import Log, Logging, start_logging
from kubesched.daemon.metrics.client import ClientMetrics, ToldElsewhere
from kubesched.daemon.metrics.setup import registry_of
from kubesched.daemon.own_thread import OwnThread
from kubesched.daemon.replica import Replica
from kubesched.daemon.serving.server import ServingError
from kubesched.daemon.supervision import Supervisor
from kubesched.framework.profile import ProfileError
from kubesched.framework.registry import DuplicatePluginError, NotAPluginError
from kubesched.kube.client import Client
from kubesched.kube.clients import Clients
from kubesched.kube.errors import KubeError
from kubesched.kube.leader_election import LeaseLostError
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.recording.recording_file import open_recording

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
    options = settings.options
    registry = registry_of(options, settings.gates)
    counted = ClientMetrics(registry)
    told = ToldElsewhere(counted, scheduling.post)
    connections = connect(settings.configuration, settings.master, environ, observer=counted, observer_of_leases=told)
    try:
        settings = await scheduling.run(_with_policy_of_cluster(settings, connections))
        with _record_file(settings) as record:
            replica = await scheduling.call(
                lambda: Replica(settings, connections, registry, plugins=all_plugins(), record=record)
            )
            supervisor = Supervisor(settings, replica, connections, registry, scheduling)

            def reviewing(kubeconfig: str) -> Client | None:
                return review_client(kubeconfig, environ, told) if settings.serves else None

            try:
                await supervisor.live(
                    logging,
                    authentication=reviewing(options.authentication_kubeconfig),
                    authorization=reviewing(options.authorization_kubeconfig),
                )
            except (KubeError, OptionsError, ServingError):
                raise
            except Exception as mistake:  # ours, whatever its type: nobody should take it for theirs
                raise RuntimeError("the scheduler broke") from mistake
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_WITHIN):
                await scheduling.run(connections.transport.close())
        await connections.transport_of_leases.close()


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


def _record_file(settings: Completed) -> contextlib.AbstractContextManager[IO[str] | None]:
    if not settings.options.record:
        return contextlib.nullcontext()
    return open_recording(settings.options.record, lambda kept: log.info("Kept the earlier recording", file=str(kept)))
