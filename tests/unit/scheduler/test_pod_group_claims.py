"""Device claims of groups: one that several pods share is allocated once, and all of them go where it can be used."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_record
from tests.device_builders import allocated, device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.group_world import ALL_GATES, ALPHA, BETA, GroupWorld, make_gang, members
from tests.unit.scheduler.memory_cluster import Refusal, Running
from tests.unit.scheduler.world import pop_pod

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.meta import OwnerReference
from kubesched.api.pod import PodResourceClaim, PodResourceClaimStatus, PodStatus
from kubesched.config.features import Features
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.scheduler.attempt.attempt import Done
from kubesched.testing import make_node, make_pod


def world_with(*objects: object, cpu: str = "4", features: Features = ALL_GATES) -> GroupWorld:
    nodes = [make_node(name).capacity(cpu=cpu) for name in ("n0", "n1")]
    things = (*nodes, make_class(), make_slice("n0", device("d")), *objects)
    return GroupWorld(*things, features=features)  # type: ignore[arg-type]


def sharing(count: int) -> list[object]:
    return [with_claims(pod, "shared") for pod in members("g", count)]


def devices_in_use(world: GroupWorld) -> int:
    ledger = world.scheduler.state.companion(ClusterDevices).ledger
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
    attempt = world.decided_group()
    for each in reversed(attempt.attempts):
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
    attempt = world.decided_group()
    first, second = attempt.attempts
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
    attempt = world.decided_group()
    stranger = with_claims(members("x", 1)[0].spec(scheduling_group=None), "shared")
    world.see(stranger)
    other = pop_pod(world.scheduler)
    assert other is not None
    world.scheduler.decide(other)
    assert other.failure is not None
    assert "in the process of being allocated" in other.failure.message
    world.finish_all(attempt)


# -- claims of the group itself (DRAWorkloadResourceClaims) ------------------------------------------------------------

SHARED = PodResourceClaim(name="claim-0", resource_claim_name="shared")
IS_N0 = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n0",))
ON_N0 = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(IS_N0,)),))
OF_GROUP = [("scheduling.k8s.io", "podgroups", "g")]


def owning_world(*objects: object, cpu: str = "4", api: str = BETA) -> GroupWorld:
    """A gang of which each pod names the claim that the group has, too."""
    made = make_gang("g", 3, api=api, resource_claims=(SHARED,))
    features = replace(ALL_GATES, group_claims=True)
    return world_with(made, *objects, cpu=cpu, features=features)


def reserved(world: GroupWorld, name: str = "shared") -> list[tuple[str, str, str]]:
    claim = world.cluster.claim(f"default/{name}")
    assert claim is not None
    return [(one.api_group, one.resource, one.name) for one in claim.status.reserved_for]


@pytest.mark.parametrize("api", [ALPHA, BETA])
def test_claim_of_a_group_is_reserved_once_for_the_group(api: str) -> None:
    world = owning_world(make_claim("shared"), *sharing(3), api=api)
    world.try_all()
    assert len(world.bound()) == 3
    assert reserved(world) == OF_GROUP


def test_claim_that_only_the_pods_name_is_reserved_for_each_also_if_groups_may_have_claims() -> None:
    entry = PodResourceClaim(name="mine", resource_claim_name="shared")
    own = [pod.spec(resource_claims=(entry,)) for pod in members("g", 3)]
    world = owning_world(make_claim("shared"), *own)
    world.try_all()
    assert sorted(name for _, _, name in reserved(world)) == ["g-0", "g-1", "g-2"]


def test_later_pod_of_the_group_uses_its_claim_without_another_reservation() -> None:
    world = owning_world(make_claim("shared"), *sharing(3))
    world.try_all()
    world.see(with_claims(members("g", 1, first=3)[0], "shared"))
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2", "g-3"]
    assert reserved(world) == OF_GROUP


def test_the_claim_of_a_group_is_written_once_however_many_pods_share_it() -> None:
    world = owning_world(make_claim("shared"), *sharing(3))
    attempt = world.decided_group()
    first, *others = attempt.attempts
    Running(world.scheduler.finish(first)).to_the_end()
    version = world.cluster.objects["ResourceClaim default/shared"].metadata.resource_version
    for other in others:
        world.finish(other)
    assert world.cluster.objects["ResourceClaim default/shared"].metadata.resource_version == version
    assert len(world.bound()) == 3


def test_reservation_for_a_group_stays_if_the_binding_of_one_pod_fails() -> None:
    world = owning_world(make_claim("shared"), *sharing(3))
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    world.try_all()
    assert reserved(world) == OF_GROUP
    assert len(world.bound()) == 2
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound()) == 3


@pytest.mark.parametrize(("owner", "is_tried"), [("g", True), ("another", False)])
def test_claim_made_from_a_template_must_be_made_for_the_group(owner: str, is_tried: bool) -> None:
    uid = f"uid-of-group-{owner}"
    controller = OwnerReference(api_version=BETA, kind="PodGroup", name=owner, uid=uid, controller=True)
    claim = make_claim("made")
    claim = replace_record(claim, metadata=replace_record(claim.metadata, owner_references=(controller,)))
    entry = PodResourceClaim(name="shared", resource_claim_template_name="template")
    status = PodStatus(resource_claim_statuses=(PodResourceClaimStatus(name="shared", resource_claim_name="made"),))
    pods = [pod.spec(resource_claims=(entry,)).build() for pod in members("g", 3)]
    pods = [replace_record(pod, status=status) for pod in pods]
    group = make_gang("g", 3, resource_claims=(entry,))
    world = world_with(group, claim, *pods, features=replace(ALL_GATES, group_claims=True))
    world.try_all()
    assert bool(world.bound()) is is_tried
    if is_tried:
        assert reserved(world, "made") == OF_GROUP
    else:
        waiting = world.queue.unschedulable()[0]
        assert waiting.gating_plugin == "DynamicResources"


def test_devices_that_a_group_got_in_vain_are_given_back_so_that_others_can_be_found() -> None:
    """An earlier leader wrote the allocation, on a node that has no room for all pods, and bound none of them."""
    claim = allocated(make_claim("shared"), "n0/d", reserved_for="uid-of-group-g", node_selector=ON_N0)
    small = make_pod("filler").requests(cpu="2").on("n0")
    world = owning_world(claim, make_slice("n1", device("d")), small, *sharing(3), cpu="3")
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert "deallocation of PodGroup ResourceClaim completed" in condition.message
    world.pass_seconds(3)
    world.try_all()
    assert {world.cluster.pod(name).spec.node_name for name in world.bound("g")} == {"n1"}


def test_idle_claim_of_one_pod_that_keeps_its_group_from_nodes_is_given_back() -> None:
    claim = allocated(make_claim("shared"), "n0/d", node_selector=ON_N0)
    filler = make_pod("filler").requests(cpu="4").on("n0")
    world = world_with(make_gang("g", 2), claim, make_slice("n1", device("d")), filler, *sharing(2))
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert "deallocation of ResourceClaim completed" in condition.message
    world.pass_seconds(3)
    world.try_all()
    assert {world.cluster.pod(name).spec.node_name for name in world.bound("g")} == {"n1"}
