"""From one type to another."""

from __future__ import annotations

import math
import re

from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, functions
from kubesched.cel.operators import checked_int, checked_uint
from kubesched.cel.values import LEAST_INT, MOST_INT, MOST_UINT, TypeValue, Uint, show_double, type_name

_BOOLS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
_BOOLS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE | re.ASCII
)


functions(
    {
        f"{kind}({kind}) -> {kind}": lambda value: value
        for kind in ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
    }
)
functions(
    {
        "double(int) -> double": float,
        "double(uint) -> double": float,
        "dyn(A) -> dyn": lambda value: value,
        "int(uint) -> int": lambda number: checked_int(int(number)),
        "string(bool) -> string": lambda value: "true" if value else "false",
        "string(double) -> string": show_double,
        "string(int) -> string": str,
        "string(uint) -> string": str,
        "type(A) -> type(A)": lambda value: TypeValue(type_name(value)),
        "uint(int) -> uint": checked_uint,
    }
)
functions({"bytes(string) -> bytes": str.encode}, price=costs.scan_first)


def unreadable(kind: str) -> AbsorbableError:
    """The text stands for no value of the type."""
    return AbsorbableError(f"type conversion error from 'string' to '{kind}'")


@function("bool(string) -> bool")
def to_bool(text: str) -> bool:
    """Read a bool."""
    if text not in _BOOLS:
        raise unreadable("bool")
    return _BOOLS[text]


@function("double(string) -> double")
def to_double(text: str) -> float:
    """Read a double."""
    if not _DOUBLE.fullmatch(text) or (math.isinf(float(text)) and "n" not in text.lower()):
        raise unreadable("double")
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
        raise unreadable("int")
    return int(text)


@function("uint(double) -> uint")
def double_to_uint(number: float) -> Uint:
    """Cut towards zero."""
    if not math.isfinite(number) or not 0 <= number < float(MOST_UINT):
        raise AbsorbableError("unsigned integer overflow")
    return Uint(number)


@function("uint(string) -> uint")
def to_uint(text: str) -> Uint:
    """Read a decimal number."""
    if not text.isascii() or not text.isdigit() or len(text) > 100 or int(text) > MOST_UINT:
        raise unreadable("uint")
    return Uint(text)


@function("string(bytes) -> string", price=costs.scan_first)
def bytes_to_string(value: bytes) -> str:
    """From UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise AbsorbableError("invalid UTF-8 in bytes, cannot convert to string") from None
