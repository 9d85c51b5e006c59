"""Field validation: unknown fields and values of the wrong type, in Kubernetes' words.

Names and types of fields come from the field table, in table.py. Nearly every object is right, and accepted by the
structs that are compiled there; only the others are walked field by field.
"""

from __future__ import annotations

import binascii
import difflib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from kubesched.admission.schemas.table import METADATA, Definition, Type, definition, definition_of, is_acceptable
from kubesched.api.api_error import ApiError, bad_request
from kubesched.api.kinds import Object, Resource
from kubesched.api.quantity import QUANTITY_WORDS, QuantityError, parse_quantity
from kubesched.api.schema import Mistake, described

__all__ = ["FieldMistake", "decoding_error", "field_mistakes", "readable", "strict_decoding_error"]


class FieldMistake(msgspec.Struct, frozen=True):
    """A field that the kind does not have, or a value that is not of the field's type."""

    path: str
    """spec.template.spec.containers[0].imagee"""
    message: str
    """As Kubernetes' decoder words it."""
    plain: str
    """As the author of a manifest reads it, after the path."""
    nearest: str | None = None
    """For an unknown field: the most similar one that the kind has, "" if none is similar. None for a wrong value."""

    @property
    def unknown(self) -> bool:
        """Whether the field is unknown, which a client may tolerate, rather than its value unreadable."""
        return self.nearest is not None

    @property
    def mistake(self) -> Mistake:
        """As the author of a manifest reads it."""
        if not self.unknown:
            return Mistake(self.path, self.plain)
        return Mistake("", self.message + (f', did you mean "{self.nearest}"?' if self.nearest else ""))


def field_mistakes(resource: Resource, obj: Object) -> list[FieldMistake]:
    """Unknown fields and values of wrong types, in the order of the object; of custom resources only the metadata."""
    root = definition_of(resource)
    value: Any
    if root is not None:
        value, place = obj, _Place("", (), root)
    else:
        root = definition(METADATA.name)
        value, place = obj.get("metadata"), _Place("metadata", ("metadata",), root)
    mistakes: list[FieldMistake] = []
    if value is not None and not is_acceptable(root, value):
        _check_struct(root, value, place, mistakes)
    return mistakes


def readable(resource: Resource, obj: Object) -> Object:
    """The object without unknown fields and values of wrong types."""
    root = definition_of(resource)
    return obj if root is None else _readable(Type("struct", root.name), obj) or {}


def _readable(type_: Type, value: Any) -> Any:
    match type_.shape:
        case "struct" if isinstance(value, dict):
            fields = definition(type_.name).fields
            children = {name: _readable(fields[name].type, child) for name, child in value.items() if name in fields}
            return {name: child for name, child in children.items() if child is not None}
        case "map" if isinstance(value, dict):
            children = {name: _readable(type_.item, child) for name, child in value.items()}
            return {name: child for name, child in children.items() if child is not None}
        case "list" if isinstance(value, list):
            items = (_readable(type_.item, item) for item in value)
            return [_zero(type_.item) if item is None else item for item in items]
        case "scalar":
            place = _Place("", (), definition(METADATA.name))
            return value if value is not None and _scalar_mistake(type_.name, value, place) is None else None
        case "any":
            return value
    return None


def _zero(type_: Type) -> Any:
    """What replaces an item of a list that cannot be read, so that the others keep their indices."""
    match type_.shape:
        case "struct" | "map":
            return {}
        case "list":
            return []
    return 0 if type_.name in ("int32", "int64", "double", "quantity") else ""


def decoding_error(resource: Resource, mistakes: Sequence[FieldMistake]) -> ApiError | None:
    """The 400 for the first value that cannot be read, whichever field validation the client asked for."""
    for mistake in mistakes:
        if not mistake.unknown:
            subject = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            return bad_request(f"{subject}: {mistake.message}", [mistake.mistake])
    return None


def strict_decoding_error(unknown: Sequence[str]) -> ApiError:
    """The 400 for messages about unknown fields when field validation is strict."""
    return bad_request(f"strict decoding error: {', '.join(unknown)}")


class _Place(msgspec.Struct, frozen=True):
    """A place in an object: its path, and the struct and the fields that Go's decoder names in its messages."""

    path: str
    names: tuple[str, ...]
    struct: Definition

    def field(self, name: str, struct: Definition) -> _Place:
        return _Place(f"{self.path}.{name}" if self.path else name, (*self.names, name), struct)

    def item(self, index: int) -> _Place:
        return _Place(f"{self.path}[{index}]", self.names, self.struct)

    def entry(self, key: str) -> _Place:
        return _Place(f"{self.path}.{key}", self.names, self.struct)


def _check_struct(struct: Definition, value: Any, place: _Place, mistakes: list[FieldMistake]) -> None:
    if not isinstance(value, dict):
        mistakes.append(_mismatch(value, f"{struct.package}.{struct.short_name}", place))
        return
    fields = struct.fields
    for name, child in value.items():
        field = fields.get(name)
        inside = place.field(name, struct)
        if field is None:
            (nearest,) = difflib.get_close_matches(name, fields, n=1) or [""]
            message = f'unknown field "{inside.path}"'
            mistakes.append(FieldMistake(inside.path, message, message, nearest))
        elif child is not None:
            _check(field.type, child, inside, mistakes)


