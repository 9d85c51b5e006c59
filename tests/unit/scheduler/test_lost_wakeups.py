"""Pods that waited for five minutes though there was room: what was found by random histories, one test each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members
from tests.unit.scheduler.world import World, names
from tests.waiting_steps import DOOR, volume_claim, volume_named, with_claim
from tests.waiting_world import FOREVER, Doorkeeper

from kubesched.api.affinity import PodAffinityTerm
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.storage import (
    StorageClass,
)
from kubesched.api.well_known import ZONE
from kubesched.api.workloads import Namespace
from kubesched.framework.events import ClusterEvent
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.listener import SchedulerListener
from kubesched.testing import NodeBuilder, make_node, make_pod

MODES = pytest.mark.parametrize(("batched", "wakes"), [(True, True), (False, False)], ids=["batched", "parity"])
"""kube-scheduler overlooks these, and recordings hold PARITY mode to it."""
BOTH = pytest.mark.parametrize("batched", [True, False], ids=["batched", "parity"])
LATE = StorageClass(
    metadata=ObjectMeta(name="late"),
    provisioner="kubernetes.io/no-provisioner",
    volume_binding_mode="WaitForFirstConsumer",
)


class EventLabels(SchedulerListener):
    """Which events the changes of the cluster were."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        self.labels += [event.label for event in events]


def world_with(*objects: object, batched: bool) -> World:
    world = World(*objects, batched=batched, longest_wait=FOREVER)  # type: ignore[arg-type]
    try_all(world)
    return world


def try_all(world: World) -> None:
    """Until nobody is to be tried, with backoffs over."""
    for _ in range(15):
        try_now(world)
        world.pass_seconds(1)


def try_now(world: World) -> None:
    while world.queue.has_next:
        world.tried()


def bound(world: World) -> dict[str, str]:
    return {pod.name: pod.spec.node_name for pod in world.cluster.pods.values() if pod.spec.node_name}


@BOTH
def test_pod_that_is_nominated_while_it_waits_for_its_turn_is_tried_though_its_equal_failed(batched: bool) -> None:
    """The room is kept for the nominated one, which is why the other one fails."""
    there, first, second = (make_pod(name).requests(cpu="1") for name in ("there", "first", "second"))
    world = world_with(make_node("n").capacity(cpu="1"), there.on("n"), first, second, batched=batched)
    world.lose(there.on("n"))
    world.see(second.nominated("n"))
    try_now(world)
    assert bound(world) == {"second": "n"}


@MODES
def test_preemptor_is_woken_by_what_stood_in_the_way_of_its_preemption(batched: bool, wakes: bool) -> None:
    """NodeResourcesFit rejects it first; with the victim gone VolumeBinding does, and that waits for a volume."""
    world = world_with(
        *(make_node("n").capacity(cpu="1"), make_pod("low").requests(cpu="1").on("n")),
        *(LATE, volume_claim("data", "late"), with_claim(make_pod("high").requests(cpu="1"), "data").priority(10)),
        batched=batched,
    )
    assert names(world.queue.unschedulable()) == ["high"]
    world.see(volume_named("v", "late"))
    try_all(world)
    assert bound(world) == ({"high": "n"} if wakes else {"low": "n"})


AVOIDS_WEB = make_pod("avoids web").pod_anti_affinity(ZONE, app="web").on("n")


@MODES
@pytest.mark.parametrize(
    "helps",
    [make_node("m").zone("b"), make_node("n").zone("b"), make_node("n")],
    ids=["comes", "moves", "leaves"],
)
def test_pod_that_others_avoid_runs_on_a_node_that_is_far_from_them(
    helps: NodeBuilder, batched: bool, wakes: bool
) -> None:
    """The others are on another node when this one moves."""
    world = world_with(
        *(make_node("n").zone("a"), make_node("other").zone("a")),
        *(AVOIDS_WEB.on("other"), make_pod("web").label(app="web")),
        batched=batched,
    )
    assert "web" not in bound(world)
    world.see(helps)
    try_all(world)
    assert ("web" in bound(world)) == wakes


def test_pods_that_wait_behind_an_equal_that_others_avoid_run_on_a_new_node() -> None:
    """They were rejected by a taint and woken; what the one that was tried meanwhile waits for is theirs as well."""
    equal = [make_pod(name).label(app="web").requests(cpu="1") for name in "ab"]
    world = world_with(make_node("n").zone("a").taint("dedicated"), *equal, batched=True)
    world.lose(make_node("n").zone("a").taint("dedicated"))
    world.see(AVOIDS_WEB.on("m"), make_node("m").zone("a"))
    try_now(world)
    assert set(bound(world)) == {"avoids web"}
    world.see(make_node("o").zone("b"))
    try_all(world)
    assert set(bound(world)) == {"avoids web", "a", "b"}


