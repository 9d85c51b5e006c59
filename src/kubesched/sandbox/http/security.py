"""Which clients may reach the server: those on this machine, or with TLS and a token any."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterable
from pathlib import Path

from kubesched.api.errors import UserError
from kubesched.kube.self_signed import Pair, self_signed_pair


class ExposedError(UserError):
    """The server would be open to others without protection."""


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


def self_signed(hosts: Iterable[str]) -> Pair:
    """A new certificate for these names and addresses."""
    return self_signed_pair(hosts, common_name="kubesched-sandbox", now=datetime.datetime.now(datetime.UTC))


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS from files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context
