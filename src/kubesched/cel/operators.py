"""The operators, on values of any type."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from functools import partial

from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError, no_such_key, no_such_overload
from kubesched.cel.functions import operator
from kubesched.cel.values import (
    LEAST_INT,
    MAPS,
    MOST_INT,
    MOST_UINT,
    CelDuration,
    Optional,
    Timestamp,
    Uint,
    Value,
    compare,
    equal,
    find,
    is_equal,
    show,
    type_name,
)

_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS = ("int", "uint", "double")
_LEAST_TIME, _MOST_TIME = -62135596800 * 10**9, 253402300799 * 10**9 + 999_999_999


def checked_int(value: int) -> int:
    """A signed integer, if it is still one."""
    if LEAST_INT <= value <= MOST_INT:
        return value
    raise AbsorbableError("integer overflow")


def checked_uint(value: int) -> Uint:
    """An unsigned integer, if it is still one."""
    if 0 <= value <= MOST_UINT:
        return Uint(value)
    raise AbsorbableError("unsigned integer overflow")


def checked_duration(nanoseconds: int) -> CelDuration:
    """A duration that can still be counted."""
    if LEAST_INT <= nanoseconds <= MOST_INT:
        return CelDuration(nanoseconds)
    raise AbsorbableError("duration overflow")


def checked_timestamp(nanoseconds: int) -> Timestamp:
    """A point in time between the years 1 and 9999."""
    if _LEAST_TIME <= nanoseconds <= _MOST_TIME:
        return Timestamp(nanoseconds)
    raise AbsorbableError("timestamp overflow")


operator("_==_(A, A) -> bool", price=costs.scan_shorter)(equal)
operator("_!=_(A, A) -> bool", price=costs.scan_shorter)(lambda left, right: not is_equal(left, right))


@operator("!_(bool) -> bool")
def negate_bool(value: Value) -> bool:
    """`!`."""
    if type(value) is not bool:
        raise no_such_overload()
    return not value


@operator("-_(int) -> int", "-_(double) -> double")
def negate(value: Value) -> Value:
    """`-` in front of a number."""
    kind = type(value)
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is bool:
        raise no_such_overload()
    if kind is CelDuration:
        return checked_duration(-value.nanoseconds)
    raise AbsorbableError("no such overload: -_")


@operator(
    "_+_(bytes, bytes) -> bytes",
    "_+_(double, double) -> double",
    "_+_(duration, duration) -> duration",
    "_+_(duration, timestamp) -> timestamp",
    "_+_(timestamp, duration) -> timestamp",
    "_+_(int, int) -> int",
    "_+_(list(A), list(A)) -> list(A)",
    "_+_(string, string) -> string",
    "_+_(uint, uint) -> uint",
    price=costs.scan_both,
)
def add(left: Value, right: Value) -> Value:
    """`+`."""
    kind, other = type(left), type(right)
    if (kind, other) in ((CelDuration, Timestamp), (Timestamp, CelDuration)):
        return checked_timestamp(left.nanoseconds + right.nanoseconds)
    if kind not in (int, Uint, float, str, bytes, list, CelDuration, Timestamp):
        raise AbsorbableError("no such overload: _+_")
    if kind is not other or kind is Timestamp:
        raise no_such_overload()
    if kind is CelDuration:
        return checked_duration(left.nanoseconds + right.nanoseconds)
    return _fitting(kind, left + right)


@operator(
    "_-_(double, double) -> double",
    "_-_(duration, duration) -> duration",
    "_-_(int, int) -> int",
    "_-_(timestamp, duration) -> timestamp",
    "_-_(timestamp, timestamp) -> duration",
    "_-_(uint, uint) -> uint",
)
def subtract(left: Value, right: Value) -> Value:
    """`-`."""
    kind, other = type(left), type(right)
    if kind is Timestamp and other is CelDuration:
        return checked_timestamp(left.nanoseconds - right.nanoseconds)
    if kind not in (int, Uint, float, CelDuration, Timestamp):
        raise AbsorbableError("no such overload: _-_")
    if kind is not other:
        raise no_such_overload()
    if kind is CelDuration or kind is Timestamp:
        return checked_duration(left.nanoseconds - right.nanoseconds)
    return _fitting(kind, left - right)


@operator(*(f"_*_({kind}, {kind}) -> {kind}" for kind in _NUMBERS))
def multiply(left: Value, right: Value) -> Value:
    """`*`."""
    kind = _common_number(left, right, "_*_", (int, Uint, float))
    return _fitting(kind, left * right)


@operator(*(f"_/_({kind}, {kind}) -> {kind}" for kind in _NUMBERS))
def divide(left: Value, right: Value) -> Value:
    """`/`: integers are cut towards zero, and only doubles can be divided by zero."""
    kind = _common_number(left, right, "_/_", (int, Uint, float))
    if kind is float:
        return _divide_double(left, right)
    if right == 0:
        raise AbsorbableError("division by zero")
    quotient = abs(left) // abs(right)
    return _fitting(kind, quotient if (left < 0) == (right < 0) else -quotient)


@operator("_%_(int, int) -> int", "_%_(uint, uint) -> uint")
def modulo(left: Value, right: Value) -> Value:
    """`%`: the sign is that of the left operand."""
    kind = _common_number(left, right, "_%_", (int, Uint))
    if right == 0:
        raise AbsorbableError("modulus by zero")
    if left == LEAST_INT and right == -1:
        raise AbsorbableError("integer overflow")
    remainder = abs(left) % abs(right)
    return _fitting(kind, -remainder if left < 0 else remainder)


def _common_number(left: Value, right: Value, function: str, kinds: tuple[type, ...]) -> type:
    kind = type(left)
    if kind not in kinds:
        raise AbsorbableError(f"no such overload: {function}")
    if type(right) is not kind:
        raise no_such_overload()
    return kind


def _fitting(kind: type, value: Value) -> Value:
    if kind is int:
        return checked_int(value)
    return checked_uint(value) if kind is Uint else value


def _divide_double(left: float, right: float) -> float:
    try:
        return left / right
    except ZeroDivisionError:
        if left == 0 or left != left:
            return float("nan")
        return float("inf") if (left > 0) == (str(right)[0] != "-") else float("-inf")


def _order(function: str, holds: Callable[[int, int], bool], left: Value, right: Value) -> bool:
    return holds(compare(left, right, function), 0)


for _name, _holds in {"_<_": python.lt, "_<=_": python.le, "_>_": python.gt, "_>=_": python.ge}.items():
    operator(
        *(f"{_name}({kind}, {kind}) -> bool" for kind in _ORDERED),
        *(f"{_name}({a}, {b}) -> bool" for a in _NUMBERS for b in _NUMBERS if a != b),
        price=costs.scan_shorter_text,
    )(partial(_order, _name, _holds))


@operator("@in(A, list(A)) -> bool", "@in(A, map(A, B)) -> bool", price=costs.contained)
def contains(value: Value, container: Value) -> bool:
    """`in`: an element of a list or a key of a map."""
    kind = type(container)
    if kind is list:
        return any(is_equal(value, element) for element in container)
    if kind in MAPS:
        return value in container if type(value) is str else find(container, value)[0]
    raise no_such_overload()


@operator(
    "_[_](list(A), int) -> A",
    "_[_](map(A, B), A) -> B",
    "_[_](optional(list(V)), int) -> optional(V)",
    "_[_](optional(map(K, V)), K) -> optional(V)",
)
def index(container: Value, key: Value) -> Value:
    """`[]`, and `.` on what turns out to be a map; what is optional stays optional."""
    kind = type(container)
    if kind in MAPS:
        found, value = find(container, key)
        if found:
            return value
    elif kind is list:
        at = _position(key)
        if 0 <= at < len(container):
            return container[at]
        raise AbsorbableError(f"index out of bounds: {at}")
    elif kind is Optional:
        return optional_index(container, key)
    raise no_such_key(show(key))


@operator(
    "_[?_](list(V), int) -> optional(V)",
    "_[?_](optional(list(V)), int) -> optional(V)",
    "_[?_](map(K, V), K) -> optional(V)",
    "_[?_](optional(map(K, V)), K) -> optional(V)",
)
def optional_index(container: Value, key: Value) -> Optional:
    """`[?]` and `.?`: none instead of an error when it is not there."""
    if type(container) is Optional:
        if not container.present:
            return container
        container = container.value
    kind = type(container)
    if kind in MAPS:
        found, value = find(container, key)
        return Optional(value, True) if found else Optional()
    if kind is list:
        at = _position(key)
        return Optional(container[at], True) if 0 <= at < len(container) else Optional()
    return Optional()


def present(container: Value, field: str) -> bool:
    """has(container.field)."""
    return optional_index(container, field).present


def _position(key: Value) -> int:
    kind = type(key)
    if kind is int or (kind is Uint and key <= MOST_INT):
        return int(key)
    if kind is float and key.is_integer() and LEAST_INT <= key <= MOST_INT:
        return int(key)
    if kind is float or kind is Uint:
        raise AbsorbableError(f"unsupported index value {show(key)} in list")
    raise AbsorbableError(f"unsupported index type '{type_name(key)}' in list")


# Declared for its types; the compiler evaluates only the side that is needed.
operator("_?_:_(bool, A, A) -> A")(lambda condition, then, otherwise: then if condition else otherwise)
