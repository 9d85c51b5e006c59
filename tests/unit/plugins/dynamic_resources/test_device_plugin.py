from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import convert
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
    make_slice,
    request,
    with_claims,
)

from kubesched.api.affinity import NodeSelector
from kubesched.api.device_claims import AllocatedDeviceStatus, DeviceConstraint
from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import OwnerReference
from kubesched.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.framework.budget import Budget
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.events import Hint
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import PluginContext
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.attempt import NOTES, ClaimAttempt
from kubesched.plugins.dynamic_resources.claims import after_claim
from kubesched.plugins.dynamic_resources.extended import claim_for
from kubesched.plugins.dynamic_resources.writes import DeallocateClaim, DeleteClaim, UnreserveClaim
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.demand import SearchTime
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod, node_term

NODES = (make_node("n1"), make_node("n2"))


def pod(*claims: str, name: str = "p") -> Pod:
    return with_claims(make_pod(name), *claims).build()


def decide(*objects: Any, claims: tuple[str, ...] = ("c",)) -> Decision:
    return make_engine(make_cluster(*NODES, make_class(), *objects)).decide(pod(*claims))


def why(decision: Decision) -> str:
    return decision.message.partition(" preemption:")[0]


def test_a_pod_goes_where_the_devices_of_its_claim_are() -> None:
    assert decide(make_claim("c"), make_slice("n2", device("d"))).node == "n2"


def test_without_a_free_device_the_pod_fits_nowhere() -> None:
    taken = allocated(make_claim("other"), "n2/d")
    decision = decide(make_claim("c"), taken, make_slice("n2", device("d")))
    assert why(decision) == "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable,"


def test_a_pod_waits_in_the_queue_for_a_claim_that_is_missing_or_going_away() -> None:
    plugin, state = DynamicResources(), make_cluster()
    status = plugin.pre_enqueue(pod("c"), state)
    assert status is not None
    assert status.message == 'could not find ResourceClaim "default/c"'
    claim = make_claim("c")
    state.apply(claim)
    assert plugin.pre_enqueue(pod("c"), state) is None


def test_a_claim_from_a_template_must_have_been_made_and_belong_to_the_pod() -> None:
    plugin, state = DynamicResources(), make_cluster(make_claim("made"))
    entry = PodResourceClaim(name="gpu", resource_claim_template_name="t")
    waiting = make_pod("p").spec(resource_claims=(entry,))
    status = plugin.pre_enqueue(waiting.build(), state)
    assert status is not None
    assert status.message == 'pod "default/p": ResourceClaim not created yet'
    named = waiting.status(resource_claim_statuses=(PodResourceClaimStatus(name="gpu", resource_claim_name="made"),))
    status = plugin.pre_enqueue(named.build(), state)
    assert status is not None
    assert status.message == "ResourceClaim default/made was not created for Pod default/p (Pod is not owner)"
    needs_none = waiting.status(resource_claim_statuses=(PodResourceClaimStatus(name="gpu"),))
    assert plugin.pre_enqueue(needs_none.build(), state) is None


def test_a_class_that_does_not_exist_is_named() -> None:
    decision = decide(make_claim("c", request("r", of="nope")))
    assert "request r: device class nope does not exist" in decision.message


def test_a_selector_that_breaks_on_one_node_is_an_error_though_others_fit() -> None:
    claim = make_claim("c", request("r", 1, attribute_is("model", "a")))
    decision = decide(claim, make_slice("n1", device("d", model="a")), make_slice("n2", device("d")))
    assert decision.outcome is Outcome.ERROR
    assert decision.message == (
        'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: no such key: model'
    )


def test_a_selector_that_cannot_be_compiled_is_an_error_that_says_where() -> None:
    decision = decide(make_claim("c", request("r", 1, "device.nope")), make_slice("n1", device("d")))
    assert decision.outcome is Outcome.ERROR
    assert "claim default/c: selector #0: CEL compile error: compilation failed" in decision.message


def test_slices_that_contradict_each_other_are_not_used_and_said_to_be_invalid() -> None:
    decision = decide(make_claim("c"), make_slice("n1", device("d"), device("d")))
    assert "1 invalid resource pools were encountered" in decision.message


