"""What is kept and repaired from pod to pod must be what a search from scratch finds, on every node."""

from __future__ import annotations

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
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
)

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.device_claims import DeviceConstraint, ResourceClaim, ResourceClaimSpec
from kubesched.api.devices import Device, DeviceClass, ResourceSlice
from kubesched.framework.budget import Budget, TurnOverError
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.demand import AllocationError, Demand, SearchTime
from kubesched.plugins.shared.devices.device_answer import DeviceAnswer
from kubesched.plugins.shared.devices.search import Search
from kubesched.plugins.shared.devices.selecting import Selectors
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node

NODES = ("n0", "n1", "n2")
DEMANDS = (
    (make_claim("c"),),
    (make_claim("c", request("r", 2, attribute_is("model", "a"))),),
    (make_claim("c", request("r", 2), constraints=(DeviceConstraint(match_attribute=f"{DRIVER}/numa"),)),),
    (make_claim("c", first_of("x", ("a", 2, attribute_is("model", "a")), ("b", 1, "true"))), make_claim("d")),
    (make_claim("c", request("r", everything=True)),),
    (make_claim("c", request("r", capacity={"mem": "3Gi"})),),
    (make_claim("c", request("r", 1, f'device.attributes["{DRIVER}"].exists(name, name == "serial")')),),
)


@st.composite
def devices(draw: st.DrawFn, name: str) -> Device:
    """A device that is like others but for its serial number, more often than not."""
    attributes: dict[str, str | int] = {"numa": draw(st.integers(0, 1))}
    if draw(st.integers(0, 4)):
        attributes["model"] = draw(st.sampled_from(["a", "b"]))
    if draw(st.booleans()):
        attributes["serial"] = draw(st.integers(0, 1000))
    return device(
        name,
        capacity={"mem": draw(st.sampled_from(["2Gi", "4Gi"]))} if draw(st.booleans()) else None,
        draws={"x": draw(st.integers(1, 2))} if draw(st.integers(0, 2)) == 0 else None,
        taint="repair" if draw(st.integers(0, 5)) == 0 else "",
        shared=draw(st.integers(0, 3)) == 0,
        **attributes,  # type: ignore[arg-type]
    )


@st.composite
def slices(draw: st.DrawFn) -> list[ResourceSlice]:
    """All slices of a node's own pool, or one that several nodes can use."""
    found = [draw(devices(f"d{i}")) for i in range(draw(st.integers(1, 4)))]
    node = draw(st.sampled_from(NODES))
    if draw(st.integers(0, 3)) == 0:
        zone = NodeSelectorRequirement(key="zone", operator="In", values=(draw(st.sampled_from("ab")),))
        selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(zone,)),))
        plain = [one for one in found if not one.consumes_counters]
        return [make_slice("", *plain, pool="wide", name="wide", node_selector=selector)]
    if any(one.consumes_counters for one in found):
        return [make_counters(node, x=draw(st.integers(1, 4))), make_slice(node, *found, of=2)]
    return [make_slice(node, *found, generation=draw(st.integers(1, 2)))]


class Searching(RuleBasedStateMachine):
    """A cluster that changes, and a view of its devices that follows."""

    @initialize()
    def begin(self) -> None:
        self.state = ClusterState()
        self.state.apply(make_class())
        for i, name in enumerate(NODES):
            self.state.apply(make_node(name).label(zone="ab"[i % 2]).build())
        self.view = ClusterDevices(self.state)
        self.claims: dict[str, ResourceClaim] = {}
        self.turns = 0

    @rule(published=slices())
    def publish(self, published: list[ResourceSlice]) -> None:
        for one in published:
            self.state.apply(one)

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        known = list(self.state.objects.all(ResourceSlice))
        if known:
            self.state.delete(data.draw(st.sampled_from(known)))

    @rule(name=st.sampled_from(NODES), zone=st.sampled_from("abc"))
    def move(self, name: str, zone: str) -> None:
        self.state.apply(make_node(name).label(zone=zone).build())

    @rule(name=st.sampled_from("xyz"), pool=st.sampled_from((*NODES, "wide")), numbers=st.sets(st.integers(0, 3)))
    def allocate(self, name: str, pool: str, numbers: set[int]) -> None:
        claim = allocated(make_claim(name), *(f"{pool}/d{i}" for i in numbers))
        self.state.apply(claim)

    @rule(name=st.sampled_from("xyz"))
    def deallocate(self, name: str) -> None:
        self.state.apply(make_claim(name))

    @rule(data=st.data(), pool=st.sampled_from(NODES))
    def set_aside(self, data: st.DataObject, pool: str) -> None:
        claim = allocated(make_claim("pending"), f"{pool}/d{data.draw(st.integers(0, 3))}")
        assert claim.status.allocation is not None
        if self.view.ledger.is_pending(claim):
            self.view.ledger.release(claim)
        else:
            self.view.ledger.set_aside(claim, claim.status.allocation)

    @rule(expression=st.sampled_from(["true", 'device.driver == "other"', attribute_is("model", "a")]))
    def change_class(self, expression: str) -> None:
        self.state.apply(make_class("gpu", expression))

    @invariant()
    def what_is_kept_is_what_a_search_finds(self) -> None:
        for claims in DEMANDS:
            specs = [claim.spec for claim in claims]
            answer = self._in_turns(specs)
            for row in range(len(NODES)):
                outcome = answer.outcomes[row]
                kept = (
                    self.view.message_of(outcome.error, row, claims)
                    if outcome.error is not None
                    else None
                    if outcome.found is None
                    else [[(one.request.name, one.spot) for one in chosen] for chosen in outcome.found.claims]
                )
                assert kept == self._from_scratch(claims, row)
                assert answer.fits[row] == (outcome.found is not None)

    def _in_turns(self, specs: list[ResourceClaimSpec]) -> DeviceAnswer:
        """As often as not the search is interrupted whenever it has found out something."""
        self.turns += 1
        if self.turns % 2:
            return self.view.answer(specs, SearchTime())
        while True:
            seconds = count()
            budget = Budget(lambda: float(next(seconds)), turn=0.5)  # noqa: B023 - used up before the next
            budget.begin(1.0)
            try:
                return self.view.answer(specs, SearchTime(budget))
            except TurnOverError:
                continue

    def _from_scratch(self, claims: tuple[ResourceClaim, ...], row: int) -> object:
        fresh = ClusterDevices(self.state)
        for identity, allocation in self.view.ledger._pending.items():
            claim = make_claim(identity.partition(" ")[0].partition("/")[2])
            fresh.ledger.set_aside(claim, allocation)
        fresh.inventories.refresh()
        classes = {one.name: one for one in self.state.objects.all(DeviceClass)}
        demand = Demand([claim.spec for claim in claims], classes, Selectors())
        inventory = fresh.inventories.of(row)
        try:
            found = Search(demand, inventory, inventory.use(fresh.ledger)).run()
        except AllocationError as problem:
            return fresh.message_of(problem, row, claims)
        if found is None:
            return None
        return [[(one.request.name, one.spot) for one in chosen] for chosen in found.claims]


TestSearching = Searching.TestCase
TestSearching.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
