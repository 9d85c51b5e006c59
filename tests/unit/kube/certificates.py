"""Certificates made for a test: an authority, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        built = _builder(self._name, self._name, self._key.public_key(), 365).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *, hosts: tuple[str, ...] = (), days: int = 30) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(name), self._name, key.public_key(), days)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(h) for h in hosts]), critical=False
            )
        pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return KeyPair(pem, key_pem)


@cache
def authority() -> Authority:
    """One for all tests: making keys takes time."""
    return Authority()


def server_context(directory: Path, pair: KeyPair, *, clients: Authority | None = None) -> ssl.SSLContext:
    """A context to serve with; with `clients`, their certificates are asked for and must be signed by it."""
    path = directory / "server.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.certificate.decode())
    return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=400))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