@MODES
def test_pod_with_several_terms_of_anti_affinity_is_woken_by_what_one_of_them_means(batched: bool, wakes: bool) -> None:
    waits = make_pod("waits").pod_anti_affinity(ZONE, app="web").pod_anti_affinity(ZONE, app="db")
    web = make_pod("web").label(app="web").on("n")
    world = world_with(make_node("n").zone("a"), web, waits, batched=batched)
    world.lose(web)
    try_all(world)
    assert ("waits" in bound(world)) == wakes


@MODES
def test_pod_that_wants_company_of_namespaces_by_label_is_woken_by_it(batched: bool, wakes: bool) -> None:
    term = PodAffinityTerm(
        topology_key=ZONE,
        label_selector=LabelSelector(match_labels={"app": "web"}),
        namespace_selector=LabelSelector(match_labels={"team": "a"}),
    )
    elsewhere = Namespace(metadata=ObjectMeta(name="elsewhere", labels={"team": "a"}))
    world = world_with(
        *(elsewhere, make_node("n").zone("a"), make_pod("waits").pod_affinity_term(term)), batched=batched
    )
    world.see(make_pod("web", namespace="elsewhere").label(app="web").on("n"))
    try_all(world)
    assert ("waits" in bound(world)) == wakes


@MODES
def test_room_kept_for_a_nominated_pod_is_free_when_another_scheduler_binds_it(batched: bool, wakes: bool) -> None:
    nominated = make_pod("nominated").never_preempting().requests(cpu="2").nominated("n")
    world = world_with(
        *(
            make_node("n").capacity(cpu="2"),
            make_node("m").capacity(cpu="1"),
            make_pod("there").requests(cpu="1").on("n"),
        ),
        *(nominated, make_pod("waits").requests(cpu="1").node_selector({"kubernetes.io/hostname": "n"})),
        batched=batched,
    )
    assert bound(world) == {"there": "n"}
    world.see(nominated.on("m"))
    try_all(world)
    assert bound(world) == {"there": "n", "nominated": "m"} | ({"waits": "n"} if wakes else {})


@MODES
@pytest.mark.parametrize("waits_at_door", [False, True], ids=["bound", "waits at the door"])
def test_room_kept_for_a_nominated_pod_is_free_when_that_finds_another_node(
    waits_at_door: bool, batched: bool, wakes: bool
) -> None:
    high = make_pod("high").requests(cpu="2").priority(10).toleration("dedicated", operator="Exists")
    high = high.label({DOOR: "yes"}) if waits_at_door else high
    world = World(make_node("n").capacity(cpu="1"), high, batched=batched, plugins=(Doorkeeper,), longest_wait=FOREVER)
    world.tried()
    world.see(high.nominated("n"), make_node("m").capacity(cpu="2").taint("dedicated"))
    world.see(make_pod("low").requests(cpu="1"))
    assert [world.tried().node for _ in range(2)] == ["", "m"]  # the other one backs off
    if waits_at_door:  # its status names the node that it waits for
        world.see(high.nominated("m"))
    try_all(world)
    assert ("low" in bound(world)) == wakes


@MODES
def test_room_kept_for_a_nominated_pod_is_free_when_that_needs_less(batched: bool, wakes: bool) -> None:
    nominated = make_pod("nominated").never_preempting().requests(cpu="2").nominated("n").node_selector(disk="ssd")
    world = world_with(
        *(make_node("n").capacity(cpu="2"), nominated, make_pod("waits").requests(cpu="1")), batched=batched
    )
    assert bound(world) == {}
    world.see(nominated.requests(cpu="1"))
    try_all(world)
    assert bound(world) == ({"waits": "n"} if wakes else {})


@MODES
def test_room_that_a_pod_does_not_need_any_more_when_it_is_bound_is_free(batched: bool, wakes: bool) -> None:
    first = make_pod("first").requests(cpu="2")
    world = World(make_node("n").capacity(cpu="2"), first, batched=batched, longest_wait=FOREVER)
    binding = world.decided()
    world.see(first.requests(cpu="1"), make_pod("waits").requests(cpu="1"))
    assert world.tried().node == ""
    world.finish(binding)
    try_all(world)
    assert ("waits" in bound(world)) == wakes


