"""What must never go wrong with queue, state and cycles: promises of kube-scheduler, and failures it has really had."""

from __future__ import annotations

import pytest
from tests.unit.scheduler.memory_cluster import Refusal
from tests.unit.scheduler.world import World, names, pop_pod

from kubesched.scheduler.attempt.attempt import Assumed
from kubesched.testing import PodBuilder, make_node, make_pod

POD = make_pod("pod").requests(cpu="1")
BIG = make_pod("big").requests(cpu="3")
NODE = make_node("node")


# -- assumptions -------------------------------------------------------------------------------------------------------


def test_assumed_pod_does_not_expire_however_long_the_binding_takes() -> None:
    world = World(NODE, POD)
    world.decided()
    world.pass_seconds(24 * 3600)
    assert world.is_assumed(POD)
    assert pop_pod(world.scheduler) is None


def test_assumed_pod_is_confirmed_by_the_watch() -> None:
    world = World(NODE, POD)
    attempt = world.finish(world.decided(), tell=False)
    assert attempt.outcome == "bound"
    assert world.is_assumed(POD)
    world.cluster.tell(world.scheduler)
    assert not world.is_assumed(POD)
    assert world.pods_on("node") == 1


@pytest.mark.parametrize("reason", ["Conflict", "NotFound", "InternalError"])
def test_pod_whose_binding_fails_is_forgotten_and_tried_again_after_backoff(reason: str) -> None:
    world = World(NODE, POD)
    world.cluster.bind_refusals.append(Refusal(reason))
    assert world.tried().outcome == "bind-error"
    assert world.pods_on("node") == 0
    assert names(world.queue.error_backoff()) == ["pod"]
    world.pass_seconds(3)
    assert world.tried().outcome == "bound"


def test_pod_deleted_while_it_is_assumed_is_forgotten_at_once() -> None:
    world = World(NODE, POD)
    attempt = world.decided()
    world.lose(POD)
    assert world.pods_on("node") == 0
    world.finish(attempt)
    assert world.pods_on("node") == 0
    assert world.cluster.bindings == []
    assert world.queue.error_backoff() == []


def test_pod_that_begins_to_terminate_while_it_is_assumed_is_forgotten_and_its_room_given_to_others() -> None:
    world = World(NODE, BIG.priority(10), make_pod("other").requests(cpu="3"))
    world.decided()
    assert world.tried().outcome == "unschedulable"
    world.cluster.terminate(world.cluster.pod("big"))
    world.cluster.tell(world.scheduler)
    assert world.pods_on("node") == 0
    world.pass_seconds(3)
    assert names(world.queue.active()) == ["other"]


def test_pod_that_changes_while_it_terminates_and_its_binding_fails_waits_in_one_place_at_most() -> None:
    world = World(NODE, POD)
    attempt = world.decided()
    world.see(POD.terminating())
    world.see(POD.terminating().label(seen="yes"))
    world.finish(attempt)
    assert attempt.outcome == "bind-error"
    assert len(world.queue.active()) + len(world.queue.error_backoff()) <= 1


def test_room_of_a_binding_that_failed_wakes_those_who_waited_for_it() -> None:
    world = World(NODE, BIG.priority(10), make_pod("other").requests(cpu="3"))
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    binding = world.decided()
    assert world.tried().outcome == "unschedulable"
    world.finish(binding)
    assert names(world.queue.backoff()) == ["other"]


# -- 409, and 500 after the write was done -----------------------------------------------------------------------------


def test_terminating_pod_that_was_promised_a_node_and_is_not_tried_any_more_holds_nothing_there() -> None:
    vip = make_pod("vip").requests(cpu="4").priority(10).nominated("n1")
    world = World(make_node("n1"), vip, make_pod("a").requests(cpu="4"))
    world.see(vip.terminating())
    assert world.tried().outcome == "skipped"
    assert world.tried().outcome == "bound"


def test_terminating_pod_that_was_promised_a_node_holds_its_place_again_once_it_is_back_in_the_queue() -> None:
    vip = make_pod("vip").priority(10).nominated("n1").terminating()
    world = World(make_node("n1"), vip)
    world.tried()
    world.see(vip.label(app="changed"))
    assert [pod.priority for pod in world.scheduler.state.nominated.on_node("n1")] == [10]


