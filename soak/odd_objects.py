"""Objects of every watched kind as they come over the wire, and ways to spoil any field of theirs."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from kubesched.api.kinds import Kind

Path = tuple[str | int, ...]

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**400, 1.5, 1e300),
    *("", "x", "0000-01-01T00:00:00Z", "99999-13-45", "9" * 5000, "-8Ei", "1e999999999", "\u0000\ud7ff", "a/b/c", "*"),
    *([], [None], [[]], ["x", 1], [{"key": 1}], [{}, {}], {}, {"": None}, {"x": {"x": []}}),
)
"""What a field may have instead of what belongs there. Some are of its type, and mean nothing."""

_TEXTS = {
    "name": "same",
    "namespace": "default",
    "uid": "the-uid",
    "resourceVersion": "1",
    "version": "1.0.0",
    "nodeName": "node",
    "schedulerName": "default-scheduler",
    "phase": "Running",
    "topologyKey": "zone",
    "startTime": "2026-01-01T00:00:00Z",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "expression": "true",
    "driver": "gpu.example.com",
    "poolName": "pool",
    "device": "gpu-0",
}


def example(kind: Kind) -> dict[str, Any]:
    """An object that has every field that is read, and means something."""
    made: dict[str, Any] = _example(kind.record, "")
    resource = kind.resource
    meta = {**made["metadata"], "namespace": "default" if resource.namespaced else ""}
    meta.pop("deletionTimestamp", None)
    return {**made, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}


def _example(type_: Any, name: str) -> Any:
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return {field.encode_name: _example(field.type, field.encode_name) for field in msgspec.structs.fields(type_)}
    if origin in (typing.Union, types.UnionType):
        options = [option for option in arguments if option is not type(None)]
        return _example(str if str in options else options[0], "1" if float in options else name)
    if origin in (list, tuple):
        return [_example(arguments[0], name)]
    if origin is dict:
        return {"key": _example(arguments[1], name)}
    if origin is Literal:
        return arguments[0]
    if origin is typing.Annotated:
        return _example(arguments[0], name)
    return {str: _TEXTS.get(name, "1" if name == "1" else "key"), int: 1, float: 1.0, bool: False}.get(type_)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in the object, from the top down."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from paths(inner, (*path, key))


def spoilt(value: Any, path: Path, odd: Any) -> Any:
    """The same with something odd in that place, if the place is still there."""
    if not path:
        return odd
    step: Any = path[0]
    if isinstance(value, dict) and step in value:
        return {**value, step: spoilt(value[step], path[1:], odd)}
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return [*value[:step], spoilt(value[step], path[1:], odd), *value[step + 1 :]]
    return value
