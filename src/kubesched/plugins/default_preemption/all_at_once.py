"""Victims on all rows at once, where the filters look only at node objects and totals, or heed none of the pods.

Rank by rank, from the most important pod down, one pod is put back on every row at the same time, and stays where the
preemptor still fits. What costs kube-scheduler a walk over nodes and their pods costs a few columns per rank here.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.answers import ask_for_ids
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, WhatIf
from kubesched.framework.nominated import NominatedAtOrAbove
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import Status
from kubesched.plugins.default_preemption.candidates import EvictionBudgets
from kubesched.state.changes import ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64, Rows, grown
from kubesched.state.pods import PlacedPod, PodTable

Filters = tuple[FilterPlugin, ...]


class ByImportance:
    """Line r, column c: the index in the pod table of the r-th most important pod on row c, or -1."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._slots: Int32 = np.full((4, len(state.nodes.live)), -1, dtype=np.int32)
        self._changes = ChangeReader(state.nodes.changes)

    def slots(self) -> Int32:
        """The matrix as of now."""
        size = self.state.nodes.size
        if size > self._slots.shape[1]:
            self._slots = grown(self._slots, len(self.state.nodes.live), -1)
        rows = self._changes.read()
        for row in range(size) if rows is None else rows:
            self._write(row)
        return self._slots[:, :size]

    def _write(self, row: int) -> None:
        pods = sorted(self.state.pods.pods_on(row), key=lambda pod: pod.importance)
        if len(pods) > len(self._slots):
            more = np.full((2 * len(pods), self._slots.shape[1]), -1, dtype=np.int32)
            more[: len(self._slots)] = self._slots
            self._slots = more
        self._slots[: len(pods), row] = [pod.index for pod in pods]
        self._slots[len(pods) :, row] = -1


class Victims:
    """The pods that could leave each row, a line per rank and a column per row, and which of them must."""

    def __init__(self, cycle: Cycle, rows: Rows, budgets: EvictionBudgets) -> None:
        self.pods: PodTable = cycle.state.pods
        self.rows = rows
        slots = cycle.state.companion(ByImportance).slots()[:, rows]
        self.index: Int32 = slots[: int((slots >= 0).any(axis=1).sum())]
        self.priority: Int64 = self.pods.priority[self.index]
        self.leaves: Bool = (self.index >= 0) & (self.priority < cycle.priority)
        """The pods that are out: at first all of lower priority, in the end the victims."""
        self.breaks: Bool | None = None
        """The pods whose eviction would break a disruption budget; they are put back before the others."""
        for column in np.flatnonzero(budgets.may_break_on(rows, cycle.state)).tolist():
            self._put_breaking_first(column, budgets)

    def keep(self, columns: Bool) -> None:
        """Go on with these columns only."""
        self.rows = self.rows[columns]
        self.index = self.index[:, columns]
        self.priority = self.priority[:, columns]
        self.leaves = self.leaves[:, columns]
        if self.breaks is not None:
            self.breaks = self.breaks[:, columns]

    def _at(self, rank: int, column: int) -> PlacedPod:
        pod = self.pods.at[int(self.index[rank, column])]
        assert pod is not None
        return pod

    def _put_breaking_first(self, column: int, budgets: EvictionBudgets) -> None:
        leaving = [self._at(rank, column) for rank in np.flatnonzero(self.leaves[:, column]).tolist()]
        breaking, harmless = budgets.split(leaving)
        if not breaking:
            return
        if self.breaks is None:
            self.breaks = np.zeros(self.index.shape, dtype=np.bool_)
        self.breaks[: len(breaking), column] = True
        self.index[: len(leaving), column] = [pod.index for pod in (*breaking, *harmless)]
        self.priority[:, column] = self.pods.priority[self.index[:, column]]
        self.leaves[:, column] = np.arange(len(self.leaves)) < len(leaving)


