"""Whom we trust at the other end of a connection to an extender, and what we show there."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from kubesched.config.configuration import ExtenderTLSConfig


def tls_context(tls: ExtenderTLSConfig, *, trust_anybody: bool) -> ssl.SSLContext:
    """The certificates to trust and to show; ValueError if they cannot be used."""
    has_authority = bool(tls.ca_file or tls.ca_data)
    if tls.insecure and has_authority:
        raise ValueError("tlsConfig: a certificate authority makes no sense together with insecure: true")
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        raise ValueError("tlsConfig: a client certificate and its key must be given together")
    context = ssl.create_default_context()
    try:
        if tls.ca_data:
            context = ssl.create_default_context(cadata=tls.ca_data.decode())
        elif tls.ca_file:
            context = ssl.create_default_context(cafile=tls.ca_file)
        elif tls.insecure or trust_anybody:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert_data or tls.cert_file:
            _show_certificate(context, tls)
    except (OSError, ValueError) as problem:
        raise ValueError(f"tlsConfig: {problem}") from None
    return context


def _show_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    """The standard library reads certificates from files only: data is in one for a moment, readable by nobody else."""
    with tempfile.TemporaryDirectory() as directory:
        cert = _written(tls.cert_data, Path(directory, "cert")) or tls.cert_file
        key = _written(tls.key_data, Path(directory, "key")) or tls.key_file
        context.load_cert_chain(cert, key)


def _written(data: bytes, path: Path) -> str:
    if not data:
        return ""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return str(path)
