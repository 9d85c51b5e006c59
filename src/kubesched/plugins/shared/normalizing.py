"""The usual way to bring scores into 0..100: in proportion to the largest."""

from __future__ import annotations

from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.plugins.shared.int64 import truncated_division
from kubesched.state.columns import Int64


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
