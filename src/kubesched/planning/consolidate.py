"""`plan consolidate`: fewer nodes for less money, with the most that any plan can save."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kubesched.api.node import Node
from kubesched.ask.output import listed
from kubesched.planning.checking import Draft, check_plan
from kubesched.planning.drain import RELAXED, WHOLE_NODES, Drained, Unit, fewest_moves, most_worth
from kubesched.planning.emptying import Emptying, PlanSearch
from kubesched.planning.free import PROOF, UnitSearch, draft_of, planned_node
from kubesched.planning.movable import Movable, MovingRules
from kubesched.planning.offers import NodeOffers
from kubesched.planning.oracle import Oracle
from kubesched.planning.packing import Packing
from kubesched.planning.plan import NodeFate, Plan, PlanBound, PlanError, PlanOutcome, in_words
from kubesched.planning.prices import InstanceType
from kubesched.planning.solver import INF
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.state.columns import Float

COLUMN_PROOF = "linear program over loads for whole nodes, with the bound of Farley and Lagrange"
_DEARER = 1.001
"""A search multiplies the price of a new node by this: where an existing node is as good, it stays."""
_NEAR = 0.97
"""The share of the most that can be saved at all which the first search is to reach."""


@dataclass(frozen=True, slots=True)
class ConsolidateGoal:
    """What is to be saved, and how."""

    save: float | None = None
    """A share of what the nodes cost, in percent; None for as much as possible."""
    buy: tuple[InstanceType, ...] = ()
    """Types of which new nodes may come in the place of others, many for many."""

    def __str__(self) -> str:
        text = "save as much as possible" if self.save is None else f"save {self.save:.4g}% of what nodes cost"
        return f"{text}, with new nodes in the place of others" if self.buy else text


def prices_of(cluster: ClusterModel, prices: Mapping[str, float]) -> Float:
    """By row: what its node costs. PlanError if the list has no price for a type of nodes."""
    nodes = cluster.state.nodes
    column, unknown = np.zeros(nodes.size), dict[str, str]()
    for node in cluster.all(Node):
        kind = node.metadata.labels.get(INSTANCE_TYPE, "")
        if kind in prices:
            column[nodes.row_of[node.name]] = prices[kind]
        else:
            unknown.setdefault(kind, node.name)
    if unknown:
        lines = [
            f"no price for the type {kind!r} of node {name}" if kind else f"node {name} has no label {INSTANCE_TYPE}"
            for kind, name in unknown.items()
        ]
        raise PlanError(*lines, f"the price list has {listed(sorted(prices), 8) or 'no types'}")
    return column


def plan_consolidate(
    cluster: ClusterModel, goal: ConsolidateGoal, prices: Mapping[str, float], rules: MovingRules, search: PlanSearch
) -> Plan:
    """The nodes that can go, for the most money or the fewest moves. Raises PlanError."""
    price = prices_of(cluster, prices)
    offers = NodeOffers.to(cluster, goal.buy)
    field = _Field(cluster, rules, price, offers)
    cost = float(price.sum())
    plan = Plan(str(goal), PlanOutcome.IMPOSSIBLE, cost_before=cost, cost_after=cost)
    if not field.units:
        reasons = listed([f"{why} ({count})" for why, count in field.movable.reasons(field.movable.pods)], 3)
        return replace(plan, reason=f"no node can be emptied, as pods must stay: {reasons}")
    relaxed = (*RELAXED, WHOLE_NODES) if goal.buy else RELAXED
    most = field.most()
    saving = goal.save / 100 * cost if goal.save is not None else INF
    bound = PlanBound(most.value, "saved per hour", relaxed, PROOF, most.scarce)
    if goal.save is not None and saving > most.value + 1e-9 * cost:
        share = 100 * most.value / cost if cost else 0.0
        limit = f"at most {most.value:.4g} an hour can be saved, {share:.1f}%"
        reason = f"whatever is moved, {limit}; scarce: {in_words(most.scarce)}"
        return replace(plan, reason=reason, bound=bound)
    first = field.fewest(min(saving, _NEAR * most.value))
    if goal.save is not None and first is not None:
        bound = PlanBound(math.ceil(first.value - 1e-4), "moves", relaxed, PROOF, most.scarce)
    if goal.buy:
        field = _Field(cluster, rules, price, offers, field.bought(most, first))
        first = field.fewest(min(saving, _NEAR * field.most().value))
    search.bound = f"{'at most' if goal.save is None else 'at least'} {bound.value:.4g} {bound.unit}"
    with Oracle(field.cluster) as oracle:
        emptying = Emptying(oracle, field.packing, field.movable)
        unit_search = UnitSearch(emptying, field.units, search)
        target = field.offered + min(saving, most.value)
        unit_search.run(target, first)
        if unit_search.worth < target - 1e-9:
            proven = unit_search.improve(target, whole=goal.save is None)
            if proven is not None and proven < most.value and goal.save is None and not goal.buy:
                bound = replace(bound, value=proven, relaxes=RELAXED[1:], proof=COLUMN_PROOF)
        draft = field.draft(emptying)
    plan = check_plan(cluster, Movable(cluster, rules), replace(plan, bound=bound), draft, search)
    return _outcome(plan, goal, saving, search)


class _Field:
    """Nodes that can be emptied, and some that can be bought: those are there as empty nodes, at their price."""

    def __init__(
        self, cluster: ClusterModel, rules: MovingRules, price: Float, offers: NodeOffers, counts: Sequence[int] = ()
    ) -> None:
        """Without `counts`, how many there are of each type, one stands for as many as can be bought."""
        self._offers = offers
        self.types: dict[str, int] = {}
        """By name of a node that can be bought."""
        for t, number in enumerate(counts or [1] * len(offers.types)):
            for _ in range(number):
                self.types[offers.new_name(t, {*self.types, *cluster.state.nodes.row_of})] = t
        new = [obj for name, t in self.types.items() for obj in offers.objects(t, name)]
        self.cluster = cluster.copy((*cluster.objects(), *new)) if new else cluster
        self.movable = Movable(self.cluster, rules)
        self.packing = Packing(self.cluster, self.movable)
        old, rows = cluster.state.nodes, self.cluster.state.nodes.row_of
        candidates = [node.name for node in cluster.all(Node) if self.packing.candidates[rows[node.name]]]
        self.prices = {name: worth for name in candidates if (worth := float(price[old.row_of[name]])) > 0}
        self.units = [Unit(name, (rows[name],), worth) for name, worth in self.prices.items()]
        for name, t in self.types.items() if self.units else ():
            instance_type = offers.types[t]
            most = INF if instance_type.most is None else instance_type.most
            worth, most = (instance_type.price * _DEARER, 1.0) if counts else (instance_type.price, most)
            self.prices[name] = instance_type.price
            self.units.append(Unit(name, (rows[name],), max(worth, 1e-6), most, is_new=True))
        self.offered = sum(unit.worth for unit in self.units if unit.is_new)
        """What it would cost to have all new nodes at once: a plan begins with none of them."""

    def most(self) -> Drained:
        """The most that can be saved."""
        drained = most_worth(self.packing, self.units)
        return replace(drained, value=drained.value - self.offered)

    def fewest(self, saved: float) -> Drained | None:
        """The fewest moves that save this much."""
        return fewest_moves(self.packing, self.units, self.offered + saved)

    def bought(self, *solutions: Drained | None) -> list[int]:
        """How many of each type the programs buy, and one more of those: whole nodes take less than parts do."""
        numbers = [0] * len(self._offers.types)
        for shares in (solution.shares for solution in solutions if solution is not None):
            for unit, share in zip(self.units, shares):
                if unit.name in self.types and share < 1 - 1e-6:
                    t = self.types[unit.name]
                    numbers[t] = max(numbers[t], int(min(unit.most, math.ceil(1 - share) + 1)))
        return numbers

    def draft(self, emptying: Emptying) -> Draft:
        """The moves, the nodes that go, and those that come."""
        names, closed = self.cluster.state.nodes.names, emptying.closed
        draft = draft_of(self.cluster, emptying, [])
        used = {node for _, node in draft.moves} & set(self.types)
        replaced = {pod.spec.node_name for pod, node in draft.moves if node in used}
        emptied = [names[row] for row in np.flatnonzero(closed).tolist() if names[row] not in self.types]
        for name in emptied:
            fate = NodeFate.REPLACED if name in replaced else NodeFate.FREED
            draft.nodes.append(planned_node(self.cluster, name, fate, self.prices[name]))
        draft.nodes += [planned_node(self.cluster, name, NodeFate.ADDED, self.prices[name]) for name in sorted(used)]
        draft.new = tuple(obj for name in sorted(used) for obj in self._offers.objects(self.types[name], name))
        return draft


def _outcome(plan: Plan, goal: ConsolidateGoal, saving: float, search: PlanSearch) -> Plan:
    used = {move.to_node for move in plan.moves}
    nodes = tuple(node for node in plan.nodes if node.fate is not NodeFate.ADDED or node.name in used)
    saved = sum((-1 if node.fate is NodeFate.ADDED else 1) * (node.price or 0.0) for node in nodes)
    cost = plan.cost_before or 0.0
    why = "the search was interrupted" if search.was_cut else "no way to empty more was found"
    if saved <= 0:
        return replace(plan, moves=(), nodes=(), check=None, outcome=PlanOutcome.UNCHANGED, reason=why)
    value = saved if goal.save is None else float(len(plan.moves))
    plan = replace(plan, nodes=nodes, value=value, cost_after=cost - saved)
    if goal.save is not None and saved < saving - 1e-9:
        share = 100 * saved / cost
        return replace(plan, outcome=PlanOutcome.PARTIAL, reason=f"{share:.1f}% instead of {goal.save:.4g}%: {why}")
    if goal.save is None and search.was_cut:
        return replace(plan, outcome=PlanOutcome.PARTIAL, reason=why)
    return replace(plan, outcome=PlanOutcome.FOUND, reason="")
