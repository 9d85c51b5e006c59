"""Kubernetes' own kinds of values: quantities and semantic versions."""

from __future__ import annotations

import re

from kubesched.api.quantity import QUANTITY_WORDS, Quantity, parse_quantity
from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, functions, method, methods, succeeds
from kubesched.cel.values import LEAST_INT, MOST_INT, compare_quantities
from kubesched.cel.versions import Semver, normalize_version, parse_semver

_LOOKS_LIKE_A_QUANTITY = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
_WRONG_SUFFIX = "unable to parse quantity's suffix"


@function("quantity(string) -> quantity", price=costs.scan_first)
def to_quantity(text: str) -> Quantity:
    """Read a quantity."""
    try:
        return parse_quantity(text)
    except ValueError:  # besides QuantityError: Python reads no number of thousands of digits
        right_shape = text and _LOOKS_LIKE_A_QUANTITY.fullmatch(text)
        raise AbsorbableError(_WRONG_SUFFIX if right_shape else QUANTITY_WORDS) from None


functions({"isQuantity(string) -> bool": succeeds(to_quantity)}, price=costs.scan_first)
functions({"sign(quantity) -> int": lambda quantity: (quantity.amount > 0) - (quantity.amount < 0)})
methods(
    {
        "quantity.add(int) -> quantity": lambda left, right: left.plus(Quantity(right)),
        "quantity.add(quantity) -> quantity": Quantity.plus,
        "quantity.compareTo(quantity) -> int": compare_quantities,
        "quantity.isGreaterThan(quantity) -> bool": lambda left, right: compare_quantities(left, right) > 0,
        "quantity.isLessThan(quantity) -> bool": lambda left, right: compare_quantities(left, right) < 0,
        "quantity.sub(int) -> quantity": lambda left, right: left.plus(Quantity(-right)),
        "quantity.sub(quantity) -> quantity": lambda left, right: left.plus(right._replace(amount=-right.amount)),
    }
)


@method("quantity.asApproximateFloat() -> double")
def as_approximate_float(quantity: Quantity) -> float:
    """The nearest double, or about."""
    return float(quantity.amount) * 10.0**quantity.scale if quantity.scale else float(quantity.amount)


@method("quantity.isInteger() -> bool")
def is_integer(quantity: Quantity) -> bool:
    """Whether asInteger() works: the spelling counts, 1000m does not."""
    is_whole = not quantity.wide and quantity.scale >= 0
    return is_whole and LEAST_INT <= quantity.amount * 10**quantity.scale <= MOST_INT


@method("quantity.asInteger() -> int")
def as_integer(quantity: Quantity) -> int:
    """The value as a whole number."""
    if not is_integer(quantity):
        raise AbsorbableError("cannot convert value to integer")
    return int(quantity.amount * 10**quantity.scale)


@function("semver(string) -> semver", "semver(string, bool) -> semver", price=costs.scan_first)
def to_semver(text: str, normalize: bool = False) -> Semver:
    """Read a version, made strict first if asked to."""
    return parse_semver(normalize_version(text) if normalize else text)


functions(
    {"isSemver(string) -> bool": succeeds(to_semver), "isSemver(string, bool) -> bool": succeeds(to_semver)},
    price=costs.scan_first,
)
methods(
    {
        "semver.compareTo(semver) -> int": lambda left, right: (left > right) - (left < right),
        "semver.isGreaterThan(semver) -> bool": lambda left, right: left > right,
        "semver.isLessThan(semver) -> bool": lambda left, right: left < right,
        "semver.major() -> int": lambda version: version.major,
        "semver.minor() -> int": lambda version: version.minor,
        "semver.patch() -> int": lambda version: version.patch,
    }
)
