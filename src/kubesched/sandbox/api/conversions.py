"""Kinds that are served in two shapes and stored in one: events in the older, autoscalers in the newer one."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.admission.autoscaling import CPU_AT_80
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


def newer_event(event: Object) -> Object:
    """As events.k8s.io/v1 shows it."""
    shown = _renamed(event, _TO_NEWER)
    shown["apiVersion"] = "events.k8s.io/v1"
    return shown


def stored_event(event: Object) -> Object:
    """As it is stored."""
    stored = _renamed(event, _TO_OLDER)
    stored["apiVersion"] = "v1"
    # core/v1 has both as required fields; a client of the older shape relies on them.
    stored.setdefault("involvedObject", {})
    stored.setdefault("source", {})
    return stored


def _renamed(event: Object, names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in event.items()}


_PREFIX = "autoscaling.alpha.kubernetes.io/"


def older_autoscaler(autoscaler: Object) -> Object:
    """As autoscaling/v1 shows it."""
    spec, status = dict(autoscaler["spec"]), dict(autoscaler.get("status") or {})
    metadata, notes = dict(autoscaler["metadata"]), {}
    target, others = _cpu(spec.pop("metrics", None) or [])
    current, _ = _cpu(status.pop("currentMetrics", None) or [], "current")
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current
    for name, value in (
        ("metrics", others),
        ("behavior", spec.pop("behavior", None)),
        ("conditions", status.pop("conditions", None)),
    ):
        if value:
            notes[_PREFIX + name] = msgspec.json.encode(value).decode()
    if notes:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **notes}
    shown = {**autoscaler, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec}
    return {**shown, "status": status} if "status" in autoscaler else shown


def stored_autoscaler(autoscaler: Object) -> Object:
    """As it is stored: autoscaling/v2."""
    spec, status = dict(autoscaler["spec"]), dict(autoscaler.get("status") or {})
    metadata = dict(autoscaler["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    target, current = (
        spec.pop("targetCPUUtilizationPercentage", None),
        status.pop("currentCPUUtilizationPercentage", None),
    )
    metrics = _read(annotations.pop(_PREFIX + "metrics", None)) or []
    if target is not None:
        metrics = [_cpu_metric("target", target), *metrics]
    spec["metrics"] = metrics or [CPU_AT_80]
    if behavior := _read(annotations.pop(_PREFIX + "behavior", None)):
        spec["behavior"] = behavior
    if conditions := _read(annotations.pop(_PREFIX + "conditions", None)):
        status["conditions"] = conditions
    if current is not None:
        status["currentMetrics"] = [_cpu_metric("current", current)]
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    whole = {**autoscaler, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec}
    return {**whole, "status": status} if "status" in autoscaler else whole


def _cpu(metrics: list[Object], field: str = "target") -> tuple[int | None, list[Object]]:
    """The utilization of cpu that is asked for or found, and the metrics that are something else."""
    found, others = None, []
    for metric in metrics:
        source = metric.get("resource") or {}
        share = (source.get(field) or {}).get("averageUtilization")
        if found is None and metric.get("type") == "Resource" and source.get("name") == "cpu" and share is not None:
            found = share
        else:
            others.append(metric)
    return found, others


def _cpu_metric(field: str, share: int) -> Object:
    values = {"type": "Utilization"} if field == "target" else {}
    return {"type": "Resource", "resource": {"name": "cpu", field: {**values, "averageUtilization": share}}}


def _read(text: str | None) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
