"""A number per row of the node table, and its sums over the domains of topologies."""

from __future__ import annotations

from kubesched.state.columns import Int32, Int64, LabelColumn, grown

_TOPOLOGIES_KEPT = 8


class RowCounts:
    """A number per row, and its sums over the domains of topologies that plugins have asked for."""

    __slots__ = ("_sums", "counts")

    def __init__(self, counts: Int32 | Int64) -> None:
        self.counts = counts
        self._sums: dict[str, tuple[LabelColumn, int, Int64]] = {}

    def add(self, row: int, number: int) -> None:
        self.counts[row] += number
        for column, _, sums in self._sums.values():
            value = column.ids[row]
            if value >= 0 and value < len(sums) - 1:
                sums[value] += number

    def by_value(self, column: LabelColumn, size: int) -> Int64:
        """The sums per value of a label, as `LabelColumn.sum_by_value`. Kept up to date: read it, do not change it.

        Labels of nodes change much more rarely than pods come and go: after a change all are counted anew.
        """
        entry = self._sums.get(column.key)
        if entry is not None and entry[0] is column and entry[1] == column.version:
            return entry[2]
        sums = column.sum_by_value(self.counts[:size])
        if len(self._sums) >= _TOPOLOGIES_KEPT:
            del self._sums[next(iter(self._sums))]
        self._sums[column.key] = (column, column.version, sums)
        return sums

    def extend(self, length: int) -> None:
        """The node table has grown to this many rows."""
        self.counts = grown(self.counts, length)
