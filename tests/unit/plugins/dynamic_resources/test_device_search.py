from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
)

from kubesched.api.device_claims import DeviceConstraint, ResourceClaim
from kubesched.api.devices import CapacityPolicy, CapacityRange, DeviceCapacity, DeviceClass, ResourceSlice
from kubesched.api.meta import ObjectMeta
from kubesched.api.node import Node
from kubesched.framework.budget import Budget, TurnOverError
from kubesched.plugins.shared.devices import demand as demands
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.demand import AllocationError, Demand, SearchTime
from kubesched.plugins.shared.devices.search import Path, Search
from kubesched.plugins.shared.devices.selecting import Selectors
from kubesched.state.cluster import ClusterState

SAME_NUMA = DeviceConstraint(match_attribute=f"{DRIVER}/numa")
ALL_DIFFERENT = 'device.attributes["gpu.example.com"].serial >= 0'
"""To such a selector no device is like another, so that all combinations are tried."""
DISTINCT_NUMA = DeviceConstraint(distinct_attribute=f"{DRIVER}/numa")


def search(
    *slices: ResourceSlice,
    claims: tuple[ResourceClaim, ...],
    holding: tuple[ResourceClaim, ...] = (),
    classes: tuple[DeviceClass, ...] = (),
) -> list[list[str]] | None:
    """The devices of each claim on node n, as `request device`; None if there are none."""
    state = ClusterState()
    state.apply(Node(metadata=ObjectMeta(name="n")))
    for obj in (make_class(), *classes, *slices, *holding):
        state.apply(obj)
    view = ClusterDevices(state)
    view.inventories.refresh()
    inventory = view.inventories.of(0)
    known = {one.name: one for one in state.objects.all(DeviceClass)}
    demand = Demand([claim.spec for claim in claims], known, Selectors())
    found = Search(demand, inventory, inventory.use(view.ledger)).run()
    if found is None:
        return None
    return [[f"{c.request.name} {inventory.spots[c.spot].device.name}" for c in devices] for devices in found.claims]


def one_claim(*slices: ResourceSlice, claim: ResourceClaim) -> list[str] | None:
    found = search(*slices, claims=(claim,))
    return None if found is None else found[0]


def test_devices_are_taken_in_the_order_in_which_they_are_listed() -> None:
    slices = make_slice("n", device("z"), device("a"))
    assert one_claim(slices, claim=make_claim("c", request(count=2))) == ["r z", "r a"]


def test_pools_are_tried_in_the_order_of_their_names_as_text() -> None:
    nine, ten = make_slice("n", device("d9"), pool="p-9"), make_slice("n", device("d10"), pool="p-10")
    assert one_claim(nine, ten, claim=make_claim("c")) == ["r d10"]


def test_pools_with_devices_that_take_a_while_come_last() -> None:
    slow, quick = make_slice("n", device("slow", conditions=("up",)), pool="a"), make_slice("n", device("d"), pool="b")
    assert one_claim(slow, quick, claim=make_claim("c")) == ["r d"]


def test_an_earlier_request_gives_a_device_back_if_a_later_one_needs_it() -> None:
    slices = make_slice("n", device("d0", model="a"), device("d1", model="b"))
    claim = make_claim("c", request("any"), request("a", 1, attribute_is("model", "a")))
    assert one_claim(slices, claim=claim) == ["any d1", "a d0"]


def test_an_earlier_claim_gives_a_device_back_if_a_later_one_needs_it() -> None:
    slices = make_slice("n", device("d0", model="a"), device("d1", model="b"))
    picky = make_claim("picky", request("r", 1, attribute_is("model", "a")))
    assert search(slices, claims=(make_claim("any"), picky)) == [["r d1"], ["r d0"]]


def test_the_first_alternative_wins_with_which_all_the_rest_can_be_had() -> None:
    slices = make_slice("n", device("d0", model="a"), device("d1", model="b"))
    best_a = first_of("x", ("best", 1, attribute_is("model", "a")), ("other", 1, "true"))
    needs_a = request("y", 1, attribute_is("model", "a"))
    assert one_claim(slices, claim=make_claim("c", best_a)) == ["x/best d0"]
    assert one_claim(slices, claim=make_claim("c", best_a, needs_a)) == ["x/other d1", "y d0"]


