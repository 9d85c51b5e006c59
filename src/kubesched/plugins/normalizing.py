"""The usual way to bring scores into 0..100: in proportion to the largest."""

from __future__ import annotations

from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.state.columns import Int64


def scaled_to_maximum(scores: Int64 | int, *, reverse: bool = False) -> Int64 | int:
    """Each score as a percentage of the largest, whole numbers only; reversed, the largest becomes 0."""
    if isinstance(scores, int):
        best = MAX_NODE_SCORE if scores else 0
        return MAX_NODE_SCORE - best if reverse else best
    largest = int(scores.max()) if len(scores) else 0
    if largest == 0:
        return MAX_NODE_SCORE if reverse else scores
    scaled = truncated_division(MAX_NODE_SCORE * scores, largest)
    return MAX_NODE_SCORE - scaled if reverse else scaled


def truncated_division(dividend: Int64, divisor: Int64 | int) -> Int64:
    """Division of whole numbers as Go does it: towards zero."""
    quotient: Int64 = dividend // divisor
    negative = quotient < 0
    if negative.any():
        quotient += negative & (quotient * divisor != dividend)
    return quotient
