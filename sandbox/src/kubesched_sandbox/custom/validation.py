"""Validates values by an openAPIV3Schema, in the words of an API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import re2

from kubesched.admission.rules import Mistakes
from kubesched_sandbox.custom.structure import Schema, is_embedded, property_of

_ABSENT = object()


def check_value(value: Any, schema: Schema, path: str, mistakes: Mistakes, *, old: Any = _ABSENT) -> None:
    """Note what is wrong with a value, unless it was the same before."""
    if value == old and type(value) is type(old):
        return
    if not _has_type(value, schema, path, mistakes) or value is None:
        return
    _check_enum(value, schema, path, mistakes)
    if isinstance(value, bool):
        pass
    elif isinstance(value, int | float):
        _check_number(value, schema, path, mistakes)
    elif isinstance(value, str):
        _check_string(value, schema, path, mistakes)
    elif isinstance(value, list):
        _check_list(value, schema, path, mistakes, old)
    elif isinstance(value, dict):
        _check_object(value, schema, path, mistakes, old)
    _check_combinations(value, schema, path, mistakes)


def type_name(value: Any) -> str:
    """What JSON Schema calls the type of a value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return {float: "number", str: "string", list: "array", dict: "object"}.get(type(value), "null")


def _has_type(value: Any, schema: Schema, path: str, mistakes: Mistakes) -> bool:
    wanted = schema.get("type")
    found = type_name(value)
    if value is None and schema.get("nullable"):
        return True
    if schema.get("x-kubernetes-int-or-string"):
        fits, wanted = found in ("integer", "string"), "integer,string"
    else:
        fits = not wanted or found == wanted or (wanted == "number" and found == "integer")
    if not fits:
        mistakes.invalid(path, found, f'{_called(path)} must be of type {wanted}: "{found}"')
    return fits


def _called(path: str) -> str:
    return f"{path} in body"


def _check_enum(value: Any, schema: Schema, path: str, mistakes: Mistakes) -> None:
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        mistakes.unsupported(path, value, [each if isinstance(each, str) else json.dumps(each) for each in allowed])


def _check_number(value: float, schema: Schema, path: str, mistakes: Mistakes) -> None:
    def refuse(why: str, limit: float) -> None:
        shown = int(limit) if float(limit).is_integer() else limit
        mistakes.invalid(path, value, f"{_called(path)} should be {why} {shown}")

    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            refuse("less than", most)
        elif value > most:
            refuse("less than or equal to", most)
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            refuse("greater than", least)
        elif value < least:
            refuse("greater than or equal to", least)
    if step and value % step:
        refuse("a multiple of", step)


def _check_string(value: str, schema: Schema, path: str, mistakes: Mistakes) -> None:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        mistakes.too_long(path, most)
    if least is not None and len(value) < least:
        mistakes.invalid(path, value, f"{_called(path)} should be at least {least} chars long")
    if pattern and not re2.search(pattern, value):
        mistakes.invalid(path, value, f"{_called(path)} should match '{pattern}'")


def _check_list(value: list[Any], schema: Schema, path: str, mistakes: Mistakes, old: Any) -> None:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        mistakes.too_many(path, len(value), most)
    if least is not None and len(value) < least:
        mistakes.invalid(path, len(value), f"{_called(path)} should have at least {least} items")
    _check_unique(value, schema, path, mistakes)
    items = schema.get("items") or {}
    before = old if isinstance(old, list) else []
    for i, item in enumerate(value):
        check_value(item, items, f"{path}[{i}]", mistakes, old=before[i] if i < len(before) else _ABSENT)


def _check_unique(value: list[Any], schema: Schema, path: str, mistakes: Mistakes) -> None:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    seen = set()
    for i, item in enumerate(value):
        own = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
        text = json.dumps(own, sort_keys=True)
        if text in seen:
            mistakes.duplicate(f"{path}[{i}]", own)
        seen.add(text)


def _check_object(value: dict[str, Any], schema: Schema, path: str, mistakes: Mistakes, old: Any) -> None:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        mistakes.too_many(path, len(value), most)
    if least is not None and len(value) < least:
        mistakes.invalid(path, len(value), f"{_called(path)} should have at least {least} properties")
    for name in schema.get("required") or ():
        if name not in value and not (is_root(path) and name == "metadata"):
            mistakes.required(_below(path, name))
    for name, field in value.items():
        inner = property_of(schema, name)
        if inner is not None and not (is_embedded(schema) and name == "metadata"):
            before = old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT
            check_value(field, inner, _below(path, name), mistakes, old=before)


def is_root(path: str) -> bool:
    return not path


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_combinations(value: Any, schema: Schema, path: str, mistakes: Mistakes) -> None:
    for part in schema.get("allOf") or ():
        check_value(value, part, path, mistakes)
    any_of, one_of, never = schema.get("anyOf") or (), schema.get("oneOf") or (), schema.get("not")
    fits: Callable[[Schema], bool] = lambda part: _fits(value, part)  # noqa: E731
    if any_of and not any(map(fits, any_of)):
        mistakes.invalid(path, _plain(value), f'"{path}" must validate at least one schema (anyOf)')
    if one_of and (count := sum(map(fits, one_of))) != 1:
        found = "Found none valid" if not count else f"Found {count} valid alternatives"
        mistakes.invalid(path, _plain(value), f'"{path}" must validate one and only one schema (oneOf). {found}')
    if never and fits(never):
        mistakes.invalid(path, _plain(value), f'"{path}" must not validate the schema (not)')


def _fits(value: Any, schema: Schema) -> bool:
    mistakes = Mistakes()
    check_value(value, schema, "", mistakes)
    return not mistakes.found


def _plain(value: Any) -> Any:
    """Objects and lists are shown by their type alone."""
    return type_name(value) if isinstance(value, dict | list) else value
