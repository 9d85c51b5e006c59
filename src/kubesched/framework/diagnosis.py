"""Why a pod fits nowhere: the rejection of every node, by which plugin, and kube-scheduler's message."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kubesched.framework.status import Code, Status, error
from kubesched.state.columns import Bool, Int32, Rows

_BYTES_KEPT = 4 << 20
_BYTES_PER_REASON = 100


class Rejections:
    """The distinct rejections of one filter plugin, by id; the id 0 means that the node passes."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        self.statuses: list[Status | None] = [None]
        self.has_errors = False
        self._ids: dict[Status, int] = {}
        self._size = 0

    def id_of(self, status: Status | None) -> int:
        if status is None:
            return 0
        rejection_id = self._ids.get(status)
        if rejection_id is None:
            if not isinstance(status, Status):
                raise TypeError(f"a filter must answer None or a Status, not {status!r}")
            rejection_id = self._ids[status] = len(self.statuses)
            self.statuses.append(status)
            self.has_errors |= not status.is_rejection
            self._size += sum(_BYTES_PER_REASON + len(reason) for reason in status.reasons)
        return rejection_id

    @property
    def is_full(self) -> bool:
        """Whether the rejections take so much memory that it is time to begin anew."""
        return self._size > _BYTES_KEPT

    def status_of(self, rejection_id: int) -> Status | None:
        """The rejection with the name of its plugin; None for the id 0."""
        status = self.statuses[rejection_id]
        return None if status is None else with_plugin_name(self.plugin, status)

    def errors_among(self, ids: Int32) -> Bool:
        """Where the plugin broke, rather than rejecting."""
        is_error = [status is not None and not status.is_rejection for status in self.statuses]
        return np.array(is_error)[ids]


class PassingRows:
    """The live rows that pass all filters of narrow scope, and how many they are; kept per equivalence class."""

    __slots__ = ("count", "rows")

    def __init__(self, rows: Bool) -> None:
        self.rows = rows
        self.count = int(np.count_nonzero(rows))


class FilterOutcome:
    """The answers of all filters on all rows, in the order in which they were asked.

    Only the first rejection of a row counts. A row with nominated pods is judged with them as well: a rejection because
    of them is in `for_nominated` or in `overrides`, and goes before all others. So do rejections of extenders.
    """

    def __init__(self, considered: Bool, passing: PassingRows | None = None) -> None:
        self.considered = considered
        """The rows that were looked at."""
        self.feasible: Bool = considered
        self.passing = passing
        """Set as long as the feasible rows are just these: then scoring can use the scores kept for them."""
        self.columns: list[tuple[Rejections, Int32]] = []
        """The rejections of each filter that rejected at least one row, with a column of their ids."""
        self.for_nominated: list[tuple[Rejections, Int32]] = []
        """The same for filters that reject rows only together with the pods nominated there."""
        self.overrides: dict[int, Status] = {}
        self.broken: Status | None = None
        """The error of a filter that broke on a row that earlier filters let pass: the attempt ends with it."""

    def restrict(self, feasible: Bool) -> None:
        """Only these of the feasible rows are left."""
        self.feasible, self.passing = feasible, None

    @cached_property
    def first_rejections(self) -> list[tuple[Rejections, Int32, Bool]]:
        """Per filter its ids and the rows that it was the first to reject. To be read after all filters were asked."""
        standing = self.considered
        if self.overrides:
            standing = standing.copy()
            standing[list(self.overrides)] = False
        first = []
        for rejections, ids in (*self.for_nominated, *self.columns):
            passes = ids == 0
            first.append((rejections, ids, standing & ~passes))
            standing = standing & passes
        return first

    @cached_property
    def tally(self) -> list[tuple[Status, int]]:
        """Every distinct first rejection, and of how many rows; without `overrides`."""
        return [
            (status.by(rejections.plugin), rows)
            for rejections, ids, rejected in self.first_rejections
            for status, rows in zip(rejections.statuses, np.bincount(ids[rejected]).tolist())
            if status is not None and rows
        ]

    def status_of(self, row: int) -> Status | None:
        """The first rejection of this row; None if it was not looked at or fits."""
        if row in self.overrides:
            return self.overrides[row]
        if self.considered[row]:
            for rejections, ids in (*self.for_nominated, *self.columns):
                status = rejections.status_of(int(ids[row]))
                if status is not None:
                    return status
        return None

    def is_overridden(self, row: int) -> bool:
        """Whether nominated pods or extenders, rather than the node as it is, are why this row is rejected."""
        return row in self.overrides or any(ids[row] for _, ids in self.for_nominated)

    def rejections_of(self, row: int) -> list[Status]:
        """The rejections of this row by all filters that were asked, in their order."""
        statuses = (rejections.status_of(int(ids[row])) for rejections, ids in self.columns)
        return [status for status in statuses if status is not None]


