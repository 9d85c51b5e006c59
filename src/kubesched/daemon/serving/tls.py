"""TLS as the flags ask for it: certificates, cipher suites by Go's names, and the oldest version."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from kubesched.daemon.checks import TLS_VERSIONS, OptionsError
from kubesched.daemon.options import Options
from kubesched.http.tls import ServedCertificate, ServingTls, read_certificate
from kubesched.kube.self_signed import kept_in, of_localhost

NAME = "kube-scheduler"
"""What files in --cert-dir are called."""


def serving_tls(options: Options, now: datetime.datetime) -> ServingTls:
    """UserError if certificates or cipher suites cannot be used."""
    by_name = [
        read_certificate(pair.cert_file, pair.key_file, pair.names, flag="--tls-sni-cert-key")
        for pair in options.tls_sni_cert_key
    ]
    return ServingTls(
        _default_certificate(options, now),
        by_name,
        ciphers=openssl_ciphers(options.tls_cipher_suites),
        minimum_version=TLS_VERSIONS.get(options.tls_min_version, ssl.TLSVersion.TLSv1_2),
    )


def _default_certificate(options: Options, now: datetime.datetime) -> ServedCertificate:
    if options.tls_cert_file or options.tls_private_key_file:
        return read_certificate(options.tls_cert_file, options.tls_private_key_file, flag="--tls-cert-file")
    if not options.cert_dir:
        return ServedCertificate(of_localhost(now))
    try:
        return ServedCertificate(kept_in(Path(options.cert_dir), NAME, now))
    except OSError as error:
        raise OptionsError(f"--cert-dir: {error.strerror}: {error.filename}") from None


def _table() -> Iterator[tuple[str, str]]:
    text = files(__package__).joinpath("ciphers.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        name, openssl_name = line.split("\t")
        yield name, openssl_name


OPENSSL_NAMES = dict(_table())
ALWAYS_ON = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3, which cannot be chosen."""


def openssl_ciphers(names: Iterable[str]) -> str:
    """What OpenSSL calls a choice of suites; OptionsError for a name that is not known."""
    chosen = []
    for name in names:
        if name in ALWAYS_ON:
            continue
        if name not in OPENSSL_NAMES:
            raise OptionsError(f"Cipher suite {name} not supported or doesn't exist")
        chosen.append(OPENSSL_NAMES[name])
    return ":".join(dict.fromkeys(chosen))
