"""The clients of one replica, each with limits of its own, as kube-scheduler's; leases have their own connections."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.config import SchedulerConfiguration
from kubesched.daemon.logging import Log
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client
from kubesched.kube.connection import ConnectionSettings, from_flags, in_cluster
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.observer import Observer
from kubesched.kube.throttle import Throttle
from kubesched.kube.transport import Transport, user_agent

log = Log(__name__)


@dataclass(frozen=True)
class Connections:
    """Who talks to the API server, so that one does not keep the other waiting."""

    transports: tuple[Transport, ...]
    scheduling: Client
    events: Client
    leases: Client

    async def close(self) -> None:
        for transport in self.transports:
            await transport.close()


def connect(
    configuration: SchedulerConfiguration, master: str, environ: Mapping[str, str], observer: Observer
) -> Connections:
    """ConnectionSettingsError or CredentialsError if it is not known where to, or as whom."""
    wanted = configuration.client_connection
    settings = from_flags(wanted.kubeconfig, master, environ)
    transport = transport_for(settings, environ, observer=observer)
    # Where the server leaves bindings without an answer, they hold all connections: the lease must not wait for one.
    for_leases = transport_for(settings, environ, observer=observer, connections=2)

    def client(suffix: str, transport: Transport = transport) -> Client:
        throttle = Throttle(wanted.qps, wanted.burst, clock=time.monotonic)
        return Client(transport, throttle, observer=observer, agent=user_agent(suffix), clock=time.monotonic)

    leases = client("leader-election", for_leases)
    return Connections((transport, for_leases), client("scheduler"), client("events"), leases)


def review_client(kubeconfig: str, environ: Mapping[str, str], observer: Observer) -> Client | None:
    """For asking about users. Without a kubeconfig the cluster we run in is asked, and outside of one nobody."""
    try:
        settings = from_flags(kubeconfig, "", environ) if kubeconfig else in_cluster(environ)
    except ConnectionSettingsError as problem:
        if kubeconfig:
            raise
        log.info("No kubeconfig for authentication or authorization, and not in a cluster", v=2, reason=problem)
        return None
    return _unlimited(settings, environ, observer)


def _unlimited(settings: ConnectionSettings, environ: Mapping[str, str], observer: Observer) -> Client:
    transport = transport_for(settings, environ, observer=observer, connections=4)
    throttle = Throttle(-1, 0, clock=time.monotonic)
    return Client(transport, throttle, observer=observer, clock=time.monotonic)
