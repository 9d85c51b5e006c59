from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.builders import make_cluster
from tests.device_builders import allocated, device, make_claim, make_class, make_counters, make_slice, results_changed

from kubesched.api.device_claims import FINALIZER, AllocatedDevice, AllocationResult, DeviceAllocation, ResourceClaim
from kubesched.api.pod import ResourceRequirements
from kubesched.api.quantity import Family, family_of, parse_quantity, spell
from kubesched.cel import compile_selector
from kubesched.plugins.dynamic_resources.claims import consumer_of
from kubesched.plugins.dynamic_resources.extended import demand_of
from kubesched.plugins.dynamic_resources.writes import (
    ClaimGoneAnotherWayError,
    DeallocateClaim,
    ReserveClaim,
    UnreserveClaim,
    apply_to_claim,
)
from kubesched.plugins.shared.devices.device_kinds import DeviceKinds
from kubesched.plugins.shared.devices.extended_resources import ServedResources
from kubesched.plugins.shared.devices.ledger import Ledger
from kubesched.plugins.shared.devices.pools import build_pool
from kubesched.state.objects import ObjectStore
from kubesched.testing import make_pod

POOL = ("gpu.example.com", "n")
DEVICE = (*POOL, "d")
ON_D = AllocationResult(devices=DeviceAllocation(results=(AllocatedDevice(driver=POOL[0], pool="n", device="d"),)))


def at_version(claim: ResourceClaim, version: int) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, resource_version=str(version)))


# -- what is in use ---------------------------------------------------------------------------------------------------


def test_a_written_allocation_counts_until_the_watch_shows_something_at_least_as_new() -> None:
    objects = ObjectStore()
    ledger, claim = Ledger(objects), make_claim("c")
    objects.put(at_version(claim, 1))
    ledger.set_aside(claim, ON_D)
    ledger.assume(at_version(allocated(claim, "n/d"), 3))
    ledger.release(claim)
    assert ledger.devices_in_use() == [DEVICE]
    objects.put(at_version(claim, 2))  # the finalizer, which was written before the allocation
    ledger.refresh()
    assert ledger.devices_in_use() == [DEVICE]
    objects.put(at_version(claim, 4))  # and somebody has taken the allocation away again
    ledger.refresh()
    assert ledger.devices_in_use() == []


def test_a_claim_that_the_watch_shows_before_the_write_returns_counts_once() -> None:
    objects = ObjectStore()
    ledger, claim = Ledger(objects), make_claim("c")
    share = replace(ON_D.devices.results[0], share_id="s", consumed_capacity={"mem": "2Gi"})
    allocation = AllocationResult(devices=DeviceAllocation(results=(share,)))
    objects.put(claim)
    ledger.set_aside(claim, allocation)
    objects.put(replace(claim, status=replace(claim.status, allocation=allocation)))
    ledger.refresh()
    assert ledger.capacity_in_use() == {DEVICE: {"mem": "2Gi"}}
    ledger.release(claim)
    assert ledger.capacity_in_use() == {DEVICE: {"mem": "2Gi"}}


def test_a_share_of_nothing_is_in_use_until_it_is_given_back() -> None:
    objects = ObjectStore()
    ledger, claim = Ledger(objects), make_claim("c")
    nothing = results_changed(allocated(claim, "n/d"), share_id="s", consumed_capacity={"mem": "0"})
    some = results_changed(allocated(make_claim("more"), "n/d"), share_id="t", consumed_capacity={"mem": "2Gi"})
    assert nothing.status.allocation is not None
    objects.put(at_version(claim, 1))
    ledger.set_aside(claim, nothing.status.allocation)
    ledger.assume(at_version(nothing, 2))
    ledger.release(claim)
    assert ledger.capacity_in_use() == {DEVICE: {"mem": "0"}}
    objects.put(some)
    ledger.refresh()
    assert ledger.capacity_in_use() == {DEVICE: {"mem": "2Gi"}}
    objects.remove(some)
    ledger.refresh()
    assert ledger.capacity_in_use() == {DEVICE: {"mem": "0"}}
    objects.put(at_version(claim, 3))
    ledger.refresh()
    assert ledger.capacity_in_use() == {}


