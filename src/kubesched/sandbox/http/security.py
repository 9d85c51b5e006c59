"""Who may reach the server: only this machine, or everybody with TLS and a token."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFETIME = datetime.timedelta(days=365)


class ExposedError(ValueError):
    """The server would be open to others without protection."""


class Certificate(NamedTuple):
    """A certificate and its key, as PEM. Self-signed, it is its own authority."""

    certificate: bytes
    key: bytes


def check_exposure(host: str, *, has_token: bool, has_tls: bool) -> None:
    """Refuse to listen beyond loopback without TLS and a token."""
    if is_loopback(host) or (has_token and has_tls):
        return
    missing = " and ".join(word for word, there in (("TLS", has_tls), ("a bearer token", has_token)) if not there)
    raise ExposedError(
        f"will not listen on {host or 'all addresses'}: others could reach it, and there is no protection ({missing} "
        "missing); listen on 127.0.0.1, or give both"
    )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def self_signed(hosts: Iterable[str]) -> Certificate:
    """A new certificate for these names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubesched-sandbox")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(certificate.public_bytes(pem), private)


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS from files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
