"""`plan free`: the fewest moves that empty so many nodes, or a whole domain. Emptying for money shares the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kubesched.api.node import Node
from kubesched.api.selectors import Selector
from kubesched.ask.output import counted, listed
from kubesched.planning.checking import Draft, check_plan
from kubesched.planning.drain import RELAXED, Drained, Unit, fewest_moves, most_worth
from kubesched.planning.emptying import Emptying, PlanSearch
from kubesched.planning.movable import Movable, MovingRules
from kubesched.planning.neighbourhoods import Neighbourhoods
from kubesched.planning.oracle import Oracle
from kubesched.planning.packing import Packing
from kubesched.planning.plan import NodeFate, Plan, PlanBound, PlanError, PlannedNode, PlanOutcome, in_words
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE, label_of, pool_of
from kubesched.state.columns import Float

PROOF = "linear program over kinds of pods, solved to the optimum by HiGHS"
_ROUNDS = 8
_EPSILON = 1e-6
_NEAR_ENOUGH = 0.995
"""The share of what is proven to be the most, beyond which no more is looked for."""


@dataclass(frozen=True, slots=True)
class FreeGoal:
    """What is to be emptied."""

    count: int = 1
    """How many nodes to empty; or domains, if `domain` is given."""
    pool: str = ""
    selector: Selector | None = None
    """Only nodes of this pool, or with these labels."""
    domain: str = ""
    """The label whose values are domains: all nodes of one are emptied together."""
    most_moves: int | None = None
    selector_text: str = ""
    """The selector as it was given."""

    def __str__(self) -> str:
        noun = f"domain of {self.domain}" if self.domain else "node"
        where = f" of pool {self.pool}" if self.pool else f" with {self.selector_text}" if self.selector_text else ""
        most = f", with at most {counted(self.most_moves, 'move')}" if self.most_moves is not None else ""
        count = f"{self.count} {noun}s" if self.count > 1 and not self.domain else f"{self.count} {noun}"
        return f"free {count}{where}{most}"


class UnitSearch:
    """Empties units in the order in which a linear program would, solved again for what is left."""

    def __init__(self, emptying: Emptying, units: Sequence[Unit], search: PlanSearch) -> None:
        self._emptying = emptying
        self._packing = emptying.packing
        self._units = tuple(units)
        self._remaining = list(units)
        self._new = [unit for unit in units if unit.is_new]
        self._search = search
        self.done: list[Unit] = []

    @property
    def worth(self) -> float:
        """Of all that is emptied, and of new nodes that nothing has come to."""
        return sum(unit.worth for unit in (*self.done, *self._unused()))

    def _unused(self) -> list[Unit]:
        return [unit for unit in self._new if unit not in self.done and not self._emptying.on[unit.rows[0]]]

    def run(self, target: float, first: Drained | None, most_moves: int | None = None) -> None:
        """Empty units until they are worth `target`, or nothing more is found."""
        self._run(target, first, most_moves)
        self._keep_old()
        for unit in self._unused():
            self.done.append(unit)
            self._emptying.closed[unit.rows[0]] = True

    def _run(self, target: float, first: Drained | None, most_moves: int | None) -> None:
        solution = first
        for i in range(_ROUNDS):
            is_last = i == _ROUNDS - 1 or solution is None
            shares = np.zeros(len(self._remaining)) if solution is None else solution.shares
            self._round(target, shares, 0.0 if is_last else 0.05, most_moves)
            if self.worth >= target - _EPSILON or is_last or not self._remaining or not self._search.goes_on():
                return
            solution = fewest_moves(self._packing, self._remaining, target - sum(unit.worth for unit in self.done))

    def _round(self, target: float, shares: Float, least: float, most_moves: int | None) -> None:
        packing, emptying = self._packing, self._emptying
        avoid = np.zeros(len(packing.live), dtype=np.bool_)
        for unit, share in zip(self._remaining, shares):
            avoid[list(unit.rows)] = share > 0.5
        moves = packing.moves
        costs = [moves[list(unit.rows)].sum() / unit.worth for unit in self._remaining]
        tried = set()
        for i in sorted(range(len(self._remaining)), key=lambda i: (-round(float(shares[i]), 3), costs[i])):
            unit = self._remaining[i]
            if self.worth >= target - _EPSILON or shares[i] < least or not self._search.goes_on():
                break
            if most_moves is not None and emptying.move_count + moves[list(unit.rows)].sum() > most_moves:
                continue
            if unit.is_new and unit in self._unused():
                continue
            tried.add(i)
            if emptying.empty(unit.rows, avoid, partial(self._gains, self.worth, unit)):
                self.done.append(unit)
                self._search.report(f"{len(self.done)} emptied with {emptying.move_count} moves")
        self._remaining = [unit for i, unit in enumerate(self._remaining) if i not in tried]

    def _gains(self, before: float, unit: Unit) -> bool:
        """Whether it is worth more than new nodes that its pods have come to."""
        return not self._new or self.worth + (0.0 if unit.is_new else unit.worth) > before + _EPSILON

    def _keep_old(self) -> None:
        """Where a node that was emptied would do as well as a new one, it stays."""
        closed = self._emptying.closed
        for new in [unit for unit in self._new if self._emptying.on[unit.rows[0]]]:
            for old in {unit.worth: unit for unit in self.done if unit.worth < new.worth}.values():
                self.done.remove(old)
                closed[list(old.rows)] = False
                if self._emptying.empty(new.rows, closed, partial(self._gains, self.worth + old.worth, new)):
                    break
                self.done.append(old)
                closed[list(old.rows)] = True

    def improve(self, target: float, *, whole: bool = False) -> float | None:
        """Pack nodes anew, a few at a time, until what is emptied is worth `target`. With `whole` all of them first.

        Returns the most that can be emptied, if that was found out.
        """
        single = {unit.rows[0]: unit for unit in self._units if len(unit.rows) == 1}
        worth = np.zeros(len(self._packing.live))
        for row, unit in single.items():
            worth[row] = unit.worth
        neighbourhoods = Neighbourhoods(self._emptying, worth, self._search)
        least = neighbourhoods.run_whole() if whole else None
        most = None if least is None else float(worth.sum()) - least
        target = target if most is None else min(target, _NEAR_ENOUGH * most)
        neighbourhoods.run(target - self.worth - neighbourhoods.gained)
        self.done = [single[row] for row in np.flatnonzero(self._emptying.closed).tolist()]
        return most


def draft_of(cluster: ClusterModel, emptying: Emptying, nodes: list[PlannedNode]) -> Draft:
    """The moves that were found: those off nodes with fewest pods to move first, so that nodes are free soon."""
    names, oracle = cluster.state.nodes.names, emptying.oracle
    moved = sorted(emptying.moved, key=lambda pod: (-int(emptying.closed[emptying.began[pod.uid]]), pod.spec.node_name))
    moves = [(pod, names[emptying.at[pod.uid]]) for pod in moved]
    return Draft(moves, nodes, [], asked=oracle.asked, refused=oracle.refused)


def plan_free(cluster: ClusterModel, goal: FreeGoal, rules: MovingRules, search: PlanSearch) -> Plan:
    """The fewest moves after which the nodes are empty, checked. Raises PlanError."""
    movable = Movable(cluster, rules)
    packing = Packing(cluster, movable)
    units, blocked = _units(cluster, movable, packing, goal)
    plan = Plan(str(goal), PlanOutcome.IMPOSSIBLE)
    if len(units) < goal.count:
        reasons = listed([f"{why} ({count})" for why, count in movable.reasons(blocked)], 3)
        return replace(plan, reason=f"only {len(units)} of them can be emptied, as pods must stay: {reasons}")
    most = most_worth(packing, units)
    first = fewest_moves(packing, units, goal.count) if most.value >= goal.count - _EPSILON else None
    if first is None:
        bound = PlanBound(math.floor(most.value + _EPSILON), "nodes", RELAXED, PROOF, most.scarce)
        reason = f"however pods are moved, at most {bound.value:g} can be emptied; scarce: {in_words(most.scarce)}"
        return replace(plan, reason=reason, bound=bound)
    bound = PlanBound(math.ceil(first.value - 1e-4), "moves", RELAXED, PROOF, most.scarce)
    if goal.most_moves is not None and bound.value > goal.most_moves:
        return replace(plan, reason=f"it takes at least {bound.value:g} moves", bound=bound)
    search.bound = f"at least {bound.value:g} moves"
    with Oracle(cluster) as oracle:
        emptying = Emptying(oracle, packing, movable)
        unit_search = UnitSearch(emptying, units, search)
        unit_search.run(goal.count, first, goal.most_moves)
        if unit_search.worth < goal.count and goal.most_moves is None and not goal.domain:
            unit_search.improve(goal.count)
        emptied = [[oracle.name(row) for row in unit.rows] for unit in unit_search.done]
        nodes = [planned_node(cluster, name, NodeFate.FREED) for names in emptied for name in names]
        draft = draft_of(cluster, emptying, nodes)
    plan = check_plan(cluster, movable, replace(plan, bound=bound), draft, search)
    freed = {node.name for node in plan.nodes}
    return _outcome(plan, goal, search, sum(freed.issuperset(names) for names in emptied))


def _outcome(plan: Plan, goal: FreeGoal, search: PlanSearch, count: int) -> Plan:
    plan = replace(plan, value=float(len(plan.moves)))
    if count >= goal.count:
        return replace(plan, outcome=PlanOutcome.FOUND, reason="")
    why = "the search was interrupted" if search.was_cut else "no way to empty more was found"
    if not plan.nodes:
        return replace(plan, outcome=PlanOutcome.UNCHANGED, reason=why)
    return replace(plan, outcome=PlanOutcome.PARTIAL, reason=f"{count} of {goal.count}: {why}")


def _units(cluster: ClusterModel, movable: Movable, packing: Packing, goal: FreeGoal) -> tuple[list[Unit], list[str]]:
    """What can be emptied, and the nodes that cannot. PlanError if fewer are meant than asked for."""
    rows, keys = cluster.state.nodes.row_of, dict[str, list[str]]()
    for node in cluster.all(Node):
        if (goal.pool and pool_of(node) != goal.pool) or (
            goal.selector is not None and not goal.selector.matches(node.metadata.labels)
        ):
            continue
        key = label_of(node, goal.domain) if goal.domain else node.name
        if key:
            keys.setdefault(key, []).append(node.name)
    if len(keys) < goal.count:
        noun = f"values of the label {goal.domain}" if goal.domain else "such nodes"
        pools = listed(sorted({pool_of(node) for node in cluster.all(Node)}), 6)
        hint = f"; pools are {pools}" if goal.pool else ""
        raise PlanError(f"{goal}: there are only {len(keys)} {noun}{hint}")
    blocked = [name for names in keys.values() for name in names if not packing.candidates[rows[name]]]
    units = [
        Unit(key, tuple(rows[name] for name in names), 1.0)
        for key, names in keys.items()
        if all(packing.candidates[rows[name]] for name in names)
    ]
    return units, blocked


def planned_node(cluster: ClusterModel, name: str, fate: NodeFate, price: float | None = None) -> PlannedNode:
    node = cluster.state.nodes.node(cluster.state.nodes.row_of[name])
    return PlannedNode(name, fate, node.metadata.labels.get(INSTANCE_TYPE, ""), price)
