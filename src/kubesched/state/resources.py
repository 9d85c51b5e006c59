"""The resources of nodes: what each offers and what pods there request, a column for each resource.

A resource that no node offers needs no column, however much pods request of it. So pods cannot make columns, and the
last node that offers a resource takes its column along. Where nodes offer very many resources (each one of its own,
say), those that pods requested last have the columns.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubesched.api.node import Node
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from kubesched.state.columns import Int64, grown

FIXED_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""The resources that always have the first ids, in this order."""
NOWHERE = len(FIXED_RESOURCES)
"""The id of every resource without a column of its own: this one is always 0."""
_FIRST_COLUMNS = 8
_MOST_COLUMNS = 120
"""Less than a power of two, to which tables grow: room for a few more columns before others are released."""


class ResourceColumns:
    """A column per resource and a row per node: the first index is the id of the resource."""

    def __init__(self, rows: int) -> None:
        self.resources: dict[str, int] = {name: i for i, name in enumerate(FIXED_RESOURCES)}
        """The ids of the resources that have a column, by name."""
        self.resources_version = 0
        """Changes whenever an id gets or loses its meaning."""
        self.amounts = self._set(np.zeros((3, _FIRST_COLUMNS, rows), dtype=np.int64))
        """The three tables below in one, so that one step counts a pod or reads a node."""
        self.most_columns = _MOST_COLUMNS
        """The number of resources with a column at a time; more only if one pod asks for more."""
        self._offers: dict[str, dict[int, int]] = {}
        """What each row offers, by the name of the resource, without the fixed ones."""
        self._recent: dict[str, None] = {}
        """The resources with a column, without the fixed ones; the one requested last comes last."""
        self._free = list(range(_FIRST_COLUMNS - 1, NOWHERE, -1))
        self._fresh: set[str] = set()

    def _set(self, amounts: Int64) -> Int64:
        self.allocatable: Int64 = amounts[0]
        self.requested: Int64 = amounts[1]
        self.scoring_requested: Int64 = amounts[2]
        """As scoring counts requests: with defaults of cpu and memory for containers that request none."""
        self.loads: Int64 = amounts[1:]
        """`requested` and `scoring_requested`."""
        return amounts

    def resource_id(self, name: str) -> int:
        """The id of a resource, which is the index of its column; NOWHERE if it has none."""
        return self.resources.get(name, NOWHERE)

    def offers_of(self, name: str) -> dict[int, int]:
        """What rows offer of a resource that is not one of the fixed ones, whether or not it has a column."""
        return self._offers.get(name, {})

    def offer(self, row: int, old: Node | None, amounts: dict[str, int]) -> None:
        """What the node of a row offers changed. New columns have no requests yet: see `take_fresh_resources`."""
        if old is not None:
            for name in old.status.allocatable:
                if name not in amounts and name in self._offers:
                    self._withdraw(row, name)
            self.allocatable[:, row] = 0
        for name, amount in amounts.items():
            if name not in FIXED_RESOURCES:
                self._offers.setdefault(name, {})[row] = amount
                if name not in self.resources and len(self.resources) < self.most_columns:
                    self._acquire(name)
            if name in self.resources:
                self.allocatable[self.resources[name], row] = amount

    def give_columns(self, names: Iterable[str]) -> None:
        """Give a column to each of these resources that a node offers."""
        offered = [name for name in names if name in self._offers]
        for name in offered:
            if name not in self.resources:
                self._acquire(name)
            self._recent[name] = self._recent.pop(name)
        too_many = min(len(self.resources) - self.most_columns, len(self._recent) - len(offered))
        for name in list(self._recent)[:too_many] if too_many > 0 else ():
            self._release(name)

    def take_fresh_resources(self) -> dict[str, int]:
        """The ids, by name, of resources that got a column since the last call: the caller counts their requests."""
        if not self._fresh:
            return {}
        fresh = {name: self.resources[name] for name in self._fresh if name in self.resources}
        self._fresh.clear()
        return fresh

    def extend_resources(self, rows: int) -> None:
        """The table has grown to this many rows."""
        self.amounts = self._set(grown(self.amounts, rows))

    def _acquire(self, name: str) -> None:
        if not self._free:
            self._resize(2 * len(self.allocatable))
        column = self.resources[name] = self._free.pop()
        for row, amount in self._offers[name].items():
            self.allocatable[column, row] = amount
        self._recent[name] = None
        self._fresh.add(name)
        self.resources_version += 1

    def _withdraw(self, row: int, name: str) -> None:
        rows = self._offers[name]
        rows.pop(row, None)
        if not rows:
            del self._offers[name]
            if name in self.resources:
                self._release(name)

    def _release(self, name: str) -> None:
        resource_id = self.resources.pop(name)
        del self._recent[name]
        self.amounts[:, resource_id] = 0
        self._free.append(resource_id)
        self.resources_version += 1
        if len(self._free) > max(_FIRST_COLUMNS, len(self.allocatable) * 3 // 4):
            self._close_gaps()

    def _close_gaps(self) -> None:
        """Move the columns together when most are free, and give the memory back."""
        ids = sorted([*self.resources.values(), NOWHERE])
        self.resources = {name: ids.index(old_id) for name, old_id in self.resources.items()}
        self.amounts = self._set(self.amounts[:, ids])
        self._free = []
        self._resize(max(_FIRST_COLUMNS, 2 * len(ids)))
        self.resources_version += 1

    def _resize(self, length: int) -> None:
        _, old_length, rows = self.amounts.shape
        wider = np.zeros((3, length, rows), dtype=np.int64)
        wider[:, :old_length] = self.amounts
        self.amounts = self._set(wider)
        self._free += range(length - 1, old_length - 1, -1)
