"""What an attempt holds while its writes are under way: thousands may be, and a column of all nodes is large."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from tests.unit.scheduler.world import World

from kubesched.api.well_known import HOSTNAME
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = 1000
ATTEMPTS = 20
SMALL_COLUMN = 4 * NODES
"""Bytes. What an attempt holds besides columns is less, and of columns there are several."""


def plain(name: str) -> PodBuilder:
    return make_pod(name).label(app="web")


PODS = {
    "soft-spread": lambda name: plain(name).spread(HOSTNAME, soft=True, app="web"),
    "hard-spread": lambda name: plain(name).spread(HOSTNAME, app="web"),
    "preferred-affinity": lambda name: plain(name).pod_affinity(HOSTNAME, weight=1, app="web"),
    "anti-affinity": lambda name: plain(name).pod_anti_affinity(HOSTNAME, app="web"),
}


@pytest.mark.parametrize("kind", PODS)
def test_pod_that_waits_for_its_binding_holds_no_columns(kind: str) -> None:
    world = World(*(make_node(f"n{i}").label({HOSTNAME: f"n{i}"}) for i in range(NODES)))
    world.see(*(PODS[kind](f"p{i}") for i in range(2 * ATTEMPTS)))
    under_way = [world.decided() for _ in range(ATTEMPTS)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        under_way += [world.decided() for _ in range(ATTEMPTS)]
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert all(attempt.node for attempt in under_way)
    assert held / ATTEMPTS < SMALL_COLUMN
