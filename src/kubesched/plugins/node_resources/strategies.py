"""The scoring strategies of NodeResourcesFit: emptier is better, fuller is better, or any line between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.config.args import ScoringStrategy
from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.framework.profile import ProfileError
from kubesched.plugins.normalizing import truncated_division
from kubesched.state.columns import Int64

Strategy = Callable[[Int64, Int64], Int64]
"""From usage with the pod and allocatable (a line per resource) to a score per row."""

_SHAPE_SCALE = MAX_NODE_SCORE // 10
"""Shapes are written on a scale of 0 to 10."""


def strategy(config: ScoringStrategy) -> Strategy:
    """The strategy that a configuration asks for."""
    weights = np.array([resource.weight for resource in config.resources], dtype=np.int64)
    match config.type:
        case "LeastAllocated":
            return _Mean(weights, _free)
        case "MostAllocated":
            return _Mean(weights, np.minimum)
        case "RequestedToCapacityRatio":
            ratio = config.requested_to_capacity_ratio
            line = _broken_line([(p.utilization, p.score * _SHAPE_SCALE) for p in ratio.shape] if ratio else [])
            return lambda used, offered: _ratio(used, offered, weights, line)
        case _:
            raise ProfileError(f"NodeResourcesFit: scoring strategy {config.type!r} is not supported")


def _free(used: Int64, offered: Int64) -> Int64:
    return np.where(used > offered, 0, offered - used)


class _Mean:
    """The weighted mean, over the resources that count on a row, of some part of what is offered in percent."""

    def __init__(self, weights: Int64, part: Strategy) -> None:
        self._weights = weights
        self._total_weight = int(weights.sum())
        self._part = part

    def __call__(self, used: Int64, offered: Int64) -> Int64:
        percent = self._part(used, offered) * MAX_NODE_SCORE
        if offered.all():
            # Nearly always; and asked of a single row after every pod, so each operation counts.
            return truncated_division(self._weights @ truncated_division(percent, offered), self._total_weight)
        counts = offered != 0
        return _divided(self._weights @ (_divided(percent, offered) * counts), self._weights @ counts)


def _ratio(used: Int64, offered: Int64, weights: Int64, line: Int64) -> Int64:
    """Resources that score 0 do not count at all, and the mean is rounded."""
    utilization = np.where(used > offered, 100, _divided(used * 100, offered))
    scores = np.where(utilization < 0, line[0], line[np.clip(utilization, 0, 100)])
    scores = np.where(offered == 0, 0, scores)
    counts = scores > 0
    total_weight = weights @ counts
    mean = (weights @ (scores * counts)) / np.maximum(total_weight, 1)
    whole = np.floor(mean)
    return np.where(total_weight == 0, 0, whole + (mean - whole >= 0.5)).astype(np.int64)


def _broken_line(points: list[tuple[int, int]]) -> Int64:
    """The value of the line at every utilization from 0 to 100, in whole numbers."""

    def value(utilization: int) -> int:
        for i, (x, y) in enumerate(points):
            if utilization <= x:
                if i == 0:
                    return y
                x0, y0 = points[i - 1]
                return y0 + int((y - y0) * (utilization - x0) / (x - x0))
        return points[-1][1]

    return np.array([value(utilization) for utilization in range(101)], dtype=np.int64)


def _divided(dividend: Int64, divisor: Int64) -> Int64:
    """Whole-number division, 0 where the divisor is 0."""
    if divisor.all():
        return truncated_division(dividend, divisor)
    absent = divisor == 0
    return np.where(absent, 0, truncated_division(dividend, np.where(absent, 1, divisor)))
