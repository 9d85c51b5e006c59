"""Plans that move pods: how near to their bounds they are, and how long they take."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bench import openb, planning_clusters
from kubesched import config as configuration
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.planning.consolidate import ConsolidateGoal, plan_consolidate
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.free import FreeGoal, plan_free
from kubesched.planning.movable import MovingRules
from kubesched.planning.oracle import Oracle
from kubesched.planning.plan import Plan
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.simulate.placement import place
from kubesched.testing import PodBuilder

SHARES = (10, 20, 30)
"""Percent of the cost that are saved with the fewest moves."""
COUNTS = (5, 20, 60)
"""Eight-GPU nodes that are freed."""
MOVES = 10_000


class MovedPlan(NamedTuple):
    """A plan beside its bound."""

    share: float
    """Its value as a share of the bound: at most 1 for what is saved, at least 1 for moves."""
    moves: int
    seconds: float
    """Of CPU, from the cluster model to the plan that is checked."""


def saving(median: float, nodes: int = 500, *, save: float | None = None) -> MovedPlan:
    """`plan consolidate` on nodes of three sizes at 60 % of their cpus."""
    cluster = ClusterModel(planning_clusters.sixty_kinds(nodes, median=median), configuration.default())
    search, before = PlanSearch(effort=20), time.process_time()
    plan = plan_consolidate(cluster, ConsolidateGoal(save), planning_clusters.PRICES, MovingRules(), search)
    return _measured(plan, before)


def freeing(traces: Path, count: int) -> MovedPlan:
    """`plan free` of eight-GPU nodes of openb, filled to 85 % by LeastAllocated."""
    cluster = ClusterModel(_filled(traces), configuration.default())
    before = time.process_time()
    return _measured(plan_free(cluster, FreeGoal(count, pool="eight"), MovingRules(), PlanSearch()), before)


def verifying(nodes: int = 5_000) -> float:
    """Seconds of CPU for moves that the engine decides, each on a node that is named."""
    cluster = ClusterModel(
        planning_clusters.sixty_kinds(nodes, median=planning_clusters.SMALL), configuration.default()
    )
    rng, pods = random.Random(1), list(cluster.pods.values())
    before = time.process_time()
    with Oracle(cluster) as oracle:
        for pod in rng.sample(pods, MOVES):
            with oracle.trying() as keep:
                if oracle.place(oracle.take_off(pod), rng.randrange(nodes)):
                    keep()
    return time.process_time() - before


def _measured(plan: Plan, before: float) -> MovedPlan:
    assert plan.bound is not None, plan.reason
    assert plan.check is not None, plan.reason
    share = plan.value / plan.bound.value if plan.bound.value else 1.0
    return MovedPlan(share, len(plan.moves), time.process_time() - before)


def _filled(traces: Path) -> list[KubeObject]:
    """Pods that ask for 85 % of all GPUs, placed in their order by the default configuration, LeastAllocated."""
    pods = [PodBuilder(pod).owned_by("ReplicaSet", "any").build() for pod in openb.queue(traces, "default", 85)]
    cluster = ClusterModel([*map(_in_pool, openb.nodes(traces)), *pods], configuration.default())
    place(cluster)
    return [obj for obj in cluster.objects() if not isinstance(obj, Pod) or obj.spec.node_name]


def _in_pool(node: Node) -> Node:
    pool = "eight" if str(node.status.allocatable[openb.GPU]) == "8" else "fewer"
    labels = {**node.metadata.labels, INSTANCE_TYPE: pool}
    return replace(node, metadata=replace(node.metadata, labels=labels))
