"""The API over HTTP: paths, content types, lists and watches, limits, tokens, TLS and faults on demand."""

from __future__ import annotations

from kubesched.sandbox.http.faults import FaultError, Faults, Rule, parse_fault
from kubesched.sandbox.http.security import ExposedError, kubeconfig, self_signed, server_context, write_kubeconfig
from kubesched.sandbox.http.server import Server

__all__ = [
    "ExposedError",
    "FaultError",
    "Faults",
    "Rule",
    "Server",
    "kubeconfig",
    "parse_fault",
    "self_signed",
    "server_context",
    "write_kubeconfig",
]
