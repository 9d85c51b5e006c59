"""Pods that waited for what changes of other objects could have told: claims kept in vain, drivers, namespaces."""

from __future__ import annotations

import pytest
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.test_lost_wakeups import LATE, MODES, bound, try_all, world_with
from tests.unit.scheduler.world import World, names
from tests.waiting_steps import DOOR, volume_claim, volume_named, with_claim
from tests.waiting_world import FOREVER, Doorkeeper

from kubesched.api.affinity import PodAffinityTerm
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    StorageClass,
    VolumeLimits,
)
from kubesched.api.well_known import ZONE
from kubesched.api.workloads import Namespace
from kubesched.testing import PodBuilder, make_node, make_pod

HOLDERS = pytest.mark.parametrize(
    ("objects", "holds", "waits"),
    [
        (
            (make_class(), make_slice("n", device("d")), make_claim("first"), make_claim("second")),
            with_claims(make_pod("holds"), "first"),
            with_claims(make_pod("waits"), "second"),
        ),
        (
            (LATE, volume_named("v", "late"), volume_claim("first", "late"), volume_claim("second", "late")),
            with_claim(make_pod("holds"), "first"),
            with_claim(make_pod("waits"), "second"),
        ),
    ],
    ids=["devices", "volumes"],
)


@MODES
@HOLDERS
def test_what_was_kept_for_the_claims_of_a_pod_that_is_denied_is_free_for_others(
    objects: tuple[KubeObject, ...], holds: PodBuilder, waits: PodBuilder, batched: bool, wakes: bool
) -> None:
    world = World(make_node("n"), *objects, plugins=(Doorkeeper,), batched=batched, longest_wait=FOREVER)
    world.see(holds.label({DOOR: "yes"}))
    world.decided()
    world.see(waits)
    world.tried()
    world.pass_seconds(2)
    assert names(world.queue.unschedulable()) == ["waits"]
    next(iter(world.scheduler.waiting)).reject(Doorkeeper.name, "no")
    for denied in world.scheduler.permitted():
        world.finish(denied.attempts[0])
    try_all(world)
    assert ("waits" in bound(world)) == wakes


DISKS = "example.com/disks"
MADE = StorageClass(metadata=ObjectMeta(name="made"), provisioner=DISKS, volume_binding_mode="WaitForFirstConsumer")


def csi_node(limit: int | None) -> CSINode:
    driver = CSINodeDriver(name=DISKS, node_id="n", allocatable=VolumeLimits(count=limit))
    return CSINode(metadata=ObjectMeta(name="n"), spec=CSINodeSpec(drivers=(driver,)))


def csi_driver(*, reports: bool) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=DISKS), spec=CSIDriverSpec(storage_capacity=reports))


@MODES
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (csi_node(0), csi_node(None)),
        (csi_node(0), None),
        (csi_driver(reports=True), csi_driver(reports=False)),
        (csi_driver(reports=True), None),
    ],
    ids=["no limit", "no CSINode", "no reports", "no driver"],
)
def test_pod_is_woken_when_a_driver_limits_its_claims_no_longer(
    before: KubeObject, after: KubeObject | None, batched: bool, wakes: bool
) -> None:
    waits = with_claim(make_pod("waits"), "d")
    world = world_with(make_node("n"), MADE, volume_claim("d", "made"), before, waits, batched=batched)
    assert names(world.queue.unschedulable()) == ["waits"]
    if after is None:
        world.cluster.remove(before)
        world.cluster.tell(world.scheduler)
    else:
        world.see(after)
    assert (names(world.queue.unschedulable()) == []) == wakes


def of_team(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels))


TEAM_A = PodAffinityTerm(
    topology_key=ZONE,
    label_selector=LabelSelector(match_labels={"app": "web"}),
    namespace_selector=LabelSelector(match_labels={"team": "a"}),
)


@MODES
@pytest.mark.parametrize(
    ("waits", "before", "after"),
    [
        (make_pod("waits").pod_affinity_term(TEAM_A), {}, {"team": "a"}),
        (make_pod("waits").pod_anti_affinity_term(TEAM_A), {"team": "a"}, {"team": "b"}),
    ],
    ids=["near", "far"],
)
def test_pod_that_goes_by_namespaces_of_a_team_is_woken_when_one_joins_or_leaves_it(
    waits: PodBuilder, before: dict[str, str], after: dict[str, str], batched: bool, wakes: bool
) -> None:
    web = make_pod("web", namespace="elsewhere").label(app="web").on("n")
    world = world_with(of_team("elsewhere", **before), make_node("n").zone("a"), web, waits, batched=batched)
    assert "waits" not in bound(world)
    world.see(of_team("elsewhere", **after))
    try_all(world)
    assert ("waits" in bound(world)) == wakes


@MODES
def test_pod_of_a_namespace_that_others_avoid_is_woken_when_that_leaves_the_team(batched: bool, wakes: bool) -> None:
    web = make_pod("web", namespace="elsewhere").pod_anti_affinity_term(TEAM_A).on("n")
    waits = make_pod("waits").label(app="web")
    world = world_with(of_team("default", team="a"), make_node("n").zone("a"), web, waits, batched=batched)
    assert "waits" not in bound(world)
    world.see(of_team("default"))
    try_all(world)
    assert ("waits" in bound(world)) == wakes
