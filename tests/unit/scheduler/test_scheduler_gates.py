"""Feature gates of the queue, of preemption and of binding: what is done otherwise when they are off."""

from __future__ import annotations

from tests.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    results_changed,
    with_claims,
)
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal, Running
from tests.unit.scheduler.world import World, names

from kubesched import config
from kubesched.api.pod import Pod, PodCondition, ResourceRequirements
from kubesched.config import Features
from kubesched.framework.client import ClientError
from kubesched.framework.plugin import PluginContext
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.testing import make_node, make_pod

EVICTING_FIRST = Features(async_preemption=False)
FULL_NODE = make_node("node"), make_pod("victim").requests(cpu="4").on("node")
VIP = make_pod("vip").requests(cpu="4").priority(10)


# -- SchedulerAsyncPreemption -----------------------------------------------------------------------------------------


def test_victims_go_before_their_preemptor_is_back_in_the_queue() -> None:
    for features, order in ((Features(), ["vip", "victim"]), (EVICTING_FIRST, ["victim", "vip"])):
        world = World(*FULL_NODE, VIP, features=features)
        world.finish(world.decided(), tell=False)
        written = [event.new or event.old for event in world.cluster.unseen]
        assert [obj.name for obj in written if obj is not None] == order
        assert world.cluster.pod("vip").status.nominated_node_name == "node"


def test_preemptor_hears_of_victims_that_left_while_they_were_evicted() -> None:
    world = World(*FULL_NODE, VIP, features=EVICTING_FIRST)
    writing = Running(world.scheduler.finish(world.decided()))
    while not world.cluster.evicted:
        writing.go_on()
    world.cluster.tell(world.scheduler)
    writing.to_the_end()
    assert names(world.queue.unschedulable()) == []


def test_no_node_is_promised_when_a_victim_cannot_be_evicted() -> None:
    world = World(*FULL_NODE, VIP, features=EVICTING_FIRST)
    world.cluster.evict_refusals.append(Refusal("InternalError"))
    attempt = world.tried()
    assert attempt.failure is not None
    assert attempt.failure.message.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ")
    assert world.cluster.pod("vip").status.nominated_node_name == ""
    assert names(world.queue.unschedulable()) == ["vip"]


def test_nobody_is_held_back_for_evictions_that_are_over() -> None:
    assert DefaultPreemption(context=PluginContext(EVICTING_FIRST)).events_to_register() == ()
    world = World(*FULL_NODE, VIP, features=EVICTING_FIRST)
    world.decided()
    plugin = world.scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    assert plugin.pre_enqueue(VIP.build(), world.scheduler.state) is None


# -- SchedulerPopFromBackoffQ -----------------------------------------------------------------------------------------


def rejected_and_woken(features: Features) -> World:
    """A pod that fitted nowhere, and then a node came."""
    world = World(make_node("small").capacity(cpu="1"), make_pod("p").requests(cpu="2"), features=features)
    world.now = 0.25
    world.tried()
    world.see(make_node("large"))
    assert names(world.queue.backoff()) == ["p"]
    return world


def test_a_pod_sits_out_its_backoff_where_that_cannot_be_cut_short() -> None:
    assert rejected_and_woken(Features()).scheduler.pop() is not None
    world = rejected_and_woken(Features(backoff_cut_short=False))
    assert world.scheduler.pop() is None
    world.pass_seconds(1.0)
    assert world.scheduler.pop() is None
    world.pass_seconds(0.01)
    assert world.scheduler.pop() is not None


def test_a_pod_is_held_back_on_its_way_out_of_backoff_where_that_cannot_be_cut_short() -> None:
    world = rejected_and_woken(Features(backoff_cut_short=False))
    gated = make_pod("p").requests(cpu="2").gate("later")
    world.see(gated)
    assert names(world.queue.backoff()) == ["p"]
    world.pass_seconds(2)
    assert [queued.gating_plugin for queued in world.queue.unschedulable()] == ["SchedulingGates"]


# -- NominatedNodeNameForExpectation ----------------------------------------------------------------------------------


def test_where_a_pod_is_going_is_not_told_beforehand_where_that_is_off() -> None:
    claimed = with_claims(make_pod("p"), "c")
    objects = make_node("n"), make_class(), make_slice("n", device("d")), make_claim("c"), claimed
    for features, node in ((Features(), "n"), (Features(expected_node_nominated=False), "")):
        world = World(*objects, features=features)
        world.tried()
        assert world.cluster.pod("p").spec.node_name == "n"
        assert world.cluster.pod("p").status.nominated_node_name == node


def test_a_pod_is_bound_though_nobody_could_be_told_beforehand() -> None:
    class Deaf(MemoryCluster):
        async def patch_pod_status(
            self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
        ) -> None:
            raise ClientError("InternalError", "refused")

    cluster = Deaf()
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0, now=lambda: 0.0),
        config.default(),
        cluster,
        in_tree(),
    )
    for obj in (make_node("n").build(), make_class(), make_slice("n", device("d")), make_claim("c")):
        cluster.put(obj)
    cluster.put(with_claims(make_pod("p"), "c").build())
    cluster.tell(scheduler)
    attempt = scheduler.pop()
    assert attempt is not None
    scheduler.decide(attempt)
    Running(scheduler.finish(attempt)).to_the_end()
    assert cluster.pod("p").spec.node_name == "n"


# -- DRADeviceBindingConditions ---------------------------------------------------------------------------------------


def test_when_devices_were_allocated_is_noted_only_where_somebody_waits_for_them() -> None:
    objects = make_node("n"), make_class(), make_slice("n", device("d")), with_claims(make_pod("p"), "c")
    for features, noted in ((Features(), True), (Features(device_binding_conditions=False), False)):
        world = World(*objects, make_claim("c"), features=features)
        world.tried()
        claim = world.cluster.claim("default/c")
        assert claim is not None
        assert claim.status.allocation is not None
        assert (claim.status.allocation.allocation_timestamp is not None) is noted


def test_nobody_waits_for_devices_where_that_is_off() -> None:
    waiting = results_changed(allocated(make_claim("c"), "n/d"), binding_conditions=("up",))
    objects = make_node("n"), make_class(), waiting, with_claims(make_pod("p"), "c")
    world = World(*objects, features=Features(device_binding_conditions=False))
    world.tried()
    assert world.cluster.pod("p").spec.node_name == "n"


# -- InPlacePodLevelResourcesVerticalScaling --------------------------------------------------------------------------


def test_a_pod_that_shrinks_as_a_whole_wakes_nobody_where_that_is_off() -> None:
    before = make_pod("placed").pod_level(cpu="1").on("n").status(resources=ResourceRequirements(requests={"cpu": "4"}))
    after = before.status(resources=ResourceRequirements(requests={"cpu": "1"}))
    for features, woken in ((Features(), ["p"]), (Features(pod_level_resize=False), [])):
        world = World(make_node("n"), before, make_pod("p").requests(cpu="4"), features=features)
        world.tried()
        world.see(after)
        assert names(world.queue.backoff()) == woken
