"""Bounds are never better than reality allows: on small clusters all ways to place all pods are tried."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.api.well_known import HOSTNAME
from kubesched.planning.drain import Unit, fewest_exchanges, fewest_moves, most_worth
from kubesched.planning.emptying import Emptying, PlanSearch
from kubesched.planning.free import UnitSearch
from kubesched.planning.movable import Movable
from kubesched.planning.oracle import Oracle
from kubesched.planning.packing import Packing
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod

NODES = 3


class Small:
    """Three nodes, at most six pods on them, two that wait."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.cpus = [rng.choice((4, 6, 8)) for _ in range(NODES)]
        self.prices = [rng.choice((1.0, 2.0, 3.5)) for _ in range(NODES)]
        nodes = [
            make_node(f"n{i}").capacity(cpu=str(cpus), memory="64Gi", pods=9).build()
            for i, cpus in enumerate(self.cpus)
        ]
        free, pods = list(self.cpus), list[Pod]()
        self.sizes: dict[str, int] = {}
        self.alone: dict[str, str] = {}
        self.home: dict[str, int] = {}
        for i in range(rng.randint(2, 6)):
            size, node, app = rng.choice((1, 2, 3)), rng.randrange(NODES), f"app{i % 2}"
            alone = i % 2 == 1 and seed % 3 == 0
            taken = any(self.home[uid] == node for uid, other in self.alone.items() if other == app)
            if free[node] < size or (alone and taken):
                continue
            free[node] -= size
            pod = make_pod(f"p{i}").label(app=app).owned_by("ReplicaSet", app).requests(cpu=str(size)).on(f"n{node}")
            pod = pod.pod_anti_affinity(HOSTNAME, app=app) if alone else pod
            pods.append(pod.build())
            uid = pods[-1].uid
            self.sizes[uid], self.home[uid] = size, node
            if alone:
                self.alone[uid] = app
        waiting = [make_pod(f"w{i}").requests(cpu=str(rng.choice((2, 3, 4, 5)))).build() for i in range(2)]
        self.waiting = {pod.uid: int(str(pod.spec.containers[0].resources.requests["cpu"])) for pod in waiting}
        self.cluster = ClusterModel([*nodes, *pods, *waiting], config.default())
        self.movable = Movable(self.cluster)
        self.packing = Packing(self.cluster, self.movable, more=waiting)
        self.pods = waiting
        self.rows = [self.cluster.state.nodes.row_of[f"n{i}"] for i in range(NODES)]

    def units(self) -> list[Unit]:
        return [Unit(f"n{i}", (self.rows[i],), self.prices[i]) for i in range(NODES)]

    def ways(self, extra: int = 0) -> list[tuple[int, tuple[int, ...]]]:
        """All ways in which pods, and so many waiting ones, are on nodes: the moves, and the nodes that are empty."""
        uids, sizes = list(self.sizes), {**self.sizes, **self.waiting}
        every = [*uids, *list(self.waiting)[:extra]]
        found = []
        for places in itertools.product(range(NODES), repeat=len(every)):
            load = [0] * NODES
            for uid, place in zip(every, places):
                load[place] += sizes[uid]
            together = Counter((self.alone[uid], place) for uid, place in zip(every, places) if uid in self.alone)
            if all(used <= cpus for used, cpus in zip(load, self.cpus)) and max(together.values(), default=0) <= 1:
                moves = sum(place != self.home[uid] for uid, place in zip(every, places) if uid in self.home)
                found.append((moves, tuple(i for i in range(NODES) if i not in places)))
        return found


@pytest.mark.parametrize("seed", range(40))
def test_no_way_to_empty_nodes_beats_the_bounds(seed: int) -> None:
    small = Small(seed)
    units = small.units()
    worth = most_worth(small.packing, units).value
    best = max(sum(small.prices[i] for i in empty) for _, empty in small.ways())
    assert worth >= best - 1e-6
    for wanted in {best / 3, best / 2, best}:
        least = min(moves for moves, empty in small.ways() if sum(small.prices[i] for i in empty) >= wanted - 1e-9)
        bound = fewest_moves(small.packing, units, wanted)
        assert bound is not None
        assert bound.value <= least + 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_no_way_to_make_room_beats_the_bounds(seed: int) -> None:
    small = Small(seed)
    everywhere = np.ones(NODES, dtype=np.bool_)
    for count in (1, 2):
        ways, pods = small.ways(count), small.pods[:count]
        bound = fewest_exchanges(small.packing, pods, everywhere)
        if ways:
            assert bound is not None
            assert bound <= min(moves for moves, _ in ways) + 1e-6
            assert most_worth(small.packing, pods=pods, rows=everywhere).value >= count - 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_no_way_to_pack_all_nodes_beats_the_bound_of_columns(seed: int) -> None:
    small = Small(seed)
    best = max(sum(small.prices[i] for i in empty) for _, empty in small.ways())
    with Oracle(small.cluster) as oracle:
        packing = Packing(small.cluster, small.movable)
        found = UnitSearch(Emptying(oracle, packing, small.movable), small.units(), PlanSearch(effort=2))
        most = found.improve(100.0, whole=True)
    assert most is None or most >= best - 1e-6
    assert found.worth <= best + 1e-6
