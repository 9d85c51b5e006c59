"""The certificate of a server that was given none: kept in memory, or in a directory if there is one."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from kubesched.kube.self_signed import Pair, self_signed_pair


def of_localhost(now: datetime.datetime) -> Pair:
    """A new certificate for this machine as seen from itself."""
    return self_signed_pair(("localhost", "127.0.0.1"), common_name=f"localhost@{int(now.timestamp())}", now=now)


def kept_in(directory: Path, name: str, now: datetime.datetime) -> Pair:
    """The pair of this name in a directory; made there if it is missing. OSError if that cannot be done."""
    cert_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    if cert_file.exists() and key_file.exists():
        return Pair(cert_file.read_bytes(), key_file.read_bytes())
    pair = of_localhost(now)
    directory.mkdir(parents=True, exist_ok=True)
    cert_file.write_bytes(pair.cert)
    with open(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pair.key)
    return pair
