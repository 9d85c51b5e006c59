"""Field validation: unknown fields and values of the wrong type, in Kubernetes' words.

An object without problems, which is nearly every one, is recognised by the compiled structs of acceptance.py;
only the others are walked field by field.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from kubesched.api.kinds import Object, Resource
from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.sandbox.errors import ApiError, bad_request
from kubesched.sandbox.schemas.acceptance import is_acceptable
from kubesched.sandbox.schemas.table import METADATA, Definition, Type, definition, definition_of


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with an object."""

    path: str
    """spec.template.spec.containers[0].imagee"""
    message: str
    unknown: bool
    """An unknown field, which may be tolerated, rather than a value that cannot be read."""


def problems(resource: Resource, obj: Object) -> list[Problem]:
    """Unknown fields and values of wrong types, in the order of the object; of custom resources only the metadata."""
    root = definition_of(resource)
    found: list[Problem] = []
    if root is None:
        _check_metadata(obj.get("metadata"), found)
    elif not is_acceptable(root, obj):
        _check_struct(root, obj, _Place("", (), root), found)
    return found


def _check_metadata(metadata: Any, found: list[Problem]) -> None:
    struct = definition(METADATA.name)
    if metadata is not None and not is_acceptable(struct, metadata):
        _check_struct(struct, metadata, _Place("metadata", ("metadata",), struct), found)


def decoding_error(resource: Resource, found: Sequence[Problem]) -> ApiError | None:
    """The 400 for the first value that cannot be read at all, whatever field validation was asked for."""
    for problem in found:
        if not problem.unknown:
            subject = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            return bad_request(f"{subject}: {problem.message}")
    return None


def strict_decoding_error(found: Sequence[Problem]) -> ApiError | None:
    """The 400 for unknown fields when field validation is strict."""
    words = [problem.message for problem in found if problem.unknown]
    return bad_request(f"strict decoding error: {', '.join(words)}") if words else None


class _Place(msgspec.Struct, frozen=True):
    """Where in an object we are: the path for people, and the struct and fields that Go's decoder would name."""

    path: str
    names: tuple[str, ...]
    struct: Definition

    def field(self, name: str, struct: Definition) -> _Place:
        return _Place(f"{self.path}.{name}" if self.path else name, (*self.names, name), struct)

    def item(self, index: int) -> _Place:
        return _Place(f"{self.path}[{index}]", self.names, self.struct)

    def entry(self, key: str) -> _Place:
        return _Place(f"{self.path}.{key}", self.names, self.struct)


def _check_struct(struct: Definition, value: Any, place: _Place, found: list[Problem]) -> None:
    if not isinstance(value, dict):
        found.append(_mismatch(value, f"{struct.package}.{struct.short_name}", place))
        return
    fields = struct.fields
    for name, child in value.items():
        field = fields.get(name)
        inside = place.field(name, struct)
        if field is None:
            found.append(Problem(inside.path, f'unknown field "{inside.path}"', unknown=True))
        elif child is not None:
            _check(field.type, child, inside, found)


def _check(type_: Type, value: Any, place: _Place, found: list[Problem]) -> None:
    match type_.shape:
        case "struct":
            _check_struct(definition(type_.name), value, place, found)
        case "list" if isinstance(value, list):
            for index, child in enumerate(value):
                if child is not None:
                    _check(type_.item, child, place.item(index), found)
        case "map" if isinstance(value, dict):
            for key, child in value.items():
                if child is not None:
                    _check(type_.item, child, place.entry(key), found)
        case "list" | "map":
            found.append(_mismatch(value, _go_type(type_), place))
        case "scalar":
            problem = _scalar_problem(type_.name, value, place)
            if problem is not None:
                found.append(problem)


def _scalar_problem(name: str, value: Any, place: _Place) -> Problem | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "quantity" if isinstance(value, str) or number:
            return _quantity_problem(value, place)
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
            return _bytes_problem(value, place)
        case "time" | "microTime" if isinstance(value, str):
            return _time_problem(value, name, place)
    return None if isinstance(value, str) else _mismatch(value, _go_scalar(name), place)


def _is_integer(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _quantity_problem(value: str | float, place: _Place) -> Problem | None:
    try:
        parse_quantity(value)
    except QuantityError:
        pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        return Problem(place.path, f"quantities must match the regular expression '{pattern}'", unknown=False)
    return None


def _bytes_problem(value: str, place: _Place) -> Problem | None:
    data = value.replace("\r", "").replace("\n", "")  # folded lines are legal
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        legal = _BASE64.match(data)
        position = legal.end() if legal is not None else 0
        return Problem(place.path, f"illegal base64 data at input byte {position}", unknown=False)
    return None


def _time_problem(value: str, name: str, place: _Place) -> Problem | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in value:
        layout = "2006-01-02T15:04:05Z07:00" if name == "time" else "2006-01-02T15:04:05.000000Z07:00"
        return Problem(place.path, f'parsing time "{value}" as "{layout}": cannot parse "{value}"', unknown=False)
    return None


def _mismatch(value: Any, wanted: str, place: _Place) -> Problem:
    kind = _JSON_KINDS[type(value)]
    if kind == "number" and wanted in ("int32", "int64"):
        kind = f"number {value}"
    where = f"Go struct field {place.struct.short_name}.{'.'.join(place.names)}" if place.names else "Go value"
    return Problem(place.path, f"json: cannot unmarshal {kind} into {where} of type {wanted}", unknown=False)


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
_JSON_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
