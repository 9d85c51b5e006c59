"""A cluster as the page looks at it: its state, its pods, its queue if it has one, and an engine of the page's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.daemon.shadow import Shadow
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.decision import Decision
from kubesched.framework.engine import Engine
from kubesched.framework.profile import Profile
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.simulate.cluster import ClusterModel, created_at, waits
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.decisions import EntryLog
from kubesched.ui.model.owners import WantedPods
from kubesched.ui.model.usage import UsageReport


@dataclass(frozen=True)
class ObservedCluster:
    """What a source hands to the page. Nothing in here is changed by looking at it."""

    kind: str
    """sandbox, manifests, ...: what the page says it is looking at."""
    title: str
    cluster: ClusterModel
    """Its engine is never the scheduler's own: asking must not draw from its random numbers."""
    clock: Callable[[], float]
    """The clock of the queue, in seconds."""
    wall_clock: Callable[[], float] | None = None
    """Seconds since 1970, where objects say when they were made by such a clock."""
    live: bool = False
    """Whether things happen there."""
    queue: SchedulingQueue | None = None
    """None where nothing is scheduled: then the page says what would become of pods that wait."""
    pods_without_node: Callable[[], Iterable[Pod]] | None = None
    """Pods that wait, where there is no queue and a source counts them."""
    log: EntryLog | None = None
    shadow: Shadow | None = None
    """What is thought of the decisions of the scheduler in charge."""
    experiments: bool = True
    """Whether there is time for questions that take seconds, on copies of the cluster."""
    saying: Callable[[], str] = lambda: ""
    """What a story that plays in the cluster says at this moment."""
    wanted: Callable[[], Iterable[WantedPods]] | None = None
    """How many pods workloads want, where the model of the cluster does not have the workloads."""
    usage: Callable[[], UsageReport | None] = lambda: None
    """What nodes and pods use, where that is measured."""
    extenders: Sequence[HTTPExtender] = ()
    """Extenders of the scheduler, which the page does not ask."""

    def decide(self, pod: Pod, *, explain: bool = False) -> Decision | None:
        """The decision as it would be now; None if the pod waits for a scheduler that is not this one."""
        return self.engine.decide(pod, explain=explain) if self.engine.knows(pod.spec.scheduler_name) else None

    @property
    def state(self) -> ClusterState:
        return self.cluster.state

    @property
    def pods(self) -> Mapping[str, Pod]:
        """All pods by `namespace/name`."""
        return self.cluster.pods

    def node_of(self, pod: Pod) -> str:
        """The node on which a pod is counted, bound or about to be; empty if it waits."""
        if pod.spec.node_name:
            return pod.spec.node_name
        placed = self.state.placed(pod)
        return placed.pod.spec.node_name if placed is not None else ""

    def age_of(self, pod: Pod) -> float | None:
        """Seconds since a pod was made; None where that is not known."""
        if self.wall_clock is None or not pod.metadata.creation_timestamp:
            return None
        return round(max(self.wall_clock() - created_at(pod), 0.0), 1)

    @property
    def engine(self) -> Engine:
        return self.cluster.engine

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return self.cluster.profiles

    def waiting(self) -> Iterable[Pod]:
        """Pods that have no node, where there is no queue to tell."""
        if self.pods_without_node is not None:
            return self.pods_without_node()
        return (pod for pod in self.pods.values() if waits(pod))