def test_devices_in_use_are_not_looked_at_so_a_selector_cannot_break_on_them() -> None:
    slices = make_slice("n", device("broken"), device("ok", model="a"))
    claim = make_claim("c", request("r", 1, attribute_is("model", "a")))
    with pytest.raises(AllocationError, match="no such key: model"):
        search(slices, claims=(claim,))
    holding = allocated(make_claim("other"), "n/broken")
    assert search(slices, claims=(claim,), holding=(holding,)) == [["r ok"]]


def test_devices_after_the_last_one_needed_are_not_looked_at() -> None:
    slices = make_slice("n", device("ok", model="a"), device("broken"))
    assert one_claim(slices, claim=make_claim("c", request("r", 1, attribute_is("model", "a")))) == ["r ok"]


def test_matching_devices_have_an_attribute_in_common() -> None:
    slices = make_slice("n", device("a", numa=0), device("b", numa=1), device("c", numa=1))
    assert one_claim(slices, claim=make_claim("c", request(count=2), constraints=(SAME_NUMA,))) == ["r b", "r c"]


def test_a_device_without_the_attribute_cannot_match() -> None:
    slices = make_slice("n", device("a"), device("b", numa=1))
    assert one_claim(slices, claim=make_claim("c", constraints=(SAME_NUMA,))) == ["r b"]


def test_distinct_devices_of_two_requests_differ_in_the_attribute() -> None:
    slices = make_slice("n", device("a", numa=0), device("b", numa=0), device("c", numa=1))
    claim = make_claim("c", request("x"), request("y"), constraints=(DISTINCT_NUMA,))
    assert one_claim(slices, claim=claim) == ["x a", "y c"]


def test_distinct_devices_of_one_request_are_compared_with_the_last_one_only() -> None:
    slices = make_slice("n", device("a", numa=0), device("b", numa=1), device("c", numa=0))
    claim = make_claim("c", request(count=3), constraints=(DISTINCT_NUMA,))
    assert one_claim(slices, claim=claim) == ["r a", "r b", "r c"]


def test_all_takes_every_device_that_is_selected() -> None:
    slices = make_slice("n", device("a", model="x"), device("b", model="y"), device("c", model="x"))
    claim = make_claim("c", request("r", 1, attribute_is("model", "x"), everything=True))
    assert one_claim(slices, claim=claim) == ["r a", "r c"]


def test_all_needs_at_least_one_device() -> None:
    claim = make_claim("c", request("r", 1, attribute_is("model", "x"), everything=True))
    assert one_claim(make_slice("n", device("a", model="y")), claim=claim) is None


def test_all_breaks_on_a_pool_that_is_not_complete() -> None:
    slices = make_slice("n", device("a"), of=2)
    with pytest.raises(
        AllocationError, match=r"asks for all devices, but resource pool \{pool\} is currently being updated"
    ):
        one_claim(slices, claim=make_claim("c", request(everything=True)))
    assert one_claim(slices, claim=make_claim("c")) is None


def test_all_breaks_where_a_constraint_does_not_hold() -> None:
    slices = make_slice("n", device("a", numa=0), device("b", numa=1))
    with pytest.raises(AllocationError, match=r"cannot add device \{device\} because a claim constraint"):
        one_claim(slices, claim=make_claim("c", request(everything=True), constraints=(SAME_NUMA,)))


def test_more_devices_than_a_claim_may_have_are_an_error() -> None:
    slices = make_slice("n", *(device(f"d{i}") for i in range(40)))
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds the claim limit of 32"):
        one_claim(slices, claim=make_claim("c", request(count=33)))


def test_an_alternative_that_makes_a_claim_too_large_is_passed_over() -> None:
    slices = make_slice("n", *(device(f"d{i}") for i in range(60)))
    claim = make_claim("c", first_of("x", ("many", 30, "true"), ("one", 1, "true")), request("y", 20))
    found = one_claim(slices, claim=claim)
    assert found is not None
    assert found[0] == "x/one d0"
    assert len(found) == 21


def test_admin_access_goes_to_devices_in_use_but_once_per_claim() -> None:
    slices = make_slice("n", device("a"), device("b"))
    holding = allocated(make_claim("other"), "n/a", "n/b")
    twice = make_claim("c", request("x", admin=True), request("y", admin=True))
    assert search(slices, claims=(twice,), holding=(holding,)) == [["x a", "y b"]]


def test_a_device_is_not_taken_after_an_admin_of_the_same_pod_but_before() -> None:
    slices = make_slice("n", device("a"))
    admin, user = make_claim("admin", request(admin=True)), make_claim("user")
    assert search(slices, claims=(admin, user)) is None
    assert search(slices, claims=(user, admin)) == [["r a"], ["r a"]]


