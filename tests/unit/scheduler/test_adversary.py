"""Nobody can make an object for which all others pay: work grows with its size, and nothing of it stays."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adversary import TRAITS, HostilePod, Trait, hostile_devices, hostile_node, hostile_pods
from tests.unit.scheduler.world import World

from kubesched.api.meta import ObjectMeta
from kubesched.api.pod import Pod
from kubesched.api.workloads import Namespace
from kubesched.framework import answers, diagnosis, equivalence
from kubesched.state import matching
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = 6
PLACED = 40
SIZE = 60
WORK_PER_PART = 700
"""Calls, of functions in Python or in C, for each entry of each long part: an attempt, two events, another pod."""
WORK_ANYWAY = 30_000
GROWTH = 2.4
"""By how much twice the size may cost more: something that is walked for each entry costs four times as much."""


SMALL = (
    (answers, "_BYTES_OF_LARGE_KEYS"),
    (equivalence, "_BYTES_OF_LARGE_CLASSES"),
    (diagnosis, "_BYTES_KEPT"),
    (matching, "_BYTES_KEPT"),
)
"""What caches keep of large pods, in bytes. A few pods fill them if it is little, and then they must not grow."""


def crowded() -> World:
    """A small cluster with pods of many different labels."""
    world = World(*(make_node(f"n{i}").zone(f"z{i % 3}") for i in range(NODES)))
    world.see(*(Namespace(metadata=ObjectMeta(name=f"ns{i}", labels={"team": f"team-{i}"})) for i in range(10)))
    world.see(*(ordinary(i).on(f"n{i % NODES}") for i in range(PLACED)))
    return world


def ordinary(i: int) -> PodBuilder:
    return make_pod(f"p{i}").label(app=f"app-{i}", tier="x").requests(cpu="10m")


def work_of(action: Callable[[], object]) -> int:
    """How many calls it makes: a measure of work that is the same on a busy machine."""
    calls = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def live_with(world: World, pod: Pod) -> None:
    """The pod comes and is tried; another is bound and leaves; an ordinary one is decided; then the pod goes."""
    world.see(pod)
    world.tried()
    neighbour = make_pod("neighbour").label(app="app-1").on("n0")
    world.see(neighbour)
    world.lose(neighbour)
    world.pass_seconds(20)
    while world.scheduler.queue.has_next:
        world.tried()
    other = make_pod("other").label(app="other")
    world.see(other)
    world.tried()
    world.lose(other)
    forget(world, pod)


def forget(world: World, pod: Pod) -> None:
    world.cluster.remove(world.scheduler.pods.get(pod.key, pod))
    world.cluster.tell(world.scheduler)


def entries(world: World) -> dict[str, object]:
    """All that is kept per name, label or term that somebody used."""
    state = world.scheduler.state
    return {
        "resources": (dict(state.nodes.resources), len(state.nodes.allocatable) <= 16, sorted(state.pods.requests)),
        "labels": {key for key in state.nodes.labels if key.startswith("example.com/")},
        "terms": len(state.matches.carried),
        "ports": len(state.pods.ports),
        "claims": len(state.pods.claim_users),
        "waiting": len(world.queue.unschedulable()),
    }


@given(hostile=hostile_pods)
@settings(max_examples=30, deadline=None)
def test_work_grows_no_faster_than_the_pod_and_nothing_of_it_stays(hostile: HostilePod) -> None:
    first, twice = work_with(hostile, SIZE), work_with(hostile, 2 * SIZE)
    assert first <= WORK_ANYWAY + WORK_PER_PART * SIZE * len(hostile.traits)
    # Of pods past a size nothing is remembered, so they are tried more often: a step, past which growth is the same.
    assert twice <= GROWTH * first or work_with(hostile, 4 * SIZE) <= GROWTH * twice


def work_with(hostile: HostilePod, size: int) -> int:
    """The work that a pod of this size makes; all that is kept of it is gone afterwards."""
    world = crowded()
    live_with(world, make_pod("warm").build())
    before = entries(world)
    pod = hostile.build(size, "hostile")
    spent = work_of(lambda: live_with(world, pod))
    assert entries(world) == before
    return spent


@pytest.mark.parametrize("trait", TRAITS, ids=repr)
def test_memory_after_many_such_pods_is_what_it_was_after_a_few(trait: Trait, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in SMALL:
        monkeypatch.setattr(module, name, 20_000)
    world, held = crowded(), []
    tracemalloc.start()
    try:
        for round_ in range(2):
            for i in range(4):
                # Each different from all before it, so that nothing of one serves the next.
                live_with(world, HostilePod((trait,)).build(2 * SIZE + 10 * round_ + i, f"hostile-{round_}-{i}"))
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 4 * 10_000


@given(size=st.integers(1, 40))
@settings(max_examples=10, deadline=None)
def test_a_node_takes_along_what_only_it_had(size: int) -> None:
    world = crowded()
    before = entries(world)
    node = hostile_node(size)
    world.see(node)
    live_with(world, HostilePod(TRAITS[4:6]).build(size, "hostile"))
    world.cluster.remove(node)
    world.cluster.tell(world.scheduler)
    assert entries(world) == before


def test_a_claim_as_large_as_can_be_costs_no_more_where_there_are_many_more_devices() -> None:
    spent = []
    for size in (3, 6):
        world = World(*(make_node(f"n{i}") for i in range(size)))
        objects, pod = hostile_devices(size)
        world.see(*objects)
        spent.append(work_of(lambda world=world, pod=pod: (world.see(pod), world.tried())))  # type: ignore[misc]
        assert world.scheduler.state.placed(pod) is not None
    assert spent[1] <= GROWTH * spent[0]
