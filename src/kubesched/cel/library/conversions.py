"""From one type to another."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function
from kubesched.cel.operators import checked_duration, checked_int, checked_timestamp, checked_uint
from kubesched.cel.values import (
    LEAST_INT,
    MOST_INT,
    MOST_UINT,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    show_double,
    type_name,
)

_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE | re.ASCII
)
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


def _unreadable(kind: str) -> AbsorbableError:
    return AbsorbableError(f"type conversion error from 'string' to '{kind}'")


@function("dyn(A) -> dyn")
def to_dyn(value: Value) -> Value:
    """The value, with its type forgotten."""
    return value


@function("type(A) -> type(A)")
def to_type(value: Value) -> TypeValue:
    """The type of a value."""
    return TypeValue(type_name(value))


@function("bool(bool) -> bool")
@function("bytes(bytes) -> bytes")
@function("double(double) -> double")
@function("duration(duration) -> duration")
@function("int(int) -> int")
@function("string(string) -> string")
@function("timestamp(timestamp) -> timestamp")
@function("uint(uint) -> uint")
def unchanged(value: Value) -> Value:
    """What has the type already."""
    return value


@function("bool(string) -> bool")
def to_bool(text: str) -> bool:
    """Read a bool."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _unreadable("bool")


@function("bytes(string) -> bytes", price=costs.scan_first)
def to_bytes(text: str) -> bytes:
    """UTF-8."""
    return text.encode(errors="surrogatepass")


@function("double(int) -> double", "double(uint) -> double")
def number_to_double(number: int) -> float:
    """The nearest double."""
    return float(number)


@function("double(string) -> double")
def to_double(text: str) -> float:
    """Read a double."""
    if not _DOUBLE.fullmatch(text) or (math.isinf(float(text)) and "n" not in text.lower()):
        raise _unreadable("double")
    return float(text)


@function("int(double) -> int")
def double_to_int(number: float) -> int:
    """Cut towards zero."""
    if not math.isfinite(number) or not LEAST_INT < number < float(MOST_INT):
        raise AbsorbableError("integer overflow")
    return int(number)


@function("int(string) -> int")
def to_int(text: str) -> int:
    """Read a decimal number."""
    if not _WHOLE.fullmatch(text) or len(text) > 100 or not LEAST_INT <= int(text) <= MOST_INT:
        raise _unreadable("int")
    return int(text)


@function("int(uint) -> int")
def uint_to_int(number: Uint) -> int:
    """The same number, if it fits."""
    return checked_int(int(number))


@function("int(duration) -> int")
def duration_to_int(duration: Duration) -> int:
    """In nanoseconds."""
    return duration.nanoseconds


@function("int(timestamp) -> int")
def timestamp_to_int(timestamp: Timestamp) -> int:
    """In seconds from 1970."""
    return timestamp.nanoseconds // 10**9


@function("uint(double) -> uint")
def double_to_uint(number: float) -> Uint:
    """Cut towards zero."""
    if not math.isfinite(number) or not 0 <= number < float(MOST_UINT):
        raise AbsorbableError("unsigned integer overflow")
    return Uint(number)


@function("uint(int) -> uint")
def int_to_uint(number: int) -> Uint:
    """The same number, if it fits."""
    return checked_uint(number)


@function("uint(string) -> uint")
def to_uint(text: str) -> Uint:
    """Read a decimal number."""
    if not text.isascii() or not text.isdigit() or len(text) > 100 or int(text) > MOST_UINT:
        raise _unreadable("uint")
    return Uint(text)


@function("string(bool) -> string")
def bool_to_string(value: bool) -> str:
    """true or false."""
    return "true" if value else "false"


@function("string(bytes) -> string", price=costs.scan_first)
def bytes_to_string(value: bytes) -> str:
    """From UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise AbsorbableError("invalid UTF-8 in bytes, cannot convert to string") from None


@function("string(double) -> string")
def double_to_string(value: float) -> str:
    """As short as it can be and still differ from its neighbours."""
    return show_double(value)


@function("string(int) -> string", "string(uint) -> string")
def number_to_string(value: int) -> str:
    """In decimal."""
    return str(int(value))


@function("string(duration) -> string", "string(timestamp) -> string")
def time_to_string(value: Duration | Timestamp) -> str:
    """In seconds, like 5400s; or RFC 3339."""
    return str(value)


@function("duration(string) -> duration")
def to_duration(text: str) -> Duration:
    """Read something like 1h30m."""
    if not _DURATION.fullmatch(text):
        raise _unreadable("google.protobuf.Duration")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole or "0") * _UNITS[unit]
        total += int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
    try:
        return checked_duration(-total if text.startswith("-") else total)
    except AbsorbableError:
        raise _unreadable("google.protobuf.Duration") from None


@function("timestamp(int) -> timestamp")
def int_to_timestamp(seconds: int) -> Timestamp:
    """So many seconds from 1970."""
    return checked_timestamp(seconds * 10**9)


@function("timestamp(string) -> timestamp")
def to_timestamp(text: str) -> Timestamp:
    """Read RFC 3339."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _unreadable("google.protobuf.Timestamp")
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise _unreadable("google.protobuf.Timestamp") from None
    nanoseconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 10**9
    nanoseconds += int((match[7] or "").ljust(9, "0")[:9])
    if match[8]:
        if int(match[9]) > 23 or int(match[10]) > 59:
            raise _unreadable("google.protobuf.Timestamp")
        ahead = (int(match[9]) * 60 + int(match[10])) * 60 * 10**9
        nanoseconds -= ahead if match[8] == "+" else -ahead
    return checked_timestamp(nanoseconds)
