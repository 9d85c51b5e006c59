"""Thousands of groups that never get their quorum: an event asks about the group that it belongs to, and no other."""

from __future__ import annotations

import pytest
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members
from tests.unit.scheduler.test_waiting_for_claims import Asked

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import group_key
from kubesched.plugins.gang_scheduling import GangScheduling
from kubesched.scheduler.groups import group_queue
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod

GROUPS = 50
MODES = pytest.mark.parametrize("batched", [True, False], ids=["batched", "parity"])


class Work:
    """How often hints and gates were asked, and the groups of pods looked up, since it was last read."""

    def __init__(self, world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self._asked = Asked()
        world.scheduler.listeners.append(self._asked)
        self._gates = self._lookups = 0
        pre_enqueue = GangScheduling.pre_enqueue

        def counting_gate(plugin: GangScheduling, pod: Pod, state: ClusterState) -> object:
            self._gates += 1
            return pre_enqueue(plugin, pod, state)

        def counting_lookup(pod: Pod) -> str:
            self._lookups += 1
            return group_key(pod)

        monkeypatch.setattr(GangScheduling, "pre_enqueue", counting_gate)
        monkeypatch.setattr(group_queue, "group_key", counting_lookup)

    def read(self) -> int:
        work, self._gates, self._lookups = len(self._asked.pods) + self._gates + self._lookups, 0, 0
        self._asked.pods.clear()
        return work


def waiting_groups(batched: bool) -> GroupWorld:
    """Gangs of two of which one pod is there."""
    world = GroupWorld(make_node("n"), batched=batched)
    for i in range(GROUPS):
        world.see(make_gang(f"g{i}", 2), *members(f"g{i}", 1))
    return world


@MODES
def test_pods_and_nodes_ask_no_group_that_waits_for_others(batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = waiting_groups(batched)
    work = Work(world, monkeypatch)
    world.see(make_pod("ordinary"))
    world.try_all()
    world.see(make_node("m"))
    world.lose(make_pod("ordinary").on("n"))
    assert work.read() < 15
    assert world.bound() == []


@MODES
def test_pod_of_a_group_asks_that_group_alone_and_wakes_it(batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = waiting_groups(batched)
    work = Work(world, monkeypatch)
    world.see(*members("g7", 1, first=1))
    assert work.read() < 15
    world.try_all()
    assert world.bound() == ["g7-0", "g7-1"]


@MODES
def test_lower_quorum_asks_that_group_alone_and_wakes_it(batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = waiting_groups(batched)
    work = Work(world, monkeypatch)
    world.see(make_gang("g7", 1))
    assert work.read() < 15
    world.try_all()
    assert world.bound() == ["g7-0"]


@MODES
def test_new_group_looks_at_its_own_pods_alone(batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = GroupWorld(make_node("n"), *(pod for i in range(GROUPS) for pod in members(f"g{i}", 1)), batched=batched)
    assert len(world.groups.incomplete()) == GROUPS
    work = Work(world, monkeypatch)
    world.see(make_gang("g7", 1))
    assert work.read() < 15
    world.try_all()
    assert world.bound() == ["g7-0"]
    assert len(world.groups.incomplete()) == GROUPS - 1
