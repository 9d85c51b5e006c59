"""Very large pods: what deciding them costs, the memory that they leave behind, and events while they wait."""

from __future__ import annotations

import gc
import statistics
import tracemalloc
from collections.abc import Callable

from msgspec.structs import replace

from bench import clusters
from bench.loop import Loop
from bench.measure import cpu_us
from kubesched.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubesched.api.change import Change
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.pod import Container, Pod, ResourceRequirements

NODES = 5000
GROUPS = 2000
MANY_GROUPS = 20_000

HostilePod = Callable[[int], Pod]


def spread(when: str) -> HostilePod:
    """So many constraints, each in a topology of its own, as the API server wants it."""

    def make(size: int) -> Pod:
        constraints = tuple(
            TopologySpreadConstraint(
                max_skew=1,
                topology_key=f"example.com/topology-{i}",
                when_unsatisfiable=when,  # type: ignore[arg-type]
                label_selector=LabelSelector(match_labels={"app": f"group-{i}"}),
            )
            for i in range(size)
        )
        return clusters.pod(0, "hostile", spread=constraints)

    return make


def resources(size: int) -> Pod:
    asked: dict[str, str | int | float] = {f"example.com/resource-{i}": "1" for i in range(size)}
    container = Container(name="c", resources=ResourceRequirements(requests=asked))
    pod = clusters.pod(0, "hostile")
    return replace(pod, spec=replace(pod.spec, containers=(container,)))


def selector(size: int) -> Pod:
    pod = clusters.pod(0, "hostile")
    wanted = {f"example.com/key-{i}": "yes" for i in range(size)}
    return replace(pod, spec=replace(pod.spec, node_selector=wanted))


def node_terms(size: int) -> Pod:
    """Preferred terms that compare numbers, on labels that nodes have and on others."""
    terms = tuple(
        PreferredSchedulingTerm(
            weight=1 + i % 100,
            preference=NodeSelectorTerm(
                match_expressions=(
                    NodeSelectorRequirement(key=clusters.HOSTNAME, operator="Gt", values=(str(i),)),
                    NodeSelectorRequirement(key=f"example.com/key-{i}", operator="NotIn", values=("no",)),
                )
            ),
        )
        for i in range(size)
    )
    preferred = NodeAffinity(preferred_during_scheduling_ignored_during_execution=terms)
    return clusters.pod(0, "hostile", affinity=Affinity(node_affinity=preferred))


def affinity(*, preferred: bool, anti: bool, not_in: bool = False) -> HostilePod:
    """Terms that each mean one of the groups of placed pods, or all but one."""

    def make(size: int) -> Pod:
        terms = tuple(
            PodAffinityTerm(
                topology_key=clusters.HOSTNAME if i % 2 else clusters.ZONE,
                label_selector=LabelSelector(
                    match_expressions=(
                        LabelSelectorRequirement(
                            key="app", operator="NotIn" if not_in else "In", values=(f"group-{i}",)
                        ),
                    )
                ),
            )
            for i in range(size)
        )
        weighted = tuple(WeightedPodAffinityTerm(weight=1 + i % 100, pod_affinity_term=t) for i, t in enumerate(terms))
        wanted = (
            PodAffinity(preferred_during_scheduling_ignored_during_execution=weighted)
            if preferred
            else PodAffinity(required_during_scheduling_ignored_during_execution=terms)
        )
        return clusters.pod(
            0, "hostile", affinity=Affinity(pod_anti_affinity=wanted) if anti else Affinity(pod_affinity=wanted)
        )

    return make


PODS: dict[str, tuple[HostilePod, int, int, int]] = {
    "spread-soft": (spread("ScheduleAnyway"), 2500, 3000, GROUPS),
    "spread-hard": (spread("DoNotSchedule"), 2500, 3000, GROUPS),
    "resources": (resources, 8000, 10_000, GROUPS),
    "node-selector": (selector, 15_000, 20_000, GROUPS),
    "node-terms": (node_terms, 1500, 3000, GROUPS),
    "preferred-anti-affinity": (affinity(preferred=True, anti=True), 1500, 3000, GROUPS),
    "required-anti-affinity": (affinity(preferred=False, anti=True), 1500, 3000, GROUPS),
    "required-affinity": (affinity(preferred=False, anti=False), 1500, 3000, GROUPS),
    "preferred-anti-affinity-many-groups": (affinity(preferred=True, anti=True), 1500, 3000, MANY_GROUPS),
    "preferred-affinity-not-in": (affinity(preferred=True, anti=False, not_in=True), 1500, 3000, MANY_GROUPS),
}
"""What makes it expensive: how to make such a pod, two sizes, and how many different labels placed pods have."""


