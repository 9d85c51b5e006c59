"""A certificate authority for tests."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubesched.kube.tls import Certificate

_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates for clients and servers."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM)

    def client(self, name: str, *groups: str) -> Certificate:
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        return self._pair(x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)]), ())

    def server(self, *names: str) -> Certificate:
        return self._pair(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]), names)

    def _pair(self, subject: x509.Name, names: tuple[str, ...]) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key)
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        pem = builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM)
        plain = serialization.NoEncryption()
        return Certificate(pem, key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )


def written(pair: Certificate, directory: Path, name: str = "tls") -> tuple[str, str]:
    """The pair in two files."""
    cert, key = directory / f"{name}.crt", directory / f"{name}.key"
    cert.write_bytes(pair.chain)
    key.write_bytes(pair.key)
    return str(cert), str(key)


def trusting(
    authority: Authority | None = None, client: Certificate | None = None, directory: Path | None = None
) -> ssl.SSLContext:
    """What a client believes and shows; without an authority it believes everything."""
    context = ssl.create_default_context()
    context.check_hostname = False
    if authority is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=authority.pem.decode())
    if client is not None:
        assert directory is not None
        context.load_cert_chain(*written(client, directory, "client"))
    return context
