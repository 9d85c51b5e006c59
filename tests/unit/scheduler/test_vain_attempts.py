"""A pod that would only fail as an equal one has just done sits out its backoff; any other may be tried early."""

from __future__ import annotations

from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduler.world import World, names

from kubesched.scheduler.queue.backoff_pods import BackoffPods
from kubesched.scheduler.queue.queued_pod import QueuedPod, UnschedulablePods
from kubesched.scheduler.queue.waiting_groups import WaitingGroups
from kubesched.state.cluster import ClusterState
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod


def replica(name: str) -> PodBuilder:
    return make_pod(name).requests(cpu="1")


def full_node(*pods: PodBuilder) -> list[NodeBuilder | PodBuilder]:
    """A node that has room for these pods, of one cpu each, and for no other."""
    node = make_node("n1").capacity(cpu=str(len(pods)), pods=10)
    return [node, *(pod.on("n1") for pod in pods)]


def world_of_waiting(*waiting: PodBuilder, spares: bool = True) -> World:
    """Pods that were all tried in vain, on a node with two others."""
    world = World(*full_node(replica("x"), replica("y")), *waiting, spares_vain_attempts=spares)
    for _ in waiting:
        world.tried()
    assert len(world.queue.unschedulable()) == len(waiting)
    return world


def leave(world: World, name: str) -> None:
    world.lose(replica(name).on("n1"))


def test_pod_is_not_tried_early_where_an_equal_one_was_tried_in_vain() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"))
    leave(world, "x")
    assert world.tried().node == "n1"
    world.tried()
    assert not world.queue.has_next
    assert world.scheduler.pop() is None
    assert (names(world.queue.unschedulable()), names(world.queue.backoff())) == (["b"], ["c"])


def test_all_are_tried_early_where_vain_attempts_are_not_spared() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"), spares=False)
    leave(world, "x")
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


def test_pod_is_tried_when_its_backoff_is_over_whoever_was_tried_in_vain() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"))
    leave(world, "x")
    world.tried()
    world.tried()
    world.pass_seconds(3)
    assert world.decided().queued.pod.name == "c"


def test_pod_of_another_kind_is_tried_early() -> None:
    world = world_of_waiting(replica("a"), replica("b"), replica("c"), replica("d").label(app="other"))
    leave(world, "x")
    assert [world.tried().queued.pod.name for _ in range(3)] == ["a", "b", "d"]
    assert world.scheduler.pop() is None


def test_pod_whose_equal_preempts_is_tried_early() -> None:
    """There may be victims for it, too."""
    world = World(*full_node(replica("x").priority(100)), spares_vain_attempts=True)
    world.cluster.graceful = True
    world.see(replica("a").priority(10), replica("b").priority(10))
    world.tried()
    world.tried()
    world.see(make_node("n2").capacity(cpu="2", pods=10), *(replica(name).on("n2") for name in "vw"))
    assert [len(world.tried().victims) for _ in range(2)] == [1, 1]


def test_pod_that_became_the_equal_of_others_says_nothing_about_them() -> None:
    state = ClusterState()
    waiting = UnschedulablePods(state, WaitingGroups(state, {}))
    queued = QueuedPod(replica("a").build(), 0.0)
    queued.found_no_node = True
    waiting.put(queued)
    assert waiting.is_in_vain(state.facts(queued.pod))
    queued.pod = replica("a").label(app="changed").build()
    waiting.put(queued)
    assert not waiting.is_in_vain(state.facts(queued.pod))


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
def test_first_worth_trying_is_the_first_of_all_that_are_not_in_vain(steps: list[tuple[str, int, int]]) -> None:
    in_vain: set[object] = set()
    order = attrgetter("timestamp")
    kept = BackoffPods(lambda pod: (order(pod),), lambda pod: pod.pod.priority, lambda kind: kind in in_vain)
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
                popped = kept.pop_worth_trying()
                if popped is not None:
                    del known[popped.key]
            case "vain":
                in_vain.add(kind)
            case "hope":
                in_vain.discard(kind)
                kept.hope(kind)
        worth = [pod for pod in known.values() if pod.pod.priority not in in_vain]
        first = kept.first_worth_trying()
        assert (first is None) == (not worth)
        assert first is None or (first.timestamp == min(map(order, worth)) and first in worth)
        assert len(kept) == len(known)
