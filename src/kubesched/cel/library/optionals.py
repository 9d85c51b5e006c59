"""Values that may be missing."""

from __future__ import annotations

from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, method
from kubesched.cel.values import MAPS, NONE, Duration, Optional, Uint, Value


@function("optional.of(V) -> optional(V)")
def of(value: Value) -> Optional:
    """An optional with a value."""
    return Optional(value, True)


@function("optional.none() -> optional(V)")
def none() -> Optional:
    """The one without."""
    return NONE


@function("optional.ofNonZeroValue(V) -> optional(V)")
def of_non_zero_value(value: Value) -> Optional:
    """An optional with the value, unless that is empty."""
    return NONE if _is_zero(value) else Optional(value, True)


def _is_zero(value: Value) -> bool:
    kind = type(value)
    if kind in (bool, int, Uint, float, str, bytes, list, *MAPS):
        return not value
    if kind is Duration:
        return bool(value.nanoseconds == 0)
    return value is None or (kind is Optional and not value.present)


@method("optional(V).hasValue() -> bool")
def has_value(optional: Optional) -> bool:
    """Whether there is one."""
    return optional.present


@method("optional(V).value() -> V")
def value_of(optional: Optional) -> Value:
    """The value there has to be."""
    if not optional.present:
        raise AbsorbableError("optional.none() dereference")
    return optional.value


@method("optional(V).or(optional(V)) -> optional(V)")
def either(optional: Optional, other: Optional) -> Optional:
    """Declared for its types; the compiler evaluates the other side only if needed."""
    return optional if optional.present else other


@method("optional(V).orValue(V) -> V")
def value_or(optional: Optional, other: Value) -> Value:
    """Likewise."""
    return optional.value if optional.present else other


@method("list(V).first() -> optional(V)")
def first(elements: list[Value]) -> Optional:
    """The first element, if any."""
    return Optional(elements[0], True) if elements else NONE


@method("list(V).last() -> optional(V)")
def last(elements: list[Value]) -> Optional:
    """The last element, if any."""
    return Optional(elements[-1], True) if elements else NONE


@function("optional.unwrap(list(optional(V))) -> list(V)")
@method("list(optional(V)).unwrapOpt() -> list(V)")
def unwrap(optionals: list[Value]) -> list[Value]:
    """The values there are."""
    for each in optionals:
        if type(each) is not Optional:
            raise AbsorbableError(f"value {each} is not optional")
    return [each.value for each in optionals if each.present]