def find_victims(
    cycle: Cycle, filters: Filters, victims: Victims, ahead: NominatedAtOrAbove
) -> list[tuple[Status, Rows]]:
    """Narrow the victims down to those that must leave. Rows that do not fit even without them are dropped, with why.

    The pod must fit both with and without the nominated pods that are ahead of it.
    """
    on_totals = tuple(plugin for plugin in filters if plugin.looks_at_totals)
    world = _EmptiedRows(cycle.state, victims, ahead)
    fits = ~world.none()
    world.count_nominated(1)
    failures = _drop_unfit(cycle, filters, world, fits)
    world.count_nominated(-1)
    if world.has_nominated:
        failures += _drop_unfit(cycle, on_totals, world, fits)
    if failures:
        victims.keep(fits)
        world = _EmptiedRows(cycle.state, victims, ahead)
    for rank in range(len(victims.index)):
        returning = victims.leaves[rank].copy()
        if not returning.any():
            continue
        world.add_rank(rank, returning)
        too_much = world.none()
        for plugin in on_totals:
            too_much |= plugin.filter(cycle, world) != 0
            if world.has_nominated:
                world.count_nominated(1)
                too_much |= plugin.filter(cycle, world) != 0
                world.count_nominated(-1)
        too_much &= returning
        if too_much.any():
            world.remove_rank(rank, too_much)
        victims.leaves[rank] = too_much
    return failures


def _drop_unfit(cycle: Cycle, filters: Filters, world: _EmptiedRows, fits: Bool) -> list[tuple[Status, Rows]]:
    """Clear `fits` on rows that reject the pod even without the pods that could leave; their first rejections."""
    failures: list[tuple[Status, Rows]] = []
    for plugin in filters:
        ids = _ids_of(plugin, cycle, world) * fits
        if ids.any():
            for rejection_id in np.unique(ids[ids != 0]).tolist():
                status = plugin.rejections.statuses[rejection_id]
                assert status is not None
                failures.append((status.by(plugin.name), world.row_ids[ids == rejection_id]))
            fits &= ids == 0
    return failures


def _ids_of(plugin: FilterPlugin, cycle: Cycle, world: _EmptiedRows) -> Int32:
    """What a filter says of the rows. One that looks at pods depends on none of these: its answer stays."""
    if not plugin.looks_at_pods:
        return plugin.filter(cycle, world)
    if not plugin.is_columnar:
        return plugin.filter(cycle, Nodes(cycle.state, world.row_ids))
    return ask_for_ids(plugin, cycle, Nodes(cycle.state))[world.row_ids]


class _EmptiedRows(WhatIf):
    """Rows without the pods that could leave, to which they return rank by rank. Only totals are kept."""

    def __init__(self, state: ClusterState, victims: Victims, ahead: NominatedAtOrAbove) -> None:
        super().__init__(state, victims.rows)
        amounts_by_id = ((i, requests[victims.index] * victims.leaves) for i, requests in state.pods.requests.items())
        self._amounts = {resource_id: amounts for resource_id, amounts in amounts_by_id if amounts.any()}
        """Per resource what each pod that could leave requests; resources that none of them requests are left out."""
        for resource_id, amounts in self._amounts.items():
            self._requested[resource_id] -= amounts.sum(axis=0)
        self._pod_count -= victims.leaves.sum(axis=0)
        self._ahead = ahead
        self._columns_ahead = np.flatnonzero(np.isin(victims.rows, ahead.rows))
        self._which_ahead = np.searchsorted(ahead.rows, victims.rows[self._columns_ahead])

    @property
    def has_nominated(self) -> bool:
        """Whether pods that are ahead are nominated to these rows."""
        return len(self._columns_ahead) > 0

    def count_nominated(self, sign: int) -> None:
        """Count the nominated pods in (1), or out again (-1)."""
        if self.has_nominated:
            self._ahead.count_in(self, self._columns_ahead, self._which_ahead, sign)

    def add_rank(self, rank: int, where: Bool) -> None:
        """The pods of one rank return where the mask is set."""
        for resource_id, amounts in self._amounts.items():
            self._requested[resource_id] += amounts[rank] * where
        self._pod_count += where

    def remove_rank(self, rank: int, where: Bool) -> None:
        """The pods of one rank leave where the mask is set."""
        for resource_id, amounts in self._amounts.items():
            self._requested[resource_id] -= amounts[rank] * where
        self._pod_count -= where
