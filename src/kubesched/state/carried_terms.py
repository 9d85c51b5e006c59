"""The affinity terms that placed pods have, and where their carriers are."""

from __future__ import annotations

import numpy as np

from kubesched.state.columns import Int64, LabelColumn
from kubesched.state.facts import Term
from kubesched.state.row_counts import RowCounts

_FEW = 32


class CarriedTerms:
    """All terms of one kind of pod, which come and go together, and how many on each row have them.

    A dictionary counts the carriers on a few rows, a column those on many.
    """

    __slots__ = ("_column", "_rows", "carriers", "terms")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.carriers = 0
        self._rows: dict[int, int] = {}
        self._column: RowCounts | None = None

    def count(self, row: int, sign: int, length: int) -> None:
        """A carrier came to a row, or left it; `length` is the number of rows."""
        self.carriers += sign
        if self._column is not None:
            self._column.add(row, sign)
            return
        self._rows[row] = self._rows.get(row, 0) + sign
        if not self._rows[row]:
            del self._rows[row]
        if len(self._rows) > _FEW:
            self._column = RowCounts(self.counts(length))
            self._rows = {}

    def add_to(self, sums: Int64, column: LabelColumn, size: int, times: int) -> bool:
        """Add the carriers in each domain of a topology to its sums, `times` over. Whether there are any."""
        if self._column is not None:
            by_value = self._column.by_value(column, size)
            sums += times * by_value
            return bool(by_value.any())
        has_any = False
        for row, number in self._rows.items():
            value = column.ids[row]
            if value >= 0:
                sums[value] += times * number
                has_any = True
        return has_any

    def counts(self, length: int) -> Int64:
        """How many carriers are on each row; `length` is the number of rows."""
        if self._column is not None:
            return self._column.counts.astype(np.int64)
        counts = np.zeros(length, dtype=np.int64)
        for row, number in self._rows.items():
            counts[row] = number
        return counts

    def extend(self, length: int) -> None:
        """The node table has grown to this many rows."""
        if self._column is not None:
            self._column.extend(length)
