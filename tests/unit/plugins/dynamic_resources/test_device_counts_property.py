"""Counts that follow what changes must be what counting from scratch finds, and rows that changed must be recorded."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace
from tests.device_builders import allocated, attribute_is, device, make_claim, make_class, make_slice

from kubesched.api.affinity import NodeSelector
from kubesched.api.devices import Device, DeviceClass, ResourceSlice
from kubesched.api.node import Node
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.counting import DeviceCounts
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, node_term

NODES = ("n0", "n1", "n2")
POOLS = (*NODES, "wide", "mixed")
CLASSES = ("gpu", "picky")


def in_zone(zone: str) -> NodeSelector:
    return NodeSelector(node_selector_terms=(node_term("zone", "In", zone),))


@st.composite
def devices(draw: st.DrawFn) -> tuple[Device, ...]:
    """Some of model a or b; one that has no model breaks selectors."""
    models = draw(st.lists(st.sampled_from(["a", "a", "b", ""]), min_size=1, max_size=4))
    return tuple(device(f"d{i}", model=model) if model else device(f"d{i}") for i, model in enumerate(models))


@st.composite
def slices(draw: st.DrawFn) -> ResourceSlice:
    found, pool = draw(devices()), draw(st.sampled_from(POOLS))
    name, zone = f"{pool}-{draw(st.integers(0, 1))}", draw(st.sampled_from("ab"))
    if pool == "wide":
        return make_slice("", *found, pool=pool, name=name, node_selector=in_zone(zone))
    if pool == "mixed":
        places = ({"node_name": draw(st.sampled_from(NODES))}, {"all_nodes": True}, {"node_selector": in_zone(zone)})
        spread = (replace(one, **places[i % 3]) for i, one in enumerate(found))
        return make_slice("", *spread, pool=pool, name=name, per_device_node_selection=True)
    return make_slice(pool, *found, name=name, generation=draw(st.integers(1, 2)))


class Counting(RuleBasedStateMachine):
    """A cluster that changes, and counts of its devices that follow."""

    @initialize()
    def begin(self) -> None:
        self.state = ClusterState()
        self.state.apply(make_class("gpu"))
        self.state.apply(make_class("picky", attribute_is("model", "a")))
        for name in NODES:
            self.move(name, "a")
        self.counts = DeviceCounts(self.state)
        self.position, self.seen = 0, self._counted()

    @rule(published=slices())
    def publish(self, published: ResourceSlice) -> None:
        self.state.apply(published)

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        known = list(self.state.objects.all(ResourceSlice))
        if known:
            self.state.delete(data.draw(st.sampled_from(known)))

    @rule(name=st.sampled_from((*NODES, "n3")), zone=st.sampled_from("abc"))
    def move(self, name: str, zone: str) -> None:
        self.state.apply(make_node(name).label(zone=zone).build())

    @rule(name=st.sampled_from((*NODES, "n3")))
    def remove(self, name: str) -> None:
        self.state.delete(make_node(name).build())

    @rule(name=st.sampled_from("xyz"), pool=st.sampled_from(POOLS), numbers=st.sets(st.integers(0, 3)))
    def allocate(self, name: str, pool: str, numbers: set[int]) -> None:
        self.state.apply(allocated(make_claim(name), *(f"{pool}/d{i}" for i in numbers)))

    @rule(pool=st.sampled_from(POOLS))
    def set_aside_or_release(self, pool: str) -> None:
        ledger = self.state.companion(ClusterDevices).ledger
        claim = allocated(make_claim("pending"), f"{pool}/d0")
        assert claim.status.allocation is not None
        if ledger.is_pending(claim):
            ledger.release(claim)
        else:
            ledger.set_aside(claim, claim.status.allocation)

    @rule(model=st.sampled_from("ab"))
    def change_class(self, model: str) -> None:
        self.state.apply(make_class("picky", attribute_is("model", model)))

    @invariant()
    def counts_are_what_is_found_from_scratch_and_changes_are_recorded(self) -> None:
        self.counts.follow()
        recorded = self.state.nodes.changes.since(self.position)
        self.position = self.state.nodes.changes.position
        before, self.seen = self.seen, self._counted()
        assert self.seen == {key: self._from_scratch(*key) for key in self.seen}
        for (name, row), found in self.seen.items():
            if before.get((name, row), (0, 0)) != found:
                assert recorded is None or row in recorded

    def _counted(self) -> dict[tuple[str, int], tuple[int, int]]:
        found = {}
        for name in CLASSES:
            count = self.counts.of(self._class(name))
            for row in range(self.state.nodes.size):
                found[name, row] = (int(count.capacity[row]), int(count.in_use[row]))
        return found

    def _class(self, name: str) -> DeviceClass:
        found = self.state.objects.get(DeviceClass, name)
        assert found is not None
        return found

    def _from_scratch(self, class_name: str, row: int) -> tuple[int, int]:
        node = self.state.nodes.nodes[row]
        if node is None:
            return 0, 0
        in_use = set(self.state.companion(ClusterDevices).ledger.devices_in_use())
        expressions = self._class(class_name).spec.selectors
        capacity = used = 0
        for one in self.state.objects.all(ResourceSlice):
            for found in one.spec.devices:
                place = found if one.spec.per_device_node_selection else one.spec
                if not _is_within_reach(place.node_name, place.all_nodes, place.node_selector, node):
                    continue
                if expressions and "model" not in found.attributes:
                    return 0, 0
                if (
                    expressions
                    and expressions[0].cel
                    and f'"{found.attributes["model"].string_value}"' not in (expressions[0].cel.expression)
                ):
                    continue
                capacity += 1
                used += (one.spec.driver, one.spec.pool.name, found.name) in in_use
        return capacity, used


def _is_within_reach(name: str | None, is_for_all: bool, selector: NodeSelector | None, node: Node) -> bool:
    if selector is None:
        return is_for_all or node.name == name
    (term,) = selector.node_selector_terms
    return node.metadata.labels["zone"] in term.match_expressions[0].values


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
