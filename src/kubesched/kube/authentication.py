"""Makes credentials of a kubeconfig's user, and transports and clients of connection settings."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from kubesched.config.configuration import ClientConnection
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.connection_pool import MOST_CONNECTIONS
from kubesched.kube.credentials import (
    CertificateFiles,
    Credentials,
    FixedAuthorization,
    TokenFile,
    WithCertificate,
    basic,
    bearer,
)
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.exec_plugin import ExecCredentials
from kubesched.kube.kubeconfig import KubeconfigUser
from kubesched.kube.observer import Observer
from kubesched.kube.oidc import OidcCredentials
from kubesched.kube.tls import Certificate
from kubesched.kube.transport import Transport, user_agent


def transport_for(
    settings: ConnectionSettings,
    environ: Mapping[str, str],
    *,
    observer: Observer | None = None,
    connections: int = MOST_CONNECTIONS,
    is_urgent: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Transport:
    """A transport to that server as that user. If it is urgent, more connections are dialed at once.

    Raises ConnectionSettingsError, CredentialsError.
    """
    return Transport(
        Dialer(settings.server, settings.trust, settings.proxy_url, is_urgent=is_urgent),
        credentials_for(settings, environ, observer=observer or Observer(), clock=clock),
        headers=_impersonation(settings.user),
        connections=connections,
        clock=clock,
    )


def credentials_for(
    settings: ConnectionSettings, environ: Mapping[str, str], *, observer: Observer, clock: Callable[[], float]
) -> Credentials:
    """The credentials of the user. Those in the file go before plugins and providers, as in client-go."""
    user = settings.user
    credentials = Credentials()
    if user.token_file:  # if both are given, the file is what is kept fresh
        credentials = TokenFile(user.token_file, clock=clock)
    elif user.token:
        credentials = FixedAuthorization(bearer(user.token))
    elif user.username or user.password:
        credentials = FixedAuthorization(basic(user.username, user.password))
    elif user.exec is not None and not user.client_certificate and not user.client_certificate_data:
        credentials = ExecCredentials(user.exec, _cluster_for_plugins(settings), environ=environ, observer=observer)
    elif user.auth_provider is not None:
        credentials = OidcCredentials(user.auth_provider.config, environ=environ)
    certificate = _certificate(user, clock)
    return credentials if certificate is None else WithCertificate(credentials, certificate)


def _certificate(user: KubeconfigUser, clock: Callable[[], float]) -> CertificateFiles | Certificate | None:
    if user.client_certificate_data or user.client_key_data:
        chain = user.client_certificate_data or _read(user.client_certificate)
        return Certificate(chain, user.client_key_data or _read(user.client_key))
    if user.client_certificate:
        return CertificateFiles(user.client_certificate, user.client_key, clock=clock)
    return None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConnectionSettingsError(f"{path}: {error.strerror}") from None


def _cluster_for_plugins(settings: ConnectionSettings) -> dict[str, Any]:
    """The cluster, as ExecCredential has it."""
    trust = settings.trust
    authorities = trust.ca_data or (_read(trust.ca_file) if trust.ca_file else b"")
    cluster = {
        "server": settings.server,
        "tls-server-name": trust.server_name,
        "insecure-skip-tls-verify": trust.insecure,
        "certificate-authority-data": base64.b64encode(authorities).decode(),
        "proxy-url": settings.proxy_url,
        "config": settings.exec_extension,
    }
    return {name: value for name, value in cluster.items() if value}


def _impersonation(user: KubeconfigUser) -> str:
    if not user.impersonate:
        return ""
    headers = [("Impersonate-User", user.impersonate), ("Impersonate-Uid", user.impersonate_uid)]
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups]
    for key, values in user.impersonate_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    for name, value in headers:
        if not value.isprintable() or not value.isascii():
            raise ConnectionSettingsError(f"{name}: expected plain characters, got {value!r}")
    return "".join(f"{name}: {value}\r\n" for name, value in headers if value)


_LEASE_CONNECTIONS = 4
"""One for each try of a request about the lease (`leader_election.TRIES`)."""
_NO_LIMIT = -1.0


class Clients(NamedTuple):
    """The clients of one API server. Events and leases do not wait for bindings, nor bindings for them.

    `leases` may be used in another thread than the others.
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

    Any contentType is accepted, and JSON is sent and read: records with only the needed fields decode from JSON in
    16 us a pod, so protobuf would save little, and would need the schemas of all kinds.
    """
    # Bindings that the server does not answer hold all connections, for one of which the lease must not wait. Nor must
    # one request about the lease wait for the connection of another.
    transport = transport_for(settings, environ, observer=observer, clock=clock)
    of_leases = transport_for(
        settings, environ, observer=observer_of_leases, connections=_LEASE_CONNECTIONS, is_urgent=True, clock=clock
    )

    def client(suffix: str, transport: Transport, observer: Observer | None, qps: float) -> Client:
        throttle = Throttle(qps, connection.burst, clock=clock)
        return Client(transport, throttle, observer=observer, agent=user_agent(suffix), clock=clock)

    return Clients(
        transport,
        of_leases,
        scheduler=client("scheduler", transport, observer, connection.qps),
        events=client("events", transport, observer, connection.qps),
        # A lease is renewed every two seconds, and must be in time, so it has no limit.
        leases=client("leader-election", of_leases, observer_of_leases, _NO_LIMIT),
    )
