"""Answers as documents: camelCase JSON, made from dataclasses, and their JSON Schemas; counts and lists in words."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

API_VERSION: Literal["kubesched.dev/v1alpha1"] = "kubesched.dev/v1alpha1"
_SINGULAR = {"are": "is", "have": "has", "were": "was", "do": "does"}
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


def plain(value: Any, *, leave_out_empty: bool = False) -> Any:
    """Names of fields in camelCase, nothing for None. Keys of mappings are data (names of nodes): they stay.

    With `leave_out_empty` there is no field with an empty text, either; what mappings hold is data, and stays.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, _PLAIN):
        return value
    kind: Any = type(value)
    if names := _names(kind):
        fields = [(shown, getattr(value, name), is_text and leave_out_empty) for name, shown, is_text in names]
        return {
            shown: plain(content, leave_out_empty=leave_out_empty)
            for shown, content, may_go in fields
            if content is not None and not (may_go and content == "")
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, leave_out_empty=leave_out_empty) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(content, leave_out_empty=leave_out_empty) for key, content in value.items()}
    return value


@cache
def _names(type_: type) -> tuple[tuple[str, str, bool], ...]:
    """Of all fields, here and in documents, and whether they are texts; none for what is no dataclass."""
    if not dataclasses.is_dataclass(type_):
        return ()
    hints = get_type_hints(type_)
    return tuple((field.name, camel(field.name), hints[field.name] is str) for field in dataclasses.fields(type_))


def camel(name: str) -> str:
    """`current_node` as `currentNode`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def schema_of(kind: str, parts: tuple[type, ...]) -> dict[str, Any]:
    """The schema of a document that has the fields of all these."""
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    fields, required = dict[str, Any](), list[str]()
    for i, part in enumerate(parts):
        described = record_schema(part, is_first=i == 0)
        fields |= described["properties"]
        required += described["required"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": _first_line(parts[0]),
        "type": "object",
        "properties": head | fields,
        "required": list(dict.fromkeys((*head, *required))),
    }


def record_schema(type_: type, *, is_first: bool = True) -> dict[str, Any]:
    """The schema of a record; or of a further part of a document, which is about what the first part names."""
    hints = get_type_hints(type_)
    fields = dataclasses.fields(type_)
    return {
        "type": "object",
        "description": _first_line(type_),
        "properties": {camel(field.name): _schema(hints[field.name]) for field in fields},
        "required": [
            camel(field.name)
            for i, field in enumerate(fields)
            if _is_required(hints[field.name], is_name=is_first and i == 0)
        ],
    }


def _is_required(hint: Any, *, is_name: bool) -> bool:
    """A text may be empty, and is left out then; but for the first field, which says what a record is about."""
    return type(None) not in get_args(hint) and (hint is not str or is_name)


def _schema(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if dataclasses.is_dataclass(hint):
        return record_schema(hint)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        options = [_schema(member) for member in arguments if member is not type(None)]
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


def agreeing(count: int, verb: str) -> str:
    """The verb of `counted`, given as it is for several: `1 node fits`, `2 nodes fit`, `1 is`, `2 are`."""
    if count != 1:
        return verb
    return _SINGULAR.get(verb) or f"{verb}s"


def share(part: int, whole: int, noun: str, verb: str) -> str:
    """`1 of 1 node fits`, `2 of 9 nodes fit`."""
    return f"{part} of {counted(whole, noun)} {agreeing(part, verb)}"


def first_of(lines: Sequence[str], most: int) -> list[str]:
    """The first few, and one line more that says how many there are besides."""
    return [*lines] if len(lines) <= most + 1 else [*lines[:most], f"and {len(lines) - most} more"]


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c and 9 more`."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
