"""Where the API server is and who we are there, by what the configuration and the flags say."""

from __future__ import annotations

import time
from collections.abc import Mapping

from kubesched.config import SchedulerConfiguration
from kubesched.daemon.logging import Log
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client
from kubesched.kube.clients import Clients, clients_for
from kubesched.kube.connection import from_flags, in_cluster
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.observer import Observer
from kubesched.kube.throttle import Throttle

_REVIEW_CONNECTIONS = 4
_NO_LIMIT = -1.0

log = Log(__name__)


def connect(
    configuration: SchedulerConfiguration,
    master: str,
    environ: Mapping[str, str],
    *,
    observer: Observer,
    observer_of_leases: Observer,
) -> Clients:
    """ConnectionSettingsError or CredentialsError if it is not known where to, or as whom."""
    wanted = configuration.client_connection
    settings = from_flags(wanted.kubeconfig, master, environ)
    return clients_for(settings, wanted, environ, observer=observer, observer_of_leases=observer_of_leases)


def review_client(kubeconfig: str, environ: Mapping[str, str], observer: Observer) -> Client | None:
    """For asking about users. Without a kubeconfig the cluster we run in is asked, and outside of one nobody."""
    try:
        settings = from_flags(kubeconfig, "", environ) if kubeconfig else in_cluster(environ)
    except ConnectionSettingsError as problem:
        if kubeconfig:
            raise
        log.info("No kubeconfig for authentication or authorization, and not in a cluster", v=2, reason=problem)
        return None
    transport = transport_for(settings, environ, observer=observer, connections=_REVIEW_CONNECTIONS)
    throttle = Throttle(_NO_LIMIT, 0, clock=time.monotonic)
    return Client(transport, throttle, observer=observer, clock=time.monotonic)
