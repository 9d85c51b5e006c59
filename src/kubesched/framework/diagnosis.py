"""Why a pod fits nowhere: the verdict for every node, who said so, and the message that users know."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import Code, Status, error
from kubesched.state.columns import Bool, Int32, Rows


class Verdicts:
    """The answers of the filters on all rows, in the order in which they were asked.

    Only the first rejection of a row counts. A row with nominated pods is judged with them as well; its verdict, if
    that is a rejection, is in `overrides` and stands for all filters. So are rejections of extenders.
    """

    def __init__(self, considered: Bool) -> None:
        self.considered = considered
        """The rows that were looked at."""
        self.feasible: Bool = considered
        self.feasible_count: int | None = None
        """How many rows are feasible, where that is known."""
        self.columns: list[tuple[FilterPlugin, Int32]] = []
        """Filters that rejected at least one row, with all their verdicts."""
        self.overrides: dict[int, Status] = {}
        self.broken: Status | None = None
        """A filter that broke, rather than saying no, on a row still standing: the attempt ends with this error."""

    @cached_property
    def first_rejections(self) -> list[tuple[FilterPlugin, Int32, Bool]]:
        """Per filter its verdicts and the rows that it was the first to reject. Asked for when all filters were."""
        return list(self._first_rejections())

    @cached_property
    def tally(self) -> list[tuple[Status, int]]:
        """Every distinct first rejection, and of how many rows; those with nominated pods apart."""
        return [
            (status.by(plugin.name), rows)
            for plugin, verdicts, rejected in self.first_rejections
            for status, rows in zip(plugin.verdicts.statuses, np.bincount(verdicts[rejected]).tolist())
            if status is not None and rows
        ]

    def _first_rejections(self) -> Iterable[tuple[FilterPlugin, Int32, Bool]]:
        standing = self.considered
        if self.overrides:
            standing = standing.copy()
            standing[list(self.overrides)] = False
        for plugin, verdicts in self.columns:
            passes = verdicts == 0
            rejected = standing & ~passes
            standing = standing & passes
            yield plugin, verdicts, rejected

    def status_of(self, row: int) -> Status | None:
        """Who rejected this row first, and why; None if it was not looked at or fits."""
        if row in self.overrides:
            return self.overrides[row]
        if self.considered[row]:
            for plugin, verdicts in self.columns:
                status = plugin.verdicts.statuses[int(verdicts[row])]
                if status is not None:
                    return named(plugin, status)
        return None


def named(plugin: FilterPlugin, status: Status) -> Status:
    """What a filter said, with its name; what broke says so itself."""
    if not status.is_rejection:
        status = error(f'running "{plugin.name}" filter plugin: {status.message}')
    return status.by(plugin.name)


class Diagnosis:
    """The outcome of an attempt that found no node."""

    def __init__(self, live: Bool, *, rejected: Status | None = None, verdicts: Verdicts | None = None) -> None:
        self._live = live
        self.node_count = int(np.count_nonzero(live))
        self.rejected = rejected
        """A rejection of the pod as a whole, before any node was looked at."""
        self.verdicts = verdicts
        self.outside: Status | None = None
        """The status of nodes that pre-filters left out."""
        self.extra: dict[int, Status] = {}
        """Nodes outside the pre-filter result that were looked at all the same."""
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        if rejected is not None:
            self.blame(rejected)

    def blame(self, status: Status) -> None:
        """Remember who rejected: only events that help those plugins wake the pod again."""
        if not status.plugin:
            return
        if status.is_rejection:
            self.unschedulable_plugins.add(status.plugin)
        if status.code is Code.PENDING:
            self.pending_plugins.add(status.plugin)

    def status_of(self, row: int) -> Status | None:
        """The status of a live node."""
        if self.rejected is not None:
            return self.rejected
        assert self.verdicts is not None
        return self.verdicts.status_of(row) or self.extra.get(row) or self.outside

    def rows_rejected_as(self, code: Code) -> Rows:
        """The rows whose first rejection has this code."""
        if self.rejected is not None:
            return np.flatnonzero(self._live & (self.rejected.code is code))
        assert self.verdicts is not None
        found = np.zeros(len(self.verdicts.considered), dtype=np.bool_)
        for plugin, verdicts, rejected in self.verdicts.first_rejections:
            has_code = np.array([s is not None and s.code is code for s in plugin.verdicts.statuses])
            if has_code.any():
                found |= rejected & has_code[verdicts]
        for row, status in (*self.verdicts.overrides.items(), *self.extra.items()):
            found[row] = status.code is code
        return np.flatnonzero(found)

    def reasons(self) -> dict[str, int]:
        """How many nodes were rejected for each reason. A node with several reasons counts for each."""
        assert self.verdicts is not None
        counts: dict[str, int] = {}

        def count(status: Status, nodes: int) -> None:
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + nodes

        explained = 0
        for status, nodes in self.verdicts.tally:
            count(status, nodes)
            explained += nodes
        for status in (*self.verdicts.overrides.values(), *self.extra.values()):
            count(status, 1)
            explained += 1
        if self.outside is not None and explained < self.node_count:
            count(self.outside, self.node_count - explained)
        return counts

    def message(self) -> str:
        """`0/5 nodes are available: ...`, without what preemption has to say."""
        text = f"0/{self.node_count} nodes are available:"
        if self.rejected is not None:
            return f"{text} {self.rejected.message}." if self.rejected.message else text
        reasons = histogram(self.reasons())
        return f"{text} {reasons}." if reasons else text


def histogram(reasons: dict[str, int]) -> str:
    """`3 Insufficient cpu, 5 Too many pods`: sorted as strings, so ten comes before two."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
