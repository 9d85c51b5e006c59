"""JSON Schemas of documents, from the dataclasses that they are made from: for docs/schemas, and for OpenAPI."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kubesched.ask.output import API_VERSION, camel

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    object: {},
}


def schema_of(kind: str, parts: tuple[type, ...]) -> dict[str, Any]:
    """The schema of a document that has the fields of all these."""
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    fields, required = dict[str, Any](), list[str]()
    for part in parts:
        described = record_schema(part)
        fields |= described["properties"]
        required += described["required"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": _first_line(parts[0]),
        "type": "object",
        "properties": head | fields,
        "required": [*head, *required],
    }


def record_schema(type_: type) -> dict[str, Any]:
    hints = get_type_hints(type_)
    fields = dataclasses.fields(type_)
    return {
        "type": "object",
        "description": _first_line(type_),
        "properties": {camel(field.name): _schema(hints[field.name]) for field in fields},
        "required": [camel(field.name) for field in fields if type(None) not in get_args(hints[field.name])],
    }


def _schema(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if dataclasses.is_dataclass(hint):
        return record_schema(hint)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        options = [_schema(each) for each in arguments if each is not type(None)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin in (tuple, list):
        return {"type": "array", "items": _schema(arguments[0])}
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    raise TypeError(f"{hint}: no schema is known for this type")


def _first_line(type_: type) -> str:
    return (type_.__doc__ or "").partition("\n")[0]
