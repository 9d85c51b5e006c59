"""Device claims of groups: one that several pods share is allocated once, and all of them go where it can be used."""

from __future__ import annotations

from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members
from tests.unit.scheduler.memory_cluster import Refusal, Running

from kubesched.plugins.shared.devices.answers import DeviceView
from kubesched.scheduler.attempt.attempt import Done
from kubesched.testing import make_node


def world_with(*objects: object, cpu: str = "4") -> GroupWorld:
    nodes = [make_node(name).capacity(cpu=cpu) for name in ("n0", "n1")]
    return GroupWorld(*nodes, make_class(), make_slice("n0", device("d")), *objects)  # type: ignore[arg-type]


def sharing(count: int) -> list[object]:
    return [with_claims(pod, "shared") for pod in members("g", count)]


def devices_in_use(world: GroupWorld) -> int:
    ledger = world.scheduler.state.companion(DeviceView).ledger
    ledger.refresh()
    return len(ledger.devices_in_use())


def test_claim_that_pods_of_a_gang_share_is_allocated_once_and_reserved_for_each() -> None:
    world = world_with(make_claim("shared"), make_gang("g", 3), *sharing(3))
    world.try_all()
    assert {world.cluster.pod(name).spec.node_name for name in world.bound()} == {"n0"}
    assert len(world.bound()) == 3
    claim = world.cluster.claim("default/shared")
    assert claim is not None
    assert len(claim.status.reserved_for) == 3
    assert claim.status.allocation is not None
    assert devices_in_use(world) == 1


def test_pods_that_share_a_claim_may_be_bound_in_any_order() -> None:
    world = world_with(make_claim("shared"), make_gang("g", 3), *sharing(3))
    attempt = world.decided()
    for each in reversed(attempt.together):
        Running(world.scheduler.finish(each)).to_the_end()
    world.cluster.tell(world.scheduler)
    assert len(world.bound()) == 3


def test_gang_whose_shared_devices_leave_no_room_for_all_takes_nothing() -> None:
    world = world_with(make_claim("shared"), make_gang("g", 3), *sharing(3), cpu="2")
    world.try_all()
    assert world.bound() == []
    assert devices_in_use(world) == 0
    claim = world.cluster.claim("default/shared")
    assert claim is not None
    assert claim.status.allocation is None


def test_failure_of_the_one_that_was_to_write_the_allocation_does_not_take_it_from_the_others() -> None:
    world = world_with(make_claim("shared"), make_gang("g", 2), *sharing(2))
    world.cluster.claim_refusals.append(Refusal("InternalError"))
    attempt = world.decided()
    first, second = attempt.together
    Running(world.scheduler.finish(first)).to_the_end()
    assert isinstance(first.state, Done)
    assert devices_in_use(world) == 1
    Running(world.scheduler.finish(second)).to_the_end()
    world.cluster.tell(world.scheduler)
    assert world.bound() == ["g-1"]
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]
    assert devices_in_use(world) == 1


def test_pods_outside_the_group_wait_until_the_claim_is_allocated() -> None:
    world = world_with(make_claim("shared"), make_gang("g", 1), *sharing(1))
    attempt = world.decided()
    stranger = with_claims(members("x", 1)[0].spec(scheduling_group=None), "shared")
    world.see(stranger)
    other = world.scheduler.pop()
    assert other is not None
    world.scheduler.decide(other)
    assert other.failure is not None
    assert "in the process of being allocated" in other.failure.message
    world.finish_all(attempt.together)
