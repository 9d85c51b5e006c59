"""Whole numbers as Go has them: 64 bits that wrap around, and division towards zero."""

from __future__ import annotations

from kubesched.state.columns import Int64

MAX_INT64 = 2**63 - 1


def wrapped(number: int) -> int:
    """What is left of a number in 64 bits. Only absurd quantities ever need it."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


def truncated(dividend: int, divisor: int) -> int:
    """Division towards zero."""
    quotient = dividend // divisor
    return quotient + 1 if quotient < 0 and quotient * divisor != dividend else quotient


def truncated_division(dividend: Int64, divisor: Int64 | int) -> Int64:
    """Division towards zero, of columns."""
    quotient: Int64 = dividend // divisor
    negative = quotient < 0
    if negative.any():
        quotient += negative & (quotient * divisor != dividend)
    return quotient
