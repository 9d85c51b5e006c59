"""The cache against the API server: every difference is found and repaired, and the recording has the repair."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from tests.unit.scheduler.memory_cluster import MemoryCluster, Running
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.cache_debugger import CacheDifference, compare, repair
from kubesched.framework.client import ClusterClient
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import Replay
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

N1, N2 = make_node("n1"), make_node("n2")
ON_N1, PENDING = make_pod("on-n1").requests(cpu="1").on("n1"), make_pod("pending")


def scheduler(client: ClusterClient | None = None, *listeners: SchedulerListener) -> Scheduler:
    made = build_scheduler(
        SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0),
        config.default(),
        MemoryCluster() if client is None else client,
        in_tree(),
        listeners=listeners,
    )
    for obj in (N1, N2, ON_N1, PENDING):
        made.handle(Change(new=obj.build()))
    return made


def truth(*objects: NodeBuilder | PodBuilder) -> tuple[dict[str, Node], dict[str, Pod]]:
    built: list[KubeObject] = [obj.build() for obj in objects]
    nodes = {obj.name: obj for obj in built if isinstance(obj, Node)}
    return nodes, {obj.key: obj for obj in built if isinstance(obj, Pod)}


def test_cache_that_is_true_has_no_differences() -> None:
    assert compare(scheduler(), *truth(N1, N2, ON_N1, PENDING)) == []


def test_pod_that_is_being_bound_is_no_difference() -> None:
    made = scheduler()
    attempt = pop_pod(made)
    assert attempt is not None
    made.decide(attempt)
    assert attempt.node
    assert compare(made, *truth(N1, N2, ON_N1, PENDING)) == []


@pytest.mark.parametrize(
    ("actual", "difference"),
    [
        ((N1, N2, make_node("n3"), ON_N1, PENDING), CacheDifference("Node", "n3", "not known")),
        ((N1, ON_N1, PENDING), CacheDifference("Node", "n2", "known but gone")),
        ((N1, N2.cordoned(), ON_N1, PENDING), CacheDifference("Node", "n2", "known in another version")),
        ((N1, N2, PENDING), CacheDifference("Pod", "default/on-n1", "known but gone")),
        ((N1, N2, ON_N1, PENDING, make_pod("new")), CacheDifference("Pod", "default/new", "not known")),
        ((N1, N2, ON_N1, PENDING.on("n2")), CacheDifference("Pod", "default/pending", 'known on "", is on "n2"')),
        (
            (N1, N2, ON_N1, make_pod("pending", uid="another")),
            CacheDifference("Pod", "default/pending", "known as another pod of that name"),
        ),
    ],
)
def test_difference_is_found_and_repaired(
    actual: tuple[NodeBuilder | PodBuilder, ...], difference: CacheDifference
) -> None:
    made = scheduler()
    assert repair(made, *truth(*actual)) == [difference]
    assert compare(made, *truth(*actual)) == []


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda made: made.state.delete(ON_N1.build()), 'not counted on "n1"'),
        (lambda made: made.pods.pop("default/on-n1"), "not known"),
    ],
)
def test_damaged_cache_is_repaired(damage: Callable[[Scheduler], object], what: str) -> None:
    made = scheduler()
    damage(made)
    actual = truth(N1, N2, ON_N1, PENDING)
    assert repair(made, *actual) == [CacheDifference("Pod", "default/on-n1", what)]
    assert compare(made, *actual) == []
    table = made.state.nodes
    assert int(table.pod_count[table.row_of["n1"]]) == 1


@pytest.mark.parametrize("damage", [lambda made: None, lambda made: made.state.delete(ON_N1.build())])
def test_repair_is_in_the_recording_and_the_replay_agrees(damage: Callable[[Scheduler], object]) -> None:
    """The only node with room for a pod is one that the comparison brought in."""
    stream, cluster = io.StringIO(), MemoryCluster()
    recording = Recording(stream, config.default(), lambda: 0.0)
    made = scheduler(RecordingClient(cluster, recording), recording)
    damage(made)
    big = make_pod("big").requests(cpu="64")
    found = repair(made, *truth(N1, N2, make_node("n3").capacity(cpu="64"), ON_N1, PENDING, big))
    assert CacheDifference("Node", "n3", "not known") in found
    cluster.put(PENDING.build())
    cluster.put(big.build())
    bound = {}
    while attempt := pop_pod(made):
        made.decide(attempt)
        Running(made.finish(attempt)).to_the_end()
        bound[attempt.queued.pod.name] = attempt.node
    assert bound["big"] == "n3"
    lines = stream.getvalue().splitlines()
    assert sum('"n3"' in line and '"what":"added"' in line for line in lines) == 1
    assert Replay(lines, in_tree()).run() == []