@MODES
def test_pod_that_gets_other_labels_while_it_is_being_bound_is_avoided_no_longer(batched: bool, wakes: bool) -> None:
    first = make_pod("first").label(app="web")
    world = World(make_node("n").zone("a"), first, batched=batched, longest_wait=FOREVER)
    binding = world.decided()
    world.see(first.label(app="db"), make_pod("waits").pod_anti_affinity(ZONE, app="web"))
    assert world.tried().node == ""
    world.finish(binding)
    try_all(world)
    assert ("waits" in bound(world)) == wakes


@MODES
def test_room_of_a_pod_is_free_when_another_scheduler_binds_it_elsewhere_first(batched: bool, wakes: bool) -> None:
    first = make_pod("first").requests(cpu="2")
    world = World(make_node("n").capacity(cpu="2"), first, batched=batched, longest_wait=FOREVER)
    binding = world.decided()
    world.see(make_pod("waits").requests(cpu="1"))
    assert world.tried().node == ""
    world.see(first.on("elsewhere"))
    world.finish(binding)
    try_all(world)
    assert ("waits" in bound(world)) == wakes


def test_pod_that_is_bound_as_it_was_decided_is_one_event() -> None:
    world = World(make_node("n"), make_pod("p").requests(cpu="1"), batched=True)
    world.finish(world.decided(), tell=False)
    heard = EventLabels()
    world.scheduler.listeners.append(heard)
    world.scheduler.handle(world.cluster.unseen[-1])
    assert heard.labels == ["AssignedPodAdd", "UnschedulablePodDelete"]


@MODES
def test_room_kept_for_a_preemptor_is_free_when_that_goes_before_its_status_names_the_node(
    batched: bool, wakes: bool
) -> None:
    high = make_pod("high").requests(cpu="2").priority(10)
    world = world_with(*(make_node("n").capacity(cpu="2"), make_pod("low").requests(cpu="1").on("n")), batched=batched)
    world.cluster.graceful = True
    world.see(high)
    world.finish(world.decided(), tell=False)  # the watch has yet to show the nomination
    world.cluster.unseen.clear()
    world.see(make_pod("waits").requests(cpu="1"))
    try_all(world)
    assert bound(world) == {"low": "n"}
    world.scheduler.handle(Change(old=high.build()))
    try_all(world)
    assert bound(world) == {"low": "n"} | ({"waits": "n"} if wakes else {})


@BOTH
@pytest.mark.parametrize("opens", [False, True], ids=["deleted", "opens"])
def test_group_held_back_by_two_gates_runs_when_one_pod_is_gone_and_the_other_gate_opens(
    batched: bool, opens: bool
) -> None:
    """Whichever of the two goes last is not the one that the group says it waits for."""
    free, *gated = members("g", 3)
    world = GroupWorld(make_node("n").capacity(cpu="4"), make_gang("g", 1), free, batched=batched)
    world.see(*(pod.gate("example.com/later") for pod in gated))
    world.try_all()
    assert world.bound() == []
    first, second = gated if opens else gated[::-1]
    world.lose(first.gate("example.com/later"))
    assert world.try_all() == []
    world.see(second)
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == sorted([free.build().name, second.build().name])


@BOTH
def test_group_held_back_by_the_gate_of_a_pod_runs_when_that_pod_is_gone(batched: bool) -> None:
    *free, gated = members("g", 3)
    world = GroupWorld(make_node("n").capacity(cpu="4"), make_gang("g", 2), *free, batched=batched)
    world.see(gated.gate("example.com/later"))
    assert world.try_all() == []
    world.lose(gated.gate("example.com/later"))
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]


@BOTH
def test_gang_whose_first_pod_is_made_anew_while_it_waits_for_others_runs_when_all_are_there(batched: bool) -> None:
    world = GroupWorld(make_node("n").capacity(cpu="4"), make_gang("g", 3), *members("g", 2), batched=batched)
    world.lose(members("g", 1)[0])
    world.see(make_pod("g-0", uid="made anew").group("g").requests(cpu="1"))
    assert world.bound() == []
    world.see(*members("g", 1, first=2))
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_plugin_that_allows_a_pod_which_was_rejected_changes_nothing() -> None:
    """It is over for the pod, once: the loop that asks for what is over must not break."""
    waiting = WaitingPods()
    pod = waiting.add(make_pod("p").build(), "n", {"A": 10.0})
    pod.reject("A", "removed")
    pod.allow("A")
    assert waiting.settled() == [pod]
    assert pod.refusal is not None
