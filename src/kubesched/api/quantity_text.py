"""Quantities as Kubernetes writes them: without needless digits, in the family of suffixes they were spelled with."""

from __future__ import annotations

import re
from enum import Enum

from kubesched.api.quantity import QuantityText, parse_quantity

_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+$")
_NANO = 10**9


class Family(Enum):
    """The three ways to spell a quantity."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


def family_of(text: QuantityText) -> Family:
    """How the quantity is spelled."""
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
    """So many billionths, as short as they can be written exactly."""
    if family is Family.BINARY and abs(nano) >= 1024 * _NANO:
        number, power = -(-nano // _NANO), 0
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
