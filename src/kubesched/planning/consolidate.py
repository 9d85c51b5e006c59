"""`plan consolidate`: fewer nodes for less money, with how much no plan can save more than."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kubesched.api.node import Node
from kubesched.ask.output import listed
from kubesched.planning.checking import checked
from kubesched.planning.drain import RELAXED, Unit, fewest_moves, most_worth
from kubesched.planning.emptying import Emptying, PlanSearch
from kubesched.planning.free import PROOF, UnitSearch, draft_of, freed_node
from kubesched.planning.movable import Movable, MovingRules
from kubesched.planning.oracle import Oracle
from kubesched.planning.packing import Packing
from kubesched.planning.plan import NodeFate, Plan, PlanBound, PlanError, PlanOutcome
from kubesched.planning.solver import INF
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.state.columns import Float

COLUMN_PROOF = "linear program over loads for whole nodes, with the bound of Farley and Lagrange"
_NEAR = 0.97
"""The share of the most that can be saved at all which the first search is to reach."""


@dataclass(frozen=True, slots=True)
class ConsolidateGoal:
    """What is to be saved: a share of what the nodes cost; None for as much as possible."""

    save: float | None = None

    def __str__(self) -> str:
        return "save as much as possible" if self.save is None else f"save {self.save:.4g}% of what nodes cost"


def prices_of(cluster: ClusterModel, prices: Mapping[str, float]) -> Float:
    """By row: what its node costs. PlanError if the list has no price for a type of nodes."""
    nodes = cluster.state.nodes
    found, unknown = np.zeros(nodes.size), dict[str, str]()
    for node in cluster.all(Node):
        kind = node.metadata.labels.get(INSTANCE_TYPE, "")
        if kind in prices:
            found[nodes.row_of[node.name]] = prices[kind]
        else:
            unknown.setdefault(kind, node.name)
    if unknown:
        lines = [
            f"no price for the type {kind!r} of node {name}" if kind else f"node {name} has no label {INSTANCE_TYPE}"
            for kind, name in unknown.items()
        ]
        raise PlanError(*lines, f"the price list has {listed(sorted(prices), 8) or 'no types'}")
    return found


def plan_consolidate(
    cluster: ClusterModel,
    goal: ConsolidateGoal,
    prices: Mapping[str, float],
    rules: MovingRules,
    search: PlanSearch,
    observed_at: str = "",
) -> Plan:
    """The nodes that can go, for the most money or the fewest moves. Raises PlanError."""
    price = prices_of(cluster, prices)
    movable = Movable(cluster, rules)
    packing = Packing(cluster, movable)
    names, cost = cluster.state.nodes.names, float(price[packing.live].sum())
    rows = np.flatnonzero(packing.candidates & (price > 0)).tolist()
    units = [Unit(names[row], (row,), float(price[row])) for row in rows]
    plan = Plan(str(goal), PlanOutcome.IMPOSSIBLE, cost_before=cost, cost_after=cost, observed_at=observed_at)
    if not units:
        reasons = listed([f"{why} ({count})" for why, count in movable.reasons(movable.pods)], 3)
        return replace(plan, reason=f"no node can be emptied, as pods must stay: {reasons}")
    most = most_worth(packing, units)
    wanted = goal.save / 100 * cost if goal.save is not None else INF
    savings = PlanBound(most.value, "saved per hour", RELAXED, PROOF, most.scarce)
    if goal.save is not None and wanted > most.value + 1e-9 * cost:
        share = 100 * most.value / cost if cost else 0.0
        reason = f"whatever is moved, at most {most.value:.4g} an hour can be saved, {share:.1f}%"
        return replace(plan, reason=reason, bound=savings)
    first = fewest_moves(packing, units, min(wanted, _NEAR * most.value))
    bound = savings
    if goal.save is not None and first is not None:
        bound = PlanBound(math.ceil(first.value - 1e-4), "moves", RELAXED, PROOF, most.scarce)
    with Oracle(cluster) as oracle:
        emptying = Emptying(oracle, packing, movable)
        found = UnitSearch(emptying, units, search)
        found.run(min(wanted, most.value), first)
        if found.worth < min(wanted, most.value) - 1e-9:
            proven = found.improve(min(wanted, most.value), whole=goal.save is None)
            if proven is not None and proven < most.value and goal.save is None:
                bound = replace(bound, value=proven, relaxes=RELAXED[1:], proof=COLUMN_PROOF)
        nodes = [freed_node(cluster, unit.rows[0], unit.worth) for unit in found.done]
        draft, refused = draft_of(cluster, emptying, nodes), oracle.refused
    plan = checked(cluster, movable, replace(plan, bound=bound), draft, search, refused=refused)
    return _outcome(plan, goal, wanted, search)


def _outcome(plan: Plan, goal: ConsolidateGoal, wanted: float, search: PlanSearch) -> Plan:
    saved = sum(node.price or 0.0 for node in plan.nodes_that_are(NodeFate.FREED))
    cost = plan.cost_before or 0.0
    value = saved if goal.save is None else float(len(plan.moves))
    plan = replace(plan, value=value, cost_after=cost - saved)
    why = "the search was interrupted" if search.was_cut else "no way to empty more was found"
    if not plan.nodes:
        return replace(plan, outcome=PlanOutcome.UNCHANGED, reason=why)
    if goal.save is not None and saved < wanted - 1e-9:
        share = 100 * saved / cost
        return replace(plan, outcome=PlanOutcome.PARTIAL, reason=f"{share:.1f}% instead of {goal.save:.4g}%: {why}")
    if goal.save is None and search.was_cut:
        return replace(plan, outcome=PlanOutcome.PARTIAL, reason=why)
    return replace(plan, outcome=PlanOutcome.FOUND, reason="")
