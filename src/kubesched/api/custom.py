"""Objects of kinds that only plugins know: custom resources, read whole and as plain values."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import msgspec

from kubesched.api.meta import KubeObject, ObjectMeta


class CustomObject(KubeObject, frozen=True):
    """Everything the object has is in `content`. Each resource has a subclass of its own: see `custom_kind`."""

    resource: ClassVar[str] = ""
    content: dict[str, Any] = {}


@cache
def custom_kind(resource: str) -> type[CustomObject]:
    """The type for objects of `plural.version.group`, such as `racks.v1.example.com`.

    Plugins wait for events of a resource by that name, and find its objects in the state by this type.
    """
    if resource.count(".") < 2:
        raise ValueError(f'"{resource}": expected plural.version.group, such as racks.v1.example.com')
    return type(f"Custom[{resource}]", (CustomObject,), {"resource": resource, "__doc__": f"One of {resource}."})


def read_custom(resource: str, content: dict[str, Any]) -> CustomObject:
    """The object with this content. msgspec.ValidationError if its metadata is none."""
    return custom_object(resource, content, msgspec.convert(content.get("metadata") or {}, ObjectMeta))


def custom_object(resource: str, content: dict[str, Any], metadata: ObjectMeta) -> CustomObject:
    """The object with this content, whose metadata has been read already."""
    return custom_kind(resource)(
        api_version=content.get("apiVersion", ""),
        kind=content.get("kind", ""),
        metadata=metadata,
        content=content,
    )
