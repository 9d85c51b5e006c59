"""Reading and completing JSON whose types are known to be right: what is absent reads as empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.api.api_error import bad_request
from kubesched.api.kinds import Object
from kubesched.api.quantity import Quantity, parse_quantity

_DEEPEST = 200
"""Levels of nesting: more than any kind has, and few enough that copying and comparing do not run out of stack."""


def mapping(holder: Object, key: str) -> Object:
    value = holder.get(key)
    return {} if value is None else value


def sequence(holder: Object, key: str) -> list[Any]:
    value = holder.get(key)
    return [] if value is None else value


def text(holder: Object, key: str) -> str:
    return holder.get(key) or ""


def value_at(obj: Any, *path: str) -> Any:
    """The value at the end of the path, or None."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def metadata_of(obj: Object) -> Object:
    return mapping(obj, "metadata")


def name_of(obj: Object) -> str:
    return text(metadata_of(obj), "name")


def labels_of(obj: Object) -> dict[str, str]:
    return mapping(metadata_of(obj), "labels")


def quantities(holder: Object, key: str) -> dict[str, Quantity]:
    """A list of amounts by resource name."""
    return {name: parse_quantity(value) for name, value in mapping(holder, key).items()}


def fill(holder: Object, key: str, value: Any) -> None:
    """Set what the client left out, or sent as an empty string."""
    if holder.get(key) in (None, ""):
        holder[key] = value


def ensure_mapping(holder: Object, key: str) -> Object:
    """The object at that field, made if there was none, to be changed by the caller."""
    if holder.get(key) is None:
        holder[key] = {}
    inner: Object = holder[key]
    return inner


def copy_field(target: Object, source: Object, key: str) -> None:
    """Set the target's field to what the source has there; remove it if the source has none."""
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def fill_all(holder: Object, defaults: Mapping[str, Any]) -> None:
    """Set all that the client left out; a mapping among the defaults is made if there was none, and filled in turn."""
    for key, value in defaults.items():
        if isinstance(value, dict):
            fill_all(ensure_mapping(holder, key), value)
        else:
            fill(holder, key, value)


def fresh_copy(obj: Object, *, keep_nulls: bool = False) -> Object:
    """A deep copy that may be changed; null means absent, as for every typed kind."""
    return _copy(obj, keep_nulls, _DEEPEST)


def _copy(value: Object, keep_nulls: bool, levels: int) -> Object:
    copy: Object = {}
    for key, item in value.items():
        kind = type(item)
        if kind is dict or kind is list:
            copy[key] = _copy_inner(item, keep_nulls, levels - 1)
        elif item is not None or keep_nulls:
            copy[key] = item
    return copy


def _copy_inner(value: Any, keep_nulls: bool, levels: int) -> Any:
    if not levels:
        raise bad_request("json: exceeded max depth")
    if type(value) is dict:
        return _copy(value, keep_nulls, levels)
    return [
        _copy_inner(item, keep_nulls, levels - 1) if type(item) is dict or type(item) is list else item
        for item in value
    ]