def test_pod_deleted_during_its_binding_wakes_others_again_when_it_is_over() -> None:
    """What plugins had set aside for it was held until then."""
    world = World(make_node("n1"), make_pod("a").requests(cpu="4"))
    binding = world.decided()
    world.lose(make_pod("a"))
    world.see(make_pod("b").requests(cpu="5"))
    world.tried()
    assert names(world.queue.unschedulable()) == ["b"]
    world.finish(binding)
    assert names(world.queue.backoff()) == ["b"]


def test_pod_that_was_bound_though_the_answer_was_an_error_is_not_bound_again() -> None:
    world = World(NODE, make_node("second"), POD)
    world.cluster.bind_refusals.append(Refusal("InternalError", after_commit=True))
    world.tried()
    world.pass_seconds(60)
    assert pop_pod(world.scheduler) is None
    assert len(world.cluster.bindings) == 1
    assert not world.is_assumed(POD)
    assert world.pods_on(world.cluster.bindings[0][1]) == 1


def test_pod_assumed_anew_before_the_watch_shows_its_binding_ends_where_it_was_bound() -> None:
    world = World(NODE, make_node("second"), POD)
    world.cluster.bind_refusals.append(Refusal("InternalError", after_commit=True))
    world.finish(world.decided(), tell=False)
    world.pass_seconds(3)
    again = world.decided()
    assert isinstance(again.state, Assumed)
    world.cluster.tell(world.scheduler)
    world.finish(again)
    (bound,) = world.cluster.bindings
    assert world.pods_on(bound[1]) == 1
    assert world.pods_on("node") + world.pods_on("second") == 1
    assert pop_pod(world.scheduler) is None
    assert world.queue.error_backoff() == []


def test_pod_that_somebody_else_bound_first_is_not_queued_again() -> None:
    world = World(NODE, make_node("second"), POD)
    attempt = world.decided()
    world.see(PodBuilder(world.cluster.pod("pod")).on("second"))
    assert world.finish(attempt).outcome == "bind-error"
    world.pass_seconds(60)
    assert pop_pod(world.scheduler) is None
    assert world.pods_on("second") == 1
    assert world.pods_on("node") == 0


# -- the uid decides ---------------------------------------------------------------------------------------------------


def test_pod_made_anew_while_the_old_one_is_being_bound_is_another_pod() -> None:
    world = World(NODE, POD)
    attempt = world.decided()
    world.lose(POD)
    anew = make_pod("pod", uid="another").requests(cpu="1")
    world.see(anew)
    assert world.finish(attempt).outcome == "bind-error"
    assert world.queue.error_backoff() == []
    assert world.tried().outcome == "bound"
    assert world.cluster.bindings == [("another", "node")]
    assert world.pods_on("node") == 1


def test_attempt_at_a_pod_that_was_made_anew_leaves_the_new_one_alone() -> None:
    world = World(POD)
    attempt = pop_pod(world.scheduler)
    assert attempt is not None
    world.lose(POD)
    world.see(make_pod("pod", uid="another"))
    world.scheduler.decide(attempt)
    world.finish(attempt)
    (waiting,) = world.queue.active()
    assert waiting.pod.uid == "another"
    assert waiting.attempts == 0
    assert world.queue.error_backoff() == []
    assert world.cluster.pod("pod").status.conditions == (), "it is not told why the other found no node"


def test_bound_pod_made_anew_in_one_update_gives_back_its_room() -> None:
    """A watch that was interrupted may tell of a deletion and a creation as if they were one change."""
    world = World(NODE, POD.on("node"))
    world.see(make_pod("pod", uid="another").requests(cpu="1"))
    assert world.pods_on("node") == 0
    assert names(world.queue.active()) == ["pod"]


def test_waiting_pod_made_anew_in_one_update_begins_without_a_past() -> None:
    world = World(make_node("small").capacity(cpu="1"), BIG)
    world.tried()
    assert names(world.queue.unschedulable()) == ["big"]
    world.see(make_pod("big", uid="another").requests(cpu="3"))
    (waiting,) = world.queue.active()
    assert waiting.pod.uid == "another"
    assert waiting.attempts == 0


# -- errors, rejections and what wakes ---------------------------------------------------------------------------------


def test_error_goes_to_backoff_and_clears_those_who_rejected_the_pod_before() -> None:
    small = make_node("small").capacity(cpu="1")
    world = World(small, BIG)
    world.tried()
    (waiting,) = world.queue.unschedulable()
    assert waiting.unschedulable_plugins == {"NodeResourcesFit"}
    world.see(NODE)
    world.pass_seconds(3)
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    assert world.tried().outcome == "bind-error"
    (waiting,) = world.queue.error_backoff()
    assert waiting.rejectors == set()
    assert world.queue.unschedulable() == []


