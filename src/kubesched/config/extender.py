"""Extenders: schedulers outside the process, asked over HTTP."""

from __future__ import annotations

import msgspec

from kubesched.api.meta import Record
from kubesched.config.duration import Duration


class ExtenderTLSConfig(Record, frozen=True):
    """How to trust an extender, and how to be trusted by it. Data wins over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(Record, frozen=True):
    """A resource the extender accounts for, perhaps instead of the scheduler."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Record, frozen=True):
    """Where an extender listens, and which questions it answers: a verb left empty is never asked."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False
