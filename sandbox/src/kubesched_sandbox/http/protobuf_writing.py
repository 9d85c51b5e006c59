"""Objects as protobuf, for clients that accept nothing else; `protobuf.py` reads them and knows the fields' numbers."""

from __future__ import annotations

import base64
import struct
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.admission.schemas.table import METADATA, Type, definition_of_kind
from kubesched.api.kinds import Object
from kubesched_sandbox.http.protobuf import MAGIC, fields_of, has_numbers

_META = METADATA.name.rpartition(".")[0]
_LISTED = Type("struct", f"{_META}.ListMeta")


def encode_object(obj: Object) -> bytes | None:
    """An object, a list or a Status in its envelope; None when it is of a kind whose fields are not known here."""
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    if "items" in obj:
        name = message_of_kind(api_version, kind.removesuffix("List"))
        listed = [_item(name, item) for item in obj["items"]] if name else ()
        raw = _value(1, _LISTED, obj.get("metadata") or {}) + b"".join(_bytes(2, item) for item in listed)
    else:
        name = message_of_kind(api_version, kind)
        raw = _item(name, obj) if name else b""
    if not name:
        return None
    return MAGIC + _bytes(1, _text(1, api_version) + _text(2, kind)) + _bytes(2, raw) + _bytes(3, b"") + _bytes(4, b"")


def encode_event(kind: str, obj: Object) -> bytes:
    """A WatchEvent, behind its length in four bytes."""
    event = _text(1, kind) + _bytes(2, _bytes(1, encode_object(obj) or b""))
    return struct.pack(">I", len(event)) + event


@lru_cache(maxsize=512)
def message_of_kind(api_version: str, kind: str) -> str:
    """The name of a kind's message; empty if it has none here."""
    if api_version == "v1" and kind == "Status":
        return f"{_META}.Status"
    if kind == "PartialObjectMetadata":
        return METADATA.name
    group, _, version = api_version.rpartition("/")
    known = definition_of_kind(group, version, kind)
    return known.name if known is not None and has_numbers(known.name) else ""


def _item(name: str, obj: Object) -> bytes:
    return _value(1, METADATA, obj.get("metadata") or {}) if name == METADATA.name else _message(name, obj, name)


def _message(name: str, obj: Object, owner: str) -> bytes:
    """The fields of a message that an object has. `owner` is the type that lists them, if they are a message apart."""
    parts = []
    for number, field in fields_of(name, owner).items():
        if field.inlined:
            if inner := _message(field.inlined, obj, owner):
                parts.append(_bytes(number, inner))
        elif field.type is not None and (value := obj.get(field.name)) is not None:
            parts.append(_field(number, field.type, value))
    return b"".join(parts)


def _field(number: int, type_: Type, value: Any) -> bytes:
    match type_.shape:
        case "list":
            return b"".join(_value(number, type_.item, item) for item in value)
        case "map":
            entries = (_text(1, key) + _value(2, type_.item, item) for key, item in value.items())
            return b"".join(_bytes(number, entry) for entry in entries)
        case _:
            return _value(number, type_, value)


def _value(number: int, type_: Type, value: Any) -> bytes:
    match type_.shape:
        case "struct":
            return _bytes(number, _message(type_.name, value, type_.name))
        case "list" | "map":
            return _bytes(number, _field(1, type_, value))
        case "any":
            return _bytes(number, _bytes(1, msgspec.json.encode(value)))
        case _:
            return _scalar(number, type_.name, value)


def _scalar(number: int, name: str, value: Any) -> bytes:
    match name:
        case "bytes":
            return _bytes(number, base64.b64decode(value))
        case "boolean" | "int32" | "int64":
            return _integer(number, int(value))
        case "double":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case "quantity":
            return _bytes(number, _text(1, str(value)))
        case "time" | "microTime":
            moment = datetime.fromisoformat(value)
            return _bytes(number, _integer(1, int(moment.timestamp())) + _integer(2, moment.microsecond * 1000))
        case "intOrString" if isinstance(value, str):
            return _bytes(number, _integer(1, 1) + _text(3, value))
        case "intOrString":
            return _bytes(number, _integer(1, 0) + _integer(2, value))
        case _:
            return _text(number, value)


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value & 0xFFFFFFFFFFFFFFFF)


def _varint(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)
