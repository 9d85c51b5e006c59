"""A plan for the page: what it comes to, and the map as it is, after each wave, and in the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.planning.plan import Plan, by_wave
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.node_map import MapChanges, NodeMap, NodeMapModel


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as the page shows it."""

    plan: Plan
    before: NodeMap
    waves: tuple[MapChanges, ...]
    """What each wave changes, as far as that is not too much to play."""
    after: NodeMap


def plan_view(plan: Plan, cluster: ClusterModel, group: str) -> PlanView:
    """The plan to show; `group` is the label by which the maps are grouped."""
    state = ClusterState()
    going = {node.name for node in plan.nodes}
    nodes = [*filter(None, cluster.state.nodes.nodes)]
    for obj in (*nodes, *(pod for pod in cluster.pods.values() if pod.spec.node_name)):
        state.apply(obj)
    drawn = NodeMapModel(state)
    before, waves = drawn.whole(group), list[MapChanges]()
    for node in nodes:
        if node.name in going:
            state.apply(replace(node, spec=replace(node.spec, unschedulable=True)))
    version = before.version
    steps = [[(move.pod, move.to_node) for move in moves] for moves in by_wave(plan.moves)]
    for step in (*steps, [(each.pod, each.node) for each in plan.placements]):
        _move(state, cluster, step)
        changed = drawn.since(version, group)
        version = drawn.version
        if changed is not None and step:
            waves.append(changed)
    return PlanView(plan, before, tuple(waves), drawn.whole(group))


def _move(state: ClusterState, cluster: ClusterModel, step: Iterable[tuple[str, str]]) -> None:
    for key, node in step:
        pod = cluster.pods[key]
        if pod.spec.node_name:
            state.delete(pod)
        state.apply(replace(pod, spec=replace(pod.spec, node_name=node)))
