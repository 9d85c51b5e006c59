"""Which kinds of pods go on which nodes: priority by priority, gangs as a whole or not at all, then by value.

A lower priority never costs a higher one anything: what the higher ones have got is theirs when loads are made anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubesched.planning.bounds import upper_bound
from kubesched.planning.columns import ColumnSearch
from kubesched.planning.covers import Cover, Covered, NodeLoad, fill_cover
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.kinds import Problem
from kubesched.planning.solver import INF
from kubesched.state.columns import Bool, Float, Int64

_MOST_LEVELS = 5
"""How many priorities are packed anew, one after another; lower ones only fill the room that is left."""
_MOST_CLASSES = 150
"""Of more classes, which happens where nodes are loaded unevenly, only best fit makes loads."""
_EARLIER = 20.0
"""What a pod of a higher priority counts while lower ones are packed, in pods of the greatest value."""
_GANG_ROUNDS = 6


class Apart(NamedTuple):
    """What tells kinds of pending pods apart that are the same otherwise."""

    priority: int
    gang: str
    """The group of which all or none are to run; empty for pods by themselves."""


class LevelPacker:
    """Packs the kinds of a problem, which are told apart by `Apart`."""

    def __init__(self, problem: Problem, values: Float, search: PlanSearch) -> None:
        self._problem = problem
        self._values = values
        self._search = search
        apart = [kind.apart for kind in problem.kinds]
        self._priorities = np.array([key.priority for key in apart if isinstance(key, Apart)], dtype=np.int64)
        self._gangs = np.array([key.gang for key in apart if isinstance(key, Apart)], dtype=np.object_)
        whole = np.maximum((problem.free * problem.nodes[:, None]).sum(axis=0), 1).astype(np.float64)
        self._weights: Float = (values @ (problem.requests / whole) + 1e-3) / whole
        """Of resources, for best fit: what valuable pods ask for counts more."""
        self.most_value = INF
        """No placement of all pods has a greater value, as far as the columns proved it."""

    def pack(self) -> Covered:
        """All at once, if all fit; else the highest priority first, and then what it leaves to the others."""
        everything = self._solve(self._problem.demand, self._values)
        priorities = sorted(set(self._priorities.tolist()), reverse=True)
        if not everything.unplaced.any() or len(priorities) <= 1:
            return self._with_whole_gangs(everything, self._problem.demand)
        best = Covered((), np.zeros_like(self._problem.demand), 0.0)
        for i, priority in enumerate(priorities):
            now = self._priorities == priority
            best = self._level(best, now, packs=i < _MOST_LEVELS)
        return Covered(best.loads, self._problem.demand - best.placed, 0.0)

    def _level(self, before: Covered, now: Bool, *, packs: bool) -> Covered:
        """The pods of one priority beside those before, of which none is driven out."""
        demand = np.where(now, self._problem.demand, before.placed)
        best = fill_cover(self._cover(demand), before.loads, self._weights)
        if packs and best.unplaced[now].any() and self._search.goes_on():
            earlier = _EARLIER * float(self._values.max(initial=1.0))
            anew = self._solve(demand, np.where(now, self._values, earlier))
            if not anew.unplaced[~now].any() and anew.unplaced @ self._values < best.unplaced @ self._values:
                best = anew
        return self._with_whole_gangs(best, demand)

    def _solve(self, demand: Int64, values: Float) -> Covered:
        """Best fit as the bound's program would have it; columns and a dive where that leaves out more than it must."""
        cover = self._cover(demand, values)
        columns = ColumnSearch(cover, self._search.goes_on)
        relaxed = upper_bound(self._problem, values, demand=demand)
        columns.start(relaxed.by_class(), self._weights)
        assert columns.best is not None
        total = float(values @ demand)
        if columns.best.cost > total - relaxed.value + 1e-6 and len(cover.price) <= _MOST_CLASSES:
            columns.suggest_prices(relaxed.worth)
            columns.generate()
            columns.keep(fill_cover(cover, columns.dive().loads, self._weights))
            if values is self._values:
                self.most_value = total - columns.bound
        return columns.best

    def _cover(self, demand: Int64, values: Float | None = None) -> Cover:
        return Cover.of_queue(self._problem, self._values if values is None else values, demand)

    def _with_whole_gangs(self, covered: Covered, demand: Int64) -> Covered:
        """Without gangs of which some pods are left out: their room goes to others, or makes another gang whole."""
        dropped: list[str] = []
        remaining = demand
        for i in range(_GANG_ROUNDS):
            incomplete = {gang for gang in self._gangs[covered.unplaced > 0] if gang}
            broken = sorted(incomplete, key=lambda gang: (self._share(covered, gang), gang))
            if not broken:
                break
            leaving = broken if i == _GANG_ROUNDS - 1 else broken[: (len(broken) + 1) // 2]
            dropped += leaving
            staying = ~np.isin(self._gangs, leaving)
            remaining = np.where(staying, remaining, 0)
            loads = (NodeLoad(load.node_class, np.where(staying, load.counts, 0)) for load in covered.loads)
            covered = fill_cover(self._cover(remaining), [load for load in loads if load.counts.any()], self._weights)
        for gang in reversed(dropped):
            more = np.where(self._gangs == gang, demand, covered.placed)
            again = fill_cover(self._cover(more), covered.loads, self._weights)
            if not again.unplaced.any():
                covered = again
        return Covered(covered.loads, demand - covered.placed, 0.0)

    def _share(self, covered: Covered, gang: str) -> float:
        """How much of a gang is placed."""
        mine = self._gangs == gang
        placed = int(covered.placed[mine].sum())
        return placed / max(1, placed + int(covered.unplaced[mine].sum()))
