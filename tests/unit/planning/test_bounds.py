"""The bound is never better than reality allows: brute force on small clusters, and whatever any search found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched import config as configuration
from kubesched.api.well_known import HOSTNAME
from kubesched.planning.bounds import pools_of, upper_bound
from kubesched.planning.columns import ColumnSearch
from kubesched.planning.covers import Cover, fill_cover
from kubesched.planning.kinds import Problem, most_of, problem_of
from kubesched.planning.knapsack import Knapsack
from kubesched.planning.solver import INF
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import place
from kubesched.state.columns import Float, Int64
from kubesched.testing import make_node, make_pod

pytest.importorskip("highspy", reason="plans need HiGHS")

SIZES = st.tuples(st.integers(1, 4), st.integers(0, 3))
PODS = st.lists(st.tuples(SIZES, st.booleans(), st.sampled_from(["", "a", "b"])), min_size=1, max_size=6)
NODES = st.lists(st.tuples(st.integers(2, 6), st.integers(0, 4), st.sampled_from(["a", "b"])), min_size=1, max_size=3)
Pods = list[tuple[tuple[int, int], bool, str]]
Nodes = list[tuple[int, int, str]]


def cluster_of(nodes: Nodes, pods: Pods) -> ClusterModel:
    made = [
        make_node(f"n{i}").capacity({"cpu": cpu, "x.io/gpu": gpus}).label(pool=pool).build()
        for i, (cpu, gpus, pool) in enumerate(nodes)
    ]
    waiting = []
    for i, ((cpu, gpus), alone, pool) in enumerate(pods):
        pod = make_pod(f"p{i}").requests({"cpu": cpu, **({"x.io/gpu": gpus} if gpus else {})}).label(app=f"{cpu}")
        pod = pod.pod_anti_affinity(HOSTNAME, app=f"{cpu}") if alone else pod
        waiting.append((pod.node_selector(pool=pool) if pool else pod).build())
    return ClusterModel([*made, *waiting], configuration.default())


def brute_force(nodes: Nodes, pods: Pods, values: list[float]) -> float:
    """The most value, over all ways to put pods on nodes that the scheduler's rules about them allow."""

    @cache
    def best(i: int, state: tuple[tuple[int, int, frozenset[tuple[int, bool]]], ...]) -> float:
        if i == len(pods):
            return 0.0
        (cpu, gpus), alone, pool = pods[i]
        found = best(i + 1, state)
        for n, (cpus_left, gpus_left, there) in enumerate(state):
            repelled = any(size == cpu and (alone or repels) for size, repels in there)
            if cpu > cpus_left or gpus > gpus_left or repelled or (pool and nodes[n][2] != pool):
                continue
            new = (cpus_left - cpu, gpus_left - gpus, there | {(cpu, alone)})
            found = max(found, values[i] + best(i + 1, (*state[:n], new, *state[n + 1 :])))
        return found

    return best(0, tuple((cpu, gpus, frozenset[tuple[int, bool]]()) for cpu, gpus, _ in nodes))