def test_devices_that_were_being_replaced_are_back_when_their_replacement_is_gone() -> None:
    old, other, new = (
        make_slice(node, device(name, id=name), name=name, pool="p", of=2, generation=generation)
        for node, name, generation in (("n1", "old", 1), ("n2", "other", 1), ("n2", "new", 2))
    )
    claim = make_claim("c", request("r", 1, attribute_is("id", "old")))
    state = make_cluster(*NODES, make_class(), claim, old, other, new)
    engine = make_engine(state)
    assert engine.decide(pod("c")).outcome is Outcome.UNSCHEDULABLE
    state.delete(new)
    assert engine.decide(pod("c")).node == "n1"


def test_a_device_that_ties_the_claim_to_one_node_makes_terms_of_others_irrelevant_only_there() -> None:
    def pool_at(node: str, *, binds: bool, terms: int) -> ResourceSlice:
        here = node_term("kubernetes.io/hostname", "In", node)
        first, second = (
            replace(device(name), node_selector=NodeSelector(node_selector_terms=(here,) * number), binds_to_node=tied)
            for name, number, tied in (("a", 1, binds), ("b", terms, False))
        )
        return make_slice("", first, second, pool=node, per_device_node_selection=True)

    nodes = tuple(map(make_node, ("n1", "n2", "n3")))
    slices = (
        pool_at("n1", binds=True, terms=2),
        pool_at("n2", binds=False, terms=2),
        pool_at("n3", binds=False, terms=3),
    )
    claim = make_claim("c", request(count=2))
    view = make_cluster(*nodes, make_class(), *slices, claim).companion(ClusterDevices)
    outcomes = view.answer([claim.spec], SearchTime()).outcomes
    assert outcomes[0].found is not None
    problems = [view.message_of(one.error, row, (claim,)) for row, one in enumerate(outcomes) if one.error is not None]
    words = "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with {} terms"
    assert problems == [words.format(2), words.format(3)]


