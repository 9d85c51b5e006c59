"""A cluster as the page looks at it: its state, its pods, its queue if it has one, and an engine of the page's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.pod import Pod, PodStatus
from kubesched.daemon.shadow import Shadow
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.decision import Decision
from kubesched.framework.engine import Engine
from kubesched.framework.profile import Profile
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.simulate.cluster import ClusterModel, waits
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.decisions import EntryLog


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
    live: bool = False
    """Whether things happen there."""
    queue: SchedulingQueue | None = None
    """None where nothing is scheduled: then the page says what would become of pods that wait."""
    pods_without_node: Callable[[], Iterable[Pod]] | None = None
    """Those that wait, where there is no queue and somebody keeps count."""
    log: EntryLog | None = None
    shadow: Shadow | None = None
    """What is thought of the decisions of the scheduler in charge."""
    experiments: bool = True
    """Whether there is time for questions that take seconds, on copies of the cluster."""
    saying: Callable[[], str] = lambda: ""
    """What a story that plays in the cluster says at this moment."""
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


def one_more(pod: Pod) -> Pod:
    """A pod like this one that has no node yet. One that has none is asked about itself."""
    if waits(pod):
        return pod
    name = f"{pod.name}-one-more"
    metadata = replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}", deletion_timestamp="")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())
