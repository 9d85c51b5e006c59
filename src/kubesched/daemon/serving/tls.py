"""TLS as the flags ask for it. Files are looked at for every connection: a certificate that was renewed is shown at
once, and a client authority that was read from the cluster is accepted at once."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from cryptography import x509

from kubesched.daemon.checks import TLS_VERSIONS, OptionsError
from kubesched.daemon.log import Log
from kubesched.daemon.options import Options
from kubesched.kube.self_signed import kept_in, of_localhost
from kubesched.kube.tls import Certificate, show, stamp

NAME = "kube-scheduler"
"""What files in --cert-dir are called."""

log = Log(__name__)


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
        _context_with(pair)  # a pair that does not fit together, half-way through a renewal, changes nothing
        self.pair = pair
        self.names = tuple(self._given_names) or _names_in(pair.chain)
        return True


def _read(cert_file: str, key_file: str) -> Certificate:
    return Certificate(Path(cert_file).read_bytes(), Path(key_file).read_bytes())


class ServingTls:
    """The context of the server: it chooses a certificate for each connection, by the name that is asked for."""

    def __init__(self, options: Options, now: Callable[[], datetime.datetime]) -> None:
        self._options = options
        self._default = _default_certificate(options, now())
        self._by_name = [
            _certificate(pair.cert_file, pair.key_file, pair.names, "--tls-sni-cert-key")
            for pair in options.tls_sni_cert_key
        ]
        try:
            self._ciphers = openssl_ciphers(options.tls_cipher_suites)
        except ValueError as error:
            raise OptionsError(str(error)) from None
        self._authorities = b""
        self._contexts: dict[int, ssl.SSLContext] = {}
        self.context = self._make(self._default)
        self.context.sni_callback = self._choose

    def trust(self, authorities: bytes) -> None:
        """Accept client certificates of these authorities (PEM), and of no others, from the next connection on."""
        if authorities != self._authorities:
            self._authorities = authorities
            self._contexts.clear()
            self.context.verify_mode = ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE

    def has_certificate_for(self, name: str) -> bool:
        """Whether a certificate is shown that is meant for this name."""
        wanted = (name, f"*.{name.partition('.')[2]}")
        return any(each in certificate.names for certificate in (self._default, *self._by_name) for each in wanted)

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        certificate = self._certificate_for(name or "")
        try:
            if certificate.refresh():
                self._contexts.pop(id(certificate), None)
        except (OSError, ValueError) as error:
            log.error("A certificate could not be read again", err=error)
        if id(certificate) not in self._contexts:
            self._contexts[id(certificate)] = self._make(certificate)
        connection.context = self._contexts[id(certificate)]

    def _certificate_for(self, name: str) -> ServedCertificate:
        """A name goes before a pattern, whose star stands for one part of the name."""
        pattern = f"*.{name.partition('.')[2]}"
        for wanted in (name, pattern):
            for certificate in self._by_name:
                if wanted in certificate.names:
                    return certificate
        return self._default

    def _make(self, certificate: ServedCertificate) -> ssl.SSLContext:
        context = _context_with(certificate.pair)
        context.minimum_version = TLS_VERSIONS.get(self._options.tls_min_version, ssl.TLSVersion.TLSv1_2)
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        if self._authorities:
            context.load_verify_locations(cadata=self._authorities.decode())
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def _default_certificate(options: Options, now: datetime.datetime) -> ServedCertificate:
    if options.tls_cert_file or options.tls_private_key_file:
        return _certificate(options.tls_cert_file, options.tls_private_key_file, (), "--tls-cert-file")
    if not options.cert_dir:
        return ServedCertificate(of_localhost(now))
    try:
        return ServedCertificate(kept_in(Path(options.cert_dir), NAME, now))
    except OSError as error:
        raise OptionsError(f"--cert-dir: {error.strerror}: {error.filename}") from None


def _certificate(cert_file: str, key_file: str, names: Sequence[str], flag: str) -> ServedCertificate:
    try:
        certificate = ServedCertificate(_read(cert_file, key_file), names, (cert_file, key_file))
        _context_with(certificate.pair)
    except ssl.SSLError as error:
        raise OptionsError(f"{flag}: {cert_file} and {key_file} do not fit together: {error.reason}") from None
    except OSError as error:
        raise OptionsError(f"{flag}: {error.strerror}: {error.filename}") from None
    except ValueError as error:
        raise OptionsError(f"{flag}: {cert_file}: {error}") from None
    return certificate


def _context_with(pair: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    show(context, pair)
    return context


def _names_in(cert: bytes) -> tuple[str, ...]:
    first = x509.load_pem_x509_certificate(cert)
    try:
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


def _table() -> Iterator[tuple[str, str]]:
    text = files(__package__).joinpath("ciphers.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        name, openssl_name = line.split("\t")
        yield name, openssl_name


OPENSSL_NAMES = dict(_table())
ALWAYS_ON = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3, which cannot be chosen."""


def openssl_ciphers(names: Iterable[str]) -> str:
    """What OpenSSL calls a choice of suites; ValueError for a name that is not known."""
    chosen = []
    for name in names:
        if name in ALWAYS_ON:
            continue
        if name not in OPENSSL_NAMES:
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
        chosen.append(OPENSSL_NAMES[name])
    return ":".join(dict.fromkeys(chosen))
