"""Structural schemas: prunes fields that a schema does not have, and fills in its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

Schema = Mapping[str, Any]
"""An openAPIV3Schema, or a part of one."""

_FRAME = ("apiVersion", "kind", "metadata")
"""Fields of every object, whether or not its schema names them."""


def property_of(schema: Schema, name: str) -> Schema | None:
    """The schema of a field; None if the field is unknown."""
    found: Schema | None = (schema.get("properties") or {}).get(name)
    if found is not None:
        return found
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return others
    return {"x-kubernetes-preserve-unknown-fields": True} if others is True else None


def keeps_unknown(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def is_embedded(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def prune(value: Any, schema: Schema, *, is_resource: bool = False) -> Any:
    """A copy without the fields that the schema does not have."""
    if isinstance(value, dict):
        kept = {}
        for name, field in value.items():
            if is_resource and name in _FRAME:
                kept[name] = field
            elif (inner := property_of(schema, name)) is not None:
                kept[name] = prune(field, inner, is_resource=is_embedded(inner))
            elif keeps_unknown(schema):
                kept[name] = field
        return kept
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [prune(item, items, is_resource=is_embedded(items)) for item in value] if items else value
    return value


def unknown_fields(value: Any, schema: Schema, path: str = "", *, is_resource: bool = False) -> list[str]:
    """The paths of fields that `prune` leaves out."""
    found = []
    if isinstance(value, dict):
        for name, field in value.items():
            if is_resource and name in _FRAME:
                continue
            here = f"{path}.{name}" if path else name
            inner = property_of(schema, name)
            if inner is not None:
                found += unknown_fields(field, inner, here, is_resource=is_embedded(inner))
            elif not keeps_unknown(schema):
                found.append(here)
    elif isinstance(value, list) and (items := schema.get("items")):
        for i, item in enumerate(value):
            found += unknown_fields(item, items, f"{path}[{i}]", is_resource=is_embedded(items))
    return found


def fill_in_defaults(value: Any, schema: Schema) -> Any:
    """The value with the defaults of its fields, changed in place. A null where none may be counts as left out."""
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if "default" not in inner:
                continue
            if name not in value or (value[name] is None and not inner.get("nullable")):
                value[name] = deepcopy(inner["default"])
        for name, field in value.items():
            if (known := property_of(schema, name)) is not None:
                value[name] = fill_in_defaults(field, known)
    elif isinstance(value, list) and (items := schema.get("items")):
        value[:] = [fill_in_defaults(item, items) for item in value]
    return value
