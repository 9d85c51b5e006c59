"""Which specs of the suite are run: all about scheduling, and those of conformance that need no running containers.

Hollow nodes run nothing: no container ends by itself, answers a probe, serves a port, writes a log or a volume. Specs
that wait for such a thing fail whatever the scheduler does, each after minutes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """Regular expressions on the names of specs: chosen is what matches some focus and nothing that is skipped."""

    focus: tuple[str, ...]
    skip: tuple[str, ...] = ()


_OFF = ("OffByDefault", r"\[Alpha\]", r"\[Deprecated\]")

_NO_CONTAINERS = {
    "webhooks and aggregated API servers are containers": (
        "AdmissionWebhook",
        "CustomResourceConversionWebhook",
        "CustomResourceFieldSelectors",
        "Aggregator",
    ),
    "containers have to end by themselves": (
        "CronJob should (not )?(schedule|replace)",
        "Job with successPolicy",
        "Job should (allow|execute|mark|run|terminate|create pods|adopt|manage|apply|be able)",
        "activeDeadlineSeconds",
        "pod generation should start at 1",
    ),
    "containers have to serve a port, or answer a probe": (
        "StatefulSet",
        "serve a basic image",
        "Proxy version v1",
        "be able to (change the type|create a functioning)",
        "serve (a basic|endpoints on|multiport)",
        "session affinity",
        "EndpointSlice should support a Service with multiple",
    ),
    "something has to run in a container, or to be read from its log or its files": (
        "retry creating failed daemon pods",
        "ServiceAccounts should (mount|guarantee|allow opting)",
        "ServiceAccountIssuerDiscovery",
        "Pods should (contain environment|support remote|support retrieving)",
        "(ConfigMap|Secrets) .*(in volume|mount|be consumable)",
        "OrderedNamespaceDeletion",
    ),
    "an image that does not exist has to keep its pod from starting": (
        "rollback without unnecessary restarts",
        "proportional scaling",
    ),
    "all pods on hollow nodes have the same address": ("Endpoint.* for Pods matching a Service",),
    "the control plane publishes no endpoints of its own": ("pointing to API Server", "secure master service"),
}
"""What of the conformance specs is left out, by the reason."""

_OF_OTHER_GROUPS = (
    r"\[sig-network\] (API Server|Endpoint|Ingress|Proxy|Service)",
    r"\[sig-node\] (ConfigMap|Lease|Node Lifecycle|PodTemplates|Pods should|RuntimeClass)",
    r"\[sig-node\] (Pods Extended|Secrets should (fail|patch)|NoExecuteTaintManager|\[DRA\] CRUD)",
    r"\[sig-storage\] (CSI|PersistentVolumes|StorageClasses|VolumeAtt|(ConfigMap|Secrets) should be immutable)",
)
"""Nodes, networks and storage are mostly about containers. What of them is about the API, or about where pods go:"""

SETS = {
    "scheduling": Choice(
        (r"\[sig-scheduling\]",),
        # Divides by the ephemeral storage that hollow nodes report, which is none.
        (*_OFF, "validates local ephemeral storage resource limits"),
    ),
    "conformance": Choice(
        tuple(
            rf"{group}.*\[Conformance\]"
            for group in (r"\[sig-(api-machinery|apps|architecture|auth|instrumentation)\]", *_OF_OTHER_GROUPS)
        ),
        (*_OFF, *(pattern for patterns in _NO_CONTAINERS.values() for pattern in patterns)),
    ),
}
