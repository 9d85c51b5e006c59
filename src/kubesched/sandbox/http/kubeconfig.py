"""The kubeconfig of the sandbox, and the certificate that it trusts."""

from __future__ import annotations

import base64
import datetime
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from kubesched.kube.self_signed import self_signed_pair
from kubesched.kube.tls import Certificate

NAME = "kubesched-sandbox"


def self_signed(hosts: Iterable[str]) -> Certificate:
    """A new certificate for these names and addresses."""
    return self_signed_pair(hosts, common_name=NAME, now=datetime.datetime.now(datetime.UTC))


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