def by_kind(problem: Problem, values: dict[str, float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([values[kind.pods[0].name] for kind in problem.kinds])


@settings(max_examples=120, deadline=None)
@given(NODES, PODS)
def test_bound_is_never_below_the_best_of_all_placements(nodes: Nodes, pods: Pods) -> None:
    cluster = cluster_of(nodes, pods)
    worth = [1.0 + 3 * gpus + 0.1 * cpu for (cpu, gpus), _, _ in pods]
    values = {f"p{i}": value for i, value in enumerate(worth)}
    problem = problem_of(cluster, cluster.pending())
    best = brute_force(nodes, pods, worth)
    kinds = by_kind(problem, values)
    assert upper_bound(problem, kinds).value >= best - 1e-6
    assert upper_bound(problem, kinds, pools=pools_of(problem, most_pairs=0)).value >= best - 1e-6
    search = ColumnSearch(Cover.of_queue(problem, kinds))
    search.start(upper_bound(problem, kinds).by_class(), np.ones(len(problem.resources)))
    search.generate()
    covered = search.dive()
    assert float(kinds @ problem.demand) - search.bound >= best - 1e-6
    assert float(kinds @ covered.placed) <= upper_bound(problem, kinds).value + 1e-6


@settings(max_examples=40, deadline=None)
@given(NODES, PODS)
def test_bound_is_never_below_what_the_scheduler_places(nodes: Nodes, pods: Pods) -> None:
    cluster = cluster_of(nodes, pods)
    problem = problem_of(cluster, cluster.pending())
    bound = upper_bound(problem, np.ones(len(problem.kinds))).value
    assert bound >= len(place(cluster).placed) - 1e-6


def test_bound_of_nodes_that_are_loaded_unevenly_holds_when_they_are_pooled() -> None:
    nodes = [make_node(f"n{i}").capacity(cpu=8).build() for i in range(4)]
    running = [make_pod(f"r{i}").requests(cpu=i + 1).on(f"n{i}").build() for i in range(4)]
    waiting = [make_pod(f"p{i}").requests(cpu=4).build() for i in range(6)]
    cluster = ClusterModel([*nodes, *running, *waiting], configuration.default())
    problem = problem_of(cluster, cluster.pending())
    apart, pooled = upper_bound(problem, np.ones(1)), upper_bound(problem, np.ones(1), pools=pools_of(problem, 0))
    assert apart.value == pytest.approx(4)
    assert pooled.value >= apart.value - 1e-6


def test_prices_say_which_resource_is_scarce() -> None:
    nodes = [make_node(f"n{i}").capacity({"cpu": 64, "x.io/gpu": 2}).build() for i in range(2)]
    pods = [make_pod(f"p{i}").requests({"cpu": 1, "x.io/gpu": 1}).build() for i in range(9)]
    cluster = ClusterModel([*nodes, *pods], configuration.default())
    problem = problem_of(cluster, cluster.pending())
    bound = upper_bound(problem, np.ones(1))
    assert bound.value == pytest.approx(4)
    assert problem.resources == ("cpu", "x.io/gpu", "pods")
    assert bound.shares().sum(axis=0).tolist() == pytest.approx([0, 1, 0])


def best_of_all_loads(requests: Int64, room: Int64, most: Int64, values: Float) -> float:
    """By room that is used: what the best load is worth, one pod after another."""
    best = np.zeros(room + 1)
    for (cpu, memory, one), count, value in zip(requests, most, values):
        for _ in range(count):
            rest = best[: room[0] + 1 - cpu, : room[1] + 1 - memory, : room[2] + 1 - one]
            best[cpu:, memory:, one:] = np.maximum(best[cpu:, memory:, one:], rest + value)
    return float(best.max())


@pytest.mark.parametrize("seed", range(40))
def test_knapsack_bound_holds_and_its_load_fits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    requests = np.stack([rng.integers(1, 40, 12), rng.integers(0, 30, 12), np.ones(12, dtype=np.int64)], axis=1)
    room = np.array([rng.integers(40, 120), rng.integers(20, 90), 20])
    most = np.minimum(most_of(requests, room[None])[:, 0], rng.integers(0, 6, 12))
    values = requests @ np.array([1.0, 0.7, 0.1]) * rng.normal(1, 0.1, 12)
    found = Knapsack(requests, room, most).best(values)
    assert (found.counts @ requests <= room).all()
    assert (found.counts <= most).all()
    assert found.value == pytest.approx(float(found.counts @ values))
    best = best_of_all_loads(requests, room, most, values)
    assert found.bound >= best - 1e-6
    assert found.value <= best + 1e-4
    assert found.value >= 0.85 * best


def test_columns_pack_what_best_fit_leaves_out() -> None:
    requests = np.array([[6, 1], [4, 1], [3, 1], [7, 1]])
    demand, room = np.array([4, 4, 4, 4]), np.array([[10, 9]])
    most = most_of(requests, room)
    cover = Cover(requests, demand, np.ones(4), room, np.array([8.0]), np.zeros(1), most, np.zeros(4, dtype=np.bool_))
    search = ColumnSearch(cover)
    search.start(np.zeros((4, 1)), np.ones(2))
    search.generate()
    search.keep(fill_cover(cover, search.dive().loads, np.ones(2)))
    assert search.best is not None
    assert not search.best.unplaced.any()
    assert search.bound <= search.best.cost


def test_bound_of_a_pool_without_limits_is_below_every_cover() -> None:
    requests, room = np.array([[3, 1], [5, 1]]), np.array([[8, 9], [16, 9]])
    price, most = np.array([1.0, 1.9]), most_of(requests, room)
    nodes = np.full(2, INF)
    cover = Cover(requests, np.array([7, 7]), np.full(2, 1.0), room, nodes, price, most, np.zeros(2, dtype=np.bool_))
    search = ColumnSearch(cover)
    search.generate()
    found = search.dive()
    assert not found.unplaced.any()
    assert 0 < search.bound <= found.cost <= 7.0
