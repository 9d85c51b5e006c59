"""The clients of a scheduler: each with limits of its own as in kube-scheduler, and leases with connections too."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubesched.config.configuration import ClientConnection
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.observer import Observer
from kubesched.kube.throttle import Throttle
from kubesched.kube.transport import Transport, user_agent

_LEASE_CONNECTIONS = 2


class Clients(NamedTuple):
    """Who talks to the API server. Events and leases must not wait behind bindings, nor the other way round.

    Leases may be used in another thread than the rest.
    """

    transport: Transport
    transport_of_leases: Transport
    scheduler: Client
    events: Client
    leases: Client


def clients_for(
    settings: ConnectionSettings,
    connection: ClientConnection,
    environ: Mapping[str, str],
    *,
    observer: Observer | None = None,
    observer_of_leases: Observer | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Clients:
    """Clients with the limits of the configuration. Raises ConnectionSettingsError, CredentialsError.

    Its contentType is accepted whatever it is, and JSON is spoken: records with only the needed fields decode from
    JSON in 16 us a pod, so protobuf would save little, and would need the schema of everything.
    """
    # Where the server leaves bindings without an answer, they hold all connections: the lease must not wait for one.
    transport = transport_for(settings, environ, observer=observer, clock=clock)
    of_leases = transport_for(
        settings, environ, observer=observer_of_leases, connections=_LEASE_CONNECTIONS, clock=clock
    )

    def client(suffix: str, transport: Transport, observer: Observer | None) -> Client:
        throttle = Throttle(connection.qps, connection.burst, clock=clock)
        return Client(transport, throttle, observer=observer, agent=user_agent(suffix), clock=clock)

    return Clients(
        transport,
        of_leases,
        scheduler=client("scheduler", transport, observer),
        events=client("events", transport, observer),
        leases=client("leader-election", of_leases, observer_of_leases),
    )
