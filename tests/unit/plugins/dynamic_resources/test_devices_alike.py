"""A search that does not try devices like those that led nowhere finds what one finds that tries them all."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
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

from kubesched.api.device_claims import DeviceConstraint, DeviceRequest, ResourceClaim
from kubesched.api.devices import Device, DeviceClass
from kubesched.api.release import RELEASES, V1_36, Release
from kubesched.config.features import Features
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.demand import AllocationError, Demand
from kubesched.plugins.shared.devices.device_equivalence import DeviceEquivalence
from kubesched.plugins.shared.devices.search import Search
from kubesched.plugins.shared.devices.selecting import Selectors
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node

MATCH, DISTINCT = (
    DeviceConstraint(match_attribute=f"{DRIVER}/numa"),
    DeviceConstraint(distinct_attribute=f"{DRIVER}/numa"),
)


@st.composite
def devices(draw: st.DrawFn) -> list[Device]:
    numbers = range(draw(st.integers(1, 6)))
    return [
        device(
            f"d{i}",
            numa=draw(st.integers(0, 2)),
            model=draw(st.sampled_from("ab")),
            serial=i,
            capacity={"mem": "4Gi"} if draw(st.booleans()) else None,
            draws={"x": draw(st.integers(1, 2))} if draw(st.integers(0, 2)) == 0 else None,
            shared=draw(st.integers(0, 2)) == 0,
            taint="repair" if draw(st.integers(0, 5)) == 0 else "",
        )
        for i in numbers
    ]


@st.composite
def requests(draw: st.DrawFn) -> DeviceRequest:
    name = draw(st.sampled_from(("p", "q", "r", "s")))
    kind, number = draw(st.integers(0, 6)), draw(st.integers(1, 3))
    if kind == 0:
        return first_of(name, ("a", number, attribute_is("model", "a")), ("b", 1, "true"))
    if kind == 1:
        return request(name, everything=True)
    if kind == 2:
        return request(name, capacity={"mem": "3Gi"})
    if kind == 3:
        return request(name, number, admin=True)
    return request(name, number, *((attribute_is("model", "b"),) if kind == 4 else ()))


@st.composite
def claims(draw: st.DrawFn) -> list[ResourceClaim]:
    constraints = st.lists(st.sampled_from((MATCH, DISTINCT)), max_size=2, unique=True)
    asked = st.lists(requests(), min_size=1, max_size=4, unique_by=lambda one: one.name)
    names = ("c", "d")[: draw(st.integers(1, 2))]
    return [make_claim(name, *draw(asked), constraints=tuple(draw(constraints))) for name in names]


def outcome(found: list[Device], asked: list[ResourceClaim], held: set[int], release: Release) -> object:
    """What a search finds on a node with the devices, some of which are held."""
    state = ClusterState(features=Features(release=release))
    names = [(f"n/d{i}", one.allow_multiple_allocations) for i, one in enumerate(found) if i in held]
    whole = allocated(make_claim("held"), *(name for name, is_shared in names if not is_shared))
    shares = allocated(make_claim("shared"), *(name for name, is_shared in names if is_shared))
    shares = results_changed(shares, share_id="s")
    for obj in (make_node("n").build(), make_class(), make_counters("n", x=4), make_slice("n", *found, of=2)):
        state.apply(obj)
    for holding in (whole, shares):
        state.apply(holding)
    view = ClusterDevices(state)
    view.inventories.refresh()
    inventory = view.inventories.of(0)
    classes = {one.name: one for one in state.objects.all(DeviceClass)}
    demand = Demand([claim.spec for claim in asked], classes, Selectors(release), state.features)
    demand.likeness = DeviceEquivalence(demand.names)
    try:
        devices_found = Search(demand, inventory, inventory.use(view.ledger)).run()
    except AllocationError as error:
        return view.message_of(error, 0, asked)
    if devices_found is None:
        return None
    return [[(one.request.name, one.spot) for one in chosen] for chosen in devices_found.claims]


ONE_APART_FROM_THE_LAST = make_claim(
    "c", request("p", 2), request("q", 3), request("r", 1, attribute_is("numa", 0)), constraints=(DISTINCT,)
)


@given(
    found=devices(),
    asked=claims(),
    held=st.sets(st.integers(0, 5), max_size=2),
    release=st.sampled_from(tuple(RELEASES.values())),
)
@example(
    found=[device(f"d{i}", numa=numa) for i, numa in enumerate((2, 0, 0, 2, 1, 2))],
    asked=[ONE_APART_FROM_THE_LAST],
    held=set(),
    release=V1_36,
)
@settings(max_examples=150, deadline=None)
def test_devices_like_one_that_led_nowhere_need_not_be_tried(
    found: list[Device], asked: list[ResourceClaim], held: set[int], release: Release
) -> None:
    sparing = outcome(found, asked, held, release)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "_likes_of", lambda self, spot: spot)
        assert outcome(found, asked, held, release) == sparing
