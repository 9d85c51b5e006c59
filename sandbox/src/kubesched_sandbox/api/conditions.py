"""Conditions of objects; when a pod counts as ready, available, active."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.api.kinds import Object
from kubesched_sandbox.api.stamps import seconds_of


def condition_of(obj: Object, kind: str) -> Object | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    condition = condition_of(obj, kind)
    return condition is not None and condition.get("status") == "True"


def without_condition(conditions: Sequence[Object], kind: str) -> list[Object]:
    return [condition for condition in conditions if condition.get("type") != kind]


def is_ready(pod: Object) -> bool:
    return is_true(pod, "Ready")


def is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Whether the pod counts as one of its workload: it has neither ended nor been deleted."""
    return not is_finished(pod) and not is_terminating(pod)


def condition(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def with_condition(conditions: list[Object], condition: Object, now: str) -> list[Object]:
    """The conditions with this one set. The time of transition changes with the status only."""
    kind = condition["type"]
    old = next((entry for entry in conditions if entry.get("type") == kind), None)
    same = old is not None and old.get("status") == condition["status"]
    since = old["lastTransitionTime"] if old is not None and same and old.get("lastTransitionTime") else now
    new = {"lastProbeTime": None, **condition, "lastTransitionTime": since}
    if old is None:
        return [*conditions, new]
    return [new if entry is old else entry for entry in conditions]


def with_conditions(conditions: list[Object], new: Iterable[Object], now: str) -> list[Object]:
    """The conditions with each of the new ones set."""
    for each in new:
        conditions = with_condition(conditions, each, now)
    return conditions


def available_at(pod: Object, min_ready_seconds: int) -> float | None:
    """Since or from when a ready pod is available; None while it is not ready."""
    ready = condition_of(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    if not min_ready_seconds:
        return float("-inf")
    return seconds_of(ready["lastTransitionTime"]) + min_ready_seconds


def is_available(pod: Object, min_ready_seconds: int, now: float) -> bool:
    since = available_at(pod, min_ready_seconds)
    return since is not None and since <= now


def next_available(times: Iterable[float | None], now: float) -> float | None:
    """When the next of the pods that become available at these times does so; None if none will."""
    return min((time for time in times if time is not None and time > now), default=None)
