"""Listening on an address, with or without TLS. What is wrong with the address or a certificate is said in one line.

Certificate files are looked at for every connection: a renewed certificate is shown at once, and a client authority
that was read from the cluster is accepted at once.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web
from cryptography import x509

from kubesched.api.errors import UserError
from kubesched.http.connections import Connections
from kubesched.kube.tls import Certificate, show, stamp

BACKLOG = 128


class ListenError(UserError):
    """The address cannot be listened on; one line says why."""


class HttpServer:
    """An aiohttp application, or a plain server, on an address."""

    def __init__(
        self,
        served: web.Application | web.Server,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        backlog: int = BACKLOG,
    ) -> None:
        """Port 0 is replaced by a free one. The connections of an application are limited (`Connections`)."""
        self.host, self.port = host, port
        self._tls, self._backlog = tls, backlog
        self._runner: web.BaseRunner
        self._connections: Connections | None = None
        self._accepting: list[asyncio.Task[None]] = []
        if isinstance(served, web.Application):
            self._connections = Connections()
            served.middlewares.insert(0, self._connections.middleware())
            self._runner = web.AppRunner(served, access_log=None, shutdown_timeout=1.0)
        else:
            self._runner = web.ServerRunner(served, shutdown_timeout=1.0)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{host_and_port(self.host, self.port)}"

    async def start(self) -> None:
        """Listen. ListenError if the address cannot be had."""
        await self._runner.setup()
        try:
            await (self._listen() if self._connections is None else self._accept(self._connections))
        except OSError as error:
            await self.stop()
            where = host_and_port(self.host, self.port)
            raise ListenError(f"cannot listen on {where}: {_reason(error)}") from None

    async def stop(self) -> None:
        """Finish what is under way, within a second, and close all connections."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        if self._connections is not None:
            self._connections.close()
        await self._runner.cleanup()

    async def _listen(self) -> None:
        await web.TCPSite(self._runner, self.host, self.port, ssl_context=self._tls, backlog=self._backlog).start()
        self.port = self._runner.addresses[0][1]

    async def _accept(self, connections: Connections) -> None:
        """On all addresses that the host has."""
        loop, make = asyncio.get_running_loop(), self._runner.server
        assert make is not None
        infos = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((info[0], info[4]) for info in infos):
            listener = socket.create_server((address[0], self.port), family=family, backlog=self._backlog)
            listener.setblocking(False)
            self.port = listener.getsockname()[1]
            self._accepting.append(asyncio.create_task(self._serve(listener, connections, make), name="connections"))

    async def _serve(self, listener: socket.socket, connections: Connections, make: web.Server) -> None:
        with listener:
            await connections.accept(listener, self._tls, make)


