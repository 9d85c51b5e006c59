"""Plain values to typed records, naming every mistake on the way with its field path."""

from __future__ import annotations

import base64
import difflib
import json
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

T = TypeVar("T")
Hooks = Mapping[type, Callable[[Any], Any]]

_INT64 = (-(2**63), 2**63 - 1)
_BAD: Any = object()  # stands for a value that cannot be read
_NAMES: dict[Any, str] = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    bytes: "a base64 string",
    list: "a list",
    tuple: "a list",
    dict: "a mapping",
    type(None): "null",
}


class Mistake(NamedTuple):
    """One thing wrong with one field; prints as the line a user reads."""

    path: str
    problem: str
    reason: str = "FieldValueInvalid"
    """The API server's name for this kind of mistake."""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


def convert(
    value: Any,
    type_: type[T],
    *,
    path: str = "",
    unknown: Literal["ignore", "error"] = "ignore",
    shape_only: bool = False,
    hooks: Hooks | None = None,
) -> tuple[T | None, list[Mistake]]:
    """The value as a `type_`, or None and all that is wrong with it.

    As in Kubernetes' JSON, null counts as absent: a field takes its default, an element its zero value.
    With `shape_only`, names and JSON types are checked but not what the values may be: any string will do for an
    enumeration, and an absent required field is its zero value. That is for callers that validate afterwards.
    `hooks` read types that msgspec does not know. A hook raises ValueError to say what it expected, and unlike other
    types it is shown a null, unless its field is optional.
    """
    if unknown == "ignore" and not shape_only:
        try:
            return msgspec.convert(value, type_, dec_hook=_as_dec_hook(hooks or {})), []
        except msgspec.ValidationError:
            pass  # the first mistake only, so walk and find them all
    walk = _Walk(unknown == "error", shape_only, hooks or {})
    converted = walk.read(value, type_, path)
    return (None if walk.mistakes else converted), walk.mistakes


def _as_dec_hook(hooks: Hooks) -> Callable[[type, Any], Any]:
    return lambda type_, value: hooks[type_](value)


