"""Which specs of the suite are run: all about scheduling, and those of conformance that need no running containers.

Hollow nodes run nothing: no container ends by itself, answers a probe, serves a port, writes a log or a volume. Specs
that wait for such a thing fail whatever the scheduler does, each after minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

_OFF = ("OffByDefault", r"\[Alpha\]", r"\[Deprecated\]")
_NEED_CONTAINERS = (
    r"\[sig-(node|network|storage|cli|windows)\]",
    "AdmissionWebhook",
    "CustomResourceConversionWebhook",
    "Aggregator",
    "CronJob should (not )?(schedule|replace)",
    "Job with successPolicy",
    "Job should (allow|execute|mark|run|terminate|create pods|adopt|manage|apply|be able)",
    "StatefulSet",
    "serve a basic image",
    "retry creating failed daemon pods",
    "ServiceAccounts should (mount|guarantee|allow opting)",
    "ServiceAccountIssuerDiscovery",
    "OrderedNamespaceDeletion",
)
_NO_EPHEMERAL_STORAGE = "validates local ephemeral storage resource limits"
"""Divides by what hollow nodes report of it, which is nothing."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Regular expressions that choose specs by their names."""

    focus: str
    skip: str


SETS = {
    "scheduling": Choice(r"\[sig-scheduling\]", "|".join((*_OFF, _NO_EPHEMERAL_STORAGE))),
    "conformance": Choice(r"\[Conformance\]", "|".join((*_OFF, *_NEED_CONTAINERS, r"\[sig-scheduling\]"))),
}
