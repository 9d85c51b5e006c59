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
    """How the identity of a server is verified."""

    ca_file: str = ""
    ca_data: bytes = b""
    insecure: bool = False
    server_name: str = ""


class Certificate(msgspec.Struct, frozen=True):
    """A certificate, with those of its issuers, and its key, in PEM."""

    chain: bytes
    key: bytes


class TlsContexts:
    """Keeps one context, for the present certificate: making one reads and parses the authorities."""

    def __init__(self, trust: ServerTrust) -> None:
        self._trust = trust
        self._authorities: tuple[int, ...] = ()
        self._shown: Certificate | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """Raises ConnectionSettingsError if authorities or certificate cannot be used.

        If authorities cannot be read again, the last ones stay in use: the file may be half written.
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
    """Time, size and inode, of which one changes when the file is replaced; empty if there is no such file."""
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _context(trust: ServerTrust, certificate: Certificate | None) -> ssl.SSLContext:
    authorities = trust.ca_file or "certificate-authority-data"
    try:
        if trust.ca_data:
            context = ssl.create_default_context(cadata=trust.ca_data.decode("ascii"))
        else:
            context = ssl.create_default_context(cafile=trust.ca_file or None)
    except (OSError, ValueError) as error:
        raise ConnectionSettingsError(f"{authorities}: expected certificates in PEM: {_reason(error)}") from None
    # Python 3.13 insists on key identifiers, which the authorities of many clusters do not have; Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False  # as in Go: only subjectAltName counts
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    if certificate is not None:
        try:
            show(context, certificate)
        except (OSError, ValueError) as error:
            problem = f"expected a client certificate and its key in PEM: {_reason(error)}"
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


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
