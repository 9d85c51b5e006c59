"""Stands in for admission and patching until those packages are merged."""

from __future__ import annotations

from typing import Any

from kubesched.sandbox import admission
from kubesched.sandbox.admission import Reader
from kubesched.sandbox.errors import no_such_resource
from kubesched.sandbox.kinds import NAMESPACES, Object, Resource
from kubesched.sandbox.patching import merge_patch


def admit_create(resource: Resource, obj: Object, reader: Reader) -> Object:
    new = admission.admit_create(resource, obj, reader)
    if resource is NAMESPACES:
        return {**new, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    return new


def strategic_merge(resource: Resource, obj: Object, patch: Any) -> Object:
    return merge_patch(obj, patch)


def apply(resource: Resource, live: Object | None, applied: Object, *, manager: str, force: bool, now: str) -> Object:
    return merge_patch(live or {}, applied)


def track(resource: Resource, old: Object | None, new: Object, *, manager: str, subresource: str, now: str) -> Object:
    return new


def table(
    resource: Resource, objects: Any, *, now: Any, include: Any = "Metadata", list_meta: Any = None, columns: Any = None
) -> Object:
    rows = [{"cells": [obj["metadata"]["name"]], "object": obj} for obj in objects]
    definitions = [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta or {},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def openapi_v2(resources: Any) -> Object:
    raise no_such_resource()


def openapi_v3_index(resources: Any) -> Object:
    raise no_such_resource()


def openapi_v3(group: str, version: str, resources: Any) -> Object:
    raise no_such_resource()
