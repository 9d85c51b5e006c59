"""Events are stored once, in the shape of core/v1, and shown in that of events.k8s.io/v1 too."""

from __future__ import annotations

from typing import Any

from kubesched.api.kinds import Object

_TO_NEWER = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_TO_OLDER = {newer: older for older, newer in _TO_NEWER.items()}


def newer(event: Object) -> Object:
    """As events.k8s.io/v1 shows it."""
    shown = _renamed(event, _TO_NEWER)
    shown["apiVersion"] = "events.k8s.io/v1"
    return shown


def older(event: Object) -> Object:
    """As it is stored."""
    stored = _renamed(event, _TO_OLDER)
    stored["apiVersion"] = "v1"
    # core/v1 has both as required fields; a client of the older shape relies on them.
    stored.setdefault("involvedObject", {})
    stored.setdefault("source", {})
    return stored


def _renamed(event: Object, names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in event.items()}
