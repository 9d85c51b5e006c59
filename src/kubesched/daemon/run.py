"""`kubesched run` from its command line to its exit code: the composition root of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, TextIO

import msgspec
import uvloop

from kubesched.api.errors import UserError
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.completion import POLICY_KEY, Completed, completed_as_any, with_policy, write_configuration
from kubesched.daemon.feature_gates import version_text
from kubesched.daemon.log import Log, Logging, start_logging
from kubesched.daemon.metrics.client import RestClientMetrics, threadsafe
from kubesched.daemon.metrics.registry import registry_of
from kubesched.daemon.options import ArgumentsError, FlagError, Options, help_text, parse_options
from kubesched.daemon.page import MakePage
from kubesched.daemon.replica import build_replica
from kubesched.daemon.server_release import following_server
from kubesched.daemon.supervision import OwnThread, Supervisor
from kubesched.kube.authentication import Clients, clients_for, transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings, from_flags, in_cluster
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.leader_election import LeaseLostError
from kubesched.kube.observer import Observer
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler import garbage
from kubesched.scheduler.recording import open_recording

HANG_UP_WITHIN = 2.0
"""Seconds after which connections are left to the end of the process: the thread that has them may be stuck."""

_REVIEW_CONNECTIONS = 4
_NO_LIMIT = -1.0

log = Log(__name__)


def main(arguments: Sequence[str], command: str = "kubesched run", *, make_page: MakePage | None = None) -> int:
    """Run the scheduler and return the code to exit with: 0 after a signal to stop, 1 for everything else.

    `make_page` makes the web page of --ui-port.
    """
    options = options_or_exit_code(arguments, command, sys.stdout, sys.stderr)
    if isinstance(options, int):
        return options
    try:
        settings = completed_as_any(options)
        logging = start_logging(options)
    except UserError as error:
        return _refuse(error)
    try:
        for name, value in sorted(options.shown().items()):
            log.text(f'FLAG: --{name}="{value}"', v=1)
        if options.write_config_to:
            _log_warnings(settings)
            log.info("Wrote configuration to", file=write_configuration(settings))
            return 0
        garbage.collect_seldom()
        garbage.map_large_buffers()
        with OwnThread("scheduling") as scheduling:
            uvloop.run(_run(settings, logging, os.environ, scheduling, make_page))
        log.info("Requested to terminate, exiting")
        return 0
    except asyncio.CancelledError:
        log.info("Requested to terminate, exiting")
        return 0
    except LeaseLostError as error:
        log.error("Leaderelection lost", err=error)
        return 1
    except UserError as error:
        return _refuse(error)
    finally:
        logging.stop()


def _log_warnings(settings: Completed) -> None:
    for warning in settings.warnings:
        log.warning(warning)


def _refuse(error: UserError) -> int:
    sys.stderr.write("".join(f"Error: {line}\n" for line in error.lines))
    return 1


def options_or_exit_code(arguments: Sequence[str], command: str, out: TextIO, err: TextIO) -> Options | int:
    """The options; or the exit code, after help, the version or a mistake was printed."""
    width = shutil.get_terminal_size((0, 0)).columns
    try:
        options = parse_options(arguments, command)
    except ArgumentsError as error:
        err.write(f"Error: {error}\n")
        return 1
    except FlagError as error:
        err.write(f"Error: {error}\nAll flags: {command} --help\n")
        return 1
    if options.help:
        out.write(help_text(command, width))
        return 0
    text = version_text(options.version)
    if text is not None:
        out.write(f"{text}\n")
        return 0
    return options


async def _run(
    settings: Completed,
    logging: Logging,
    environ: Mapping[str, str],
    scheduling: OwnThread,
    make_page: MakePage | None,
) -> None:
    """Run until a signal: lease, endpoints and signals in this thread, all else in the thread `scheduling`."""
    options = settings.options
    kubeconfig = settings.configuration.client_connection.kubeconfig
    server = from_flags(kubeconfig, options.master, environ)  # as upstream, --config does not undo it
    this_task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert this_task is not None
    for number in (signal.SIGTERM, signal.SIGINT):  # until the supervisor listens to them
        loop.add_signal_handler(number, this_task.cancel)
    async with following_server(settings, server, environ) as followed:
        _log_warnings(followed)
        await _schedule(followed, server, logging, environ, scheduling, make_page)


async def _schedule(
    settings: Completed,
    server: ConnectionSettings,
    logging: Logging,
    environ: Mapping[str, str],
    scheduling: OwnThread,
    make_page: MakePage | None,
) -> None:
    options = settings.options
    registry = registry_of(options, settings.gates)
    observer = RestClientMetrics(registry)
    observer_in_main = threadsafe(observer, scheduling.post)
    registry.family("kubesched_release_info").child(settings.gates.release.name, settings.release_source).set(1)
    limits = settings.configuration.client_connection
    connections = clients_for(server, limits, environ, observer=observer, observer_of_leases=observer_in_main)
    try:
        settings = await scheduling.run(_with_policy_of_cluster(settings, connections))
        with _recording_to(settings.options.record) as record:
            replica = await scheduling.call(
                lambda: build_replica(settings, connections, registry, all_plugins(), record)
            )
            supervisor = Supervisor(settings, replica, connections, registry, scheduling, make_page)

            def review_client(kubeconfig: str) -> Client | None:
                return _review_client(kubeconfig, environ, observer_in_main) if settings.serves else None

            await supervisor.run(
                logging,
                authentication=review_client(options.authentication_kubeconfig),
                authorization=review_client(options.authorization_kubeconfig),
            )
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_WITHIN):
                await scheduling.run(connections.transport.close())
        await connections.transport_of_leases.close()


def _review_client(kubeconfig: str, environ: Mapping[str, str], observer: Observer) -> Client | None:
    """The client for reviews of tokens and access. Without a kubeconfig it asks the cluster that the daemon runs in."""
    try:
        settings = from_flags(kubeconfig, "", environ) if kubeconfig else in_cluster(environ)
    except ConnectionSettingsError as error:
        if kubeconfig:
            raise
        log.info("No kubeconfig for authentication or authorization, and not in a cluster", v=2, reason=error)
        return None
    transport = transport_for(settings, environ, observer=observer, connections=_REVIEW_CONNECTIONS)
    throttle = Throttle(_NO_LIMIT, 0, clock=time.monotonic)
    return Client(transport, throttle, observer=observer, clock=time.monotonic)


async def _with_policy_of_cluster(settings: Completed, connections: Clients) -> Completed:
    """The settings with the legacy Policy of --policy-configmap, if the flag is given."""
    if not settings.awaits_policy:
        return settings
    namespace, name = settings.options.policy_configmap_namespace, settings.options.policy_configmap
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    config_map = msgspec.json.decode(await connections.scheduler.get(path), type=dict[str, Any])
    text = (config_map.get("data") or {}).get(POLICY_KEY)
    if text is None:
        raise OptionsError(f'config map {namespace}/{name}: missing "{POLICY_KEY}"')
    return with_policy(settings, text, source=f"config map {namespace}/{name}")


@contextlib.contextmanager
def _recording_to(path: str) -> Iterator[IO[str] | None]:
    if not path:
        yield None
        return
    try:
        file = open_recording(path, lambda kept: log.info("Kept the earlier recording", file=str(kept)))
    except OSError as error:
        raise OptionsError(f"--record: {error.strerror}: {path}") from None
    try:
        yield file
    finally:
        try:
            file.close()
        except OSError as error:
            log.error("The end of the recording could not be written", err=error, file=path)
