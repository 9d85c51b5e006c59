"""Encodes an events.k8s.io/v1 Event to bytes, cheaply: there is one for every bound pod."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

import msgspec

from kubesched.api.meta import KubeObject

LONGEST_NOTE = 1024  # bytes, says the API
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")

EventType = Literal["Normal", "Warning"]


class EventReference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The object of an event."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


def reference(obj: KubeObject, api_version: str, kind: str) -> EventReference:
    """A reference to an object, whose API version and kind objects from lists do not have."""
    meta = obj.metadata
    return EventReference(api_version, kind, meta.namespace, meta.name, meta.uid, meta.resource_version)


class _Meta(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str


class EventSeries(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How often an event was repeated."""

    count: int
    last_observed_time: str


class EventRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True, gc=False):
    """An Event of `events.k8s.io/v1`, with the fields that are written."""

    api_version: str
    kind: str
    metadata: _Meta
    event_time: str
    series: EventSeries | None = None
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: EventReference
    related: EventReference | None = None
    note: str
    type: EventType


def event_name(name: str, nanoseconds: int) -> str:
    """`pod.<hex time>`, or a UUID if that is no legal name."""
    event_name = f"{name}.{nanoseconds:x}"
    return event_name if len(event_name) <= 253 and _NAME.match(event_name) else str(uuid.uuid4())


def shortened(note: str) -> str:
    encoded = note.encode()
    return note if len(encoded) <= LONGEST_NOTE else encoded[: LONGEST_NOTE - 3].decode(errors="ignore") + "..."


def new_event(
    regarding: EventReference,
    *,
    related: EventReference | None,
    type: EventType,
    reason: str,
    action: str,
    note: str,
    controller: str,
    instance: str,
    nanoseconds: int,
) -> EventRecord:
    """An event at that time (since 1970), in the namespace of its object."""
    return EventRecord(
        api_version="events.k8s.io/v1",
        kind="Event",
        metadata=_Meta(event_name(regarding.name, nanoseconds), regarding.namespace or "default"),
        event_time=micro_time(nanoseconds / 1e9),
        reporting_controller=controller,
        reporting_instance=instance,
        action=action,
        reason=reason,
        regarding=regarding,
        related=related,
        note=shortened(note),
        type=type,
    )


def micro_time(seconds: float) -> str:
    """Seconds since 1970 as a MicroTime: `2026-01-01T00:00:00.000000Z`."""
    whole, micros = divmod(round(seconds * 1e6), 1_000_000)
    return f"{to_the_second(whole)}.{micros:06}Z"


@lru_cache(maxsize=8)
def to_the_second(seconds: int) -> str:
    """Seconds since 1970 as `2026-01-01T00:00:00`. Cached: many events happen within one second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