def test_tainted_devices_need_a_toleration() -> None:
    slices = make_slice("n", device("a", taint="repair"), device("b"))
    assert one_claim(slices, claim=make_claim("c")) == ["r b"]
    assert one_claim(slices, claim=make_claim("c", request(tolerates="repair"))) == ["r a"]


def test_partitions_draw_from_what_is_left_of_their_counters() -> None:
    devices = (
        device("half-0", draws={"mem": "5"}),
        device("half-1", draws={"mem": "5"}),
        device("whole", draws={"mem": "10"}),
    )
    slices = (make_counters("n", mem="10"), make_slice("n", *devices, of=2))
    assert search(*slices, claims=(make_claim("c", request(count=2)),)) == [["r half-0", "r half-1"]]
    assert search(*slices, claims=(make_claim("c", request(count=3)),)) is None
    holding = allocated(make_claim("other"), "n/whole")
    assert search(*slices, claims=(make_claim("c"),), holding=(holding,)) is None


def test_a_shared_device_goes_to_several_requests_until_its_capacity_is_used_up() -> None:
    slices = make_slice("n", device("a", shared=True, capacity={"mem": "10Gi"}))
    part = {"capacity": {"mem": "4Gi"}}
    claim = make_claim("c", request("x", **part), request("y", **part))  # type: ignore[arg-type]
    assert one_claim(slices, claim=claim) == ["x a", "y a"]
    third = make_claim("d", request("z", **part))  # type: ignore[arg-type]
    assert search(slices, claims=(claim, third)) is None


def test_a_shared_device_draws_from_counters_once_though_its_holder_consumes_nothing() -> None:
    shared = device("a", shared=True, capacity={"mem": "10Gi"}, draws={"slots": "1"})
    slices = (make_counters("n", slots="1"), make_slice("n", shared, of=2))
    holding = results_changed(allocated(make_claim("other"), "n/a"), share_id="s", consumed_capacity={"mem": "0"})
    claim = make_claim("c", request(capacity={"mem": "1Gi"}))
    assert search(*slices, claims=(claim,), holding=(holding,)) == [["r a"]]


def test_one_request_never_gets_the_same_shared_device_twice() -> None:
    slices = make_slice("n", device("a", shared=True, capacity={"mem": "10Gi"}))
    assert one_claim(slices, claim=make_claim("c", request("x", 2, capacity={"mem": "1Gi"}))) is None


@pytest.mark.parametrize(
    ("asked", "taken"),
    [(None, "1Gi"), ("1Mi", "2Gi"), ("3Gi", "4Gi"), ("8Gi", "8Gi"), ("9Gi", None)],
)
def test_what_is_taken_of_a_capacity_follows_the_policy_of_the_device(asked: str | None, taken: str | None) -> None:
    policy = CapacityPolicy(default="1Gi", valid_range=CapacityRange(min="2Gi", max="8Gi", step="2Gi"))
    slices = make_slice(
        "n", device("a", shared=True, capacity={"mem": DeviceCapacity(value="16Gi", request_policy=policy)})
    )
    state = ClusterState()
    for obj in (Node(metadata=ObjectMeta(name="n")), make_class(), slices):
        state.apply(obj)
    view = ClusterDevices(state)
    view.inventories.refresh()
    claim = make_claim("c", request(capacity={"mem": asked} if asked else None))
    demand = Demand([claim.spec], {"gpu": make_class()}, Selectors())
    inventory = view.inventories.of(0)
    found = Search(demand, inventory, inventory.use(view.ledger)).run()
    if taken is None:
        assert found is None
        return
    assert found is not None
    amounts = found.claims[0][0].amounts
    assert amounts is not None
    assert amounts["mem"].text == taken


def test_where_a_device_leads_nowhere_those_that_are_like_it_are_not_tried() -> None:
    requests = [request(f"r{i}", 1, attribute_is("numa", 0)) for i in range(17)]
    time = SearchTime()
    for number, is_met in ((16, True), (17, False)):
        state = ClusterState()
        slices = make_slice("n", *(device(f"d{i}", numa=i % 2, serial=i) for i in range(32)))
        for obj in (Node(metadata=ObjectMeta(name="n")), make_class(), slices):
            state.apply(obj)
        view, time = ClusterDevices(state), SearchTime(ticking(), timeout=200)
        claim = make_claim("c", *requests[:number])
        assert view.answer([claim.spec], time).fits.tolist() == [is_met]
    assert time._steps < 100


