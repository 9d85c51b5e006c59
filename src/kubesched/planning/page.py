"""A plan as a page of HTML: figures, how full nodes are before and after, the waves, the bound and the checks."""

from __future__ import annotations

import numpy as np

from kubesched.ask.html import MOST_BARS, render
from kubesched.framework.nodes import Nodes
from kubesched.planning.plan import Plan, by_wave
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Int64


def plan_page(plan: Plan, cluster: ClusterModel) -> str:
    """The page. It needs nothing else."""
    return render("plan", plan=plan, waves=by_wave(plan.moves), maps=_maps(plan, cluster))


def _maps(plan: Plan, cluster: ClusterModel) -> dict[str, list[tuple[str, list[tuple[str, float, str]]]]]:
    """By resource: a bar before and one after for each node that the plan touches."""
    nodes, state = Nodes(cluster.state), cluster.state
    touched = dict.fromkeys(
        [node.name for node in plan.nodes]
        + [name for move in plan.moves for name in (move.from_node, move.to_node)]
        + [placement.node for placement in plan.placements]
    )
    rows = [state.nodes.row_of[name] for name in touched if name in state.nodes.row_of][:MOST_BARS]
    used = {name for pod in cluster.pods.values() for name, amount, _ in state.facts(pod).amounts if amount}
    maps = {}
    for resource in sorted(used):
        offered = np.maximum(nodes.allocatable(resource), 1)
        before: Int64 = nodes.requested(resource).copy()
        if nodes.allocatable(resource)[rows].any():
            shares = before / offered, _after(plan, cluster, resource, before) / offered
            maps[resource] = [
                (
                    state.nodes.names[row],
                    [(style, float(share[row]), f"{share[row]:.0%}") for style, share in zip("ab", shares)],
                )
                for row in rows
            ]
    return maps


def _after(plan: Plan, cluster: ClusterModel, resource: str, before: Int64) -> Int64:
    after, rows, facts = before.copy(), cluster.state.nodes.row_of, cluster.state.facts
    for move in plan.moves:
        amount = facts(cluster.pods[move.pod]).amount_of(resource)
        after[rows[move.from_node]] -= amount
        if move.to_node in rows:
            after[rows[move.to_node]] += amount
    for placement in plan.placements:
        if placement.node in rows and placement.pod in cluster.pods:
            after[rows[placement.node]] += facts(cluster.pods[placement.pod]).amount_of(resource)
    return after
