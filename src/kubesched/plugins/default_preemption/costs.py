"""What preemption would cost on each row: kept for equivalent pods of one priority, repaired where rows changed.

A storm of preemptors asks the same question again and again, and between two of them a few rows change: those that
the last one was nominated to, or that its victims left. Only these are worked out anew.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.workloads import PodDisruptionBudget
from kubesched.framework.cycle import Cycle
from kubesched.framework.nominated import NominatedAtOrAbove, NominatedColumns
from kubesched.framework.status import Status, error, unresolvable
from kubesched.plugins.default_preemption.all_at_once import Filters, Victims, find_victims
from kubesched.plugins.default_preemption.candidates import PRIORITY_OFFSET, Candidate, EvictionBudgets
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Float, Int32, Rows, grown
from kubesched.state.pods import PodTable

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")

_BYTES_KEPT = 32 << 20
_CANDIDATE, _NOT_NEEDED = 0, -1


class RowCosts:
    """Per row why preemption is no help there, or the answers to the questions of `Candidate.cost`."""

    def __init__(self, size: int) -> None:
        self.positions: tuple[int, int] = (0, 0)
        """Up to where the logs of nodes and of nominated pods are followed."""
        self.budgets_version = 0
        self.of_one_pod: list[int] = []
        """The row, if any, whose entry holds only for the pod that asked last: it is nominated there."""
        self._known: Bool = np.zeros(size, dtype=np.bool_)
        self._why: Int32 = np.zeros(size, dtype=np.int32)
        """0 for candidates, -1 where no pod need leave, else the index of a status."""
        self._costs: Float = np.zeros((5, size), dtype=np.float64)
        """Whole numbers, too small to be rounded, and times."""
        self._victims: Int32 = np.full((4, size), -1, dtype=np.int32)
        """The victims of each row: indices in the table of pods, or -1."""
        self._statuses: list[Status] = [NO_VICTIMS, NO_VICTIMS]

    def extend(self, size: int) -> None:
        if size > len(self._known):
            self._known, self._why = grown(self._known, size), grown(self._why, size)
            self._costs, self._victims = grown(self._costs, size), grown(self._victims, size, -1)

    def forget(self, rows: list[int] | None) -> None:
        """These rows changed; None for all of them."""
        self._known[slice(None) if rows is None else rows] = False

    def unknown(self, rows: Rows) -> Rows:
        unknown: Rows = rows[~self._known[rows]]
        return unknown

    def write(self, rows: Rows, failures: list[tuple[Status, Rows]], victims: Victims) -> None:
        """Store results of some rows: the status of those without a candidate, the victims of the others."""
        self._known[rows] = True
        self._why[rows] = _NOT_NEEDED
        for status, failed in failures:
            self._why[failed] = self._id_of(status)
        self._why[victims.rows] = _CANDIDATE
        self._costs[:, victims.rows] = _costs_of(victims)
        ranks = len(victims.index)
        if ranks > len(self._victims):
            more = np.full((ranks - len(self._victims), self._victims.shape[1]), -1, dtype=np.int32)
            self._victims = np.vstack((self._victims, more))
        self._victims[:ranks, victims.rows] = np.where(victims.leaves, victims.index, -1)
        self._victims[ranks:, victims.rows] = -1

    def candidates(self, rows: Rows) -> Rows:
        candidates: Rows = rows[self._why[rows] == _CANDIDATE]
        return candidates

    def candidate(self, row: int, pods: PodTable) -> Candidate:
        pods_there = (pods.at[index] for index in self._victims[:, row].tolist() if index >= 0)
        victims = sorted((pod for pod in pods_there if pod is not None), key=lambda pod: pod.importance)
        return Candidate(row, tuple(victims), int(self._costs[0, row]))

    def best(self, candidates: Rows) -> Rows:
        """The rows that no question tells apart from the best."""
        for answers in self._costs:
            if len(candidates) < 2:
                break
            among = answers[candidates]
            candidates = candidates[among == among.min()]
        return candidates

    def failures(self, rows: Rows, names: list[str]) -> list[tuple[Status, Rows]]:
        """Why the other rows are none, with the rows that share a reason."""
        why = self._why[rows]
        failures = [(self._statuses[i], rows[why == i]) for i in np.unique(why).tolist() if i > _CANDIDATE]
        return failures + [(no_victims(names[row]), np.array([row])) for row in rows[why == _NOT_NEEDED].tolist()]

    def _id_of(self, status: Status) -> int:
        if status not in self._statuses:
            self._statuses.append(status)
        return self._statuses.index(status, 1)


def no_victims(name: str) -> Status:
    """The filters have nothing against the node: an extender has, and evicting pods will not change its mind."""
    return error(f'expected at least one victim pod on node "{name}"')


def _costs_of(victims: Victims) -> Float:
    """`Candidate.cost`, as columns."""
    leaves, breaks = victims.leaves, victims.breaks
    priority = np.where(leaves, victims.priority + PRIORITY_OFFSET, 0)
    highest = priority.max(axis=0, initial=0)
    started = np.where(leaves & (priority == highest), victims.pods.start[victims.index], np.inf)
    violations = np.zeros(len(highest)) if breaks is None else (breaks & leaves).sum(axis=0)
    return np.stack(
        (violations, highest, priority.sum(axis=0), leaves.sum(axis=0), -started.min(axis=0, initial=np.inf))
    )


class KeptCosts:
    """The costs on all rows by equivalence class and priority, the least recently used forgotten first."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._nominated = state.companion(NominatedColumns)
        self._kept: dict[Hashable, RowCosts] = {}

    def of(self, cycle: Cycle, filters: Filters) -> RowCosts:
        """What is known so far. Nothing is kept if a filter looks at pods, or tells equivalent ones apart."""
        size = self._state.nodes.size
        if not all(plugin.filter_reads.is_narrow and not plugin.looks_at_pods for plugin in filters):
            return RowCosts(size)
        key = (cycle.facts, cycle.priority, filters)
        costs = self._kept.pop(key, None) or self._new(size)
        costs.extend(size)
        self._catch_up(costs)
        # Where a pod is nominated it is not in its own way, but in that of others: there each has its own costs.
        own = [] if (row := self._nominated.row_of(cycle.pod)) is None else [row]
        costs.forget(costs.of_one_pod + own)
        costs.of_one_pod = own
        self._kept[key] = costs
        return costs

    def _new(self, size: int) -> RowCosts:
        limit = max(16, _BYTES_KEPT // (100 * size))
        while len(self._kept) >= limit:
            del self._kept[next(iter(self._kept))]
        return RowCosts(size)

    def _catch_up(self, costs: RowCosts) -> None:
        self._nominated.refresh()
        logs = self._state.nodes.changes, self._nominated.changes
        for log, position in zip(logs, costs.positions):
            if log.position != position:
                costs.forget(log.since(position))
        version = self._state.objects.version(PodDisruptionBudget)
        if version != costs.budgets_version:
            costs.forget(None)
        costs.positions, costs.budgets_version = (logs[0].position, logs[1].position), version


class BatchedRows:
    """The rows that are worked on all at once for one preemptor: the candidates among them, and at what cost."""

    def __init__(
        self, cycle: Cycle, filters: Filters, budgets: EvictionBudgets, ahead: NominatedAtOrAbove, rows: Rows
    ) -> None:
        self._pods = cycle.state.pods
        self._costs = cycle.state.companion(KeptCosts).of(cycle, filters)
        self._candidates: dict[int, Candidate] = {}
        unknown = self._costs.unknown(rows)
        if len(unknown):
            self._costs.write(unknown, *_work_out(cycle, filters, budgets, ahead, unknown))
        self.rows = self._costs.candidates(rows)
        """The rows of the candidates."""
        self.failures = self._costs.failures(rows, cycle.state.nodes.names)
        self.best_rows: list[int] = self._costs.best(self.rows).tolist()

    def candidate(self, row: int) -> Candidate:
        """The candidate of one row. Made once, and not changed when the state changes."""
        candidate = self._candidates.get(row)
        if candidate is None:
            candidate = self._candidates[row] = self._costs.candidate(row, self._pods)
        return candidate


def _work_out(
    cycle: Cycle, filters: Filters, budgets: EvictionBudgets, ahead: NominatedAtOrAbove, rows: Rows
) -> tuple[list[tuple[Status, Rows]], Victims]:
    """Why some rows are no candidates, and the victims on those that are."""
    victims = Victims(cycle, rows, budgets)
    has_any = np.asarray(victims.leaves.any(axis=0))
    failures = [] if has_any.all() else [(NO_VICTIMS, rows[~has_any])]
    victims.keep(has_any)
    failures += find_victims(cycle, filters, victims, ahead)
    victims.keep(np.asarray(victims.leaves.any(axis=0)))
    return failures, victims
