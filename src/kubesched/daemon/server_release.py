"""The release of a daemon that was not told one by --emulated-version: that of its API server."""

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
"""Seconds for a question: until it is answered, the endpoints of the daemon are not there."""
ASK_AGAIN = 1.0

log = Log(__name__)


@asynccontextmanager
async def as_server(
    settings: Completed, server: ConnectionSettings, environ: Mapping[str, str]
) -> AsyncIterator[Completed]:
    """The settings as the release of the API server has them, unless a flag says which release it is.

    A server that cannot be asked yet is asked on. If it turns out to be of another release than these settings are,
    the log says so: only a restart follows it.
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
            async with running(_until_known(settings, client)):
                yield settings
        else:
            with located(f"as Kubernetes {(release_of(version) or NEWEST).name}"):
                followed = complete_options(settings.options, version)
            yield followed
    finally:
        await transport.close()


async def _until_known(settings: Completed, client: Client) -> None:
    version: str | None = None
    while version is None:
        await asyncio.sleep(ASK_AGAIN)
        with suppress(KubeError):
            version = await server_version(client, timeout=PATIENCE, retries=0)
    followed, served = settings.gates.release, release_of(version)
    if served not in (None, followed):
        log.error("The API server is of another release than is followed; a restart follows it", version=version,
                  release=followed.name)  # fmt: skip
        return
    log.info("The API server said its version", version=version, release=followed.name)
