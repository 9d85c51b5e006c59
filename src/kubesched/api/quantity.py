"""Kubernetes quantities ("100m", "1.5Gi", "1e3"): exact, rounded up where a whole number is asked for.

A quantity is `amount * 10**scale`. Like upstream's, it is narrow (fits a 64-bit amount) or wide; the difference shows
only beyond 2**63, where a narrow one reads as 0 and a wide one wraps: both are kept, since real schedulers do it.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

QuantityText = str | int | float
"""A quantity as JSON or YAML has it: numbers are legal, too."""

_MIN_SCALE = -9
_MAX_INT64 = 2**63 - 1
_NARROW_DIGITS = 18
_FAR = 1000
"""Exponents further from zero than this change nothing visible, but would take ages to work out."""

_SPELLING = re.compile(
    r"(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES = ("", *_BINARY)
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+$")
_NANO = 10**9

QUANTITY_WORDS = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
"""Kubernetes' message for a text that is no quantity."""


class QuantityError(ValueError):
    """The text is no quantity."""


class Quantity(NamedTuple):
    """An exact amount of something, as Kubernetes counts it."""

    amount: int
    scale: int = 0
    wide: bool = False

    def value(self) -> int:
        """The amount in whole units, rounded away from zero."""
        return self._round(0)

    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return self._round(-3)

    def nano(self) -> int:
        """The amount in billionths, which is exact: nothing finer is kept."""
        return self.amount * _ten_to(self.scale - _MIN_SCALE)

    def plus(self, other: Quantity) -> Quantity:
        """The exact sum; becomes wide when 64 bits do not hold it."""
        if not other.amount:
            return self
        if not self.amount and not self.wide:
            return other
        scale = min(self.scale, other.scale)
        a, b = self.amount * _ten_to(self.scale - scale), other.amount * _ten_to(other.scale - scale)
        total = a + b
        wide = self.wide or other.wide or max(abs(a), abs(b), abs(total)) > _MAX_INT64
        return Quantity(total, scale, wide)

    def exceeds(self, other: Quantity) -> bool:
        """Whether this is strictly more than the other."""
        if self.scale == other.scale:
            return self.amount > other.amount
        scale = min(self.scale, other.scale)
        return self.amount * _ten_to(self.scale - scale) > other.amount * _ten_to(other.scale - scale)

    def _round(self, scale: int) -> int:
        shift = self.scale - scale
        if shift >= 0:
            result = self.amount * _ten_to(shift)
        else:
            result = -(-abs(self.amount) // _ten_to(-shift))
            result = result if self.amount >= 0 else -result
        if -_MAX_INT64 - 1 <= result <= _MAX_INT64:
            return result
        return (result + 2**63) % 2**64 - 2**63 if self.wide else 0


def _ten_to(exponent: int) -> int:
    return int(10**exponent)


ZERO = Quantity(0)


_LONGEST = 4000
"""Characters of a quantity: Python reads no number with many more digits."""


@lru_cache(maxsize=65536)
def parse_quantity(text: QuantityText) -> Quantity:
    """Read one quantity in any legal spelling. Cached: clusters repeat the same few."""
    spelled = text if isinstance(text, str) else repr(text)
    match = _SPELLING.fullmatch(spelled)
    if match is None or not spelled or len(spelled) > _LONGEST:
        raise QuantityError(f"{spelled[:_LONGEST]!r} is not a quantity such as 100m, 0.5, 2Gi or 1e3")
    whole, fraction = match["whole"] or "0", match["fraction"] or ""
    digits = int(whole + fraction)
    amount = -digits if match["sign"] == "-" else digits
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        return _binary(amount, _BINARY[suffix], whole, fraction)
    exponent = _DECIMAL[suffix]
    if match["exponent"]:
        exponent = max(-_FAR, min(int(match["exponent"][:12]), _FAR))
    scale = exponent - len(fraction)
    if scale >= _MIN_SCALE and len(whole) + len(fraction) <= _NARROW_DIGITS:
        return Quantity(amount, scale)
    return _no_finer_than_nano(amount, scale)


def _binary(amount: int, shift: int, whole: str, fraction: str) -> Quantity:
    product = amount << shift
    if not fraction and 15 - len(whole) - int(shift * 3 / 10) - 1 >= 0 and abs(product) <= _MAX_INT64:
        return Quantity(product)
    exact = _no_finer_than_nano(product, -len(fraction))
    if abs(exact.amount) > _MAX_INT64 * 10**-exact.scale:
        return Quantity(_MAX_INT64 if amount > 0 else -_MAX_INT64, 0, wide=True)
    return exact


def _no_finer_than_nano(amount: int, scale: int) -> Quantity:
    if scale >= _MIN_SCALE:
        return Quantity(amount, scale, wide=True) if scale <= 0 else Quantity(amount * 10**scale, 0, wide=True)
    coarse = -(-abs(amount) // 10 ** (_MIN_SCALE - scale))
    return Quantity(coarse if amount >= 0 else -coarse, _MIN_SCALE, wide=True)


class Family(Enum):
    """The three ways to spell a quantity."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


def family_of(text: QuantityText) -> Family:
    """The family of a quantity, by its suffix."""
    spelled = str(text)
    if spelled.endswith("i"):
        return Family.BINARY
    return Family.EXPONENT if _EXPONENT.search(spelled) else Family.DECIMAL


def family_as_written(text: QuantityText) -> Family:
    """The family of a quantity that was spelled by a program: in the decimal one it would have had a suffix."""
    family = family_of(text)
    if family is Family.DECIMAL and spell(parse_quantity(text).nano(), family) != str(text):
        return Family.BINARY
    return family


def spell(nano: int, family: Family) -> str:
    """The shortest exact text of so many billionths."""
    if family is Family.BINARY and abs(nano) >= 1024 * _NANO and nano % _NANO == 0:
        number, power = nano // _NANO, 0
        while power < len(_BINARY_SUFFIXES) - 1 and number % 1024 == 0:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY_SUFFIXES[power]}"
    if nano == 0:
        return "0"
    number, exponent = nano, -9
    while number % 1000 == 0 and exponent < 18:
        number, exponent = number // 1000, exponent + 3
    if family is Family.EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIXES[exponent]}"