def test_an_allocated_claim_ties_the_pod_to_the_nodes_that_can_use_it() -> None:
    only_n2 = NodeSelector(node_selector_terms=(node_term("kubernetes.io/hostname", "In", "n2"),))
    nodes = [make_node(name).label({"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    claim = allocated(make_claim("c"), "n2/d", node_selector=only_n2)
    decision = make_engine(make_cluster(*nodes, make_class(), claim)).decide(pod("c"))
    assert decision.node == "n2"


def test_an_idle_claim_that_no_node_can_use_is_given_back() -> None:
    nowhere = NodeSelector(node_selector_terms=(node_term("zone", "In", "gone"),))
    claim = allocated(make_claim("c"), "x/d", node_selector=nowhere)
    decision = decide(claim)
    assert "2 resourceclaim not available on the node. deallocation of ResourceClaim completed," in decision.message
    assert attempt_of(decision).writes == [DeallocateClaim(claim)]


def test_a_claim_that_another_pod_uses_is_not_given_back() -> None:
    nowhere = NodeSelector(node_selector_terms=(node_term("zone", "In", "gone"),))
    decision = decide(allocated(make_claim("c"), "x/d", node_selector=nowhere, reserved_for="somebody"))
    assert "still not schedulable" in decision.message
    assert not attempt_of(decision).writes


def test_a_claim_whose_devices_are_not_ready_in_time_is_given_back() -> None:
    claim = allocated(make_claim("c"), "n1/d", allocation_timestamp="2026-01-01T00:00:00Z")
    slow = claim.status.allocation
    assert slow is not None
    # The driver said nothing, and 600 seconds have passed.
    results = tuple(replace(one, binding_conditions=("up",)) for one in slow.devices.results)
    slow = replace(slow, devices=replace(slow.devices, results=results))
    claim = replace(claim, status=replace(claim.status, allocation=slow))
    state = make_cluster(*NODES, make_class(), claim)
    plugin = DynamicResources(context=PluginContext(now=lambda: 1767225600.0 + 601))
    cycle = cycle_of(state, pod("c"))
    assert plugin.pre_filter(cycle) is None
    assert plugin.filter(cycle, Nodes(state)).all()
    plugin = DynamicResources(context=PluginContext(now=lambda: 1767225600.0 + 599))
    cycle = cycle_of(state, pod("c"))
    assert plugin.pre_filter(cycle) is None
    assert not plugin.filter(cycle, Nodes(state)).any()


@pytest.mark.parametrize(
    "said",
    [
        {"networkData": {"ips": ["10.0.0.1/24"]}},
        {"data": {"firmware": 2}},
        {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"}]},
    ],
)
def test_whatever_a_driver_says_of_a_device_may_help_the_pod_of_its_claim(said: dict[str, Any]) -> None:
    claim = allocated(make_claim("c"), "n1/a")
    known = {"driver": DRIVER, "pool": "n1", "device": "a", "conditions": [{"type": "Ready", "status": "True"}]}
    before, after = (
        replace(claim, status=replace(claim.status, devices=(convert(one, AllocatedDeviceStatus),)))
        for one in (known, known | said)
    )
    state = make_cluster(*NODES, after)
    assert after_claim(pod("c"), before, after, state) is Hint.QUEUE
    assert after_claim(pod("c"), before, before, state) is Hint.SKIP


def test_nodes_where_an_earlier_alternative_is_had_are_better() -> None:
    claim = make_claim("c", first_of("r", ("a", 1, attribute_is("model", "a")), ("any", 1, "true")))
    small, large = make_slice("n1", device("d", model="b")), make_slice("n2", device("d", model="a"))
    state = make_cluster(*NODES, make_class(), claim, small, large)
    decision = make_engine(state).decide(pod("c"), explain=True)
    assert decision.node == "n2"
    assert decision.trace.scores is not None
    scores = {part.plugin: part for part in decision.trace.scores.parts}
    assert np.array_equal(scores["DynamicResources"].raw, [7, 8])
    assert np.array_equal(scores["DynamicResources"].weighted, [174, 200])


def test_two_pods_never_get_one_device() -> None:
    state = make_cluster(*NODES, make_class(), make_claim("c"), make_claim("e"), make_slice("n1", device("d")))
    first = reserve(state, pod("c"))
    assert first.node == "n1"
    second = make_engine(state).decide(pod("e", name="q"))
    assert "2 cannot allocate all claims" in second.message


def test_what_was_set_aside_is_free_again_after_a_failure() -> None:
    state = make_cluster(*NODES, make_class(), make_claim("c"), make_claim("e"), make_slice("n1", device("d")))
    first = reserve(state, pod("c"))
    DynamicResources().unreserve(first.cycle, first.pod, first.node)
    assert make_engine(state).decide(pod("e", name="q")).node == "n1"


def test_another_pod_waits_while_their_claim_is_being_allocated() -> None:
    state = make_cluster(*NODES, make_class(), make_claim("c"), make_slice("n1", device("d")))
    reserve(state, pod("c"))
    decision = make_engine(state).decide(pod("c", name="q"))
    assert "resource claim default/c is in the process of being allocated" in decision.message


def test_a_reservation_of_an_allocated_claim_is_taken_back() -> None:
    claim = allocated(make_claim("c"), "n1/d", reserved_for="uid-of-p")
    state = make_cluster(*NODES, make_class(), claim)
    decision = reserve(state, pod("c"))
    DynamicResources().unreserve(decision.cycle, decision.pod, decision.node)
    assert attempt_of(decision).writes == [UnreserveClaim(claim, "uid-of-p")]


def test_profiles_see_what_others_set_aside() -> None:
    state = make_cluster(*NODES, make_class(), make_claim("c"), make_claim("e"), make_slice("n1", device("d")))
    reserve(state, pod("c"))
    another = DynamicResources()
    cycle = cycle_of(state, pod("e", name="q"))
    assert another.pre_filter(cycle) is None
    assert another.filter(cycle, Nodes(state)).all()


# -- extended resources -----------------------------------------------------------------------------------------------


def test_an_extended_resource_is_served_by_devices_where_no_plugin_offers_it() -> None:
    state = make_cluster(*NODES, make_class(resource="example.com/gpu"), make_slice("n2", device("d")))
    asking = make_pod("p").requests({"example.com/gpu": "1"}).build()
    decision = reserve(state, asking)
    assert decision.node == "n2"
    assert state.companion(ClusterDevices).ledger.devices_in_use() == [("gpu.example.com", "n2", "d")]


def test_a_node_that_offers_the_resource_itself_needs_no_device() -> None:
    with_plugin = make_node("n3").capacity({"cpu": "8", "memory": "8Gi", "pods": "10", "example.com/gpu": "2"})
    state = make_cluster(with_plugin, make_class(resource="example.com/gpu"))
    decision = reserve(state, make_pod("p").requests({"example.com/gpu": "1"}).build())
    assert decision.node == "n3"
    assert not state.companion(ClusterDevices).ledger.devices_in_use()


def test_a_claim_left_from_an_earlier_attempt_is_deleted_first() -> None:
    asking = make_pod("p").requests({"example.com/gpu": "1"}).build()
    made = claim_for(asking)
    made = replace(made, metadata=replace(made.metadata, name="left"), spec=make_claim("x").spec)
    state = make_cluster(*NODES, make_class(resource="example.com/gpu"), made, make_slice("n2", device("d")))
    decision = make_engine(state).decide(asking)
    assert "2 cannot schedule extended resource claim. deletion of ResourceClaim completed" in decision.message
    assert attempt_of(decision).writes == [DeleteClaim(made)]


@pytest.mark.parametrize("resource", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_a_class_serves_the_name_it_was_given_and_its_own(resource: str) -> None:
    state = make_cluster(*NODES, make_class(resource="example.com/gpu"), make_slice("n2", device("d")))
    assert make_engine(state).decide(make_pod("p").requests({resource: "1"}).build()).node == "n2"


# -- help -------------------------------------------------------------------------------------------------------------


def cycle_of(state: ClusterState, asking: Pod) -> Cycle:
    return Cycle(asking, state)


def attempt_of(decision: Decision) -> ClaimAttempt:
    return decision.cycle.read(NOTES)


def reserve(state: ClusterState, asking: Pod) -> Decision:
    decision = make_engine(state).decide(asking)
    assert decision.node, decision.message
    assert DynamicResources().reserve(decision.cycle, asking, decision.node) is None
    return decision


def test_a_search_that_takes_too_long_fails_the_attempt_and_is_taken_up_again() -> None:
    wide = tuple(device(f"d{i}", numa=i % 2, serial=i) for i in range(24))
    same = (DeviceConstraint(match_attribute="gpu.example.com/numa"),)
    all_different = 'device.attributes["gpu.example.com"].serial >= 0'
    claim = make_claim("c", request("r", 13, all_different), constraints=same)
    state = make_cluster(*NODES, make_class(), claim, make_slice("n1", *wide), make_slice("n2", *wide))
    clock = iter(range(0, 10**9, 100))
    plugin = DynamicResources()
    cycle = Cycle(pod("c"), state, budget=Budget(lambda: next(clock)))
    assert plugin.pre_filter(cycle) is None
    verdicts = plugin.filter(cycle, Nodes(state)).tolist()
    said = [plugin.rejections.statuses[verdict] for verdict in verdicts]
    assert [status.message for status in said if status] == [
        f"node {name}: timed out trying to allocate devices" for name in ("n1", "n2")
    ]
    claim = make_claim("c", request(count=12), constraints=claim.spec.devices.constraints)
    state.apply(claim)
    patient = DynamicResources()
    cycle = cycle_of(state, pod("c"))
    assert patient.pre_filter(cycle) is None
    assert not patient.filter(cycle, Nodes(state)).any()


def test_pods_that_are_alike_get_the_scores_of_their_own_claims() -> None:
    claim = make_claim("c", first_of("r", ("a", 1, attribute_is("model", "a")), ("any", 1, "true")))
    owner = OwnerReference(api_version="v1", kind="Pod", name="q", uid="uid-of-q", controller=True)
    claim = replace(claim, metadata=replace(claim.metadata, owner_references=(owner,)))
    slices = make_slice("n1", device("d", model="b")), make_slice("n2", device("d", model="a"))
    engine = make_engine(make_cluster(*NODES, make_class(), claim, *slices))
    entry = (PodResourceClaim(name="gpu", resource_claim_template_name="t"),)
    needs_none = (PodResourceClaimStatus(name="gpu"),)
    has_one = (PodResourceClaimStatus(name="gpu", resource_claim_name="c"),)
    first = make_pod("p").spec(resource_claims=entry).status(resource_claim_statuses=needs_none)
    second = make_pod("q").spec(resource_claims=entry).status(resource_claim_statuses=has_one)
    assert engine.decide(first.build()).node == "n1"
    assert engine.decide(second.build()).node == "n2"
