"""Stands in for server-side apply and tables until those packages are merged."""

from __future__ import annotations

from typing import Any

from kubesched.sandbox.kinds import Object, Resource
from kubesched.sandbox.patching import merge_patch


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
