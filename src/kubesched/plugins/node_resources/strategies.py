"""The scoring strategies of NodeResourcesFit: emptier is better, fuller is better, or any broken line between.

The first two are written twice: for columns, and for the one node that the last pod went to. Tests hold the two
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kubesched.config.args import ScoringStrategy
from kubesched.framework.profile import ProfileError
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.plugins.node_resources.allocation import ScoredResource
from kubesched.plugins.shared.arithmetic import MAX_INT64, broken_line, truncated_division, wrapped
from kubesched.state.columns import Int64

_MAX_PERCENT = MAX_INT64 // MAX_NODE_SCORE
_EXACT = 2**46
"""Below it, a percentage as a float is never rounded up to the next whole number: 64 TiB."""
_SHAPE_SCALE = MAX_NODE_SCORE // 10
"""Shapes are written on a scale of 0 to 10."""


class Strategy(Protocol):
    """From usage with the pod and what is offered, of the resources that count, to a score."""

    def columns(self, used: Int64, offered: Int64, weights: Int64) -> Int64:
        """For columns, one for each resource."""
        ...

    def node(self, resources: Sequence[ScoredResource], used: list[int], offered: list[int]) -> int:
        """For one node: usage without the pod and what is offered, by the id of the resource."""
        ...


def strategy(config: ScoringStrategy) -> Strategy:
    """The strategy that a configuration asks for."""
    match config.type:
        case "LeastAllocated":
            return _MeanPart(free=True)
        case "MostAllocated":
            return _MeanPart(free=False)
        case "RequestedToCapacityRatio":
            ratio = config.requested_to_capacity_ratio
            return _Ratio([(p.utilization, p.score * _SHAPE_SCALE) for p in ratio.shape] if ratio else [])
        case _:
            raise ProfileError(f"NodeResourcesFit: scoring strategy {config.type!r} is not supported")


class _MeanPart:
    """The weighted mean of the free, or of the used, part of what is offered, in percent."""

    def __init__(self, *, free: bool) -> None:
        self._free = free

    def columns(self, used: Int64, offered: Int64, weights: Int64) -> Int64:
        percent = offered - used if self._free else np.minimum(used, offered)
        if self._free:
            percent[used > offered] = 0
        percent *= MAX_NODE_SCORE
        if used.size and used.min() >= 0 and 0 < offered.min() <= offered.max() < _EXACT:
            # Floats are divided in half the time.
            total = np.einsum("i,ij->j", weights.astype(np.float64), np.floor(percent / offered))
            return np.asarray(total / weights.sum(), dtype=np.int64)
        counts = offered != 0
        return _divided(weights @ (_divided(percent, offered) * counts), weights @ counts)

    def node(self, resources: Sequence[ScoredResource], used: list[int], offered: list[int]) -> int:
        total = total_weight = 0
        for resource_id, weight, amount in resources:
            use, offer = used[resource_id] + amount, offered[resource_id]
            if not 0 <= use <= MAX_INT64 or offer > _MAX_PERCENT:
                # Absurd numbers wrap around, which columns do anyway.
                return _as_columns(self, resources, used, offered)
            if offer:
                if self._free:
                    part = offer - use if use < offer else 0
                else:
                    part = use if use < offer else offer
                total += weight * (part * MAX_NODE_SCORE // offer)
                total_weight += weight
        return total // total_weight if total_weight else 0


class _Ratio:
    """A broken line from utilization to score. Resources that score 0 do not count; the mean is rounded."""

    def __init__(self, shape: list[tuple[int, int]]) -> None:
        self._line = np.array([broken_line(shape, utilization) for utilization in range(101)], dtype=np.int64)

    def columns(self, used: Int64, offered: Int64, weights: Int64) -> Int64:
        utilization = np.where(used > offered, 100, _divided(used * 100, offered))
        scores = np.where(offered == 0, 0, self._line[np.clip(utilization, 0, 100)])
        counts = scores > 0
        total_weight = weights @ counts
        mean = (weights @ (scores * counts)) / np.maximum(total_weight, 1)
        whole = np.floor(mean)
        return np.where(total_weight == 0, 0, whole + (mean - whole >= 0.5)).astype(np.int64)

    def node(self, resources: Sequence[ScoredResource], used: list[int], offered: list[int]) -> int:
        return _as_columns(self, resources, used, offered)


def _as_columns(strategy: Strategy, resources: Sequence[ScoredResource], used: list[int], offered: list[int]) -> int:
    use = np.array(
        [[wrapped(used[resource.resource_id] + resource.amount)] for resource in resources], dtype=np.int64
    ).reshape(-1, 1)
    offer = np.array([[offered[resource.resource_id]] for resource in resources], dtype=np.int64).reshape(-1, 1)
    weights = np.array([resource.weight for resource in resources], dtype=np.int64)
    return int(strategy.columns(use, offer, weights)[0])


def _divided(dividend: Int64, divisor: Int64) -> Int64:
    """Whole-number division, 0 where the divisor is 0."""
    absent = divisor == 0
    return np.where(absent, 0, truncated_division(dividend, np.where(absent, 1, divisor)))
