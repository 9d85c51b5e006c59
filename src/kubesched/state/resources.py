"""The resources of nodes: what each offers and what pods there request, a column for every resource that a node offers.

What pods ask for needs no column of its own: a name that no node offers is offered nowhere, however much is requested.
So strangers cannot make columns, and the last node that offers a resource takes its column along.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubesched.api.node import Node
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_countable
from kubesched.state.columns import Int64, grown

FIXED_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""The resources that always have the first ids, in this order."""
NOWHERE = len(FIXED_RESOURCES)
"""The id of every resource that no node offers: its column is always 0."""
_FIRST_COLUMNS = 8


class ResourceColumns:
    """A column per resource and a row per node: the first index is the id of the resource."""

    def __init__(self, rows: int) -> None:
        self.resources: dict[str, int] = {name: i for i, name in enumerate(FIXED_RESOURCES)}
        """The resources that have a column, and the ids of these."""
        self.resources_version = 0
        """Changes whenever an id gets or loses its meaning."""
        self.allocatable: Int64 = np.zeros((_FIRST_COLUMNS, rows), dtype=np.int64)
        self.requested: Int64 = np.zeros((_FIRST_COLUMNS, rows), dtype=np.int64)
        self.scoring_requested: Int64 = np.zeros((_FIRST_COLUMNS, rows), dtype=np.int64)
        """The same as scoring counts it: with defaults of cpu and memory for containers that request none."""
        self._offering: dict[str, int] = dict.fromkeys(FIXED_RESOURCES, 1)
        """How many nodes offer each; those that always have a column are never given up."""
        self._free = list(range(_FIRST_COLUMNS - 1, NOWHERE, -1))
        self._fresh: set[str] = set()

    def resource_id(self, name: str) -> int:
        """The id of a resource, which is the index of its column; NOWHERE if no node offers it."""
        return self.resources.get(name, NOWHERE)

    def offer(self, row: int, old: Node | None, amounts: dict[str, int]) -> None:
        """What the node of a row offers changed. Columns that are new know of no requests yet."""
        self._acquire(amounts)
        self._release(name for name in (old.status.allocatable if old else ()) if is_countable(name))
        self.allocatable[:, row] = 0
        for name, amount in amounts.items():
            self.allocatable[self.resources[name], row] = amount

    def take_fresh_resources(self) -> dict[str, int]:
        """The resources, with their ids, that got a column since this was last asked, and know of no requests."""
        if not self._fresh:
            return {}
        fresh = {name: self.resources[name] for name in self._fresh if name in self.resources}
        self._fresh.clear()
        return fresh

    def extend_resources(self, rows: int) -> None:
        """The table has grown to this many rows."""
        self.allocatable = grown(self.allocatable, rows)
        self.requested = grown(self.requested, rows)
        self.scoring_requested = grown(self.scoring_requested, rows)

    def _acquire(self, names: Iterable[str]) -> None:
        for name in names:
            self._offering[name] = self._offering.get(name, 0) + 1
            if name not in self.resources:
                if not self._free:
                    self._resize(2 * len(self.allocatable))
                self.resources[name] = self._free.pop()
                self.resources_version += 1
                self._fresh.add(name)

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            self._offering[name] -= 1
            if not self._offering[name]:
                del self._offering[name]
                freed = self.resources.pop(name)
                self.allocatable[freed] = self.requested[freed] = self.scoring_requested[freed] = 0
                self._free.append(freed)
                self.resources_version += 1
        if len(self._free) > max(_FIRST_COLUMNS, len(self.allocatable) * 3 // 4):
            self._close_gaps()

    def _close_gaps(self) -> None:
        """Most columns are free: the others move together, and the memory is given back."""
        ids = sorted([*self.resources.values(), NOWHERE])
        self.resources = {name: ids.index(known) for name, known in self.resources.items()}
        self.allocatable = self.allocatable[ids]
        self.requested = self.requested[ids]
        self.scoring_requested = self.scoring_requested[ids]
        self._free = []
        self._resize(max(_FIRST_COLUMNS, 2 * len(ids)))
        self.resources_version += 1

    def _resize(self, length: int) -> None:
        known, rows = self.allocatable.shape
        more = np.zeros((length - known, rows), dtype=np.int64)
        self.allocatable = np.vstack((self.allocatable, more))
        self.requested = np.vstack((self.requested, more))
        self.scoring_requested = np.vstack((self.scoring_requested, more))
        self._free += range(length - 1, known - 1, -1)
