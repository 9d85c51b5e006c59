"""Scores by extended resources that devices serve: what counts as capacity, and what as in use."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.builders import Json, make_cluster, make_engine, profile_of
from tests.device_builders import allocated, attribute_is, device, make_claim, make_class, make_slice
from tests.reading import scores_of

from kubesched.api.affinity import NodeSelector
from kubesched.api.device_claims import AllocatedDevice, ResourceClaim
from kubesched.api.devices import Device
from kubesched.api.meta import KubeObject
from kubesched.framework.decision import Decision
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.state.cluster import ClusterState
from kubesched.testing import NodeBuilder, make_node, make_pod, node_term

FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"
GPU = "example.com/gpu"
NODES = (make_node("n1"), make_node("n2"))
SERVED = make_class(resource=GPU)
ASKING = make_pod("p").requests({GPU: 1}).build()


def by(strategy: str, *plugins: str, resource: str = GPU) -> Json:
    """A profile that fits, scores by this resource alone, and leaves the search for devices to other plugins."""
    args = {"scoringStrategy": {"type": strategy, "resources": [{"name": resource}]}}
    return profile_of(FIT, *plugins, args={FIT: args})


FULLER, EMPTIER = by("MostAllocated"), by("LeastAllocated")


def gpus(count: int) -> tuple[Device, ...]:
    return tuple(device(f"d{i}") for i in range(count))


def decide(*objects: KubeObject | NodeBuilder, config: Json = FULLER) -> Decision:
    return make_engine(make_cluster(*NODES, *objects), config=config).decide(ASKING, explain=True)


def scores(*objects: KubeObject | NodeBuilder, config: Json = FULLER) -> dict[str, int]:
    return scores_of(decide(*objects, config=config), FIT)


def test_devices_are_the_capacity_where_the_node_offers_none() -> None:
    published = (SERVED, make_slice("n1", *gpus(4)), make_slice("n2", *gpus(2)))
    assert scores(*published, config=EMPTIER) == {"n1": 75, "n2": 50}
    assert scores(*published, config=FULLER) == {"n1": 25, "n2": 50}


def test_the_ratio_of_requested_to_capacity_counts_devices_too() -> None:
    shape = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    kind = "RequestedToCapacityRatio"
    strategy = {"type": kind, "resources": [{"name": GPU}], "requestedToCapacityRatio": shape}
    config = profile_of(FIT, args={FIT: {"scoringStrategy": strategy}})
    assert scores(SERVED, make_slice("n1", *gpus(4)), config=config) == {"n1": 25, "n2": 0}


def test_devices_that_claims_hold_are_in_use() -> None:
    taken = allocated(make_claim("c"), "n1/d0", "n1/d1")
    assert scores(SERVED, make_slice("n1", *gpus(4)), make_slice("n2", *gpus(4)), taken) == {"n1": 75, "n2": 25}


def test_a_device_of_which_somebody_has_a_share_is_in_use() -> None:
    claim = allocated(make_claim("c"), "n1/d0")
    shared = _with_results(claim, share_id="share", consumed_capacity={"mem": "1Gi"})
    assert scores(SERVED, make_slice("n1", *gpus(4)), shared)["n1"] == 50


def test_a_device_with_only_an_admin_on_it_is_free() -> None:
    watched = _with_results(allocated(make_claim("c"), "n1/d0"), admin_access=True)
    assert scores(SERVED, make_slice("n1", *gpus(4)), watched)["n1"] == 25


def test_a_node_that_offers_the_resource_itself_is_scored_by_that() -> None:
    with_plugin = make_node("n1").capacity({GPU: 10})
    assert scores(with_plugin, SERVED, make_slice("n1", *gpus(2)), make_slice("n2", *gpus(2))) == {"n1": 10, "n2": 50}


def test_a_resource_that_no_class_serves_has_no_part_in_the_score() -> None:
    offers = (make_node("n1").capacity({GPU: 2}), make_node("n2").capacity({GPU: 4}))
    assert scores(*offers, make_class(), make_slice("n1", *gpus(8))) == {"n1": 50, "n2": 25}


def test_a_pod_that_does_not_ask_for_the_resource_is_not_scored_by_it() -> None:
    state = make_cluster(*NODES, SERVED, make_slice("n1", *gpus(4)))
    decision = make_engine(state, config=FULLER).decide(make_pod("p").requests(cpu="1").build(), explain=True)
    assert scores_of(decision, FIT) == {"n1": 0, "n2": 0}
    assert not state.followers


def test_the_name_that_every_class_serves_counts_as_well() -> None:
    implicit = "deviceclass.resource.kubernetes.io/gpu"
    state = make_cluster(*NODES, make_class(), make_slice("n1", *gpus(4)))
    engine = make_engine(state, config=by("MostAllocated", resource=implicit))
    decision = engine.decide(make_pod("p").requests({implicit: 1}).build(), explain=True)
    assert scores_of(decision, FIT) == {"n1": 25, "n2": 0}


def test_only_devices_that_the_class_selects_count() -> None:
    only_a = make_class("gpu", attribute_is("model", "a"), resource=GPU)
    found = [device(f"d{i}", model="ab"[i % 2]) for i in range(4)]
    assert scores(only_a, make_slice("n1", *found)) == {"n1": 50, "n2": 0}


def test_where_a_selector_breaks_the_resource_has_no_part_in_the_score() -> None:
    only_a = make_class("gpu", attribute_is("model", "a"), resource=GPU)
    half_broken = make_slice("n1", device("d0", model="a"), device("d1"))
    assert scores(only_a, half_broken, make_slice("n2", device("d0", model="a"))) == {"n1": 0, "n2": 100}


def test_devices_count_on_all_nodes_within_reach() -> None:
    in_zone = NodeSelector(node_selector_terms=(node_term("zone", "In", "a"),))
    wide = make_slice("", *gpus(2), pool="wide", node_selector=in_zone)
    nodes = (make_node("n1").label(zone="a"), make_node("n3").label(zone="a"))
    taken = allocated(make_claim("c"), "n1/d0", "wide/d0")
    assert scores(*nodes, SERVED, wide, make_slice("n1", *gpus(2)), taken) == {"n1": 75, "n2": 0, "n3": 100}


def test_where_each_device_says_so_itself_those_within_reach_count() -> None:
    here, there, anywhere = gpus(3)
    mixed = (
        replace(here, node_name="n1"),
        replace(there, node_name="n2"),
        replace(anywhere, all_nodes=True),
    )
    sliced = make_slice("", *mixed, pool="wide", per_device_node_selection=True)
    taken = allocated(make_claim("c"), "wide/d0")
    assert scores(SERVED, sliced, taken) == {"n1": 100, "n2": 50}


@pytest.mark.parametrize(
    "unusable",
    [
        make_slice("n1", *gpus(4), of=2),
        make_slice("n1", *(device(f"d{i}", taint="repair") for i in range(4))),
        make_slice("n1", *(device(f"d{i}", draws={"x": 1}) for i in range(4))),
    ],
    ids=["of an incomplete pool", "with a taint", "of a pool that is invalid"],
)
def test_devices_count_even_if_no_search_would_take_them(unusable: KubeObject) -> None:
    assert scores(SERVED, unusable)["n1"] == 25


def test_devices_of_a_generation_that_is_being_replaced_count_besides_the_new_ones() -> None:
    old, new = (make_slice("n1", *gpus(2), name=f"g{i}", generation=i) for i in (1, 2))
    assert scores(SERVED, old, new, allocated(make_claim("c"), "n1/d0"))["n1"] == 75


def test_to_a_class_that_is_scored_by_no_device_is_shared() -> None:
    of_shared = make_class("gpu", "device.allowMultipleAllocations", resource=GPU)
    assert scores(of_shared, make_slice("n1", device("d", shared=True))) == {"n1": 0, "n2": 0}


def test_balanced_allocation_counts_devices_also_through_selectors() -> None:
    resources = [{"name": "cpu"}, {"name": "memory"}, {"name": GPU}]
    config = profile_of(FIT, BALANCED, args={BALANCED: {"resources": resources}})
    nodes = (
        make_node("n1").capacity(cpu="3500m", memory=40000),
        make_node("n2").capacity(cpu="3500m", memory=40000),
        make_pod("a").requests(cpu="3").on("n1").build(),
        make_pod("b").requests(cpu="3", memory=5000).on("n2").build(),
    )
    for served in (SERVED, make_class("gpu", "true", resource=GPU)):
        state = make_cluster(*nodes, served, make_slice("n1", *gpus(8)))
        decision = make_engine(state, config=config).decide(ASKING, explain=True)
        assert scores_of(decision, BALANCED) == {"n1": 76, "n2": 75}


# -- from pod to pod --------------------------------------------------------------------------------------------------


def test_what_was_just_set_aside_counts_for_the_next_pod() -> None:
    state = make_cluster(*NODES, SERVED, make_slice("n1", *gpus(4)), make_slice("n2", *gpus(4)))
    engine = make_engine(state, config=FULLER)
    assert engine.decide(ASKING).score == 25
    _set_aside(state, "n2/d0")
    following = engine.decide(ASKING)
    assert (following.node, following.score) == ("n2", 50)


def test_scores_that_are_kept_follow_claims_slices_nodes_and_classes() -> None:
    state = make_cluster(*NODES, SERVED, make_slice("n1", *gpus(4)), make_slice("n2", *gpus(4)))
    engine = make_engine(state, config=FULLER)

    def best() -> tuple[str, int]:
        decision = engine.decide(ASKING)
        return decision.node, decision.score

    engine.decide(ASKING)
    state.apply(allocated(make_claim("c"), "n2/d0", "n2/d1"))
    assert best() == ("n2", 75)
    state.apply(make_claim("c"))
    state.apply(make_slice("n1", *gpus(2)))
    assert best() == ("n1", 50)
    state.delete(make_slice("n1"))
    state.apply(make_slice("n3", *gpus(1)))
    assert best() == ("n2", 25)
    state.apply(make_node("n3").build())
    assert best() == ("n3", 100)
    state.apply(make_class("gpu", attribute_is("model", "a"), resource=GPU))
    assert best()[1] == 0


def test_pods_are_packed_onto_the_devices_of_one_node_after_another() -> None:
    slices = (make_slice("n1", *gpus(2)), make_slice("n2", *gpus(4)), make_slice("n3", *gpus(2)))
    state = make_cluster(*NODES, make_node("n3"), SERVED, *slices)
    engine = make_engine(state, config=by("MostAllocated", "DynamicResources"))
    placed = []
    for i in range(8):
        decision = engine.decide(make_pod(f"p{i}").requests({GPU: 1}).build())
        placed.append(decision.node)
        state.assume(decision.pod, decision.node)
        assert DynamicResources().reserve(decision.cycle, decision.pod, decision.node) is None
    assert placed == ["n1", "n1", "n3", "n3", "n2", "n2", "n2", "n2"]


@pytest.mark.parametrize("plugins", [(FIT,), (FIT, BALANCED)])
def test_scores_repaired_node_by_node_are_those_worked_out_anew(plugins: tuple[str, ...]) -> None:
    pair = [{"name": "cpu"}, {"name": GPU}]
    strategy = {"type": "LeastAllocated", "resources": pair}
    config = profile_of(*plugins, args={FIT: {"scoringStrategy": strategy}, BALANCED: {"resources": pair}})
    nodes = [make_node(f"n{i}").capacity(cpu=8 + i) for i in range(24)]
    slices = [make_slice(f"n{i}", *gpus(2 + i % 5)) for i in range(24)]
    state = make_cluster(*nodes, SERVED, *slices)
    lasting = make_engine(state, config=config)
    for i in range(40):
        asking = make_pod(f"p{i}").requests({"cpu": "1500m", GPU: 1}).build()
        decision, anew = lasting.decide(asking), make_engine(state, config=config).decide(asking)
        assert (decision.node, decision.score) == (anew.node, anew.score)
        state.assume(asking, decision.node)
        state.apply(allocated(make_claim(f"c{i}"), f"{decision.node}/d{i % 3}"))


def _set_aside(state: ClusterState, held: str) -> None:
    claim = allocated(make_claim("pending"), held)
    assert claim.status.allocation is not None
    state.companion(ClusterDevices).ledger.set_aside(claim, claim.status.allocation)


def _with_results(claim: ResourceClaim, **fields: object) -> ResourceClaim:
    """The claim with more said about each of its devices."""
    allocation = claim.status.allocation
    assert allocation is not None
    results: tuple[AllocatedDevice, ...] = tuple(replace(result, **fields) for result in allocation.devices.results)
    allocation = replace(allocation, devices=replace(allocation.devices, results=results))
    return replace(claim, status=replace(claim.status, allocation=allocation))
