"""Arithmetic of scores: whole numbers as Go has them (64 bits, division towards zero), broken lines, normalising."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.status import MAX_NODE_SCORE
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


def broken_line(points: Sequence[tuple[int, int]], x: int) -> int:
    """The value at x of the line through the points, level before the first and after the last."""
    for i, (right, high) in enumerate(points):
        if x <= right:
            if i == 0:
                return high
            left, low = points[i - 1]
            return low + truncated((high - low) * (x - left), right - left)
    return points[-1][1]


def scaled_to_maximum(scores: Int64 | int, *, reverse: bool = False) -> Int64 | int:
    """Each score as a percentage of the largest, whole numbers only; reversed, the largest becomes 0."""
    if isinstance(scores, int):
        best = MAX_NODE_SCORE if scores else 0
        return MAX_NODE_SCORE - best if reverse else best
    largest = int(scores.max()) if len(scores) else 0
    if largest <= 0:  # nothing to scale by; negative scores stay what they are, out of range
        return MAX_NODE_SCORE if reverse else scores
    scaled = truncated_division(MAX_NODE_SCORE * scores, largest)
    return MAX_NODE_SCORE - scaled if reverse else scaled