def test_a_search_that_takes_too_long_is_given_up() -> None:
    state = ClusterState()
    slices = make_slice("n", *(device(f"d{i}", numa=i % 2, serial=i) for i in range(24)))
    for obj in (Node(metadata=ObjectMeta(name="n")), make_class(), slices):
        state.apply(obj)
    view = ClusterDevices(state)
    view.inventories.refresh()
    claim = make_claim("c", request("r", 13, ALL_DIFFERENT), constraints=(SAME_NUMA,))
    demand = Demand([claim.spec], {"gpu": make_class()}, Selectors())
    inventory = view.inventories.of(0)
    with pytest.raises(AllocationError, match="timed out trying to allocate devices") as caught:
        Search(demand, inventory, inventory.use(view.ledger), SearchTime(ticking(), timeout=10)).run()
    assert caught.value.is_passing


def ticking(**limits: float) -> Budget:
    """A budget to which a second passes with every look."""
    seconds = count()
    budget = Budget(lambda: float(next(seconds)), **limits)
    budget.begin(0.0)
    return budget


@given(
    devices=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=7),
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    claims=st.integers(1, 2),
    turn=st.integers(0, 5),
)
def test_a_search_that_is_interrupted_finds_the_same_and_repeats_nothing_but_its_way(
    devices: list[tuple[int, int]], counts: list[int], claims: int, turn: int
) -> None:
    state = ClusterState()
    listed = (device(f"d{i}", numa=numa, model="ab"[model]) for i, (numa, model) in enumerate(devices))
    for obj in (Node(metadata=ObjectMeta(name="n")), make_class(), make_slice("n", *listed)):
        state.apply(obj)
    view = ClusterDevices(state)
    view.inventories.refresh()
    inventory = view.inventories.of(0)
    alternatives = first_of("f", ("a", 3, attribute_is("model", "a")), ("b", 1, "true"))
    requests = (*(request(f"r{i}", n) for i, n in enumerate(counts)), alternatives)
    asked = [make_claim(f"c{i}", *requests, constraints=(SAME_NUMA,)) for i in range(claims)]
    demand = Demand([claim.spec for claim in asked], {"gpu": make_class()}, Selectors())
    use = inventory.use(view.ledger)
    whole = SearchTime()
    expected = Search(demand, inventory, use, whole).run()
    path: Path = ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demands, "_STEPS_BETWEEN_LOOKS", 1)
        patch.setattr(demands, "_EVALUATIONS_BETWEEN_LOOKS", 1)
        for turns in count():
            # A turn must be longer than the way back to where the last one ended.
            time = SearchTime(ticking(turn=turn + 40))
            search = Search(demand, inventory, use, time, path)
            try:
                found = search.run()
                break
            except TurnOverError:
                path = search.path
            assert turns <= whole._steps
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.claims == expected.claims
        assert found.selected == expected.selected


def test_a_search_that_is_interrupted_comes_to_its_end() -> None:
    state = ClusterState()
    slices = make_slice("n", *(device(f"d{i}", numa=i % 2, serial=i) for i in range(20)))
    for obj in (Node(metadata=ObjectMeta(name="n")), make_class(), slices):
        state.apply(obj)
    view = ClusterDevices(state)
    view.inventories.refresh()
    claim = make_claim("c", request("r", 11, ALL_DIFFERENT), constraints=(SAME_NUMA,))
    demand = Demand([claim.spec], {"gpu": make_class()}, Selectors())
    inventory = view.inventories.of(0)
    use, whole = inventory.use(view.ledger), SearchTime()
    assert Search(demand, inventory, use, whole).run() is None
    path: Path = ()
    steps = turns = 0
    while True:
        time = SearchTime(ticking(turn=0.5))
        search = Search(demand, inventory, use, time, path)
        try:
            assert search.run() is None
            break
        except TurnOverError:
            path, steps, turns = search.path, steps + time._steps, turns + 1
    assert turns > 5
    assert steps <= whole._steps + turns * 16


def test_a_pod_may_have_as_many_devices_as_many_claims_allow() -> None:
    slices = make_slice("n", *(device(f"d{i}") for i in range(500)))
    found = search(slices, claims=tuple(make_claim(f"c{i}", request(count=32)) for i in range(15)))
    assert found is not None
    assert sum(map(len, found)) == 480