def test_errors_make_a_pod_wait_longer_each_time_and_ten_seconds_at_most() -> None:
    world = World(NODE, POD)
    waits = []
    for _ in range(6):
        world.cluster.bind_refusals.append(Refusal("InternalError"))
        world.tried()
        (waiting,) = world.queue.error_backoff()
        waits.append(world.queue.backoff_until(waiting) - world.now)
        world.pass_seconds(12)
    assert waits == [1, 2, 4, 8, 10, 10]


def test_rejected_pod_that_nothing_helps_is_tried_again_after_five_minutes() -> None:
    world = World(make_node("small").capacity(cpu="1"), BIG)
    world.tried()
    world.pass_seconds(299)
    assert pop_pod(world.scheduler) is None
    world.pass_seconds(2)
    assert names(world.queue.active()) == ["big"]


def test_event_during_the_attempt_is_not_missed() -> None:
    world = World(make_node("small").capacity(cpu="1"), BIG)
    attempt = world.decided()
    world.see(NODE)
    world.finish(attempt)
    assert world.queue.unschedulable() == []
    assert world.tried().outcome == "bound"


def test_gate_removed_while_the_pod_waits_lets_it_in() -> None:
    world = World(NODE, POD.gate("wait"))
    assert pop_pod(world.scheduler) is None
    world.see(POD)
    assert world.tried().outcome == "bound"


# -- in flight ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["bound", "unschedulable", "bind-error", "error", "skipped"])
def test_nothing_is_remembered_for_an_attempt_that_is_over(outcome: str) -> None:
    pod = {"unschedulable": POD.requests(cpu="5"), "skipped": POD.terminating()}.get(outcome, POD)
    world = World(NODE, pod)
    if outcome == "bind-error":
        world.cluster.bind_refusals.append(Refusal("InternalError"))
    attempt = pop_pod(world.scheduler)
    assert attempt is not None
    world.see(POD.on("node") if outcome == "error" else make_node("elsewhere").cordoned())
    assert len(world.queue.in_flight_events()) == 2
    world.scheduler.decide(attempt)
    world.finish(attempt)
    assert attempt.outcome == outcome
    assert world.nothing_is_in_flight()


@pytest.mark.parametrize("when", ["popped", "decided"])
def test_nothing_is_remembered_for_a_pod_that_was_deleted_during_its_attempt(when: str) -> None:
    world = World(NODE, POD.requests(cpu="5"))
    attempt = pop_pod(world.scheduler)
    assert attempt is not None
    if when == "decided":
        world.scheduler.decide(attempt)
    world.lose(POD)
    if when == "popped":
        world.scheduler.decide(attempt)
    world.finish(attempt)
    assert world.nothing_is_in_flight()
    assert world.queue.unschedulable() == []


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_node_that_vanishes_before_its_pods_is_hidden_but_remembered() -> None:
    world = World(NODE, POD.on("node"))
    world.lose(NODE)
    assert world.scheduler.state.nodes.live_count == 0
    assert world.pods_on("node") == 1
    world.see(NODE, make_pod("full").requests(cpu="4"))
    assert world.tried().outcome == "unschedulable"
    world.lose(POD)
    world.pass_seconds(3)
    assert world.tried().outcome == "bound"


def test_ghost_of_a_node_goes_with_its_last_pod() -> None:
    world = World(NODE, POD.on("node"))
    world.lose(NODE)
    world.lose(POD)
    assert "node" not in world.scheduler.state.nodes.row_of


def test_node_that_vanishes_while_a_pod_is_being_bound_to_it_leaves_no_trace_of_the_assumption() -> None:
    world = World(NODE, POD)
    attempt = world.decided()
    world.lose(NODE)
    world.cluster.bind_refusals.append(Refusal("NotFound"))
    world.finish(attempt)
    assert "node" not in world.scheduler.state.nodes.row_of
    assert names(world.queue.error_backoff()) == ["pod"]


def test_node_that_comes_again_under_its_name_is_another_node() -> None:
    world = World(make_node("node").label(disk="ssd"), POD.node_selector(disk="ssd"))
    world.lose(NODE)
    world.see(NODE)
    assert world.tried().outcome == "unschedulable"
