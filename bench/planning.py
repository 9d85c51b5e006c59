"""Plans with a bound: the whole queue of the openb traces, the bound alone on large clusters, and the cheapest pool."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench import openb, price_lists
from kubesched import config as configuration
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.planning.bounds import upper_bound
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.kinds import problem_of
from kubesched.planning.pool import plan_pool
from kubesched.planning.queue import plan_queue
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod

TRACES = "KUBESCHED_TRACES"
"""Names the folder with the traces, which are not ours to pass on; `--traces DIR` does the same."""
LOADS = (100, 130)
"""How many percent of all GPUs arrived pods ask for."""
LARGE = (15_000, 50_000, 500)
"""Nodes, pods and kinds of pods."""


class Measured(NamedTuple):
    """A plan against its bound."""

    gap: float
    """In points of GPUs, or percent of the cost."""
    seconds: float
    """Of CPU."""
    saved: float = 0.0
    """In percent of what one type of nodes costs."""


def folder() -> Path | None:
    """The folder with the traces, if one is named."""
    named = os.environ.get(TRACES)
    return Path(named) if named else None


def whole_queue(traces: Path, trace: str, percent: int) -> Measured:
    """The queue of a trace placed as a whole, every placement decided by the engine."""
    cluster = ClusterModel([*openb.nodes(traces), *openb.queue(traces, trace, percent)], configuration.default())
    before = time.process_time()
    plan = plan_queue(cluster, PlanSearch())
    spent = time.process_time() - before
    assert plan.bound is not None
    return Measured(100 * (plan.bound.value - plan.value) / openb.gpus(traces), spent)


def bound_of_trace(traces: Path) -> float:
    """Seconds of CPU for the bound on the nodes and pods of the trace `default`."""
    return _bound_seconds(openb.nodes(traces), openb.queue(traces, "default", 130), openb.GPU)


def bound_of_large_cluster() -> float:
    """The same for a large cluster with pods of many kinds."""
    nodes, pods, kinds = LARGE
    rng = random.Random(1)
    sizes = [(rng.randrange(1, 160) * 100, rng.randrange(1, 256) * 256) for _ in range(kinds)]
    made = [_node(i, rng) for i in range(nodes)]
    waiting = [_pod(i, sizes[i % kinds], pools=i % kinds % 7) for i in range(pods)]
    return _bound_seconds(made, waiting, "cpu")


def _bound_seconds(nodes: list[Node], pods: list[Pod], resource: str) -> float:
    cluster = ClusterModel([*nodes, *pods], configuration.default())
    before = time.process_time()
    problem = problem_of(cluster, cluster.pending())
    values = problem.requests[:, problem.resources.index(resource)].astype(np.float64)
    upper_bound(problem, values)
    return time.process_time() - before


def _node(i: int, rng: random.Random) -> Node:
    cpus = rng.choice((16, 32, 48, 64, 96))
    node = make_node(f"node-{i:05d}").capacity(cpu=cpus, memory=f"{cpus * rng.choice((2, 4, 8))}Gi", pods=110)
    return node.label(pool=f"pool-{i % 6}").build()


def _pod(i: int, size: tuple[int, int], pools: int) -> Pod:
    pod = make_pod(f"pod-{i:05d}", uid=f"uid/{i}").requests(cpu=f"{size[0]}m", memory=f"{size[1]}Mi")
    return (pod.node_selector(pool=f"pool-{pools}") if pools < 6 else pod).build()


def cheapest_pool(pods: int) -> Measured:
    """So many pods, and forty-two types of nodes to buy for them."""
    cluster = ClusterModel(price_lists.fifty_kinds(pods), configuration.default())
    before = time.process_time()
    plan = plan_pool(cluster, cluster.pending(), price_lists.forty_two_types(), PlanSearch())
    spent = time.process_time() - before
    assert plan.bound is not None
    single = float(plan.reason.rpartition(" ")[2].replace(",", ""))
    return Measured(100 * (plan.value / plan.bound.value - 1), spent, 100 * (1 - plan.value / single))
