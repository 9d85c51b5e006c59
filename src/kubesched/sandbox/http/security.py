"""TLS and tokens: certificates for this server, and the kubeconfig that trusts them."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError
from kubesched.kube.self_signed import self_signed_pair
from kubesched.kube.tls import Certificate


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


def check_origin(headers: Mapping[str, str], host: str, *, has_token: bool) -> None:
    """Refuse what a web page makes a browser send here on its behalf.

    Without a token, whoever gets a request through may do everything. A page of another site can send some requests
    across (its Origin says so), and a name that its owner points at 127.0.0.1 makes this server its own site (then
    the Host header has that name).
    """
    asked = headers.get("Host", "")
    name = host_name(asked)
    if not has_token and not is_loopback(name) and name != host.lower():
        raise ApiError(403, "Forbidden", f"the Host header names {asked!r}, which is not this server")
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != asked:
        raise ApiError(403, "Forbidden", f"requests of web pages at {origin!r} are not answered")


def host_name(host: str) -> str:
    """The name or address in a Host header, without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def self_signed(hosts: Iterable[str]) -> Certificate:
    """A new certificate for these names and addresses."""
    return self_signed_pair(hosts, common_name="kubesched-sandbox", now=datetime.datetime.now(datetime.UTC))


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS from files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


NAME = "kubesched-sandbox"


def kubeconfig(url: str, *, token: str | None = None, authority: bytes | None = None) -> dict[str, Any]:
    """One cluster, one user, one context. The authority is a PEM certificate and is embedded."""
    cluster: dict[str, Any] = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {} if token is None else {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> None:
    """Write it whole or not at all, readable by its owner only: it may hold a token."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        yaml.safe_dump(config, file, sort_keys=False)
    draft.replace(path)
