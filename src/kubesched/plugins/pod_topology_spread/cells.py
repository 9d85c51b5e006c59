"""Scores of soft constraints: nodes with the same counts in every topology share a cell, and a cell is scored once.

A cluster of 5,000 nodes has a handful of zones, and a node a handful of pods of one kind. So the arithmetic, which must
be Go's float arithmetic step by step, is done on a table of some dozens of cells; a row only looks up its cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.state.columns import Bool, Float, Int32, Int64


class Part(NamedTuple):
    """What one constraint adds to the score: rows have a code, from 0, and a code has a value."""

    codes: Int32 | Int64
    values: Float


def part_by_domain(ids: Int32, pods: Int64, size: int, max_skew: int, lacking: Bool | None) -> Part:
    """Nodes count as the domain they lie in; those that lack the label get nothing."""
    return _part(ids, _weighed(pods, size, max_skew), lacking)


def part_by_node(pods: Int32 | Int64, size: int, max_skew: int, lacking: Bool | None) -> Part:
    """Each node is a domain of its own, except those that lack the label, which get nothing."""
    most = int(np.maximum.reduce(pods)) if len(pods) else 0
    return _part(pods, _weighed(np.arange(most + 2), size, max_skew), lacking)


def _part(codes: Int32 | Int64, values: Float, lacking: Bool | None) -> Part:
    values[-1] = 0.0
    return Part(codes if lacking is None else np.where(lacking, np.int32(len(values) - 1), codes), values)


class Cells:
    """The scores of one pod."""

    __slots__ = ("_ignored", "_of_row", "_scores")

    def __init__(self, parts: list[Part], ignored: Bool | None) -> None:
        """At least one part; rows that are `ignored` score 0 whatever they hold."""
        of_row: Int32 | Int64 = parts[0].codes
        values = parts[0].values
        for codes, more in parts[1:]:
            if len(values) * len(more) > 2 * len(of_row):  # too many to be worth it: a cell for each row
                values = values[of_row] + more[codes]
                of_row = np.arange(len(values))
            else:
                of_row = np.multiply(of_row, len(more), dtype=np.int64)
                of_row += codes
                values = np.add.outer(values, more).ravel()
        self._of_row = of_row if of_row.dtype == np.int64 else of_row.astype(np.int64)  # looked up by int64 fastest
        self._scores = _rounded(values)
        self._ignored = ignored

    def scores(self) -> Int64:
        """The score of each row."""
        scores = self._scores.take(self._of_row)
        if self._ignored is not None:
            scores[self._ignored] = 0
        return scores

    def normalized(self, scores: Int64) -> Int32:
        """The scores turned round, so that fewer pods are better: 100 where most are missing.

        Few cells are narrowed, not many rows: all that is done with the scores of the rows afterwards is cheaper so.
        """
        counted = scores if self._ignored is None else scores[~self._ignored]
        most = max(int(np.maximum.reduce(counted)), 0) if len(counted) else 0
        fewest = int(np.minimum.reduce(counted)) if len(counted) else 0
        if most == 0:
            result: Int32 = np.full(len(scores), MAX_NODE_SCORE, dtype=np.int32)
        else:
            of_cells = MAX_NODE_SCORE * (most + fewest - self._scores) // most
            result = of_cells.astype(np.int32).take(self._of_row)
        if self._ignored is not None:
            result[self._ignored] = 0
        return result


def _rounded(values: Float) -> Int64:
    """Half up, as Go rounds."""
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _weighed(pods: Int64, size: int, max_skew: int) -> Float:
    """Pods count more in larger topologies; a tolerated skew waters differences down."""
    return pods.astype(np.float64) * math.log(size + 2) + float(max_skew - 1)