def bind(address: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A socket that listens there; an unspecified address stands for all addresses of both families.

    ListenError, in the words of Go's `net.Listen`, if the address cannot be had.
    """
    parsed = ipaddress.ip_address(address)
    families = [socket.AF_INET6 if parsed.version == 6 else socket.AF_INET]
    if parsed.is_unspecified and socket.has_dualstack_ipv6():
        families.insert(0, socket.AF_INET6)
    while True:
        try:
            return _bind_family(address, families.pop(0), port, shares_port=shares_port)
        except OSError as error:
            if families and error.errno == errno.EAFNOSUPPORT:
                continue
            where = host_and_port(address, port)
            raise ListenError(
                f"failed to create listener: failed to listen on {where}: listen tcp {where}: bind: {_reason(error)}"
            ) from None


def host_and_port(host: str, port: int) -> str:
    """`HOST:PORT`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind_family(address: str, family: socket.AddressFamily, port: int, *, shares_port: bool) -> socket.socket:
    """As Go, it may take an address in TIME_WAIT; the flag about sharing addresses is about other things elsewhere."""
    is_dual = family == socket.AF_INET6 and ipaddress.ip_address(address).is_unspecified and socket.has_dualstack_ipv6()
    listener = socket.create_server(
        ("::" if is_dual else address, port),
        family=family,
        backlog=BACKLOG,
        reuse_port=shares_port,
        dualstack_ipv6=is_dual,
    )
    listener.setblocking(False)
    return listener


def _reason(error: OSError) -> str:
    """asyncio puts the address into its errors; names that cannot be resolved have numbers of their own."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()


log = logging.getLogger(__name__)


class TlsError(UserError):
    """Certificates that cannot be used; one line begins with the flag that names them."""


class ServedCertificate:
    """A certificate to show, and the names it is for: those given, or else those in it."""

    def __init__(self, pair: Certificate, names: Sequence[str] = (), files: Sequence[str] = ()) -> None:
        """`files` are those of certificate and key, if they may change."""
        self.pair = pair
        self.names = tuple(names) or _names_in(pair.chain)
        self._given_names = names
        self._files = files
        self._stamps: list[object] = []  # looked at by the first refresh, so that no change since the reading is missed

    def refresh(self) -> bool:
        """Read again if it changed. Whether it did, and could be read."""
        stamps: list[object] = [stamp(file) for file in self._files]
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        pair = _read(*self._files)
        server_context(pair)  # a pair that does not fit together, half-way through a renewal, changes nothing
        self.pair = pair
        self.names = tuple(self._given_names) or _names_in(pair.chain)
        return True


class ServingTls:
    """The context of the server: it chooses a certificate for each connection, by the name that is asked for."""

    def __init__(
        self,
        default: ServedCertificate,
        by_name: Sequence[ServedCertificate] = (),
        *,
        ciphers: str = "",
        minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ) -> None:
        """`ciphers` as OpenSSL calls them; empty for its own choice."""
        self._default = default
        self._by_name = by_name
        self._ciphers = ciphers
        self._minimum_version = minimum_version
        self._authorities = b""
        self._contexts: dict[int, ssl.SSLContext] = {}
        self.context = self._make(default)
        self.context.sni_callback = self._choose

    def trust(self, authorities: bytes) -> None:
        """Accept client certificates of these authorities (PEM), and of no others, from the next connection on."""
        if authorities != self._authorities:
            self._authorities = authorities
            self._contexts.clear()
            self.context.verify_mode = ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE

    def has_certificate_for(self, name: str) -> bool:
        """Whether a certificate is shown that is meant for this name."""
        names = (name, f"*.{name.partition('.')[2]}")
        return any(set(names) & {*certificate.names} for certificate in (self._default, *self._by_name))

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        certificate = self._certificate_for(name or "")
        try:
            if certificate.refresh():
                self._contexts.pop(id(certificate), None)
        except (OSError, ValueError) as error:
            log.error("A certificate could not be read again: %s", error)
        if id(certificate) not in self._contexts:
            self._contexts[id(certificate)] = self._make(certificate)
        connection.context = self._contexts[id(certificate)]

    def _certificate_for(self, name: str) -> ServedCertificate:
        """A name goes before a pattern, whose star stands for one part of the name."""
        pattern = f"*.{name.partition('.')[2]}"
        for served_name in (name, pattern):
            for certificate in self._by_name:
                if served_name in certificate.names:
                    return certificate
        return self._default

    def _make(self, certificate: ServedCertificate) -> ssl.SSLContext:
        context = server_context(certificate.pair)
        context.minimum_version = self._minimum_version
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        if self._authorities:
            context.load_verify_locations(cadata=self._authorities.decode())
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def tls_context(cert_file: str, key_file: str, client_ca_file: str) -> ssl.SSLContext | None:
    """TLS by files that may be renewed, and by flags that are called after them; None for none. Raises TlsError."""
    if bool(cert_file) != bool(key_file):
        raise TlsError("--tls-cert-file and --tls-private-key-file: give both, or none")
    if not cert_file:
        if client_ca_file:
            raise TlsError("--client-ca-file: needs --tls-cert-file and --tls-private-key-file")
        return None
    tls = ServingTls(read_certificate(cert_file, key_file, flag="--tls-cert-file"))
    if client_ca_file:
        try:
            tls.trust(Path(client_ca_file).read_bytes())
            ssl.create_default_context(cafile=client_ca_file)
        except OSError as error:  # ssl.SSLError is one, for a file without certificates
            raise TlsError(f"--client-ca-file: {client_ca_file}: {error}") from None
    return tls.context


def read_certificate(cert_file: str, key_file: str, names: Sequence[str] = (), *, flag: str) -> ServedCertificate:
    """The certificate in files, read again when they change. TlsError, which names the flag, if it cannot be used."""
    try:
        certificate = ServedCertificate(_read(cert_file, key_file), names, (cert_file, key_file))
        server_context(certificate.pair)
    except ssl.SSLError as error:
        raise TlsError(f"{flag}: {cert_file} and {key_file} do not fit together: {error.reason}") from None
    except OSError as error:
        raise TlsError(f"{flag}: {error.strerror}: {error.filename}") from None
    except ValueError as error:
        raise TlsError(f"{flag}: {cert_file}: {error}") from None
    return certificate


def server_context(pair: Certificate) -> ssl.SSLContext:
    """The context of a server that shows this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    show(context, pair)
    return context


def _read(cert_file: str, key_file: str) -> Certificate:
    return Certificate(Path(cert_file).read_bytes(), Path(key_file).read_bytes())


def _names_in(cert: bytes) -> tuple[str, ...]:
    first = x509.load_pem_x509_certificate(cert)
    try:
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))
