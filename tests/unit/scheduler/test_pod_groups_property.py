"""Whatever happens to groups, in whichever order: all or nothing, nothing reserved is lost, nobody blocks another."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members, nodes
from tests.unit.scheduler.memory_cluster import Refusal, Running

from kubesched.api.pod_groups import PodGroup
from kubesched.scheduler.attempt.attempt import Attempt, Done
from kubesched.scheduler.groups.group_attempt import GroupAttempt, GroupDecided
from kubesched.testing import make_node

GROUPS = ("a", "b", "c")
ATOMIC = {"a": 3, "b": 4, "c": 2}
SIZES = {"a": 3, "b": 4, "c": 3}


@dataclass(eq=False)
class Open:
    """An attempt whose outcome is still being written."""

    attempt: Attempt | GroupAttempt
    running: Running


class Groups(RuleBasedStateMachine):
    """Gangs of several sizes on a few nodes. Bindings are written step by step, and may fail, before or after."""

    @initialize(count=st.integers(1, 6))
    def begin(self, count: int) -> None:
        self.world = GroupWorld(*nodes(count))
        self.cluster = self.world.cluster
        self.node_count = count
        self.open: list[Open] = []
        self.generation = 0
        self.failed_writes = False

    # -- the cluster --------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(GROUPS))
    def create_group(self, name: str) -> None:
        if f"PodGroup default/{name}" not in self.cluster.objects:
            self.generation += 1
            self.cluster.put(make_gang(name, ATOMIC[name], uid=f"{name}{self.generation}"))

    @rule(name=st.sampled_from(GROUPS))
    def delete_group(self, name: str) -> None:
        group = self.cluster.objects.get(f"PodGroup default/{name}")
        if isinstance(group, PodGroup):
            self.cluster.remove(group)

    @rule(name=st.sampled_from(GROUPS), index=st.integers(0, 3))
    def create_pod(self, name: str, index: int) -> None:
        if index < SIZES[name] and f"default/{name}-{index}" not in self.cluster.pods:
            self.generation += 1
            pod = members(name, 1, first=index)[0].build()
            self.cluster.put(replace(pod, metadata=replace(pod.metadata, uid=f"{name}{index}/{self.generation}")))

    @rule(name=st.sampled_from(GROUPS))
    def create_all_of_a_group(self, name: str) -> None:
        self.create_group(name)
        for index in range(SIZES[name]):
            self.create_pod(name, index)
        self.cluster.tell(self.world.scheduler)

    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        if pods := sorted(self.cluster.pods):
            self.cluster.remove(self.cluster.pods[data.draw(st.sampled_from(pods))])

    @rule(data=st.data())
    def terminate_pod(self, data: st.DataObject) -> None:
        if pods := sorted(key for key, pod in self.cluster.pods.items() if not pod.is_terminating):
            self.cluster.terminate(self.cluster.pods[data.draw(st.sampled_from(pods))])

    @rule()
    def add_node(self) -> None:
        if self.node_count < 8:
            self.cluster.put(make_node(f"n{self.node_count}").capacity(cpu="1").build())
            self.node_count += 1

    @rule(most=st.integers(1, 5))
    def tell(self, most: int) -> None:
        self.cluster.tell(self.world.scheduler, most)

    @rule(refusal=st.sampled_from([Refusal("InternalError"), Refusal("Timeout", after_commit=True)]))
    def let_a_binding_fail(self, refusal: Refusal) -> None:
        self.cluster.bind_refusals.append(refusal)
        self.failed_writes = True

    # -- the scheduler ------------------------------------------------------------------------------------------------

    @rule()
    def attempt(self) -> None:
        attempt = self.world.scheduler.pop()
        if attempt is None:
            return
        assert isinstance(attempt, GroupAttempt)
        self.world.scheduler.decide(attempt)
        self.check_turn(attempt)
        whole: list[Attempt | GroupAttempt] = [*attempt.attempts, attempt]
        for each in whole:
            if not isinstance(each.state, Done):
                self.open.append(Open(each, Running(self.world.scheduler.finish(each))))

    def check_turn(self, attempt: GroupAttempt) -> None:
        """All or nothing: after a decision a gang has its quorum, or none of these pods has a node."""
        placed = [each for each in attempt.attempts if each.node]
        assert isinstance(attempt.state, GroupDecided)
        if placed:
            group = attempt.state.group
            assert group is not None
            assert len(self.world.scheduler.state.groups.placed(group.key)) >= group.min_count

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(range(len(self.open))))
        self.open[one].running.go_on()
        if self.open[one].running.is_over:
            del self.open[one]

    @rule()
    def let_another_replica_take_over(self) -> None:
        """What the last leader was about to write is never written."""
        for one in self.open:
            one.running.abandon()
        self.open.clear()
        refusals = self.cluster.bind_refusals
        self.world = self.world.taken_over()
        self.cluster = self.world.cluster
        self.cluster.bind_refusals = refusals

    @rule(seconds=st.integers(1, 30))
    def pass_time(self, seconds: int) -> None:
        self.world.pass_seconds(seconds)

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        state = self.world.scheduler.state
        for row in range(state.nodes.size):
            pods = state.pods.pods_on(row)
            assert state.nodes.pod_count[row] == len(pods)
            assert state.nodes.requested[0, row] == 1000 * len(pods)
            assert len(pods) <= 1 or not state.nodes.live[row] or self.failed_writes
        for name in GROUPS:
            there = [p for row in state.pods.on_row for p in row if p.pod.spec.scheduling_group.pod_group_name == name]  # type: ignore[union-attr]
            assert len(state.groups.placed(f"default/{name}")) == len(there)

    @invariant()
    def every_pending_pod_is_in_exactly_one_place(self) -> None:
        scheduler, queue = self.world.scheduler, self.world.groups
        waiting = [*queue.active(), *queue.backoff(), *queue.error_backoff(), *queue.unschedulable()]
        keys = [pod.key for pod in waiting] + [pod.key for pod in queue.incomplete()]
        assert len(keys) == len(set(keys))
        for key, pod in scheduler.pods.items():
            if not pod.spec.node_name and scheduler.state.placed(pod) is None:
                held = key in keys or any(each.attempt.queued.key == key for each in self.open)
                assert held or pod.is_terminating, key

    def teardown(self) -> None:
        """Left to itself, it comes to rest with nothing half done that could be whole."""
        if not hasattr(self, "world"):
            return
        world = self.world
        self.cluster.bind_refusals.clear()
        for one in self.open:
            one.running.to_the_end()
        for pod in list(self.cluster.pods.values()):
            if pod.is_terminating:
                self.cluster.remove(pod)
        self.cluster.tell(world.scheduler)
        for _ in range(12):
            world.pass_seconds(30)
            world.try_all()
        assert world.nothing_is_in_flight()
        free = self.node_count - len(world.bound())
        for name in GROUPS:
            if f"PodGroup default/{name}" not in self.cluster.objects:
                continue
            bound, pending = len(world.bound(name)), len(world.pending(name))
            lacking = max(0, ATOMIC[name] - bound)
            could_run = bool(pending) and bound + pending >= ATOMIC[name] and free >= max(1, lacking)
            assert not could_run, f"{name}: {bound} bound, {pending} pending, {free} free"


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("order", ["aabb", "abab", "bbaa", "abba"])
def test_of_two_gangs_of_eight_on_twelve_places_one_runs_and_the_other_waits(order: str) -> None:
    world = GroupWorld(*nodes(12), make_gang("a", 8), make_gang("b", 8))
    made = {"a": 0, "b": 0}
    for name in order * 4:
        world.see(*members(name, 1, first=made[name]))
        made[name] += 1
        world.try_all()
    for _ in range(10):
        world.pass_seconds(30)
        world.try_all()
    assert sorted((len(world.bound("a")), len(world.bound("b")))) == [0, 8]
    first = "a" if world.bound("a") else "b"
    for name in world.bound(first):
        world.cluster.remove(world.cluster.pod(name))
    world.cluster.tell(world.scheduler)
    world.pass_seconds(60)
    world.try_all()
    assert len(world.bound("b" if first == "a" else "a")) == 8