class Cluster:
    """Nodes, placed pods with many different labels, and a scheduler."""

    def __init__(self, groups: int = GROUPS, nodes: int = NODES, *, kind: str = "group") -> None:
        self.loop = Loop(nodes)
        for i in range(MANY_GROUPS):
            name = f"node-{i % nodes:05d}"
            self.handle(Change(new=clusters.pod(i, f"{kind}-{i % groups}", cpu="10m", node_name=name)))
        self._others = 0
        self.ordinary()

    def handle(self, change: Change) -> None:  # type: ignore[type-arg]
        self.loop.scheduler.handle(change)

    def decide(self, pod: Pod) -> float:
        """CPU seconds from the pod's arrival until its attempt is over, whatever becomes of it."""

        def run() -> None:
            self.handle(Change(new=pod))
            self.loop.run(1)

        return cpu_us(run) / 1e6

    def ordinary(self, pods: int = 20) -> float:
        """CPU microseconds of an ordinary pod that nothing is known about, while the others are there."""
        kinds = [clusters.pod(0, f"ordinary-{self._others + i}", cpu="1m") for i in range(pods)]
        self._others += pods

        def run() -> None:
            for kind in kinds:  # one after another, as a scheduler at work has them
                self.handle(Change(new=kind))
                self.loop.run(1)

        return cpu_us(run) / pods

    def delete(self, pod: Pod) -> None:
        self.handle(Change(old=self.loop.scheduler.pods[pod.key]))


def deciding(name: str) -> tuple[float, float, float]:
    """CPU seconds of a decision at both sizes, and microseconds of an ordinary pod beside them."""
    make, small, large, groups = PODS[name]
    cluster = Cluster(groups)
    first, second = (cluster.decide(_named(make(size), f"hostile-{size}")) for size in (small, large))
    return first, second, cluster.ordinary()


def left_behind() -> float:
    """MB that are held after one of each of these pods came and was deleted, beyond what was held before."""
    cluster = Cluster()
    tracemalloc.start()
    before = _held_mb()
    for name, (make, size, _, _) in PODS.items():
        pod = _named(make(size), name)
        cluster.decide(pod)
        cluster.delete(pod)
        del pod
    after = _held_mb()
    tracemalloc.stop()
    return after - before


def _held_mb() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1e6


def _named(pod: Pod, name: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=name))


class WaitingForOthers:
    """Pods that are all different, and wait for room or for company that never comes."""

    def __init__(self, pods: int, *, with_affinity: bool) -> None:
        self._loop = Loop(nodes=20)
        self._pods = pods
        for i in range(pods):
            term = PodAffinityTerm(
                topology_key=clusters.HOSTNAME, label_selector=LabelSelector(match_labels={"app": f"absent-{i}"})
            )
            near = Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
            waiting = (
                clusters.pod(i, f"kind-{i}", affinity=near)
                if with_affinity
                else clusters.pod(i, f"kind-{i}", cpu=f"{64 + i}")
            )
            self._loop.scheduler.handle(Change(new=waiting))
        self._loop.run(pods)

    def assigned_pod_ms(self, events: int = 15) -> float:
        """CPU milliseconds of an event that helps none of them: a pod that is bound."""
        spent = []
        for i in range(events):
            pod = clusters.pod(i, "other", cpu="1m", node_name="node-00001")
            spent.append(cpu_us(lambda pod=pod: self._loop.scheduler.handle(Change(new=pod))) / 1000)  # type: ignore[misc]
        assert len(self._loop.scheduler.queue.unschedulable()) == self._pods
        return statistics.median(spent)


def different_pods_mb(pods: int = 50_000) -> float:
    """MB of the state with so many placed pods, no two of them alike."""
    tracemalloc.start()
    state = clusters.empty_cluster(NODES)
    for i in range(pods):
        name = f"node-{i % NODES:05d}"
        state.apply(clusters.pod(i, f"kind-{i}", cpu=f"{10 + i % 997}m", memory=f"{1 + i}Mi", node_name=name))
    held = _held_mb()
    tracemalloc.stop()
    return held
