"""How many replicas an autoscaler wants: by the usage of its pods, within its bounds, and not too fast."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from kubesched.api.kinds import Object

TOLERANCE = 0.1
_DOWN_WINDOW = 300
_UP: tuple[Object, ...] = (
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
)
_DOWN: tuple[Object, ...] = ({"type": "Percent", "value": 100, "periodSeconds": 15},)


class PodLoad(NamedTuple):
    """One resource of one pod, of one container or of all: what it uses and requests. Unready pods use nothing yet."""

    used: int
    requested: int
    ready: bool = True


class ScaleAdvice(NamedTuple):
    """The number of replicas that one metric asks for, and its status."""

    replicas: int
    current: Object
    """The `current` of the metric's status."""
    text: str


class MetricError(Exception):
    """A metric cannot be had; the text says why, and `reason` in a word."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def propose_replicas(name: str, target: Object, loads: Sequence[PodLoad], replicas: int, unit: str) -> ScaleAdvice:
    """By a target for the usage of a resource. `unit` is the unit in which amounts are written."""
    ready = [load for load in loads if load.ready]
    if not ready:
        raise MetricError("FailedGetResourceMetric", f"failed to get {name} usage: no ready pods")
    used = sum(load.used for load in ready)
    average = ceil(used / len(ready))
    current: Object = {"averageValue": f"{average}{unit}"}
    if target.get("averageUtilization") is None:
        amount = float(target["amount"])
        return ScaleAdvice(_scale(average / amount, amount, loads, replicas), current, f"{name} resource")
    if any(load.requested == 0 for load in loads):
        raise MetricError("FailedGetResourceMetric", f"failed to get {name} utilization: missing request for {name}")
    share = 100 * used // sum(load.requested for load in ready)
    current["averageUtilization"] = share
    ratio = share / target["averageUtilization"]
    amount = sum(load.requested for load in loads) * target["averageUtilization"] / 100 / len(loads)
    text = f"{name} resource utilization (percentage of request)"
    return ScaleAdvice(_scale(ratio, amount, loads, replicas), current, text)


def _scale(ratio: float, amount: float, loads: Sequence[PodLoad], replicas: int) -> int:
    """As many as bring the average to the target. Pods that are not ready count as idle, and may only hold it back."""
    if abs(ratio - 1) <= TOLERANCE:
        return replicas
    ready = sum(load.ready for load in loads)
    if ratio < 1 or ready == len(loads):
        return ceil(ratio * ready)
    cautious = sum(load.used for load in loads if load.ready) / len(loads) / amount
    if cautious <= 1 + TOLERANCE:
        return replicas
    return max(replicas, ceil(cautious * len(loads)))


class PastScale(NamedTuple):
    """Something at a time: a recommendation of so many, or a change by so many."""

    at: float
    replicas: int


class LimitResult(NamedTuple):
    """A number of replicas within all limits, and the limit that changed it last."""

    replicas: int
    reason: str
    message: str


_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")


def limit_replicas(
    spec: Object, current: int, proposed: int, advised: Sequence[PastScale], changes: Sequence[PastScale], now: float
) -> LimitResult:
    """The replicas after stabilization, scaling policies, and minReplicas and maxReplicas."""
    steady = _stabilise(spec, current, proposed, advised, now)
    allowed = _pace(spec, current, steady, changes, now)
    least, most = spec.get("minReplicas") or 1, spec["maxReplicas"]
    if allowed < least:
        return LimitResult(least, "TooFewReplicas", "the desired replica count is less than the minimum replica count")
    if allowed > most:
        return LimitResult(most, "TooManyReplicas", "the desired replica count is more than the maximum replica count")
    if steady != proposed or allowed != steady:
        way = "ScaleUpLimit" if allowed > current else "ScaleDownLimit"
        return LimitResult(allowed, way, "the desired replica count is changing faster than the limits allow")
    return LimitResult(allowed, *_WITHIN)


def window_of(spec: Object, way: str) -> int:
    """stabilizationWindowSeconds of a direction, with its default."""
    own = ((spec.get("behavior") or {}).get(way) or {}).get("stabilizationWindowSeconds")
    return int(own) if own is not None else (_DOWN_WINDOW if way == "scaleDown" else 0)


def _stabilise(spec: Object, current: int, proposed: int, advised: Sequence[PastScale], now: float) -> int:
    up, down = now - window_of(spec, "scaleUp"), now - window_of(spec, "scaleDown")
    lowest = min([proposed, *(past.replicas for past in advised if past.at >= up)])
    highest = max([proposed, *(past.replicas for past in advised if past.at >= down)])
    return max(current, lowest) if proposed > current else min(current, highest)


def _pace(spec: Object, current: int, proposed: int, changes: Sequence[PastScale], now: float) -> int:
    way, sign = ("scaleUp", 1) if proposed > current else ("scaleDown", -1)
    rules = (spec.get("behavior") or {}).get(way) or {}
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits: list[int] = []
    for policy in rules.get("policies") or (_UP if sign > 0 else _DOWN):
        recent = [past.replicas for past in changes if past.at > now - policy["periodSeconds"]]
        start = current - sum(count for count in recent if count * sign > 0)
        share = policy["value"] if policy["type"] == "Pods" else ceil(start * policy["value"] / 100)
        limits.append(start + sign * share)
    strictest = rules.get("selectPolicy") == "Min"
    if sign > 0:
        return min(proposed, max(current, min(limits) if strictest else max(limits)))
    return max(proposed, min(current, max(limits) if strictest else min(limits)), 0)
