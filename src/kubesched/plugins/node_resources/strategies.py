"""The scoring strategies of NodeResourcesFit: emptier is better, fuller is better, or any line between.

Each is written twice: for columns, and for the one node that the last pod went to. Tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from kubesched.config.args import ScoringStrategy
from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.framework.profile import ProfileError
from kubesched.plugins.int64 import truncated, truncated_division, wrapped
from kubesched.state.columns import Int64

_SHAPE_SCALE = MAX_NODE_SCORE // 10
"""Shapes are written on a scale of 0 to 10."""


class Strategy(Protocol):
    """From usage with the pod, and what is offered of each resource (0 where it does not count), to a score."""

    def columns(self, used: Int64, offered: Int64) -> Int64: ...

    def node(self, used: Sequence[int], offered: Sequence[int]) -> int: ...


def strategy(config: ScoringStrategy) -> Strategy:
    """The strategy that a configuration asks for."""
    weights = [resource.weight for resource in config.resources]
    match config.type:
        case "LeastAllocated":
            return _MeanPart(weights, _free, lambda used, offered: 0 if used > offered else wrapped(offered - used))
        case "MostAllocated":
            return _MeanPart(weights, np.minimum, min)
        case "RequestedToCapacityRatio":
            ratio = config.requested_to_capacity_ratio
            shape = [(point.utilization, point.score * _SHAPE_SCALE) for point in ratio.shape] if ratio else []
            return _Ratio(weights, shape)
        case _:
            raise ProfileError(f"NodeResourcesFit: scoring strategy {config.type!r} is not supported")


def _free(used: Int64, offered: Int64) -> Int64:
    return np.where(used > offered, 0, offered - used)


class _MeanPart:
    """The weighted mean of some part of what is offered, in percent, over the resources that count."""

    def __init__(
        self, weights: list[int], part: Callable[[Int64, Int64], Int64], part_of_one: Callable[[int, int], int]
    ) -> None:
        self._weights = weights
        self._column_weights = np.array(weights, dtype=np.int64)
        self._part = part
        self._part_of_one = part_of_one

    def columns(self, used: Int64, offered: Int64) -> Int64:
        weights, percent = self._column_weights, self._part(used, offered) * MAX_NODE_SCORE
        if offered.all():
            return truncated_division(weights @ truncated_division(percent, offered), weights.sum())
        counts = offered != 0
        return _divided(weights @ (_divided(percent, offered) * counts), weights @ counts)

    def node(self, used: Sequence[int], offered: Sequence[int]) -> int:
        total = total_weight = 0
        for weight, use, offer in zip(self._weights, used, offered):
            if offer:
                total += weight * truncated(wrapped(self._part_of_one(use, offer) * MAX_NODE_SCORE), offer)
                total_weight += weight
        return truncated(total, total_weight) if total_weight else 0


class _Ratio:
    """A broken line from utilization to score. Resources that score 0 do not count; the mean is rounded."""

    def __init__(self, weights: list[int], shape: list[tuple[int, int]]) -> None:
        self._weights = np.array(weights, dtype=np.int64)
        self._line = np.array([broken_line(shape, utilization) for utilization in range(101)], dtype=np.int64)

    def columns(self, used: Int64, offered: Int64) -> Int64:
        utilization = np.where(used > offered, 100, _divided(used * 100, offered))
        scores = np.where(offered == 0, 0, self._line[np.clip(utilization, 0, 100)])
        counts = scores > 0
        total_weight = self._weights @ counts
        mean = (self._weights @ (scores * counts)) / np.maximum(total_weight, 1)
        whole = np.floor(mean)
        return np.where(total_weight == 0, 0, whole + (mean - whole >= 0.5)).astype(np.int64)

    def node(self, used: Sequence[int], offered: Sequence[int]) -> int:
        columns = self.columns(np.array(used)[:, np.newaxis], np.array(offered)[:, np.newaxis])
        return int(columns[0])


def broken_line(points: Sequence[tuple[int, int]], x: int) -> int:
    """The value at x of the line through the points, level before the first and after the last."""
    for i, (right, high) in enumerate(points):
        if x <= right:
            if i == 0:
                return high
            left, low = points[i - 1]
            return low + truncated((high - low) * (x - left), right - left)
    return points[-1][1]


def _divided(dividend: Int64, divisor: Int64) -> Int64:
    """Whole-number division, 0 where the divisor is 0."""
    absent = divisor == 0
    return np.where(absent, 0, truncated_division(dividend, np.where(absent, 1, divisor)))