def with_plugin_name(plugin: str, status: Status) -> Status:
    """The status of a filter with the plugin's name; an error names the plugin in its message."""
    if not status.is_rejection:
        status = error(f'running "{plugin}" filter plugin: {status.message}')
    return status.by(plugin)


class Diagnosis:
    """The outcome of an attempt that found no node."""

    def __init__(
        self, live: Bool, *, rejected: Status | None = None, filter_outcome: FilterOutcome | None = None
    ) -> None:
        self._live = live
        self.node_count = int(np.count_nonzero(live))
        self.rejected = rejected
        """A rejection of the pod as a whole, before any node was looked at."""
        self.filter_outcome = filter_outcome
        self.outside: Status | None = None
        """The status of nodes that pre-filters left out."""
        self.extra: dict[int, Status] = {}
        """By row the rejection of a node that pre-filters left out and a filter rejected: the nominated node."""
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self._message = ""
        if rejected is not None:
            self.blame(rejected)

    def blame(self, status: Status) -> None:
        """Note the plugin of a rejection: only events that help one of these plugins wake the pod."""
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
        assert self.filter_outcome is not None
        return self.filter_outcome.status_of(row) or self.extra.get(row) or self.outside

    def rows_rejected_as(self, code: Code) -> Rows:
        """The rows whose first rejection has this code."""
        if self.rejected is not None:
            return np.flatnonzero(self._live & (self.rejected.code is code))
        assert self.filter_outcome is not None
        selected = np.zeros(len(self.filter_outcome.considered), dtype=np.bool_)
        for rejections, ids, rejected in self.filter_outcome.first_rejections:
            has_code = np.array([status is not None and status.code is code for status in rejections.statuses])
            if has_code.any():
                selected |= rejected & has_code.take(ids)
        for row, status in (*self.filter_outcome.overrides.items(), *self.extra.items()):
            selected[row] = status.code is code
        return np.flatnonzero(selected)

    def reasons(self) -> dict[str, int]:
        """How many nodes were rejected for each reason. A node with several reasons counts for each."""
        assert self.filter_outcome is not None
        counts: dict[str, int] = {}

        def count(status: Status, nodes: int) -> None:
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + nodes

        explained = 0
        for status, nodes in self.filter_outcome.tally:
            count(status, nodes)
            explained += nodes
        for status in (*self.filter_outcome.overrides.values(), *self.extra.values()):
            count(status, 1)
            explained += 1
        if self.outside is not None and explained < self.node_count:
            count(self.outside, self.node_count - explained)
        return counts

    def message(self) -> str:
        """`0/5 nodes are available: ...`, without what post-filters add. To be called once all is known."""
        self._message = self._message or self._make_message()
        return self._message

    def _make_message(self) -> str:
        text = f"0/{self.node_count} nodes are available:"
        if self.rejected is not None:
            return f"{text} {self.rejected.message}." if self.rejected.message else text
        reasons = histogram(self.reasons())
        return f"{text} {reasons}." if reasons else text


def histogram(reasons: dict[str, int]) -> str:
    """`3 Insufficient cpu, 5 Too many pods`: sorted as strings, so ten comes before two."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
