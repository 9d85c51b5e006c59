"""Belief against truth: every difference is found, told and repaired."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.unit.scheduler.memory_writer import MemoryCluster

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.belief import Difference, compared, repaired
from kubesched.scheduler.scheduler import Scheduler

N1, N2 = make_node("n1"), make_node("n2")
ON_N1, PENDING = make_pod("on-n1").requests(cpu="1").on("n1"), make_pod("pending")


def scheduler() -> Scheduler:
    made = Scheduler(config.default(), MemoryCluster(), clock=lambda: 0.0, draw=lambda among: 0)
    for obj in (N1, N2, ON_N1, PENDING):
        made.handle(Change(new=obj.build()))
    return made


def truth(*objects: NodeBuilder | PodBuilder) -> tuple[dict[str, Node], dict[str, Pod]]:
    built: list[KubeObject] = [obj.build() for obj in objects]
    nodes = {obj.name: obj for obj in built if isinstance(obj, Node)}
    return nodes, {obj.key: obj for obj in built if isinstance(obj, Pod)}


def test_belief_that_is_true_has_no_differences() -> None:
    assert compared(scheduler(), *truth(N1, N2, ON_N1, PENDING)) == []


def test_pod_that_is_being_bound_is_no_difference() -> None:
    made = scheduler()
    attempt = made.pop()
    assert attempt is not None
    made.decide(attempt)
    assert attempt.node
    assert compared(made, *truth(N1, N2, ON_N1, PENDING)) == []


@pytest.mark.parametrize(
    ("actual", "difference"),
    [
        ((N1, N2, make_node("n3"), ON_N1, PENDING), Difference("Node", "n3", "not known")),
        ((N1, ON_N1, PENDING), Difference("Node", "n2", "known but gone")),
        ((N1, N2.cordoned(), ON_N1, PENDING), Difference("Node", "n2", "known in another version")),
        ((N1, N2, PENDING), Difference("Pod", "default/on-n1", "known but gone")),
        ((N1, N2, ON_N1, PENDING, make_pod("new")), Difference("Pod", "default/new", "not known")),
        ((N1, N2, ON_N1, PENDING.on("n2")), Difference("Pod", "default/pending", 'known on "", is on "n2"')),
        (
            (N1, N2, ON_N1, make_pod("pending", uid="another")),
            Difference("Pod", "default/pending", "known as another pod of that name"),
        ),
    ],
)
def test_difference_is_told_and_repaired(actual: tuple[NodeBuilder | PodBuilder, ...], difference: Difference) -> None:
    made = scheduler()
    assert repaired(made, *truth(*actual)) == [difference]
    assert compared(made, *truth(*actual)) == []


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda made: made.state.delete(ON_N1.build()), 'not counted on "n1"'),
        (lambda made: made.pods.pop("default/on-n1"), "not known"),
    ],
)
def test_damaged_belief_is_repaired(damage: Callable[[Scheduler], object], what: str) -> None:
    made = scheduler()
    damage(made)
    actual = truth(N1, N2, ON_N1, PENDING)
    assert repaired(made, *actual) == [Difference("Pod", "default/on-n1", what)]
    assert compared(made, *actual) == []
    table = made.state.nodes
    assert int(table.pod_count[table.row_of["n1"]]) == 1
