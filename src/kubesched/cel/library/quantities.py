"""Kubernetes quantities."""

from __future__ import annotations

import re

from kubesched.api.quantity import QUANTITY_WORDS, Quantity, QuantityError, parse_quantity
from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, method
from kubesched.cel.values import LEAST_INT, MOST_INT, compare_quantities

_LOOKS_LIKE_ONE = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
_WRONG_SUFFIX = "unable to parse quantity's suffix"


@function("quantity(string) -> quantity", price=costs.scan_first)
def to_quantity(text: str) -> Quantity:
    """Read a quantity."""
    try:
        return parse_quantity(text)
    except QuantityError:
        right_shape = text and _LOOKS_LIKE_ONE.fullmatch(text)
        raise AbsorbableError(_WRONG_SUFFIX if right_shape else QUANTITY_WORDS) from None


@function("isQuantity(string) -> bool", price=costs.scan_first)
def is_quantity(text: str) -> bool:
    """Whether the text can be read as one."""
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


@function("sign(quantity) -> int")
def sign(quantity: Quantity) -> int:
    """-1, 0 or 1."""
    return (quantity.amount > 0) - (quantity.amount < 0)


@method("quantity.isGreaterThan(quantity) -> bool")
def is_greater_than(left: Quantity, right: Quantity) -> bool:
    """Whether it is strictly more."""
    return compare_quantities(left, right) > 0


@method("quantity.isLessThan(quantity) -> bool")
def is_less_than(left: Quantity, right: Quantity) -> bool:
    """Whether it is strictly less."""
    return compare_quantities(left, right) < 0


method("quantity.compareTo(quantity) -> int")(compare_quantities)


@method("quantity.asApproximateFloat() -> double")
def as_approximate_float(quantity: Quantity) -> float:
    """The nearest double, or about."""
    return float(quantity.amount) * 10.0**quantity.scale if quantity.scale else float(quantity.amount)


@method("quantity.isInteger() -> bool")
def is_integer(quantity: Quantity) -> bool:
    """Whether asInteger() works: the spelling counts, 1000m does not."""
    whole = not quantity.wide and quantity.scale >= 0
    return whole and LEAST_INT <= quantity.amount * 10**quantity.scale <= MOST_INT


@method("quantity.asInteger() -> int")
def as_integer(quantity: Quantity) -> int:
    """The value as a whole number."""
    if not is_integer(quantity):
        raise AbsorbableError("cannot convert value to integer")
    return int(quantity.amount * 10**quantity.scale)


@method("quantity.add(quantity) -> quantity")
def add(left: Quantity, right: Quantity) -> Quantity:
    """The sum."""
    return left.plus(right)


@method("quantity.add(int) -> quantity")
def add_int(left: Quantity, right: int) -> Quantity:
    """The sum."""
    return left.plus(Quantity(right))


@method("quantity.sub(quantity) -> quantity")
def subtract(left: Quantity, right: Quantity) -> Quantity:
    """The difference."""
    return left.plus(Quantity(-right.amount, right.scale, right.wide))


@method("quantity.sub(int) -> quantity")
def subtract_int(left: Quantity, right: int) -> Quantity:
    """The difference."""
    return left.plus(Quantity(-right))
