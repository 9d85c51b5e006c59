"""The release that a daemon follows without --emulated-version: that of its API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from kubesched.api.errors import located
from kubesched.api.release import NEWEST, release_of
from kubesched.daemon.completion import Completed, complete_options
from kubesched.daemon.feature_gates import ReleaseSource
from kubesched.daemon.log import Log
from kubesched.daemon.replica import running
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.discovered import server_version
from kubesched.kube.errors import KubeError
from kubesched.kube.transport import user_agent

PATIENCE = 5.0
"""Seconds in which the server must answer: until then the daemon has no endpoints."""
ASK_AGAIN = 1.0

log = Log(__name__)


@asynccontextmanager
async def following_server(
    settings: Completed, server: ConnectionSettings, environ: Mapping[str, str]
) -> AsyncIterator[Completed]:
    """The settings for the release of the API server, unless a flag names the release.

    A server that does not answer is asked again, every second. If it turns out to be of another release than these
    settings, the log says so: only a restart follows it.
    """
    if settings.release_source is ReleaseSource.FLAG:
        yield settings
        return
    transport = transport_for(server, environ, connections=1)
    client = Client(
        transport, Throttle(-1.0, 0, clock=time.monotonic), agent=user_agent("version"), clock=time.monotonic
    )
    try:
        try:
            version = await server_version(client, timeout=PATIENCE, retries=0)
        except KubeError as error:
            release = settings.gates.release.name
            log.warning("The API server cannot be asked for its version yet", err=error, release=release)
            async with running(_ask_until_answered(settings, client)):
                yield settings
        else:
            with located(f"as Kubernetes {(release_of(version) or NEWEST).name}"):
                followed = complete_options(settings.options, version)
            yield followed
    finally:
        await transport.close()


async def _ask_until_answered(settings: Completed, client: Client) -> None:
    version: str | None = None
    while version is None:
        await asyncio.sleep(ASK_AGAIN)
        with suppress(KubeError):
            version = await server_version(client, timeout=PATIENCE, retries=0)
    release = settings.gates.release
    if release_of(version) not in (None, release):
        log.error("The API server is of another release than is followed; a restart follows it", version=version,
                  release=release.name)  # fmt: skip
    else:
        log.info("The API server said its version", version=version, release=release.name)
