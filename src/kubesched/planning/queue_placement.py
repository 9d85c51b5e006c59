"""Puts pending pods on the nodes that a search found; pods that the engine refuses there are tried elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kubesched.api.pod import Pod
from kubesched.planning.covers import Covered, pods_of
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.gangs import gang_of_kind
from kubesched.planning.kinds import Problem, free_of
from kubesched.planning.oracle import Oracle
from kubesched.state.columns import Bool
from kubesched.state.facts import PodFacts


class QueuePlacement:
    """Pods on the nodes that were found for them, one after another, as the engine agrees."""

    def __init__(self, oracle: Oracle, problem: Problem, search: PlanSearch) -> None:
        self._oracle = oracle
        self._problem = problem
        self._search = search
        self._weights = 1.0 / np.maximum(problem.free.max(axis=0, initial=1), 1)
        self.placed: dict[str, int] = {}
        """Rows by the key of the pod, in the order in which they are placed."""

    def carry_out(self, covered: Covered) -> None:
        """All pods of the loads, in the order of the queue; a gang is placed when the first of it is due."""
        problem, targets, due = self._problem, dict[str, int](), list[tuple[Pod, str]]()
        rows = [iter(node_class.rows.tolist()) for node_class in problem.classes]
        for load, mine in zip(covered.loads, pods_of(covered, problem.kinds)):
            targets |= dict.fromkeys((pod.key for _, pod in mine), next(rows[load.node_class]))
            due += [(pod, gang_of_kind(problem.kinds[k])) for k, pod in mine]
        together: dict[str, list[Pod]] = {}
        for pod, gang in sorted(due, key=lambda each: -each[0].priority):
            together.setdefault(gang or pod.key, []).append(pod)
        order = list(together.values())
        again = [pods for pods in order if not self._place(pods, targets)]
        for pods in again:
            self._place(pods, {})

    def _place(self, pods: Sequence[Pod], targets: Mapping[str, int]) -> bool:
        """All of the pods on their rows, or on any; if one finds none, all of it is undone."""
        rows: dict[str, int] = {}
        with self._oracle.trying() as keep:
            for pod in pods:
                target = targets.get(pod.key)
                if target is not None:
                    row = target if self._oracle.place(pod, target) else None
                else:
                    row = self._oracle.place_anywhere(pod, choose=self._tightest)
                if row is None:
                    return False
                rows[pod.key] = row
            keep()
        self.placed |= rows
        return True

    def _tightest(self, feasible: Bool) -> int:
        """The row with least left, of those that fit."""
        rows = np.flatnonzero(feasible)
        free = free_of(self._oracle.cluster, self._problem.resources)[rows]
        return int(rows[(free @ self._weights).argmin()])

    def fill(self, pods: Iterable[Pod]) -> None:
        """Further pods wherever the engine finds room, in this order; once one of a kind finds none, no other does."""
        state, hopeless = self._oracle.cluster.state, set[tuple[PodFacts, int]]()
        for pod in pods:
            kind = (state.facts(pod), pod.priority)
            if pod.key in self.placed or kind in hopeless:
                continue
            if not self._search.goes_on():
                return
            if not self._place([pod], {}):
                hopeless.add(kind)
