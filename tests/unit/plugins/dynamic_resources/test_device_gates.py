"""Each feature gate for devices, turned off: what then is not done, or is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace
from tests.builders import make_cluster, make_engine
from tests.device_builders import (
    DRIVER,
    allocated,
    attribute_is,
    device,
    first_of,
    make_claim,
    make_class,
    make_counters,
    make_slice,
    request,
    results_changed,
    with_claims,
)
from tests.reading import scores_of

from kubesched.api.device_claims import DeviceConstraint
from kubesched.api.devices import CapacityPolicy, DeviceCapacity
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.framework.budget import Budget
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.events import Kind
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import PluginContext
from kubesched.framework.profile import interests_of
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.testing import make_node, make_pod

TWO_NODES = (make_node("n1"), make_node("n2"))
POD = with_claims(make_pod("p"), "c").build()


def decide(*objects: Any, features: Features = DEFAULT_FEATURES) -> Decision:
    return make_engine(make_cluster(*TWO_NODES, make_class(), *objects, features=features)).decide(POD, explain=True)


def fits(*objects: Any, features: Features = DEFAULT_FEATURES) -> bool:
    return decide(*objects, features=features).outcome is Outcome.SCHEDULED


# -- DRADeviceTaints --------------------------------------------------------------------------------------------------


def test_taints_of_devices_keep_nobody_away_where_they_are_off() -> None:
    objects = make_claim("c"), make_slice("n1", device("d", taint="broken"))
    assert not fits(*objects)
    assert fits(*objects, features=Features(device_taints=False))


# -- DRAPrioritizedList -----------------------------------------------------------------------------------------------

ALTERNATIVES = first_of("r", ("big", 1, attribute_is("size", "big")), ("small", 1, attribute_is("size", "small")))


def test_a_claim_with_alternatives_is_refused_where_those_are_off() -> None:
    objects = make_claim("c", ALTERNATIVES), make_slice("n1", device("d", size="small"))
    assert fits(*objects)
    said = decide(*objects, features=Features(device_alternatives=False)).message
    reason = "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled"
    assert f"0/2 nodes are available: {reason}." in said


def test_nodes_are_not_scored_by_alternatives_where_those_are_off() -> None:
    chosen_earlier = results_changed(allocated(make_claim("c", ALTERNATIVES), "x/d"), request="r/big")
    objects = make_class(), chosen_earlier, make_claim("more"), *(make_slice(n, device("d")) for n in ("n1", "n2"))
    pod = with_claims(make_pod("p"), "c", "more").build()
    for features, score in ((DEFAULT_FEATURES, 200), (Features(device_alternatives=False), 0)):
        decision = make_engine(make_cluster(*TWO_NODES, *objects, features=features)).decide(pod, explain=True)
        assert scores_of(decision, "DynamicResources") == {"n1": score, "n2": score}


# -- DRAConsumableCapacity --------------------------------------------------------------------------------------------

A_LITTLE = DeviceCapacity(value="10Gi", request_policy=CapacityPolicy(default="1Gi"))
SHARED = make_slice("n1", device("d", shared=True, capacity={"memory": A_LITTLE}))


def test_a_device_that_may_be_shared_has_one_owner_where_sharing_is_off() -> None:
    other = allocated(make_claim("other"), "n1/d")
    other = results_changed(other, share_id="s-1", consumed_capacity={"memory": "1Gi"})
    assert fits(make_claim("c"), other, SHARED)
    assert not fits(make_claim("c"), other, SHARED, features=Features(device_capacity=False))
    assert fits(make_claim("c"), SHARED, features=Features(device_capacity=False))


def test_a_request_for_capacity_is_an_error_where_that_is_off() -> None:
    decision = decide(
        make_claim("c", request(capacity={"memory": "1Gi"})), SHARED, features=Features(device_capacity=False)
    )
    reason = "claim default/c, request r: has capacity requests, but the DRAConsumableCapacity feature is disabled"
    assert decision.outcome is Outcome.ERROR
    assert decision.message == f'running "DynamicResources" filter plugin: {reason}'


def test_a_device_is_allocated_as_a_whole_where_sharing_is_off() -> None:
    decision = decide(make_claim("c"), SHARED, features=Features(device_capacity=False))
    [allocation] = DynamicResources().allocations_on(decision.cycle, row=0) or []
    [given] = allocation.devices.results
    assert (given.share_id, given.consumed_capacity) == (None, {})


# -- DRADeviceBindingConditions ---------------------------------------------------------------------------------------


def test_a_device_with_binding_conditions_is_for_nobody_where_they_are_off() -> None:
    objects = make_claim("c"), make_slice("n1", device("d", conditions=("up",)))
    assert fits(*objects)
    assert not fits(*objects, features=Features(device_binding_conditions=False))


def test_selectors_are_not_asked_about_devices_that_nobody_gets() -> None:
    claim = make_claim("c", request("r", 1, attribute_is("model", "a")))
    slices = make_slice("n1", device("slow", conditions=("up",))), make_slice("n2", device("d", model="a"))
    assert decide(claim, *slices).outcome is Outcome.ERROR
    assert decide(claim, *slices, features=Features(device_binding_conditions=False)).node == "n2"


def test_nobody_looks_whether_devices_came_too_late_where_conditions_are_off() -> None:
    claim = allocated(make_claim("c"), "n1/d", allocation_timestamp="2026-01-01T00:00:00Z")
    claim = results_changed(claim, binding_conditions=("up",))
    for features, lost in ((DEFAULT_FEATURES, True), (Features(device_binding_conditions=False), False)):
        cycle = Cycle(POD, make_cluster(*TWO_NODES, make_class(), claim, features=features))
        plugin = DynamicResources(context=PluginContext(features, now=lambda: 4e9))
        plugin.pre_filter(cycle)
        assert bool(plugin.filter(cycle, Nodes(cycle.state)).any()) is lost


# -- DRAPartitionableDevices ------------------------------------------------------------------------------------------


def test_a_device_that_draws_from_counters_is_for_nobody_where_those_are_off() -> None:
    objects = make_claim("c"), make_slice("n1", device("d", draws={"slots": 1}), of=2), make_counters("n1", slots=4)
    assert fits(*objects)
    assert not fits(*objects, features=Features(device_partitions=False))


def test_other_devices_of_such_a_pool_may_still_be_had() -> None:
    devices = device("half", draws={"slots": 1}), device("whole")
    objects = make_claim("c"), make_slice("n1", *devices, of=2), make_counters("n1", slots=4)
    assert fits(*objects, features=Features(device_partitions=False))
    everything = make_claim("c", request(everything=True))
    assert fits(everything, *objects[1:])
    assert not fits(everything, *objects[1:], features=Features(device_partitions=False))


def test_a_slice_that_says_for_each_device_who_may_use_it_is_not_read_where_that_is_off() -> None:
    everywhere = replace(device("d"), all_nodes=True)
    objects = make_claim("c"), make_slice("", everywhere, pool="net", per_device_node_selection=True)
    assert fits(*objects)
    assert not fits(*objects, features=Features(device_partitions=False))


# -- both off: the older search ---------------------------------------------------------------------------------------

PLAIN = Features(device_capacity=False, device_binding_conditions=False)


def test_the_older_search_does_not_know_of_distinct_attributes() -> None:
    distinct = DeviceConstraint(distinct_attribute=f"{DRIVER}/model")
    objects = make_claim("c", constraints=(distinct,)), make_slice("n1", device("d", model="a"))
    assert fits(*objects)
    decision = decide(*objects, features=PLAIN)
    assert "claim default/c, constraint #0: empty constraint (unsupported constraint type?)" in decision.message


def test_the_older_search_does_not_look_at_requests_for_capacity() -> None:
    objects = make_claim("c", request(capacity={"memory": "99Gi"})), SHARED
    assert not fits(*objects)
    assert fits(*objects, features=PLAIN)


# -- DRAExtendedResource ----------------------------------------------------------------------------------------------


def test_devices_do_not_serve_extended_resources_where_that_is_off() -> None:
    objects = make_node("n1"), make_class("gpu", resource="example.com/gpu"), make_slice("n1", device("d"))
    pod = make_pod("p").requests({"example.com/gpu": 1}).build()
    assert make_engine(make_cluster(*objects)).decide(pod).node == "n1"
    off = make_engine(make_cluster(*objects, features=Features(devices_as_resources=False)))
    assert "1 Insufficient example.com/gpu" in off.decide(pod).message


def test_device_classes_wake_nobody_who_lacks_resources_where_that_is_off() -> None:
    def kinds(features: Features) -> set[Kind | str]:
        return {interest.event.kind for interest in interests_of(NodeResourcesFit(context=PluginContext(features)))}

    assert kinds(DEFAULT_FEATURES) - kinds(Features(devices_as_resources=False)) == {Kind.DEVICE_CLASS}


# -- DRASchedulerFilterTimeout ----------------------------------------------------------------------------------------


def test_the_search_may_take_as_long_as_it_likes_where_its_timeout_is_off() -> None:
    wide = tuple(device(f"d{i}", numa=i % 2, serial=i) for i in range(14))
    same = DeviceConstraint(match_attribute=f"{DRIVER}/numa")
    all_different = f'device.attributes["{DRIVER}"].serial >= 0'
    hopeless = make_claim("c", request("r", 8, all_different), constraints=(same,))
    for features, said in (
        (DEFAULT_FEATURES, "node n1: timed out trying to allocate devices"),
        (Features(device_search_timeout=False), "cannot allocate all claims"),
    ):
        state = make_cluster(make_node("n1"), make_class(), hopeless, make_slice("n1", *wide), features=features)
        clock = iter(range(0, 10**9, 100))
        plugin = DynamicResources(context=PluginContext(features))
        cycle = Cycle(POD, state, budget=Budget(partial(next, clock)))
        plugin.pre_filter(cycle)
        status = plugin.rejections.statuses[plugin.filter(cycle, Nodes(state))[0]]
        assert status is not None
        assert status.message == said
