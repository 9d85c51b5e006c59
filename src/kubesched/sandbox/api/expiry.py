"""Events are forgotten after an hour, as a cluster forgets them."""

from __future__ import annotations

from kubesched.api.kinds import CORE_EVENTS, Object
from kubesched.sandbox.api.core import Api
from kubesched.sandbox.api.stamps import seconds_of

EVENT_SECONDS = 3600.0


def expire_events(api: Api, *, after: float = EVENT_SECONDS) -> int:
    """Remove events that nothing was added to for so long; returns how many."""
    oldest = api.stamps.time() - after
    expired = [record.object["metadata"] for record in api.records(CORE_EVENTS) if _last_seen(record.object) < oldest]
    for metadata in expired:
        api.delete(CORE_EVENTS, metadata["namespace"], metadata["name"], grace=0)
    return len(expired)


def _last_seen(event: Object) -> float:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event["metadata"]["creationTimestamp"])
    return max(seconds_of(text) for text in times if text)
