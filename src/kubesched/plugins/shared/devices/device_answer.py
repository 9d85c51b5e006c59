"""What a search found on every row for one demand, and what is still to be searched."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.plugins.shared.devices.demand import AllocationError, Demand
from kubesched.plugins.shared.devices.search import FoundDevices, Path
from kubesched.state.columns import Bool, Int64, grown

_BYTES_PER_ROW = 24
_BYTES_PER_OUTCOME = 900


@dataclass(frozen=True, eq=False, slots=True)
class SearchOutcome:
    """How a search ended: with devices, with none, or with an error."""

    found: FoundDevices | None = None
    error: AllocationError | None = None
    has_invalid_pools: bool = False


NOT_SEARCHED = SearchOutcome()


class DeviceAnswer:
    """The outcomes of all rows for one demand."""

    def __init__(self, key: Hashable, demand: Demand) -> None:
        self.key = key
        self.demand = demand
        self.is_compiled = False
        self.position = -1
        self.outcomes: list[SearchOutcome] = []
        self.fits: Bool = np.zeros(0, dtype=np.bool_)
        self.scores: Int64 = np.zeros(0, dtype=np.int64)
        self.failures: dict[int, SearchOutcome] = {}
        """Rows where nothing was found for another reason than that there is nothing."""
        self.known: dict[Hashable, SearchOutcome] = {}
        """By shape and use of an inventory: how the search there ends."""
        self.stale: dict[int, None] = {}
        """Rows that are still to be searched, in order, since the search took long and was interrupted."""
        self.path: tuple[Hashable, Path] = (None, ())
        """The inventory, by shape and use, where it was interrupted, and how far it had come there."""
        self.fruitless = 0
        """Steps of the search since anything was found out."""
        self._made = 0

    @property
    def is_finished(self) -> bool:
        return self.is_compiled and not self.stale

    @property
    def size(self) -> int:
        """Bytes, about, of all that no other answer shares."""
        outcomes = min(self._made, len(self.outcomes) + len(self.known))
        return _BYTES_PER_ROW * len(self.outcomes) + _BYTES_PER_OUTCOME * outcomes + self.demand.size

    def shrink(self) -> None:
        """Forget what can be found out again. Rows that were searched stay so."""
        self.known.clear()
        for request in self.demand.requests:
            request.selected.clear()

    def resize(self, size: int) -> range:
        """Have so many rows, which are no fewer than before; returns those that are new."""
        before = len(self.outcomes)
        if size > before:
            self.outcomes += [NOT_SEARCHED] * (size - before)
            self.fits, self.scores = grown(self.fits, size), grown(self.scores, size)
        return range(before, size)

    def begin_anew(self) -> None:
        """Forget the results of all rows."""
        self.outcomes, self.fits, self.scores = [], self.fits[:0], self.scores[:0]
        self.failures.clear()
        self.stale.clear()

    def learn(self, key: Hashable, outcome: SearchOutcome, most: int) -> None:
        """How the search ends in an inventory of this shape and use."""
        if len(self.known) >= most:
            self.known.clear()
        self.known[key] = outcome
        self._made += 1

    def set(self, row: int, outcome: SearchOutcome) -> None:
        self.outcomes[row] = outcome
        solution = outcome.found
        self.fits[row] = solution is not None
        self.scores[row] = 0 if solution is None else solution.score
        if outcome.error is not None or (solution is None and outcome.has_invalid_pools):
            self.failures[row] = outcome
        else:
            self.failures.pop(row, None)

    def set_all(self, rows: Sequence[int], outcome: SearchOutcome) -> None:
        for row in rows:
            self.set(row, outcome)
            self.stale.pop(row, None)
