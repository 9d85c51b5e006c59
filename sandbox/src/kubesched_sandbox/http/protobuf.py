"""Objects out of protobuf, the format that clients written in Go send by default.

Nearly all of them accept JSON as an answer; `protobuf_writing.py` answers those that do not.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from kubesched.admission.schemas.table import Type, definition, definition_of_kind
from kubesched.api.kinds import Object

Value = int | bytes
"""A number, or the bytes of a text, a message or a fixed64."""


class ProtobufError(ValueError):
    """Bytes that are no message, or not the one expected."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in the order they were written."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: Value
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = _slice(data, at, size)
        elif kind == 1:
            value, at = _slice(data, at, 8)
        elif kind == 5:
            value, at = _slice(data, at, 4)
        else:
            raise ProtobufError(f"field {number} has the unknown wire type {kind}")
        yield number, value


def message(value: Value) -> bytes:
    """A value that must be bytes."""
    if isinstance(value, int):
        raise ProtobufError("a number was found where a message or text belongs")
    return value


def text(value: Value) -> str:
    try:
        return message(value).decode()
    except UnicodeDecodeError:
        raise ProtobufError("a text is not valid UTF-8") from None


def number(value: Value) -> int:
    """A signed integer of 64 bits, as every integer is written."""
    if not isinstance(value, int):
        raise ProtobufError("bytes were found where a number belongs")
    return value - (1 << 64) if value >= 1 << 63 else value


def double(value: Value) -> float:
    data = message(value)
    if len(data) != 8:
        raise ProtobufError("a floating point number does not have eight bytes")
    result: float = struct.unpack("<d", data)[0]
    return result


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("a number ends too early or not at all")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _slice(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise ProtobufError("a field ends after its message")
    return data[at : at + size], at + size


MAGIC = b"k8s\x00"
_DEEPEST = 100


class _Numbered(NamedTuple):
    """One field of a message."""

    name: str
    type: Type | None
    inlined: str = ""
    may_be_absent: bool = False


def decode_object(data: bytes) -> Object | None:
    """The object in an envelope; None when it is of a kind whose fields are not known here."""
    if not data.startswith(MAGIC):
        raise ProtobufError("the body does not begin as Kubernetes objects in protobuf do")
    api_version = kind = ""
    raw = b""
    for field_number, value in fields(data[len(MAGIC) :]):
        if field_number == 1:
            for inner, part in fields(message(value)):
                if inner == 1:
                    api_version = text(part)
                elif inner == 2:
                    kind = text(part)
        elif field_number == 2:
            raw = message(value)
    group, _, version = api_version.rpartition("/")
    known = definition_of_kind(group, version, kind)
    if known is None or not has_numbers(known.name):
        return None
    return {"apiVersion": api_version, "kind": kind, **_object(known.name, raw, 0)}


def _object(name: str, data: bytes, depth: int, owner: str = "") -> Object:
    """A message as an object. `owner` is the type whose fields these are, when they are sent as a message apart."""
    if depth > _DEEPEST:
        raise ProtobufError(f"messages are nested deeper than {_DEEPEST} levels")
    known = fields_of(name, owner or name)
    result: Object = {}
    for found, value in fields(data):
        field = known.get(found)
        if field is None:
            continue
        if field.inlined:
            result.update(_object(field.inlined, message(value), depth + 1, owner or name))
        elif field.type is not None:
            _set(result, field, field.type, value, depth)
    return result


def _set(result: Object, field: _Numbered, type_: Type, value: Value, depth: int) -> None:
    match type_.shape:
        case "list":
            result.setdefault(field.name, []).append(_value(type_.item, value, depth))
        case "map":
            key, entry = _entry(type_.item, message(value), depth)
            result.setdefault(field.name, {})[key] = entry
        case _:
            decoded = _value(type_, value, depth)
            # What has no way to be absent is always sent; as JSON it is left out when it says nothing.
            if field.may_be_absent or decoded not in ("", 0, None):
                result[field.name] = decoded


def _entry(type_: Type, data: bytes, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for found, part in fields(data):
        if found == 1:
            key = text(part)
        elif found == 2:
            value = _value(type_, part, depth)
    return key, "" if value is None and type_.shape == "scalar" else value


def _value(type_: Type, value: Value, depth: int) -> Any:
    match type_.shape:
        case "struct":
            return _object(type_.name, message(value), depth + 1)
        case "list":
            # A list inside a map is a message of its own, with the items as its first field.
            return [_value(type_.item, part, depth + 1) for found, part in fields(message(value)) if found == 1]
        case "any":
            return _raw(message(value))
        case "map":
            return dict(_entry(type_.item, message(part), depth + 1) for _, part in fields(message(value)))
        case _:
            return _scalar(type_.name, value)


def _scalar(name: str, value: Value) -> Any:
    match name:
        case "string":
            return text(value)
        case "bytes":
            return base64.b64encode(message(value)).decode()
        case "boolean":
            return number(value) != 0
        case "int32" | "int64":
            return number(value)
        case "double":
            return double(value)
        case "quantity":
            return next((text(part) for found, part in fields(message(value)) if found == 1), "0")
        case "time" | "microTime":
            return _time(message(value), micro=name == "microTime")
        case "intOrString":
            return _int_or_string(message(value))
        case _:
            raise ProtobufError(f"fields of type {name} are not read from protobuf")


def _time(data: bytes, *, micro: bool) -> str | None:
    parts = dict(fields(data))
    if not parts:
        return None
    try:
        moment = datetime.fromtimestamp(number(parts.get(1, 0)), UTC)
    except (ValueError, OverflowError, OSError):
        raise ProtobufError("a time is out of range") from None
    if not micro:
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{number(parts.get(2, 0)) // 1000 % 1_000_000:06d}Z"


def _int_or_string(data: bytes) -> int | str:
    parts = dict(fields(data))
    return text(parts.get(3, b"")) if parts.get(1) else number(parts.get(2, 0))


def _raw(data: bytes) -> Any:
    raw = next((message(part) for found, part in fields(data) if found == 1), b"")
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtobufError(f"an embedded object is not JSON: {error}") from None


@cache
def _numbers() -> dict[str, str]:
    data = resources.files(__package__).joinpath("protobuf_numbers.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, str])


def has_numbers(name: str) -> bool:
    """Whether messages of this type can be read and written."""
    return name in _numbers()


@cache
def fields_of(name: str, owner: str) -> dict[int, _Numbered]:
    """The fields of a message by their numbers; `owner` is the type that they belong to in JSON."""
    listed = _numbers().get(name)
    if listed is None:
        raise ProtobufError(f"messages of type {name} are not read from protobuf")
    types = {key: field.type for key, field in definition(owner).fields.items()}
    result = {}
    for spelled in listed.split(", "):
        digits, _, rest = spelled.partition(" ")
        if rest.startswith("<"):
            result[int(digits)] = _Numbered("", None, rest[1:-1])
        else:
            plain = rest.removeprefix("*")
            result[int(digits)] = _Numbered(plain, types.get(plain), "", plain != rest)
    return result
