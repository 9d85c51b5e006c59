"""Labels of nodes as columns: per key, an id of the value on every row."""

from __future__ import annotations

import numpy as np

from kubesched.api.selectors import Requirement
from kubesched.state.columns import ABSENT, Bool, Int32, Int64, Interner, grown


class LabelColumn:
    """One label key over all rows. A topology is just such a column."""

    def __init__(self, key: str, length: int) -> None:
        self.key = key
        self.ids: Int32 = np.full(length, ABSENT, dtype=np.int32)
        self.values: Interner[str] = Interner()
        self.carriers = 0
        """How many rows have the label."""
        self.version = 0
        """Changes whenever a row gets, loses or changes its value."""

    def set(self, row: int, value: str | None) -> None:
        old = int(self.ids[row])
        new = ABSENT if value is None else self.values.acquire(value)
        self.values.release(old)
        if new != old:
            self.carriers += (new != ABSENT) - (old != ABSENT)
            self.ids[row] = new
            self.version += 1

    def extend(self, length: int) -> None:
        self.ids = grown(self.ids, length, ABSENT)

    def sum_by_value(self, counts: Int32 | Int64) -> Int64:
        """The sum of a column of counts per value of this label: pods per zone. The last entry, index -1, is 0."""
        sums = np.bincount(self.ids[: len(counts)] + 1, weights=counts, minlength=len(self.values) + 1)
        result = np.zeros(len(sums), dtype=np.int64)
        result[:-1] = sums[1:]
        return result

    def accepted(self, requirement: Requirement) -> Bool:
        """Per value id whether the requirement accepts it; the last entry, index -1, answers for an absent label."""
        answers = [value is not None and requirement.accepts(value) for value in self.values.values]
        answers.append(requirement.accepts(None))
        return np.array(answers, dtype=np.bool_)
