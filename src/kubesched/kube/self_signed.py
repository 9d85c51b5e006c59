"""Self-signed certificates for servers without one: in memory, or kept in a directory."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubesched.kube.tls import Certificate

_YEAR = datetime.timedelta(days=365)
_HOUR = datetime.timedelta(hours=1)


def self_signed_pair(hosts: Iterable[str], *, common_name: str, now: datetime.datetime) -> Certificate:
    """A certificate for names and addresses that is its own authority, valid for a year."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _HOUR)
        .not_valid_after(now + _YEAR)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(certificate.public_bytes(pem), private)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def certificate_of_localhost(now: datetime.datetime) -> Certificate:
    """A new certificate for `localhost`."""
    return self_signed_pair(("localhost", "127.0.0.1"), common_name=f"localhost@{int(now.timestamp())}", now=now)


def load_or_create(directory: Path, name: str, now: datetime.datetime) -> Certificate:
    """The certificate of this name in a directory, created if it is missing. OSError if that is impossible."""
    cert_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    if cert_file.exists() and key_file.exists():
        return Certificate(cert_file.read_bytes(), key_file.read_bytes())
    pair = certificate_of_localhost(now)
    directory.mkdir(parents=True, exist_ok=True)
    cert_file.write_bytes(pair.chain)
    with open(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pair.key)
    return pair
