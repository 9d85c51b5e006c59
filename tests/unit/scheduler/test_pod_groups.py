"""Gangs and basic groups: when they are tried, what is placed, and what is said of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.scheduler.group_world import ALPHA, BETA, GroupWorld, make_gang, members, nodes
from tests.unit.scheduler.memory_cluster import Refusal
from tests.unit.scheduler.world import names

from kubesched.api.release import V1_37
from kubesched.config.features import Features
from kubesched.framework.decision import Decision
from kubesched.framework.status import Status, unschedulable
from kubesched.scheduler.attempt.attempt import AttemptOutcome
from kubesched.scheduler.attempt.scheduling_cycle import SchedulingCycle
from kubesched.scheduler.groups.placing import PlacingResult
from kubesched.scheduler.groups.profile import GroupProfile
from kubesched.testing import HOSTNAME, ZONE, make_node, make_pod

WITHOUT_TOPOLOGY = Features(pod_groups=True, gang_scheduling=True)


def test_gang_is_scheduled_when_group_and_room_are_there() -> None:
    world = GroupWorld(*nodes(3), make_gang("g", 3), *members("g", 3))
    attempts = world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]
    assert [attempt.outcome for attempt in attempts] == [AttemptOutcome.BOUND] * 3
    condition = world.condition("g")
    assert condition is not None
    assert (condition.type, condition.status, condition.reason) == ("PodGroupInitiallyScheduled", "True", "Scheduled")
    assert world.nothing_is_in_flight()


def test_with_all_gates_off_a_pod_that_names_a_group_is_scheduled_as_any_other() -> None:
    world = GroupWorld(*nodes(1), *members("g", 2), features=Features())
    world.try_all()
    assert world.bound() == ["g-0"]
    assert world.scheduler.kinds == GroupWorld(features=Features()).scheduler.kinds
    assert "PodGroup" not in {kind.resource.kind for kind in world.scheduler.kinds}
    assert "PodGroup" in {kind.resource.kind for kind in GroupWorld().scheduler.kinds}
    assert "GangScheduling" not in world.scheduler.profiles["default-scheduler"].plugins


def test_gang_waits_for_its_quorum_and_is_woken_by_the_pod_that_completes_it() -> None:
    world = GroupWorld(*nodes(3), make_gang("g", 3), *members("g", 2))
    assert world.try_all() == []
    assert world.queue.unschedulable()[0].gating_plugin == "GangScheduling"
    world.see(*members("g", 1, first=2))
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_pods_wait_for_their_group_to_be_made() -> None:
    world = GroupWorld(*nodes(2), *members("g", 2))
    assert world.try_all() == []
    assert sorted(names(world.groups.incomplete())) == ["g-0", "g-1"]
    world.see(make_gang("g", 2))
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]


def test_nothing_of_a_gang_is_placed_if_too_few_of_its_pods_fit() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 3), *members("g", 3))
    world.try_all()
    assert world.bound() == []
    assert [world.pods_on("n0"), world.pods_on("n1")] == [0, 0]
    assert not world.scheduler.state.groups.placed("default/g")
    assert names(world.queue.error_backoff()) == ["g-0", "g-1", "g-2"]


def test_gang_is_tried_again_after_its_backoff_and_placed_once_there_is_room() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 3), *members("g", 3))
    world.try_all()
    world.see(make_node("n2").capacity(cpu="1"))
    assert world.try_all() == []
    world.pass_seconds(2)
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_more_pods_than_the_quorum_needs_are_placed_as_room_allows() -> None:
    blocker = make_pod("blocker").requests(cpu="1").on("n2")
    world = GroupWorld(*nodes(3), blocker, make_gang("g", 2), *members("g", 3))
    world.try_all()
    assert world.bound("g") == ["g-0", "g-1"]
    assert world.message("g-2").startswith("0/3 nodes are available: 3 Insufficient cpu.")
    world.lose(blocker)
    world.pass_seconds(3)
    world.try_all()
    assert world.bound("g") == ["g-0", "g-1", "g-2"]


def test_two_gangs_that_want_the_same_room_do_not_block_each_other() -> None:
    world = GroupWorld(
        *nodes(12),
        make_gang("a", 8),
        make_gang("b", 8),
        *[p for i in range(8) for p in (members("a", 1, first=i)[0], members("b", 1, first=i)[0])],
    )
    world.try_all()
    for _ in range(20):
        world.pass_seconds(5)
        world.try_all()
    assert sorted((len(world.bound("a")), len(world.bound("b")))) == [0, 8]


def test_basic_group_places_what_fits_and_the_rest_when_there_is_room() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", None), *members("g", 3))
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]
    world.see(make_node("n2").capacity(cpu="1"))
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_members_that_come_later_are_placed_by_themselves() -> None:
    world = GroupWorld(*nodes(3), make_gang("g", 2), *members("g", 2))
    world.try_all()
    world.see(*members("g", 1, first=2))
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_a_lower_count_wakes_a_gang_and_a_higher_one_does_not() -> None:
    gang = make_gang("g", 4)
    world = GroupWorld(*nodes(3), gang, *members("g", 3))
    assert world.try_all() == []
    world.see(replace(gang, spec=make_gang("g", 5).spec))
    assert world.try_all() == []
    world.see(replace(gang, spec=make_gang("g", 3).spec))
    world.try_all()
    assert len(world.bound()) == 3


def test_a_gated_member_holds_the_whole_group_back() -> None:
    *free, gated = members("g", 3)
    world = GroupWorld(*nodes(3), make_gang("g", 2), *free)
    world.see(gated.gate("wait"))
    assert world.try_all() == []
    world.see(gated)
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_groups_go_by_their_own_priority() -> None:
    world = GroupWorld(
        *nodes(2),
        make_gang("low", 2, priority=1),
        make_gang("high", 2, priority=5),
        *[pod.priority(1) for pod in members("low", 2)],
        *[pod.priority(5) for pod in members("high", 2)],
    )
    world.try_all()
    assert world.bound() == ["high-0", "high-1"]


def test_the_longest_backoff_of_a_group_grows_with_the_root_of_its_size() -> None:
    world = GroupWorld(make_gang("g", 4), make_node("n0"), *members("g", 4, cpu="9"))
    for _ in range(12):
        world.try_all()
        world.pass_seconds(25)
    world.try_all()
    first, *_ = world.queue.error_backoff()
    assert world.queue.backoff_until(first) - world.now == 20.0


# -- pods among each other ---------------------------------------------------------------------------------------------


def test_anti_affinity_among_members_is_respected() -> None:
    pods = [make_pod(f"g-{i}").group("g").label(app="g").pod_anti_affinity(HOSTNAME, app="g") for i in range(3)]
    world = GroupWorld(make_node("n0"), make_node("n1"), make_gang("g", 3), *pods)
    world.try_all()
    assert world.bound() == []
    world.see(make_node("n2"))
    world.pass_seconds(3)
    world.try_all()
    assert {world.cluster.pod(name).spec.node_name for name in world.bound()} == {"n0", "n1", "n2"}


def test_affinity_to_a_member_that_was_placed_before_is_respected() -> None:
    first = make_pod("g-0").group("g").label(app="lead").node_selector({HOSTNAME: "n1"})
    second = make_pod("g-1").group("g").pod_affinity(ZONE, app="lead")
    world = GroupWorld(make_node("n0").zone("a"), make_node("n1").zone("b"), make_gang("g", 2), first, second)
    world.try_all()
    assert world.cluster.pod("g-1").spec.node_name == "n1"


def test_spread_among_members_is_respected() -> None:
    pods = [make_pod(f"g-{i}").group("g").label(app="g").spread(ZONE, app="g") for i in range(4)]
    world = GroupWorld(make_node("n0").zone("a"), make_node("n1").zone("b"), make_gang("g", 4), *pods)
    world.try_all()
    assert [world.pods_on("n0"), world.pods_on("n1")] == [2, 2]


def test_host_ports_among_members_are_respected() -> None:
    pods = [make_pod(f"g-{i}").group("g").host_port(80) for i in range(2)]
    world = GroupWorld(make_node("n0"), make_gang("g", 2), *pods)
    world.try_all()
    assert world.bound() == []
    assert world.scheduler.state.pods.ports == {}


# -- what is said ------------------------------------------------------------------------------------------------------


def test_messages_of_v1_37() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 3, api=BETA), *members("g", 3), features=WITHOUT_TOPOLOGY)
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    lacking = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    assert condition.reason == "Unschedulable"
    assert condition.message.startswith(lacking)
    assert world.message("g-0").startswith(f"pod group is unschedulable, {lacking}")
    assert world.message("g-2") == "0/2 nodes are available: 2 Insufficient cpu."


def test_messages_of_v1_36() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 3, api=ALPHA), *members("g", 3), features=WITHOUT_TOPOLOGY)
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert condition.type == "PodGroupScheduled"
    assert condition.message.startswith("pod group is unschedulable")
    assert world.message("g-0") == (
        "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
        "one or more plugins asked to wait and no plugin rejected pod"
    )


def test_a_group_that_was_scheduled_once_stays_so_by_its_condition() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2))
    world.try_all()
    world.see(*members("g", 1, first=2))
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert condition.status == "True"


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        (
            [make_pod("g-0").group("g"), make_pod("g-1").group("g").priority(5)],
            "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 0",
        ),
        (
            [make_pod("g-0").group("g"), make_pod("g-1").group("g").never_preempting()],
            "all pods in a single pod group should have the same preemption policy, got Never and PreemptLowerPriority",
        ),
    ],
)
def test_pods_that_contradict_each_other_are_told_so_and_tried_again(pods: list[object], said: str) -> None:
    world = GroupWorld(make_node("n0"), make_gang("g", 2), *pods)  # type: ignore[arg-type]
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert (condition.reason, condition.message) == ("SchedulerError", said)
    assert said in {world.message("g-0"), world.message("g-1")}
    assert len(world.queue.error_backoff()) == 2


BY_GROUP = Features.of({"GenericWorkload": True, "PodGroupPreemptionPolicy": True}, V1_37)


def test_with_the_gate_the_policy_of_a_group_is_that_of_its_pods() -> None:
    world = GroupWorld(
        make_node("n0"), make_gang("g", 2, preemption_policy="Never"), *members("g", 2), features=BY_GROUP
    )
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert condition.message == (
        "all pods in a single pod group should have the same preemption policy as the pod group's preemption policy, "
        "got PreemptLowerPriority and Never"
    )


# -- in the middle of things -------------------------------------------------------------------------------------------


def test_group_deleted_while_its_pods_wait_parks_them_and_a_new_one_takes_them() -> None:
    gang = make_gang("g", 3)
    world = GroupWorld(*nodes(3), gang, *members("g", 2))
    world.cluster.remove(gang)
    world.cluster.tell(world.scheduler)
    assert len(world.groups.incomplete()) == 2
    world.see(make_gang("g", 2, uid="another"))
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]


def test_member_deleted_while_its_group_waits_leaves_the_others_waiting() -> None:
    first, *others = members("g", 3)
    world = GroupWorld(*nodes(2), make_gang("g", 3), first, *others)
    world.try_all()
    world.lose(first)
    world.pass_seconds(3)
    world.try_all()
    assert world.message("g-1").endswith("0 scheduled, 2 remaining")
    assert world.queue.unschedulable()[0].gating_plugin == "GangScheduling"
    world.see(*members("g", 1, first=9))
    world.see(make_node("n9").capacity(cpu="1"))
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-1", "g-2", "g-9"]


def test_group_is_tried_when_the_member_whose_scheduling_gate_held_it_back_is_deleted() -> None:
    gated = members("g", 1, first=9)[0].gate("later")
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2), gated)
    world.try_all()
    assert world.bound() == []
    world.lose(gated)
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]


def test_gang_whose_first_pod_is_deleted_and_made_anew_is_scheduled() -> None:
    first, *others = members("g", 3)
    world = GroupWorld(*nodes(2), make_gang("g", 3), first, *others)
    world.try_all()
    world.lose(first)
    anew = first.build()
    world.see(replace(anew, metadata=replace(anew.metadata, uid="anew")), make_node("n9").capacity(cpu="1"))
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_last_member_deleted_leaves_nothing_behind() -> None:
    pods = members("g", 2)
    world = GroupWorld(make_gang("g", 3), *pods)
    for pod in pods:
        world.lose(pod)
    assert world.queue.unschedulable() == []
    assert world.groups.incomplete() == []
    assert world.scheduler.state.groups.count("default/g") == 0


def test_member_whose_binding_fails_comes_back_and_is_placed_alone() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2))
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    world.try_all()
    assert len(world.bound()) == 1
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound()) == 2


def test_members_of_different_schedulers_are_an_error() -> None:
    theirs = make_pod("g-1").group("g").spec(scheduler_name="another").on("n0")
    world = GroupWorld(make_node("n0"), make_gang("g", 2), theirs, *members("g", 1))
    world.try_all()
    assert "should have the same .spec.schedulerName set" in world.message("g-0")


def test_pod_being_deleted_is_left_out_and_the_rest_is_judged_without_it() -> None:
    leaving, *others = members("g", 3)
    world = GroupWorld(*nodes(3), make_gang("g", 2), *others)
    world.see(leaving.terminating())
    world.try_all()
    assert world.bound() == ["g-1", "g-2"]
    condition = world.condition("g")
    assert condition is not None
    assert condition.status == "True"


def test_gang_that_loses_a_pod_to_permit_gives_back_the_room_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SchedulingCycle.ask_to_permit

    def refuse_one(cycle: SchedulingCycle, decision: Decision, timeouts: dict[str, float]) -> Status | None:
        return unschedulable("no") if decision.pod.name == "g-1" else asked(cycle, decision, timeouts)

    monkeypatch.setattr(SchedulingCycle, "ask_to_permit", refuse_one)
    world = GroupWorld(*nodes(3), make_gang("g", 3), *members("g", 3))
    world.try_all()
    assert world.bound() == []
    assert [world.pods_on(f"n{i}") for i in range(3)] == [0, 0, 0]
    assert world.nothing_is_in_flight()


def test_gang_at_which_a_plugin_breaks_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> PlacingResult:
        raise RuntimeError("oops")

    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2))
    with monkeypatch.context() as patched:
        patched.setattr(GroupProfile, "place", broken)
        world.try_all()
    assert world.bound() == []
    assert world.nothing_is_in_flight()
    world.pass_seconds(60)
    world.try_all()
    assert world.bound() == ["g-0", "g-1"]