class _Walk:
    """One walk over a value, side by side with the type it should have."""

    def __init__(self, strict: bool, shape_only: bool, hooks: Hooks) -> None:
        self.mistakes: list[Mistake] = []
        self._strict = strict
        self._shape_only = shape_only
        self._hooks = hooks

    def read(self, value: Any, type_: Any, path: str) -> Any:
        origin = get_origin(type_)
        if type_ is Any or type_ is object:
            return value
        if type_ in self._hooks:
            return self._read_by_hook(value, type_, path)
        if origin is Annotated:
            return self._read_within_bounds(value, type_, path)
        if origin in (Union, types.UnionType):
            return self._union(value, get_args(type_), path)
        if origin is Literal:
            return self._literal(value, get_args(type_), path)
        if origin in (list, tuple):
            return self._list(value, origin, get_args(type_)[0], path)
        if origin is dict:
            return self._dict(value, get_args(type_)[1], path)
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            return self._struct(value, type_, path)
        return self._scalar(value, type_, path)

    def _mistake(self, path: str, problem: str) -> Any:
        self.mistakes.append(Mistake(path, problem))
        return _BAD

    def _mismatch(self, path: str, expected: str, value: Any) -> Any:
        return self._mistake(path, f"expected {expected}, got {described(value)}")

    def _read_by_hook(self, value: Any, type_: Any, path: str) -> Any:
        try:
            return self._hooks[type_](value)
        except ValueError as error:
            return self._mistake(path, str(error))

    def _read_within_bounds(self, value: Any, type_: Any, path: str) -> Any:
        base, *bounds = get_args(type_)
        result = self.read(value, base, path)
        for bound in bounds:
            if result is _BAD or not isinstance(bound, msgspec.Meta):
                continue
            if (bound.ge is not None and result < bound.ge) or (bound.le is not None and result > bound.le):
                return self._mismatch(path, f"{_name(base)} from {bound.ge} to {bound.le}", value)
        return result

    def _union(self, value: Any, options: tuple[Any, ...], path: str) -> Any:
        if value is None and type(None) in options:
            return None
        choices = [option for option in options if option is not type(None)]
        if len(choices) == 1:
            return self.read(value, choices[0], path)
        for choice in choices:
            attempt = _Walk(self._strict, self._shape_only, self._hooks)
            result = attempt.read(value, choice, path)
            if not attempt.mistakes:
                return result
        return self._mismatch(path, " or ".join(map(_name, choices)), value)

    def _literal(self, value: Any, allowed: tuple[Any, ...], path: str) -> Any:
        if self._shape_only:
            return self.read(value, type(allowed[0]), path)
        if any(value == choice and type(value) is type(choice) for choice in allowed):
            return value
        return self._mismatch(path, " or ".join(json.dumps(choice) for choice in allowed), value)

    def _list(self, value: Any, container: Any, item: Any, path: str) -> Any:
        if not isinstance(value, list):
            return self._mismatch(path, "a list", value)
        return container([self._element(element, item, f"{path}[{i}]") for i, element in enumerate(value)])

    def _dict(self, value: Any, item: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return self._mismatch(path, "a mapping", value)
        return {key: self._element(element, item, _join(path, key)) for key, element in value.items()}

    def _element(self, value: Any, type_: Any, path: str) -> Any:
        return self._zero(type_, path) if value is None else self.read(value, type_, path)

    def _struct(self, value: Any, type_: type[msgspec.Struct], path: str) -> Any:
        if not isinstance(value, dict):
            return self._mismatch(path, "a mapping", value)
        mistakes_before = len(self.mistakes)
        fields = _fields_of(type_)
        if self._strict:
            for key in value:
                if key not in fields:
                    self._mistake(_join(path, key), f"unknown field{_suggestion(key, fields)}")
        values: dict[str, Any] = {}
        for key, field in fields.items():
            here = _join(path, key)
            if value.get(key) is not None or (key in value and field.type in self._hooks):
                values[field.name] = self.read(value[key], field.type, here)
            elif field.required and self._shape_only:
                values[field.name] = self._zero(field.type, here)
            elif field.required:
                self._mistake(here, "required field is missing")
        if len(self.mistakes) > mistakes_before:
            return _BAD
        try:
            return type_(**values)
        except ValueError as error:  # from a record that checks itself
            return self._mistake(path, str(error))

    def _zero(self, type_: Any, path: str) -> Any:
        """Go's zero value of the type, which an absent field has."""
        origin = get_origin(type_)
        if type_ is Any or type(None) in get_args(type_):
            return None
        if origin is Annotated:
            return self._zero(get_args(type_)[0], path)
        if origin is Literal and self._shape_only:
            return type(get_args(type_)[0])()
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            return self._struct({}, type_, path)
        if (origin or type_) in _NAMES:
            return (origin or type_)()
        return self._mismatch(path, _name(type_), None)

    def _scalar(self, value: Any, type_: Any, path: str) -> Any:
        if type_ is bytes and isinstance(value, str):
            try:
                return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
            except ValueError:
                return self._mismatch(path, "a base64 string", value)
        if type_ is float and type(value) is int:
            return float(value)
        if type(value) is not type_:
            return self._mismatch(path, _name(type_), value)
        if type_ is int and not _INT64[0] <= value <= _INT64[1]:
            return self._mismatch(path, f"an integer from {_INT64[0]} to {_INT64[1]}", value)
        return value


@cache
def _fields_of(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(type_)}


def _join(path: str, key: str) -> str:
    name = key if key.isprintable() else json.dumps(key)  # a mistake is one line
    return f"{path}.{name}" if path else name


def _name(type_: Any) -> str:
    origin = get_origin(type_)
    if origin is Annotated:
        return _name(get_args(type_)[0])
    if origin is Literal:
        return " or ".join(json.dumps(choice) for choice in get_args(type_))
    return _NAMES.get(origin or type_, "a mapping")


def described(value: Any) -> str:
    """A value as messages show it."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _suggestion(key: str, fields: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, fields, n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
