"""The fields that field selectors may ask about, per kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.admission.reading import value_at
from kubesched.api.kinds import (
    CORE_EVENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_SLICES,
    SECRETS,
    SERVICES,
    Object,
    Resource,
)

Field = Callable[[Object], str]
"""The value of one field as a selector sees it: text, empty when absent."""


def at(path: str, absent: str = "") -> Field:
    """The field at a dotted path."""
    steps = path.split(".")
    return lambda obj: _text(value_at(obj, *steps), absent)


def _text(value: Any, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _source(event: Object) -> str:
    return (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""


def _paths(*paths: str) -> dict[str, Field]:
    return {path: at(path) for path in paths}


_EVERYWHERE = _paths("metadata.name", "metadata.namespace")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT = {
    **{f"involvedObject.{part}": at(f"involvedObject.{part}") for part in _REFERENCE},
    **_paths("reason", "type"),
    "source": _source,
    "reportingComponent": at("reportingComponent"),
}
# Events are stored in the older shape, so the newer names read the older fields.
_NEWER_EVENT = {
    **_EVENT,
    **{f"regarding.{part}": at(f"involvedObject.{part}") for part in _REFERENCE},
    "reportingController": at("reportingComponent"),
}

_FIELDS: dict[str, dict[str, Field]] = {
    PODS.path: {
        **_paths(
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
        "spec.hostNetwork": at("spec.hostNetwork", "false"),
        "status.podIPs": at("status.podIP"),
    },
    NODES.path: {"spec.unschedulable": at("spec.unschedulable", "false")},
    NAMESPACES.path: _paths("status.phase"),
    SECRETS.path: _paths("type"),
    SERVICES.path: _paths("spec.clusterIP", "spec.type"),
    CORE_EVENTS.path: _EVENT,
    EVENTS.path: _NEWER_EVENT,
    REPLICA_SETS.path: {"status.replicas": at("status.replicas", "0")},
    REPLICATION_CONTROLLERS.path: {"status.replicas": at("status.replicas", "0")},
    JOBS.path: {"status.successful": at("status.succeeded", "0")},
    RESOURCE_SLICES.path: _paths("spec.nodeName", "spec.driver"),
}


def field_of(resource: Resource, path: str) -> Field | None:
    """How to read a field that selectors of this resource may name; None for any other."""
    return _EVERYWHERE.get(path) or _FIELDS.get(resource.path, {}).get(path)
