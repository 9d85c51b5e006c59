"""Stands in for admission and patching until those packages are merged."""

from __future__ import annotations

from typing import Any

from kubesched.sandbox.kinds import NAMESPACES, PODS, Object, Resource


def admit_create(resource: Resource, obj: Object, reader: object) -> Object:
    if resource is NAMESPACES:
        return {**obj, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    if resource is PODS:
        return {**obj, "status": {"phase": "Pending"}}
    return dict(obj)


def admit_update(resource: Resource, old: Object, new: Object, subresource: str, reader: object) -> Object:
    if subresource == "status":
        return {**old, "metadata": new["metadata"], "status": new.get("status", {})}
    meta = new["metadata"]
    if new.get("spec") != old.get("spec") and "generation" in old["metadata"]:
        meta = {**meta, "generation": old["metadata"]["generation"] + 1}
    if "status" in resource.subresources and "status" in old:
        return {**new, "metadata": meta, "status": old["status"]}
    return {**new, "metadata": meta}


def deletion_grace(resource: Resource, obj: Object, requested: int | None) -> int:
    if resource is not PODS or not obj.get("spec", {}).get("nodeName"):
        return 0
    return obj["spec"].get("terminationGracePeriodSeconds", 30) if requested is None else requested


def merge_patch(obj: Object, patch: Any) -> Object:
    merged = dict(obj)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            old = merged.get(key)
            merged[key] = merge_patch(old if isinstance(old, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def json_patch(obj: Object, operations: Any) -> Object:
    raise NotImplementedError


def strategic_merge(resource: Resource, obj: Object, patch: Any) -> Object:
    return merge_patch(obj, patch)


def apply(resource: Resource, live: Object | None, applied: Object, *, manager: str, force: bool, now: str) -> Object:
    return merge_patch(live or {}, applied)


def track(resource: Resource, old: Object | None, new: Object, *, manager: str, subresource: str, now: str) -> Object:
    return new
