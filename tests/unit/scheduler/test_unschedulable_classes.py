"""A pod that would only fail as an equal one has just done waits for what helps that one; any other is tried."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scheduler.group_world import GroupWorld
from tests.unit.scheduler.test_pod_group_turns import MemoryExtender
from tests.unit.scheduler.world import World, names, pop_pod

from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodCondition
from kubesched.config.features import DEFAULT_FEATURES
from kubesched.framework.cycle import Cycle
from kubesched.framework.extender import Filtered
from kubesched.framework.nodes import NodeView
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import Status, unschedulable
from kubesched.scheduler.queue.ordered_queues import DedupedQueue
from kubesched.scheduler.queue.pending_classes import PendingClassIndex
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_classes import UnschedulableClasses
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods
from kubesched.state.cluster import ClusterState
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod


def replica(name: str) -> PodBuilder:
    return make_pod(name).requests(cpu="1")


def full_node(*pods: PodBuilder) -> list[NodeBuilder | PodBuilder]:
    """A node that has room for these pods, of one cpu each, and for no other."""
    node = make_node("n1").capacity(cpu=str(len(pods)), pods=10)
    return [node, *(pod.on("n1") for pod in pods)]


def world_of_waiting(*waiting: PodBuilder, spares: bool = True, **settings: Any) -> World:
    """Pods that were all tried in vain, on a node with two others."""
    world = World(*full_node(replica("x"), replica("y")), *waiting, batched=spares, **settings)
    for _ in waiting:
        world.tried()
    assert len(world.queue.unschedulable()) == len(waiting)
    return world


def world_of_rested(*waiting: PodBuilder, spares: bool = True, **settings: Any) -> World:
    """The same, and all backoffs are over."""
    world = world_of_waiting(*waiting, spares=spares, **settings)
    world.pass_seconds(20)
    return world


def tried_names(world: World) -> list[str]:
    """Who is tried until nobody is left to try."""
    tried = []
    while (attempt := pop_pod(world.scheduler)) is not None:
        world.scheduler.decide(attempt)
        world.finish(attempt)
        tried.append(attempt.queued.pod.name)
    return tried


def leave(world: World, name: str) -> None:
    world.lose(replica(name).on("n1"))


def test_pod_is_not_tried_early_where_an_equal_one_was_tried_in_vain() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"))
    leave(world, "x")
    assert world.tried().node == "n1"
    world.tried()
    assert not world.queue.has_next
    assert pop_pod(world.scheduler) is None
    assert (names(world.queue.unschedulable()), names(world.queue.backoff())) == (["b"], ["c"])


def test_no_pod_is_tried_early_while_many_writes_are_under_way() -> None:
    """Attempts that need not be made yet are for when there is nothing else to do, and each may be a write more."""
    world = world_of_waiting(replica("a"))
    leave(world, "x")
    world.scheduler.writes.under_way = 9
    assert not world.queue.has_next
    assert pop_pod(world.scheduler) is None
    world.scheduler.writes.under_way = 8
    assert world.queue.has_next
    assert world.tried().node == "n1"


def test_pod_is_tried_when_its_backoff_is_over_whatever_is_under_way() -> None:
    world = world_of_waiting(replica("a"))
    leave(world, "x")
    world.scheduler.writes.under_way = 9
    world.pass_seconds(2)
    assert world.tried().node == "n1"


def test_all_are_tried_early_where_vain_attempts_are_not_spared() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"), spares=False)
    leave(world, "x")
    world.scheduler.writes.under_way = 9
    for _ in range(3):
        world.tried()
    assert names(world.queue.unschedulable()) == ["b", "c"]


def test_what_helps_the_one_that_was_tried_lets_its_equals_be_tried_early_again() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"))
    leave(world, "x")
    world.tried()
    world.tried()
    leave(world, "y")
    assert world.queue.has_next
    assert world.tried().node == "n1"


def test_pod_is_not_tried_after_its_backoff_either() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"))
    leave(world, "x")
    world.tried()
    world.tried()
    world.pass_seconds(3)
    assert pop_pod(world.scheduler) is None
    assert (names(world.queue.unschedulable()), names(world.queue.backoff())) == (["b", "c"], [])


def test_pod_is_tried_after_its_backoff_where_vain_attempts_are_not_spared() -> None:
    world = world_of_rested(replica("a"), replica("b"), replica("c"), spares=False)
    leave(world, "x")
    assert tried_names(world) == ["a", "b", "c"]


def test_of_many_that_an_event_wakes_one_is_tried_in_vain_at_most() -> None:
    world = world_of_rested(*map(replica, "abcde"))
    leave(world, "x")
    assert tried_names(world) == ["a", "b"]
    assert not world.queue.has_next
    assert sorted(names(world.queue.unschedulable())) == ["b", "c", "d", "e"]


def test_who_was_spared_goes_before_who_was_tried() -> None:
    world = world_of_rested(*map(replica, "abcde"))
    leave(world, "x")
    tried_names(world)
    leave(world, "y")
    assert world.queue.has_next
    assert tried_names(world) == ["c", "d"]


def test_who_was_spared_keeps_its_place_in_line() -> None:
    """Among pods of other kinds, by priority."""
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    tried_names(world)
    world.see(replica("lesser").priority(-10))
    leave(world, "y")
    assert world.tried().queued.pod.name == "c"


def test_all_that_were_spared_are_tried_as_long_as_they_find_a_node() -> None:
    world = world_of_rested(*map(replica, "abcde"))
    leave(world, "x")
    tried_names(world)
    world.see(make_node("n2").capacity(cpu="8", pods=10))
    assert sorted(tried_names(world)) == ["b", "c", "d", "e"]


def test_what_happens_while_one_is_tried_is_hope_for_its_equals() -> None:
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    world.tried()
    failing = world.decided()
    leave(world, "y")
    world.finish(failing)
    assert world.tried().node == "n1"


def test_pod_that_changed_is_tried_whoever_was_tried_in_vain() -> None:
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    tried_names(world)
    world.see(replica("c").label(app="changed"))
    assert tried_names(world) == ["c"]


def test_pod_whose_status_changed_is_spared_still() -> None:
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    tried_names(world)
    world.see(replica("c").status(conditions=(PodCondition(type="Odd", status="True"),)))
    assert tried_names(world) == []
    leave(world, "y")
    assert tried_names(world) == ["c", "b"]


def test_pod_that_a_plugin_activates_is_tried_whoever_was_tried_in_vain() -> None:
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    tried_names(world)
    world.queue.activate(replica("c").build())
    assert tried_names(world) == ["c"]


def test_pods_that_waited_too_long_are_all_tried() -> None:
    world = world_of_rested(*map(replica, "abcd"))
    leave(world, "x")
    tried_names(world)
    world.pass_seconds(301)
    assert sorted(tried_names(world)) == ["b", "c", "d"]


def test_spared_pod_that_is_deleted_is_gone() -> None:
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    tried_names(world)
    world.lose(replica("c"))
    assert names(world.queue.unschedulable()) == ["b"]


def empty_classes() -> tuple[ClusterState, UnschedulableClasses]:
    world = World()
    return world.scheduler.state, UnschedulableClasses(world.scheduler.state, world.scheduler.profiles)


def test_what_helps_one_that_others_rejected_lets_all_be_tried() -> None:
    state, classes = empty_classes()
    waiting = UnschedulablePods(state, PendingClassIndex(state, {}), classes)
    by_one, by_another = (QueuedPod(replica(name).build(), 0.0) for name in "ab")
    by_one.unschedulable_plugins, by_another.unschedulable_plugins = {"TaintToleration"}, {"NodeResourcesFit"}
    for queued in (by_another, by_one):
        waiting.put(queued)
        waiting.mark_unschedulable(queued.key)
    waiting.remove(by_another.key)
    assert not classes.is_known_unschedulable(classes.class_of(by_one.pod))


class ByName(FilterPlugin):
    """Judges pods by what equal ones do not have in common, and so promises nothing."""

    name = "ByName"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return unschedulable("not yours") if cycle.pod.name != "c" and node.name == "n2" else None


def test_pods_are_not_spared_where_a_plugin_tells_equal_ones_apart() -> None:
    world = world_of_rested(*map(replica, "abc"), plugins=(ByName,))
    world.see(make_node("n2").capacity(cpu="8", pods=10))
    assert [world.tried().queued.pod.name for _ in range(3)] == ["a", "b", "c"]
    assert "c" not in names(world.queue.unschedulable())


class OnlyForC(MemoryExtender):
    """Judges pods by their names; it has no use for any of them before it is open."""

    is_open = False

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        here = frozenset(node.name for node in nodes) if self.is_open and pod.name == "c" else frozenset()
        return Filtered(here, {node.name: "not yours" for node in nodes if node.name not in here}, {})


def test_pods_are_not_spared_where_an_extender_tells_equal_ones_apart() -> None:
    extender = OnlyForC()
    world = GroupWorld(
        make_node("n1").capacity(cpu="8"),
        *map(replica, "abc"),
        features=DEFAULT_FEATURES,
        extenders=[extender],
        batched=True,
    )
    world.try_all()
    world.pass_seconds(20)
    extender.is_open = True
    world.see(make_node("n1").capacity(cpu="9"))
    world.try_all()
    assert world.bound() == ["c"]


def test_pods_that_a_plugin_tells_apart_are_each_told_what_it_says() -> None:
    world = world_of_rested(*map(replica, "ab"), plugins=(ByName,))
    world.cluster.notes.clear()
    world.see(make_node("n2").capacity(cpu="8", pods=10))
    tried_names(world)
    assert set(world.cluster.notes) == {"FailedScheduling a", "FailedScheduling b"}


class LetsAllPass(FilterPlugin):
    """Declares nothing, and rejects nothing."""

    name = "LetsAllPass"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return None


def test_a_plugin_that_declares_nothing_and_did_not_reject_switches_nothing_off() -> None:
    world = world_of_rested(*map(replica, "abcde"), plugins=(LetsAllPass,))
    leave(world, "x")
    assert tried_names(world) == ["a", "b"]


def test_pod_of_another_kind_is_tried_early() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"), replica("d").label(app="other"))
    leave(world, "x")
    assert [world.tried().queued.pod.name for _ in range(3)] == ["a", "b", "d"]
    assert pop_pod(world.scheduler) is None


def test_pod_whose_equal_preempts_is_tried_early() -> None:
    """There may be victims for it, too."""
    world = World(*full_node(replica("x").priority(100)), batched=True)
    world.cluster.graceful = True
    world.see(replica("a").priority(10), replica("b").priority(10))
    world.tried()
    world.tried()
    world.see(make_node("n2").capacity(cpu="2", pods=10), *(replica(name).on("n2") for name in "vw"))
    assert [len(world.tried().victims) for _ in range(2)] == [1, 1]


def test_pod_is_tried_though_its_equal_failed_once_it_has_a_nominated_node() -> None:
    """Room is kept for it, which is why the other one failed."""
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    assert tried_names(world) == ["a", "b"]  # one fits, the next fails; c would fail as b did
    assert names(world.queue.unschedulable()) == ["b", "c"]
    world.see(replica("c").nominated("n1"))
    assert tried_names(world)[0] == "c"


def test_pod_that_is_nominated_after_it_was_requeued_is_tried() -> None:
    world = world_of_rested(*map(replica, "abc"))
    leave(world, "x")
    assert tried_names(world) == ["a", "b"]
    world.queue.nominate(replica("c").build(), "n1")
    assert tried_names(world) == ["c"]


def test_failure_of_a_nominated_pod_says_nothing_about_its_equals() -> None:
    _, classes = empty_classes()
    nominated = replica("a").nominated("n1").build()
    classes.mark_unschedulable(nominated)
    assert not classes.is_known_unschedulable(classes.class_of(nominated))


def test_pod_that_became_the_equal_of_others_says_nothing_about_them() -> None:
    state, classes = empty_classes()
    waiting = UnschedulablePods(state, PendingClassIndex(state, {}), classes)
    queued = QueuedPod(replica("a").build(), 0.0)
    queued.was_unschedulable = True
    waiting.put(queued)
    waiting.mark_unschedulable(queued.key)
    assert classes.is_known_unschedulable(classes.class_of(queued.pod))
    queued.pod = replica("a").label(app="changed").build()
    waiting.put(queued)
    assert not classes.is_known_unschedulable(classes.class_of(queued.pod))


def test_deleted_pod_says_nothing_any_more() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"))
    leave(world, "x")
    world.tried()
    world.tried()
    world.lose(replica("b"))
    assert world.decided().queued.pod.name == "c"


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "remove", "pop", "vain", "hope"]), st.integers(0, 7), st.integers(0, 3)),
        max_size=60,
    )
)
def test_first_retryable_is_the_first_whose_class_is_not_known_to_fail(
    steps: list[tuple[str, int, int]],
) -> None:
    in_vain: set[object] = set()
    order = attrgetter("timestamp")
    kept = DedupedQueue(lambda pod: (order(pod),), lambda pod: pod.priority, lambda kind: kind in in_vain)
    known: dict[str, QueuedPod] = {}
    for action, number, kind in steps:
        match action:
            case "put":
                pod = QueuedPod(make_pod(f"p{number}").priority(kind).build(), float(number * 7 % 5))
                known[pod.key] = pod
                kept.put(pod)
            case "remove":
                kept.remove(f"default/p{number}")
                known.pop(f"default/p{number}", None)
            case "pop":
                popped = kept.pop_retryable()
                if popped is not None:
                    del known[popped.key]
            case "vain":
                in_vain.add(kind)
            case "hope":
                in_vain.discard(kind)
                kept.mark_retryable(kind)
        worth = [pod for pod in known.values() if pod.pod.priority not in in_vain]
        first = kept.first_retryable()
        assert (first is None) == (not worth)
        assert first is None or (first.timestamp == min(map(order, worth)) and first in worth)
        assert len(kept) == len(known)


STEPS = st.one_of(
    st.tuples(st.sampled_from(["leave", "come", "delete", "change"]), st.sampled_from("abcdef")),
    st.tuples(st.sampled_from(["room", "taint", "uncordon", "no room"]), st.sampled_from(["n2", "n3"])),
    st.tuples(st.just("wait"), st.sampled_from([1, 3, 20, 310])),
    st.tuples(st.just("try"), st.integers(1, 3)),
)


def take_step(world: World, action: str, what: Any) -> None:
    """One thing that happens to pods of one kind, to those on a node, or to nodes that could take one of them."""
    node, known = make_node(str(what)).capacity(cpu="1", pods=10), world.cluster.pods.get(f"default/{what}")
    match action:
        case "leave":
            bound = [pod for _, pod in sorted(world.cluster.pods.items()) if pod.spec.node_name]
            for pod in bound[ord(what) % 2 :: 7]:
                world.lose(PodBuilder(pod))
        case "come" if known is None:
            world.see(replica(what))
        case "delete" if known is not None:
            world.lose(PodBuilder(known))
        case "change" if known is not None and not known.spec.node_name:
            world.see(PodBuilder(known).label(changed="true"))
        case "room" | "uncordon":
            world.see(node)
        case "taint":
            world.see(node.taint("dedicated"))
        case "no room":
            world.see(node.cordoned())
        case "wait":
            world.pass_seconds(float(what))
        case "try":
            for _ in range(what):
                if (attempt := pop_pod(world.scheduler)) is not None:
                    world.scheduler.decide(attempt)
                    world.finish(attempt)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_nobody_is_spared_who_would_find_a_node_whatever_happens(steps: list[tuple[str, Any]]) -> None:
    world = world_of_rested(*map(replica, "abcdef"))
    leave(world, "x")
    world.tried()
    world.tried()
    for action, what in steps:
        take_step(world, action, what)
        if not world.queue.has_next:
            for queued in world.queue.skipped():
                assert not world.scheduler.engine.decide(queued.pod).node, f"{queued.key} waits in vain"
    world.see(make_node("big").capacity(cpu="64", pods=110))
    for _ in range(12):
        tried_names(world)
        world.pass_seconds(1)
    assert all(pod.spec.node_name for pod in world.cluster.pods.values())