def test_a_claim_made_anew_under_the_same_name_is_not_pending() -> None:
    objects = ObjectStore()
    ledger, claim = Ledger(objects), make_claim("c")
    ledger.set_aside(claim, ON_D)
    assert ledger.is_pending(claim)
    assert not ledger.is_pending(replace(claim, metadata=replace(claim.metadata, uid="another")))


def test_a_deleted_claim_gives_its_devices_back() -> None:
    objects = ObjectStore()
    ledger, claim = Ledger(objects), allocated(make_claim("c"), "n/d")
    objects.put(claim)
    ledger.refresh()
    assert ledger.holders() == {DEVICE: ["default/c"]}
    objects.remove(claim)
    ledger.refresh()
    assert ledger.devices_in_use() == []


def test_devices_with_admin_access_are_not_in_use() -> None:
    objects = ObjectStore()
    claim = allocated(make_claim("c"), "n/d")
    assert claim.status.allocation is not None
    admin = replace(claim.status.allocation.devices.results[0], admin_access=True)
    allocation = AllocationResult(devices=DeviceAllocation(results=(admin,)))
    objects.put(replace(claim, status=replace(claim.status, allocation=allocation)))
    ledger = Ledger(objects)
    ledger.refresh()
    assert ledger.devices_in_use() == []


# -- pools ------------------------------------------------------------------------------------------------------------


def test_a_pool_of_which_slices_are_missing_is_incomplete() -> None:
    one = make_slice("n", device("a"), of=2)
    pool = build_pool(POOL, [one], [one], [None], DeviceKinds())
    assert pool is not None
    assert pool.is_incomplete


def test_a_pool_that_is_being_replaced_elsewhere_is_ignored() -> None:
    old, new = make_slice("n", device("a"), of=2), make_slice("m", device("a"), pool="n", name="new", generation=2)
    assert build_pool(POOL, [old], [old, new], [None], DeviceKinds()) is None


@pytest.mark.parametrize(
    ("slices", "fault"),
    [
        ([make_slice("n", device("a"), device("a"))], "duplicate device name a"),
        ([make_slice("n", device("a", draws={"x": 1}))], "counter set all not found"),
        (
            [make_counters("n", y=1), make_slice("n", device("a", draws={"x": 1}), of=2)],
            "counter x not found in counter set all",
        ),
    ],
)
def test_slices_that_contradict_each_other_make_a_pool_invalid(slices: list[object], fault: str) -> None:
    pool = build_pool(POOL, slices, slices, [None] * len(slices), DeviceKinds())  # type: ignore[arg-type]
    assert pool is not None
    assert pool.fault == fault


# -- which attributes matter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('device.driver == "x"', set()),
        ('device.attributes["d"].model == "a"', {"d/model"}),
        ('device.attributes["d"]["model"] == "a" && has(device.attributes["e"].numa)', {"d/model", "e/numa"}),
        ('"model" in device.attributes["d"]', {"d/model"}),
        ('cel.bind(a, device.attributes["d"], a.x == 1 || a.y == 2)', {"d/x", "d/y"}),
        ('device.capacity["d"].mem.compareTo(quantity("1Gi")) > 0', set()),
        ('device.attributes["d"].?x.orValue(1) == 1', {"d/x"}),
    ],
)
def test_attributes_that_are_named_are_the_only_ones_that_matter(expression: str, names: set[str]) -> None:
    assert compile_selector(expression).names == frozenset(names)


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["d"].exists(name, name == "x")',
        '"d" in device.attributes',
        'device.attributes["d"] == {}',
        "device.attributes[device.driver].x == 1",
        'cel.bind(all, device.attributes, all["d"].x == 1)',
        'cel.bind(d, device, d.attributes["d"].x == 1)',
    ],
)
def test_whoever_does_anything_else_with_attributes_may_depend_on_all(expression: str) -> None:
    assert compile_selector(expression).names is None


