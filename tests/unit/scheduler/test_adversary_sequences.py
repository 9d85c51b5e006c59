"""What comes and goes leaves nothing, and nobody pays for what waits: claims, slices, classes and events of nodes."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from tests.adversary import HOSTILE_CLAIMS, TRAITS, WAITING, HostilePod, Trait, different_devices
from tests.device_builders import make_class, with_claims
from tests.unit.scheduler.test_adversary import crowded, work_of
from tests.unit.scheduler.world import World

from kubesched.api.device_claims import ResourceClaim
from kubesched.framework.budget import Budget
from kubesched.plugins.shared.devices import demand, device_equivalence, kept_answers
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.scheduler.attempt.attempt import Attempt, Paused
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod

NODES, DEVICES = 4, 8
SIZE = 12
SMALL = 60_000


def in_work(limit: float = 0.3) -> Budget:
    """A budget whose seconds are looks: the same on a busy machine."""
    looks = iter(range(1 << 30))
    return Budget(lambda: next(looks) / 100, limit=limit)


def with_devices() -> World:
    world = World(make_class(), *(make_node(f"n{i}") for i in range(NODES)), budget=in_work())
    world.see(*(different_devices(f"n{i}", DEVICES, first=i * DEVICES) for i in range(NODES)))
    return world


def try_claim(world: World, sort: str, size: int, name: str) -> Attempt:
    world.see(HOSTILE_CLAIMS[sort](size, name), with_claims(make_pod(name), name))
    return in_turns(world)


def in_turns(world: World) -> Attempt:
    """One attempt to its end, however often it is paused."""
    attempt = world.decided()
    while isinstance(attempt.state, Paused):
        world.scheduler.decide(attempt)
    return world.finish(attempt)


def lose_claim(world: World, name: str) -> None:
    world.cluster.remove(world.scheduler.pods[f"default/{name}"])
    claim = world.scheduler.state.objects.get(ResourceClaim, name, "default")
    assert claim is not None
    world.cluster.remove(claim)
    world.cluster.tell(world.scheduler)


def view_of(state: ClusterState) -> ClusterDevices:
    return state.companion(ClusterDevices)


@pytest.mark.parametrize("sort", HOSTILE_CLAIMS)
@pytest.mark.parametrize("size", [SIZE, 2 * SIZE])
def test_memory_after_many_such_claims_is_what_it_was_after_a_few(
    sort: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "BYTES_KEPT", SMALL)
    world, held = with_devices(), []
    kept = view_of(world.scheduler.state).kept
    tracemalloc.start()
    try:
        for round_ in range(2):
            for i in range(6):
                name = f"hostile-{round_}-{i}"
                try_claim(world, sort, size, name)
                lose_claim(world, name)
                assert kept.bytes_kept <= SMALL
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 30_000


@pytest.mark.parametrize("sort", HOSTILE_CLAIMS)
def test_what_is_kept_of_a_claim_is_known_to_its_owner(sort: str) -> None:
    world = with_devices()
    world.scheduler.state.companion(ClusterDevices).inventories.refresh()
    kept = view_of(world.scheduler.state).kept
    tracemalloc.start()
    try:
        try_claim(world, sort, 8 * SIZE, "warm")
        lose_claim(world, "warm")
        gc.collect()
        before, known = tracemalloc.get_traced_memory()[0], kept.bytes_kept
        for i in range(4):
            try_claim(world, sort, 8 * SIZE + i, f"hostile-{i}")
            lose_claim(world, f"hostile-{i}")
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < 2 * (kept.bytes_kept - known) + 60_000


def test_slices_and_classes_that_are_replaced_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "BYTES_KEPT", SMALL)
    monkeypatch.setattr(device_equivalence, "_MOST_KEPT", 64)
    world, held = with_devices(), []
    try_claim(world, "serial selectors", SIZE, "hostile")
    tracemalloc.start()
    try:
        for round_ in range(2):
            for i in range(12):
                first = 100 * (12 * (1 + round_) + i)
                world.see(different_devices("n0", 64, first), make_class("gpu", f"{first} > 0"))
                world.pass_seconds(20)
                while world.scheduler.queue.has_next:
                    in_turns(world)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 100_000  # twelve slices are twice as much


def test_a_claim_that_cannot_be_met_is_searched_for_in_vain_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "_STEPS_IN_VAIN", 500)
    world = with_devices()
    pod = with_claims(make_pod("hostile"), "hostile")
    spent = []

    def try_again() -> None:
        world.pass_seconds(400)
        in_turns(world)

    world.see(HOSTILE_CLAIMS["many requests"](DEVICES + 1, "hostile"), pod)
    spent.append(work_of(lambda: in_turns(world)))
    spent += [work_of(try_again) for _ in range(3)]
    world.see(make_node("n0").label(generation="2"))
    spent.append(work_of(try_again))
    assert max(spent[1:]) < spent[0] / 20
    world.see(different_devices("n0", DEVICES, first=5000))
    assert work_of(try_again) > 10 * max(spent[1:])


@pytest.mark.parametrize("sort", WAITING)
def test_an_event_of_a_node_costs_the_same_however_many_and_large_pods_wait_for_another(sort: str) -> None:
    spent = []
    for size in (10, 40):
        world = crowded()
        number = 1 if sort == "resources" else size  # many that differ in room are another story
        pods = [WAITING[sort](make_pod(f"waiting-{i}"), size) for i in range(number)]
        world.see(*pods)
        for _ in pods:
            world.tried()
        node = make_node("n0").zone("z0").label(generation="1")
        work = 0
        for changed in (node, node.label(generation="2"), node.capacity({"example.com/new": 1}), make_node("new")):
            work += work_of(lambda world=world, changed=changed: world.see(changed))  # type: ignore[misc]
        spent.append(work)
        assert len(world.queue.unschedulable()) == number
    assert spent[1] < 1.2 * spent[0] + 50


PREFERRED = [trait for trait in TRAITS if trait.name in ("preferred anti-affinity", "affinity across namespaces")]


@pytest.mark.parametrize("trait", PREFERRED, ids=repr)
def test_an_ordinary_pod_costs_the_same_however_many_terms_placed_pods_have(trait: Trait) -> None:
    spent = []
    for size in (30, 120):
        world = crowded()
        world.see(HostilePod((trait,)).build(size, "hostile"))
        world.tried()
        world.see(make_pod("first").label(app="first"))
        world.tried()
        world.see(make_pod("ordinary").label(app="other"))
        spent.append(work_of(world.tried))
    assert spent[1] < 1.3 * spent[0]
