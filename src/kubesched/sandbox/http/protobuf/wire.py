"""The wire format of protobuf: a message is a sequence of numbered fields."""

from __future__ import annotations

import struct
from collections.abc import Iterator

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