def _check(type_: Type, value: Any, place: _Place, mistakes: list[FieldMistake]) -> None:
    match type_.shape:
        case "struct":
            _check_struct(definition(type_.name), value, place, mistakes)
        case "list" if isinstance(value, list):
            for index, child in enumerate(value):
                _check(type_.item, child, place.item(index), mistakes)
        case "map" if isinstance(value, dict):
            for key, child in value.items():
                if child is not None:
                    _check(type_.item, child, place.entry(key), mistakes)
        case "list" | "map":
            mistakes.append(_mismatch(value, _go_type(type_), place))
        case "scalar":
            mistake = _scalar_mistake(type_.name, value, place)
            if mistake is not None:
                mistakes.append(mistake)


def _scalar_mistake(name: str, value: Any, place: _Place) -> FieldMistake | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "quantity" if isinstance(value, str) or number:
            return _quantity_mistake(value, place)
        case "intOrString" if isinstance(value, str):
            return None
        case "intOrString" | "int32":
            return None if _is_integer(value, 32) else _mismatch(value, "int32", place)
        case "int64":
            return None if _is_integer(value, 64) else _mismatch(value, "int64", place)
        case "double":
            return None if number else _mismatch(value, "float64", place)
        case "boolean":
            return None if isinstance(value, bool) else _mismatch(value, "bool", place)
        case "bytes" if isinstance(value, str):
            return _bytes_mistake(value, place)
        case "time" | "microTime" if isinstance(value, str):
            return _time_mistake(value, name, place)
    return None if isinstance(value, str) else _mismatch(value, _go_scalar(name), place)


def _is_integer(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _quantity_mistake(value: str | float, place: _Place) -> FieldMistake | None:
    try:
        parse_quantity(value)
    except QuantityError as error:
        return FieldMistake(place.path, QUANTITY_WORDS, str(error))
    return None


def _bytes_mistake(value: str, place: _Place) -> FieldMistake | None:
    data = value.replace("\r", "").replace("\n", "")  # folded lines are legal
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        legal = _BASE64.match(data)
        position = legal.end() if legal is not None else 0
        message = f"illegal base64 data at input byte {position}"
        return FieldMistake(place.path, message, message)
    return None


def _time_mistake(value: str, name: str, place: _Place) -> FieldMistake | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in value:
        layout = "2006-01-02T15:04:05Z07:00" if name == "time" else "2006-01-02T15:04:05.000000Z07:00"
        message = f'parsing time "{value}" as "{layout}": cannot parse "{value}"'
        return FieldMistake(place.path, message, f"{value!r} is not a time such as 2026-01-31T12:00:00Z")
    return None


def _mismatch(value: Any, go_type: str, place: _Place) -> FieldMistake:
    kind = _JSON_KINDS[type(value)]
    if kind == "number" and go_type in ("int32", "int64"):
        kind = f"number {value}"
    where = f"Go struct field {place.struct.short_name}.{'.'.join(place.names)}" if place.names else "Go value"
    message = f"json: cannot unmarshal {kind} into {where} of type {go_type}"
    return FieldMistake(place.path, message, f"expected {_plain_type(go_type, value)}, got {described(value)}")


def _plain_type(go_type: str, value: Any) -> str:
    if go_type in _INTEGERS:
        low, high = _INTEGERS[go_type]
        return f"an integer from {low} to {high}" if type(value) is int else "an integer"
    if go_type.startswith("[]") and go_type != "[]uint8":
        return "a list"
    return _PLAIN_TYPES.get(go_type, "a mapping")


def _go_type(type_: Type) -> str:
    match type_.shape:
        case "list":
            return f"[]{_go_type(type_.item)}"
        case "map":
            return f"map[string]{_go_type(type_.item)}"
        case "struct":
            struct = definition(type_.name)
            return f"{struct.package}.{struct.short_name}"
        case "scalar":
            return _go_scalar(type_.name)
    return "interface {}"


def _go_scalar(name: str) -> str:
    return _GO_SCALARS.get(name, name)


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*")
_GO_SCALARS = {
    "boolean": "bool",
    "double": "float64",
    "bytes": "[]uint8",
    "quantity": "resource.Quantity",
    "intOrString": "intstr.IntOrString",
    "time": "v1.Time",
    "microTime": "v1.MicroTime",
}
_INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_PLAIN_TYPES = {
    "string": "a string",
    "bool": "true or false",
    "float64": "a number",
    "[]uint8": "a base64 string",
    "resource.Quantity": "a quantity such as 500m or 1Gi",
    "intstr.IntOrString": "an integer or a string",
    "v1.Time": "a time such as 2026-01-31T12:00:00Z",
    "v1.MicroTime": "a time such as 2026-01-31T12:00:00Z",
}
_JSON_KINDS = {
    type(None): "null",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}