# -- extended resources -----------------------------------------------------------------------------------------------


def test_an_init_container_uses_the_devices_of_those_that_run_after_it() -> None:
    pod = make_pod("p").init_container("prepare", cpu="1").requests(cpu="1")
    pod = pod.spec(
        init_containers=(replace(pod.build().spec.init_containers[0], resources=gpus(3)),),
        containers=(replace(pod.build().spec.containers[0], resources=gpus(2)),),
    )
    demand = demand_of(pod.build(), {"example.com/gpu": "gpu"})
    counts = {request.name: request.exactly.count for request in demand.requests if request.exactly is not None}
    assert counts == {"container-0-request-0": 1, "container-1-request-0": 2}
    assert [(m.container_name, m.request_name) for m in demand.mappings] == [
        ("main", "container-1-request-0"),
        ("prepare", "container-1-request-0"),
        ("prepare", "container-0-request-0"),
    ]


def gpus(count: int) -> ResourceRequirements:
    return ResourceRequirements(requests={"example.com/gpu": count})


# -- writes -----------------------------------------------------------------------------------------------------------


def test_an_allocation_is_written_with_finalizer_time_and_reservation() -> None:
    pod = make_pod("p").build()
    claim = make_claim("c")
    written = apply_to_claim(ReserveClaim(claim, consumer_of(pod), ON_D, now="2026-01-01T00:00:00Z"), claim)
    assert written.metadata.finalizers == (FINALIZER,)
    assert written.is_reserved_for("uid-of-p")
    assert written.status.allocation is not None
    assert written.status.allocation.allocation_timestamp == "2026-01-01T00:00:00Z"
    assert written.status.allocation.devices == ON_D.devices
    assert not apply_to_claim(UnreserveClaim(written, "uid-of-p"), written).status.reserved_for
    assert apply_to_claim(DeallocateClaim(written), written).status.allocation is None


def test_a_claim_that_has_gone_another_way_is_left_alone() -> None:
    pod, claim = make_pod("p").build(), make_claim("c")
    reserve = ReserveClaim(claim, consumer_of(pod), ON_D, now="")
    with pytest.raises(ClaimGoneAnotherWayError, match="got allocated elsewhere"):
        apply_to_claim(reserve, allocated(claim, "n/e"))
    with pytest.raises(ClaimGoneAnotherWayError, match="got deleted"):
        apply_to_claim(reserve, replace(claim, metadata=replace(claim.metadata, uid="another")))
    with pytest.raises(ClaimGoneAnotherWayError, match="got deallocated elsewhere"):
        apply_to_claim(replace_allocation(reserve), claim)
    with pytest.raises(ClaimGoneAnotherWayError, match="got reserved for another pod"):
        apply_to_claim(DeallocateClaim(allocated(claim, "n/d")), allocated(claim, "n/d", reserved_for="somebody"))


def replace_allocation(write: ReserveClaim) -> ReserveClaim:
    return ReserveClaim(write.claim, write.consumer, None, write.now)


# -- quantities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spelled"),
    [("1536Mi", "1536Mi"), ("1024Mi", "1Gi"), ("0.5", "500m"), ("2000", "2k"), ("1e3", "1e3"), ("1000Ki", "1000Ki")],
)
def test_quantities_are_spelled_in_their_own_family(text: str, spelled: str) -> None:
    assert spell(parse_quantity(text).nano(), family_of(text)) == spelled


def test_small_binary_quantities_are_spelled_as_decimal_ones() -> None:
    assert spell(512 * 10**9, Family.BINARY) == "512"


def test_classes_of_one_resource_are_told_apart_by_age_and_name() -> None:
    old, new, other = (make_class(name, resource="example.com/gpu") for name in ("a", "c", "b"))
    new, other = (
        replace(one, metadata=replace(one.metadata, creation_timestamp="2026-01-01T00:00:00Z")) for one in (new, other)
    )
    found = make_cluster(old, new, other).companion(ServedResources).class_of("example.com/gpu")
    assert found is not None
    assert found.name == "b"
