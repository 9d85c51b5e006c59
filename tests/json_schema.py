"""Holds documents against JSON Schemas, as far as those of this repository go."""

from __future__ import annotations

from typing import Any


def mistakes(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """What in a value is not as its schema says; as much of JSON Schema as the files use."""
    if not schema:
        return []
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r} is none of {schema['enum']}"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{path}: {value!r} is not {schema['const']!r}"]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    if not isinstance(value, kinds.get(schema.get("type", ""), object)):
        return [f"{path}: {value!r} is no {schema['type']}"]
    found: list[str] = []
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        found += [f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        found += [f"{path}: {name} is not described" for name in value if name not in fields and others is None]
        for name, content in value.items():
            found += mistakes(content, fields.get(name, others or {}), f"{path}.{name}")
    if isinstance(value, list):
        for i, content in enumerate(value):
            found += mistakes(content, schema["items"], f"{path}[{i}]")
    return found
