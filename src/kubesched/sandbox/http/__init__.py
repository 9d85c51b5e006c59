"""The API over HTTP: paths, content types, lists and watches, limits, tokens, TLS and faults on demand."""

from __future__ import annotations

from kubesched.sandbox.http.faults import FaultError, Faults, Rule, parse_fault
from kubesched.sandbox.http.kubeconfig import kubeconfig, self_signed, write_kubeconfig
from kubesched.sandbox.http.server import Server

__all__ = [
    "FaultError",
    "Faults",
    "Rule",
    "Server",
    "kubeconfig",
    "parse_fault",
    "self_signed",
    "write_kubeconfig",
]
