"""Answers as documents: camelCase JSON, made from dataclasses, and their JSON Schemas; counts and lists in words."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

API_VERSION: Literal["kubesched.dev/v1alpha1"] = "kubesched.dev/v1alpha1"
_PLAIN = (str, int, float)
_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    object: {},
}


def document(kind: str, answer: object) -> dict[str, Any]:
    """The answer, a dataclass, as a document; `kind` says how to read it."""
    return {"apiVersion": API_VERSION, "kind": kind, **plain(answer)}


def plain(value: Any) -> Any:
    """Names of fields in camelCase, nothing for None. Keys of mappings are data (names of nodes): they stay."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, _PLAIN):
        return value
    kind: Any = type(value)
    if names := _names(kind):
        fields = [(shown, getattr(value, name)) for name, shown in names]
        return {shown: plain(content) for shown, content in fields if content is not None}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(content) for key, content in value.items()}
    return value


@cache
def _names(type_: type) -> tuple[tuple[str, str], ...]:
    """Of all fields, here and in documents; none for what is no dataclass."""
    if not dataclasses.is_dataclass(type_):
        return ()
    return tuple((field.name, camel(field.name)) for field in dataclasses.fields(type_))


def camel(name: str) -> str:
    """`current_node` as `currentNode`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


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


def counted(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c and 9 more`."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
