"""Autoscalers of workloads, in the shape of today and in the older one, which knows of cpu alone."""

from __future__ import annotations

from typing import Any

from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, filled, mapping, sequence, text
from kubesched.admission.rules import Rules
from kubesched.api.kinds import Object

CPU_AT_80: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _fill(autoscaler: Object) -> None:
    spec = filled(autoscaler, "spec")
    fill(spec, "minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [CPU_AT_80]
    behavior = spec.get("behavior")
    if behavior is not None:
        for way, policies in _POLICIES.items():
            rules = filled(behavior, way)
            fill(rules, "selectPolicy", "Max")
            fill(rules, "policies", [dict(each) for each in policies])


_POLICIES: dict[str, tuple[dict[str, Any], ...]] = {
    "scaleUp": (
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ),
    "scaleDown": ({"type": "Percent", "value": 100, "periodSeconds": 15},),
}


def _fill_older(autoscaler: Object) -> None:
    spec = filled(autoscaler, "spec")
    fill(spec, "minReplicas", 1)


def _check(autoscaler: Object, mistakes: Mistakes) -> None:
    _check_frame(autoscaler, mistakes)
    for i, metric in enumerate(sequence(autoscaler["spec"], "metrics")):
        where, kind = f"spec.metrics[{i}]", text(metric, "type")
        mistakes.chosen(f"{where}.type", kind, tuple(_SOURCES))
        if kind in _SOURCES:
            mistakes.not_empty(f"{where}.{_SOURCES[kind]}", mapping(metric, _SOURCES[kind]))


def _check_frame(autoscaler: Object, mistakes: Mistakes) -> None:
    """What both shapes have."""
    spec = autoscaler["spec"]
    target = mapping(spec, "scaleTargetRef")
    for key in ("kind", "name"):
        mistakes.not_empty(f"spec.scaleTargetRef.{key}", text(target, key))
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        mistakes.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        mistakes.invalid("spec.maxReplicas", most, "must be greater than 0")
    elif least is not None and most < least:
        mistakes.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _new_status(_: Object) -> Object:
    return {"currentReplicas": 0, "desiredReplicas": 0}


RULES = Rules(defaults=_fill, check=_check, new_status=_new_status)
OLDER = Rules(defaults=_fill_older, check=_check_frame, new_status=_new_status)
