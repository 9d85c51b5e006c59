"""The line through given points, in whole numbers, by which some scores follow utilization."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.plugins.shared.int64 import truncated


def broken_line(points: Sequence[tuple[int, int]], x: int) -> int:
    """The value at x of the line through the points, level before the first and after the last."""
    for i, (right, high) in enumerate(points):
        if x <= right:
            if i == 0:
                return high
            left, low = points[i - 1]
            return low + truncated((high - low) * (x - left), right - left)
    return points[-1][1]
