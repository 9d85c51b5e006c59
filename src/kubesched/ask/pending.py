"""All pending pods at once: who finds a node, what the others lack, how many nodes of which pool would place them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.ask.explain import explain
from kubesched.ask.explain.explanation import Cause, cause_of
from kubesched.ask.output import counted
from kubesched.ask.remedies import Remedies, RemedyKind
from kubesched.ask.trial import changed
from kubesched.framework.decision import Outcome
from kubesched.framework.engine import Engine
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import NodePool, one_more, pools_of
from kubesched.simulate.placement import PodPlacement, UnplacedPod, place_one

MOST_NEW_NODES = 64
MOST_PODS = 300
MOST_POOLS = 6


@dataclass(frozen=True, slots=True)
class PoolHelp:
    """So many more nodes of a pool would place so many pods, and no more of them would place more."""

    pool: str
    nodes: int
    places: int


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """Pods of one workload that wait for the same."""

    workload: str
    """`shop/web`; for pods without an owner, their namespace."""
    why: str
    """What the last filters that reject any node say, in the words of the condition; the page says the same."""
    pods: tuple[str, ...]
    message: str
    """What the condition of the first of them says."""
    pools: tuple[PoolHelp, ...] = ()
    """The fewest nodes first, of those that place most."""
    remedies: Remedies | None = None
    """For the first of them."""

    @property
    def title(self) -> str:
        return f"{counted(len(self.pods), 'pod')} of {self.workload}: {self.why}"

    @property
    def help_for_all(self) -> list[str]:
        """How many more nodes would place how many of them, in sentences."""
        sentences = []
        for pool in self.pools:
            places = f"{pool.places} of them"
            if pool.places == len(self.pods):
                places = "it" if len(self.pods) == 1 else "all of them"
            sentences.append(f"{counted(pool.nodes, 'more node')} of pool {pool.pool} would place {places}.")
        return sentences

    @property
    def help_for_first(self) -> list[str]:
        """What else would help the first of them, in sentences."""
        remedies = self.remedies.found if self.remedies is not None else ()
        told_before = RemedyKind.ADD_NODE if self.pools else None
        return [remedy.sentences for remedy in remedies if remedy.steps[-1].sort is not told_before]


@dataclass(frozen=True, slots=True)
class PendingPods:
    """What becomes of all pods that have no node yet."""

    nodes: int
    placed: tuple[PodPlacement, ...]
    groups: tuple[PendingGroup, ...]
    """The pods that find no node, the largest group first."""
    left_out: int = 0
    """Pods at the end of the queue that were not looked at."""


def pending_pods(
    cluster: ClusterModel, *, with_remedies: bool = True, most: int | None = None, namespace: str = ""
) -> PendingPods:
    """Place what can be placed, in the order of the queue, and explain the rest; of more than `most` pods, the first.

    With a namespace only its pods are told of, though all are placed. The cluster holds the placed pods afterwards.
    """
    placed: list[PodPlacement] = []
    waiting: list[tuple[Pod, UnplacedPod]] = []
    pending = cluster.pending()
    left_out = pending[most:] if most is not None else []
    for pod in left_out:
        del cluster.pods[pod.key]
        cluster.state.delete(pod)
    for pod in pending[: len(pending) - len(left_out)]:
        outcome = place_one(cluster, pod)
        if namespace not in ("", pod.namespace):
            continue
        if isinstance(outcome, PodPlacement):
            placed.append(outcome)
        else:
            waiting.append((pod, outcome))
    groups = _Groups(cluster, with_remedies).of(waiting)
    return PendingPods(cluster.state.nodes.live_count, tuple(placed), groups, len(left_out))


class _Groups:
    def __init__(self, cluster: ClusterModel, with_remedies: bool) -> None:
        self._cluster = cluster
        self._with_remedies = with_remedies
        self._engine = Engine(cluster.state, cluster.profiles.values(), draw=lambda among: 0)

    def of(self, waiting: Sequence[tuple[Pod, UnplacedPod]]) -> tuple[PendingGroup, ...]:
        """Pods of a workload that wait for the same cause are one group. Equivalent pods have the same cause."""
        causes: dict[object, Cause] = {}
        members: dict[tuple[str, str], list[tuple[Pod, UnplacedPod]]] = {}
        for pod, outcome in waiting:
            known_as = (outcome.outcome, self._cluster.state.facts(pod).fingerprint)
            if known_as not in causes:
                causes[known_as] = self._cause(pod, outcome)
            members.setdefault(causes[known_as].of_workload(pod).key, []).append((pod, outcome))
        groups = [self._group(*key, pods) for key, pods in members.items()]
        return tuple(sorted(groups, key=lambda group: -len(group.pods)))

    def _cause(self, pod: Pod, outcome: UnplacedPod) -> Cause:
        is_tried = outcome.outcome != "skipped"
        cause = cause_of(self._engine.decide(pod), self._engine.pre_enqueue(pod)) if is_tried else None
        return cause or Cause(outcome.message)

    def _group(self, workload: str, why: str, members: Sequence[tuple[Pod, UnplacedPod]]) -> PendingGroup:
        pods, (first, outcome) = [pod for pod, _ in members], members[0]
        pools: tuple[PoolHelp, ...] = ()
        remedies = None
        if self._with_remedies and outcome.outcome != "skipped":
            remedies = explain(self._cluster, first).findings.remedies
            if outcome.outcome == Outcome.UNSCHEDULABLE.value:
                pools = self._pools(pods[:MOST_PODS])
        return PendingGroup(workload, why, tuple(pod.key for pod in pods), outcome.message, pools, remedies)

    # -- how many nodes -----------------------------------------------------------------------------------------------

    def _pools(self, pods: Sequence[Pod]) -> tuple[PoolHelp, ...]:
        pools = pools_of(self._cluster.state)  # a pod that is spread may need its node in one zone of several
        helping = [pool for pool in pools if self._places(pool, len(pool.models), pods[:1])][:MOST_POOLS]
        helps = [self._help(pool, pods) for pool in helping]
        return tuple(sorted(helps, key=lambda help_: (-help_.places, help_.nodes)))

    def _help(self, pool: NodePool, pods: Sequence[Pod]) -> PoolHelp:
        """The fewest new nodes of the pool after which more of them would place no more of the pods."""
        high = min(max(len(pods), len(pool.models)), MOST_NEW_NODES)
        most = self._places(pool, high, pods)
        fewer = bisect_left(range(1, high), True, key=lambda nodes: self._places(pool, nodes, pods) == most)
        return PoolHelp(pool.name, 1 + fewer, most)

    def _places(self, pool: NodePool, nodes: int, pods: Sequence[Pod]) -> int:
        """How many of the pods find a node once the pool has that many more nodes, in its zones by turns."""
        models = enumerate(islice(cycle(pool.models), nodes), 1)
        objects = [obj for number, model in models for obj in one_more(self._cluster.state, model, number)]
        placed = 0
        with changed(self._cluster, [Change(None, obj) for obj in objects]) as trial:
            for pod in pods:
                decision = self._engine.decide(trial.with_claims(pod))
                placed += decision.outcome is Outcome.SCHEDULED and trial.reserve(decision)
        return placed
