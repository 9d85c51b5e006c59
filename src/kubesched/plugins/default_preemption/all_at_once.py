"""Victims on all rows at once, where the filters look only at node objects and totals.

Rank by rank, from the most important pod down, one pod is put back on every row at the same time, and stays where the
preemptor still fits. What costs kube-scheduler a walk over nodes and their pods costs a few columns per rank here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import WhatIf
from kubesched.framework.plugin import FilterPlugin, Scope
from kubesched.framework.status import Status
from kubesched.plugins.default_preemption.candidates import PRIORITY_OFFSET, Budgets, Candidate
from kubesched.state.changes import ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Float, Int32, Int64, Rows, grown
from kubesched.state.pods import PlacedPod, PodTable


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


def apply_to_totals(filters: tuple[FilterPlugin, ...]) -> bool:
    """Whether the filters can be asked about many rows with pods taken out of each."""
    narrow = (Scope.NODE_OBJECT, Scope.NODE_TOTALS)
    return all(plugin.is_columnar and plugin.filter_scope in narrow for plugin in filters)


class Victims:
    """The pods that could leave each row, a line per rank and a column per row, and who of them must."""

    def __init__(self, cycle: Cycle, rows: Rows, by_importance: ByImportance, budgets: Budgets) -> None:
        self._pods: PodTable = cycle.state.pods
        self.rows = rows
        slots = by_importance.slots()[:, rows]
        self.index: Int32 = slots[: int((slots >= 0).any(axis=1).sum())]
        self.priority: Int64 = self._pods.priority[self.index]
        self.leaves: Bool = (self.index >= 0) & (self.priority < cycle.priority)
        """The pods that are out: at first all of lower priority, in the end the victims."""
        self.breaks: Bool | None = None
        """Who would break a disruption budget by leaving; they are put back before the others."""
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

    def candidate(self, column: int) -> Candidate:
        """The victims of one row as pods."""
        ranks = np.flatnonzero(self.leaves[:, column])
        victims = sorted((self._at(rank, column) for rank in ranks.tolist()), key=lambda pod: pod.importance)
        violations = 0 if self.breaks is None else int(self.breaks[ranks, column].sum())
        return Candidate(int(self.rows[column]), tuple(victims), violations)

    def best(self) -> Rows:
        """The columns of the rows that no question tells apart from the best: `Candidate.cost`, as columns."""
        columns = np.arange(len(self.rows))
        leaves = self.leaves
        priority = np.where(leaves, self.priority + PRIORITY_OFFSET, 0)
        questions: list[Callable[[], Int64 | Float]] = [
            lambda: priority.max(axis=0),
            lambda: priority.sum(axis=0),
            lambda: leaves.sum(axis=0),
            lambda: -self._first_started(columns, leaves & (priority == priority.max(axis=0))),
        ]
        breaks = self.breaks
        if breaks is not None:
            questions.insert(0, lambda: (breaks & self.leaves).sum(axis=0))
        for question in questions:
            costs = question()
            among_best = costs == costs.min()
            if not among_best.all():
                columns, leaves, priority = columns[among_best], leaves[:, among_best], priority[:, among_best]
            if len(columns) == 1:
                break
        return columns

    def _first_started(self, columns: Rows, who: Bool) -> Float:
        started = self._pods.start[self.index[:, columns]]
        return np.asarray(np.where(who, started, np.inf).min(axis=0))

    def _at(self, rank: int, column: int) -> PlacedPod:
        pod = self._pods.at[int(self.index[rank, column])]
        assert pod is not None
        return pod

    def _put_breaking_first(self, column: int, budgets: Budgets) -> None:
        leaving = [self._at(rank, column) for rank in np.flatnonzero(self.leaves[:, column]).tolist()]
        breaking, harmless = budgets.split(leaving)
        if not breaking:
            return
        if self.breaks is None:
            self.breaks = np.zeros(self.index.shape, dtype=np.bool_)
        self.breaks[: len(breaking), column] = True
        self.index[: len(leaving), column] = [pod.index for pod in (*breaking, *harmless)]
        self.priority[:, column] = self._pods.priority[self.index[:, column]]
        self.leaves[:, column] = np.arange(len(self.leaves)) < len(leaving)


def find_victims(cycle: Cycle, filters: tuple[FilterPlugin, ...], victims: Victims) -> list[tuple[Status, Rows]]:
    """Narrow the victims down to those who must go. Rows that do not fit even without them are dropped, with why."""
    world = _Emptied(cycle.state, victims)
    failures: list[tuple[Status, Rows]] = []
    for plugin in filters:
        ids = plugin.filter(cycle, world)
        for rejection_id in np.unique(ids).tolist():
            status = plugin.rejections.statuses[rejection_id]
            if status is not None:
                failures.append((status.by(plugin.name), victims.rows[ids == rejection_id]))
        if ids.any():
            victims.keep(ids == 0)
            world = _Emptied(cycle.state, victims)
    on_totals = [plugin for plugin in filters if plugin.filter_scope is Scope.NODE_TOTALS]
    for rank in range(len(victims.index)):
        returning = victims.leaves[rank].copy()
        if not returning.any():
            continue
        world.come(rank, returning)
        too_much = np.zeros(len(returning), dtype=np.bool_)
        for plugin in on_totals:
            too_much |= plugin.filter(cycle, world) != 0
        too_much &= returning
        if too_much.any():
            world.go(rank, too_much)
        victims.leaves[rank] = too_much
    return failures


class _Emptied(WhatIf):
    """Rows without the pods that could leave, to which they return rank by rank. Only totals are kept."""

    def __init__(self, state: ClusterState, victims: Victims) -> None:
        super().__init__(state, victims.rows)
        requests = state.pods.requests
        self._amounts = {
            resource_id: requests[resource_id, victims.index] * victims.leaves
            for resource_id in range(len(requests))
            if requests[resource_id, : state.pods.size].any()
        }
        """Per resource what each pod that could leave requests; resources that no pod requests are left out."""
        for resource_id, amounts in self._amounts.items():
            self._requested[resource_id] -= amounts.sum(axis=0)
        self._pod_count -= victims.leaves.sum(axis=0)

    def come(self, rank: int, where: Bool) -> None:
        """The pods of one rank return where the mask is set."""
        for resource_id, amounts in self._amounts.items():
            self._requested[resource_id] += amounts[rank] * where
        self._pod_count += where

    def go(self, rank: int, where: Bool) -> None:
        """The pods of one rank leave where the mask is set."""
        for resource_id, amounts in self._amounts.items():
            self._requested[resource_id] -= amounts[rank] * where
        self._pod_count -= where
