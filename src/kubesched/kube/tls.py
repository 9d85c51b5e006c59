"""TLS contexts: trusted authorities and a client certificate, from files or inline data, renewed when these change."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from pathlib import Path

import msgspec

from kubesched.kube.errors import ConnectionSettingsError

log = logging.getLogger(__name__)


class ServerTrust(msgspec.Struct, frozen=True):
    """How the server proves who it is."""

    ca_file: str = ""
    ca_data: bytes = b""
    insecure: bool = False
    server_name: str = ""


class Certificate(msgspec.Struct, frozen=True):
    """A certificate, with those of its issuers, and its key, in PEM."""

    chain: bytes
    key: bytes


class TlsContexts:
    """The context for the certificate of the moment. One is kept: making one reads and parses the authorities."""

    def __init__(self, trust: ServerTrust) -> None:
        self._trust = trust
        self._authorities: tuple[int, ...] = ()
        self._shown: Certificate | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """Raises ConnectionSettingsError if authorities or certificate cannot be used.

        Authorities that cannot be read again are those that they were: the file may be half written.
        """
        authorities = stamp(self._trust.ca_file) or self._authorities  # a file that is gone for a moment did not change
        if self._context is None or certificate != self._shown or authorities != self._authorities:
            try:
                self._context = _context(self._trust, certificate)
            except ConnectionSettingsError as error:
                if self._context is None or certificate != self._shown:
                    raise
                log.error("Authorities cannot be read again, the last ones stay in use: %s", error)
                return self._context
            self._shown = certificate
            self._authorities = authorities
        return self._context


def stamp(path: str) -> tuple[int, ...]:
    """What changes when a file is replaced; nothing if there is no such file."""
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _context(trust: ServerTrust, certificate: Certificate | None) -> ssl.SSLContext:
    authorities = trust.ca_file or "certificate-authority-data"
    try:
        if trust.ca_data:
            context = ssl.create_default_context(cadata=_text(trust.ca_data))
        else:
            context = ssl.create_default_context(cafile=trust.ca_file or None)
    except (OSError, ValueError) as error:
        raise ConnectionSettingsError(f"{authorities}: expected certificates in PEM: {_words(error)}") from None
    # Newer Pythons insist on key identifiers, which the authorities of many clusters do not have; Go does not mind.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False  # as Go: a name is an alternative name, or it is none
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    if certificate is not None:
        try:
            show(context, certificate)
        except (OSError, ValueError) as error:
            problem = f"expected a client certificate and its key in PEM: {_words(error)}"
            raise ConnectionSettingsError(problem) from None
    return context


def show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Have connections show the certificate. OSError or ValueError if it cannot be used.

    The standard library reads certificates from files only: data is in a private one for a moment.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "certificate")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(certificate.chain.rstrip() + b"\n" + certificate.key)
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _text(pem: bytes) -> str:
    return pem.decode("ascii")


def _words(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or str(problem)
