"""A certificate of one's own, for servers that were given none: kept in memory, or in a directory if there is one."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_YEAR = datetime.timedelta(days=365)
_HOUR = datetime.timedelta(hours=1)


class Pair(NamedTuple):
    """A certificate, with those of its issuers, and its key, in PEM."""

    cert: bytes
    key: bytes


def self_signed(host: str, addresses: tuple[str, ...], now: datetime.datetime) -> Pair:
    """A certificate for a host and addresses, valid for a year."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{host}@{int(now.timestamp())}")])
    names = [x509.DNSName(host), *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _HOUR)
        .not_valid_after(now + _YEAR)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def kept_in(directory: Path, name: str, now: datetime.datetime) -> Pair:
    """The pair of this name in a directory; made there if it is missing. OSError if that cannot be done."""
    cert_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    if cert_file.exists() and key_file.exists():
        return Pair(cert_file.read_bytes(), key_file.read_bytes())
    pair = self_signed("localhost", ("127.0.0.1",), now)
    directory.mkdir(parents=True, exist_ok=True)
    cert_file.write_bytes(pair.cert)
    with open(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pair.key)
    return pair
