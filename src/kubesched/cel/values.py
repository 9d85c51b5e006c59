"""Values at run time: Python's own where they fit, small classes where they do not; equality and order among them.

int, float, str, bytes, bool, None, list and dict stand for themselves. Types are always compared exactly (`type(x) is
int`), since to Python a bool is an int, and so is our unsigned integer.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kubesched.api.quantity import Quantity
from kubesched.cel.errors import AbsorbableError, no_such_overload
from kubesched.cel.versions import Semver

Value = Any
"""A value of CEL: what it is shows only at run time."""

LEAST_INT, MOST_INT = -(2**63), 2**63 - 1
MOST_UINT = 2**64 - 1
_POSITIONAL_DIGITS = 6
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """The text as Go has it after decoding: no UTF-8 can hold half a surrogate pair, as a Python string can."""
    return text if text.isascii() else _HALF_A_PAIR.sub("\ufffd", text)


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


class DomainMap(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain: a domain without any reads as an empty map, but is not `in` it."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, Value]:
        return _NOTHING_THERE


_NOTHING_THERE: dict[str, Value] = {}


class CelDuration(msgspec.Struct, frozen=True, order=True):
    """A span of time; shown in seconds, like 5400s."""

    nanoseconds: int

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.nanoseconds), 10**9)
        return f"{'-' if self.nanoseconds < 0 else ''}{whole}{_fraction(rest)}s"


class Timestamp(msgspec.Struct, frozen=True, order=True):
    """A point in time, counted from 1970 in UTC; shown as RFC 3339."""

    nanoseconds: int

    def __str__(self) -> str:
        seconds, rest = divmod(self.nanoseconds, 10**9)
        return f"{(datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()}{_fraction(rest)}Z"


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""


class Optional(msgspec.Struct, frozen=True):
    """A value, or none."""

    value: Value = None
    present: bool = False


NONE = Optional()


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value, as type(x) gives it."""

    name: str


class Opaque:
    """A value made by a library: equal only to one of its class, and an error to compare with anything else."""

    __slots__ = ()


TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    DomainMap: "map",
    type(None): "null_type",
    CelDuration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
}
MAPS = (dict, DomainMap)
_NUMBERS = frozenset({int, Uint, float})
_PLAIN = frozenset({bool, int, Uint, str, bytes, float})
_ORDERED = frozenset({bool, int, Uint, float, str, bytes, CelDuration, Timestamp})


def type_name(value: Value) -> str:
    """The name of a value's type, as messages and type() give it."""
    return TYPE_NAMES[type(value)]


def equal(left: Value, right: Value) -> bool:
    """`left == right`, across types; not symmetric where upstream's is not."""
    kind, other = type(left), type(right)
    if kind is other and kind in _PLAIN:
        return bool(left == right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and _same_number(left, right)
    if kind is list:
        return other is list and len(left) == len(right) and all(map(_not_unequal, left, right))
    if kind in MAPS:
        return other in MAPS and len(left) == len(right) and all(_same_entry(k, v, right) for k, v in left.items())
    if kind is Quantity:
        if other is not Quantity:
            raise no_such_overload()
        return compare_quantities(left, right) == 0
    if kind is Optional:
        both = other is Optional and left.present == right.present
        return both and (not left.present or equal(left.value, right.value))
    if isinstance(left, Semver | Opaque):
        if other is not kind:
            raise no_such_overload()
        return bool(left == right)
    return kind is other and bool(left == right)


def is_equal(left: Value, right: Value) -> bool:
    """Whether they are equal, with values that cannot be compared counting as different."""
    try:
        return equal(left, right)
    except AbsorbableError:
        return False


def _not_unequal(left: Value, right: Value) -> bool:
    """Inside lists and maps upstream goes on when two elements cannot be compared, as if they were equal."""
    try:
        return equal(left, right)
    except AbsorbableError:
        return True


def _same_entry(key: Value, value: Value, entries: dict[Value, Value]) -> bool:
    found, other_value = find(entries, key)
    return found and _not_unequal(value, other_value)


def _same_number(left: int | float, right: int | float) -> bool:
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def find(entries: dict[Value, Value], key: Value) -> tuple[bool, Value]:
    """The entry of a map for a key; numbers are found whatever their type, as long as they are equal."""
    if type(key) is str:
        if key in entries:
            return True, entries[key]
        return (True, _NOTHING_THERE) if type(entries) is DomainMap else (False, None)
    for candidate, value in entries.items():
        if is_equal(key, candidate):
            return True, value
    return (True, _NOTHING_THERE) if type(entries) is DomainMap else (False, None)


def compare(left: Value, right: Value, function: str) -> int:
    """-1, 0 or 1 for values that have an order; `function` is named when the left one has none at all."""
    kind, other = type(left), type(right)
    if kind not in _ORDERED:
        raise AbsorbableError(f"no such overload: {function}")
    if kind is not other:
        if kind not in _NUMBERS or other not in _NUMBERS:
            raise no_such_overload()
        if kind is float or other is float:
            left, right = float(left), float(right)
    if left != left or right != right:
        raise AbsorbableError("NaN values cannot be ordered")
    return int(left > right) - int(left < right)


def has_order(value: Value) -> bool:
    """Whether values of this one's type can be sorted."""
    return type(value) in _ORDERED


def compare_quantities(left: Quantity, right: Quantity) -> int:
    """-1, 0 or 1."""
    amount, scale, _ = left
    other, other_scale, _ = right
    if scale == other_scale:
        return (amount > other) - (amount < other)
    return int(left.exceeds(right)) - int(right.exceeds(left))


def size_of(value: Value) -> int:
    """How large a value counts for costs: what has a length has that, everything else is 1."""
    kind = type(value)
    if kind is str or kind is bytes or kind is list or kind in MAPS:
        return len(value)
    if kind is Optional and value.present:
        return size_of(value.value)
    return 1


def show(value: Value) -> str:
    """A value inside an error message."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return show_double(value)
    return str(value)


def show_double(value: float) -> str:
    """A double as Go prints it: as few digits as tell it apart, with an exponent from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(value).removesuffix(".0")
    whole, _, fraction = text.removeprefix("-").partition(".")
    if len(whole) <= _POSITIONAL_DIGITS or "e" in text:
        return text
    digits = f"{whole}{fraction}".rstrip("0")
    sign, tail = "-" if value < 0 else "", f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{tail}e+{len(whole) - 1:02}"
