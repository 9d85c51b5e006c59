"""Which pods an event wakes, and whether they must sit out their backoff: unusual pods, and unusual plugins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace
from tests.unit.scheduler import plugin_world
from tests.unit.scheduler.world import World, names

from kubesched.api.change import Change
from kubesched.api.meta import ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import EphemeralSource, ExtendedResourceClaimStatus, Pod, Volume
from kubesched.api.storage import PersistentVolumeClaim, PersistentVolumeClaimTemplate
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, ClusterEvent, Hint, Interest, Kind
from kubesched.framework.nodes import NodeView
from kubesched.framework.plugin import FilterPlugin, PreEnqueuePlugin
from kubesched.framework.status import Code, Status, unschedulable
from kubesched.scheduler.cluster_events import node_events
from kubesched.state.cluster import ClusterState
from kubesched.testing import PodBuilder, make_node, make_pod

NODE_ADDED = ClusterEvent(Kind.NODE, Action.ADD)


def with_ephemeral_volume(pod: PodBuilder) -> PodBuilder:
    source = EphemeralSource(volume_claim_template=PersistentVolumeClaimTemplate())
    return pod.spec(volumes=(Volume(name="data", ephemeral=source),))


def test_claim_of_an_ephemeral_volume_wakes_only_its_pod() -> None:
    """Pods that are alike in all but their names wait for claims of different names."""
    world = World(make_node("n1"), with_ephemeral_volume(make_pod("a")), with_ephemeral_volume(make_pod("b")))
    world.tried()
    world.tried()
    world.see(PersistentVolumeClaim(metadata=ObjectMeta(name="b-data", namespace="default", uid="1")))
    assert names(world.queue.backoff()) == ["b"]


def test_pod_that_waits_for_devices_hears_of_a_claim_made_for_its_extended_resources() -> None:
    pod = make_pod("a").requests({"example.com/gpu": "1"})
    world = World(make_node("n1"), pod)
    attempt = world.tried()
    attempt.queued.unschedulable_plugins.add("DynamicResources")
    made = ExtendedResourceClaimStatus(resource_claim_name="gpus")
    world.see(replace(world.cluster.pod("a"), status=replace(pod.build().status, extended_resource_claim_status=made)))
    assert names(world.queue.backoff()) == ["a"]


def test_pod_that_was_given_to_another_scheduler_leaves_the_queue_with_the_next_event() -> None:
    world = World(make_node("n1"), make_pod("a").requests(cpu="5"))
    world.tried()
    world.see(make_pod("a").requests(cpu="5").spec(scheduler_name="other"))
    assert names(world.queue.backoff()) == ["a"]
    assert world.tried().outcome == "skipped"


class Rejecting(FilterPlugin):
    """Waits for nodes, and says of each what the test tells it to."""

    name = "Rejecting"
    status = unschedulable("no")

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return self.status

    def events_to_register(self) -> Sequence[Interest]:
        return (Interest(NODE_ADDED, self.hint),)

    def hint(self, pod: Pod, old: None, new: Node, state: ClusterState) -> Hint:
        return Hint.QUEUE


class Broken(Rejecting):
    def hint(self, pod: Pod, old: None, new: Node, state: ClusterState) -> Hint:
        raise RuntimeError("oops")


class Pending(Rejecting):
    status = Status(Code.PENDING, ("not yet",))


class NoHelp(Pending):
    def hint(self, pod: Pod, old: None, new: Node, state: ClusterState) -> Hint:
        return Hint.SKIP


def rejected_by(plugin: type[Rejecting]) -> plugin_world.World:
    world = plugin_world.World(plugin)
    world.add(make_pod("a").build())
    return world


@pytest.mark.parametrize(
    ("plugin", "place"),
    [(Rejecting, "backoff"), (Broken, "backoff"), (Pending, "active"), (NoHelp, "unschedulable")],
)
@pytest.mark.parametrize("when", ["during the attempt", "later"])
def test_where_a_pod_goes_by_the_word_of_a_plugin(plugin: type[Rejecting], place: str, when: str) -> None:
    world = rejected_by(plugin)
    attempt = world.attempt()
    if when == "later":
        world.finish(attempt)
    world.cluster.put(make_node("n2").capacity(cpu="1").build())
    world.cluster.tell(world.scheduler)
    if when == "during the attempt":
        world.finish(attempt)
    places = {name: [pod for pods in group for pod in pods] for name, group in world.scheduler.queue.places().items()}
    assert {name: names(pods) for name, pods in places.items() if pods} == {place: ["a"]}


@pytest.mark.parametrize(("before", "after", "differ"), [("1", "1000m", False), ("100u", "200u", True)])
def test_node_offers_something_else_if_the_amount_differs_however_little(before: str, after: str, differ: bool) -> None:
    old, new = (make_node("n1").capacity(cpu=cpu).build() for cpu in (before, after))
    assert bool(node_events(old, new)) is differ


def test_who_waits_for_anything_new_hears_of_every_kind() -> None:
    anything_new = ClusterEvent(Kind.ANY, Action.ADD)
    assert anything_new.covers(NODE_ADDED)
    assert anything_new.covers(ClusterEvent("racks.v1.example.com", Action.ADD))
    assert not anything_new.covers(ClusterEvent(Kind.NODE, Action.DELETE))


class CountedGate(PreEnqueuePlugin):
    """Lets pods pass when there is a node, and counts how often it is asked about pods, and about changes."""

    name = "CountedGate"
    asked: ClassVar[list[str]] = []

    def events_to_register(self) -> tuple[Interest, ...]:
        return (Interest(NODE_ADDED),)

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        self.asked.append(pod.name)
        return None if state.nodes.live_count else unschedulable("no nodes")

    def pods_to_recheck(self, change: Change[Any]) -> Collection[str] | None:
        self.asked.append("change")
        return {"default/a"}


def test_an_event_asks_a_gate_once_about_each_pod() -> None:
    world = World(make_pod("a"), make_pod("b"), plugins=(CountedGate,))
    CountedGate.asked.clear()
    world.see(make_node("n1"))
    assert CountedGate.asked == ["a", "b"]
    assert names(world.queue.active()) == ["a", "b"]


def test_a_batched_queue_asks_a_gate_once_which_pods_to_recheck_and_then_about_those() -> None:
    world = World(make_pod("a"), make_pod("b"), plugins=(CountedGate,), batched=True)
    CountedGate.asked.clear()
    world.see(make_node("n1"))
    assert CountedGate.asked == ["change", "a"]
    assert (names(world.queue.active()), names(world.queue.unschedulable())) == (["a"], ["b"])
