"""Workloads for the page: what owns pods, how many are wanted and how many run where, and why the next one waits."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kubesched.api.kinds import Object
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.api.selectors import compile_selector
from kubesched.api.well_known import ZONE
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.simulate.kinds import DaemonSet, Job, PodWorkload
from kubesched.ui.model.headroom import HeadroomModel, WorkloadRoom
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import DONE, FAILED, PHASES, WantedPods, WorkloadName, in_turn, owner_of, phase_of
from kubesched.ui.model.pending import PendingModel, requests_of
from kubesched.ui.model.pods import PodModel, PodVerdict
from kubesched.ui.model.usage import amounts_in_words

GROUP = "PodGroup"
_MOST_NODES, _MOST_MEMBERS = 40, 200
_MOST_CAUSES, _MOST_ZONES = 5, 40


@dataclass(slots=True)
class WorkloadLine:
    """A workload in a list."""

    namespace: str
    kind: str
    name: str
    wanted: int | None = None
    """None where it is not known: for DaemonSets, and where only pods are watched."""
    pods: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    nodes: int = 0
    priority: int = 0
    requests: dict[str, str] = field(default_factory=dict)
    """Of one pod."""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """A disruption budget that guards pods of a workload."""

    name: str
    says: str
    allowed: int


@dataclass(frozen=True, slots=True)
class WorkloadPage:
    """Everything about one workload."""

    line: WorkloadLine
    zones: tuple[tuple[str, int], ...]
    nodes: tuple[tuple[str, int], ...]
    """The nodes with most of its pods, and how many those are."""
    causes: tuple[tuple[str, int], ...]
    """Why its pods wait, and how many for each reason."""
    refusal: str
    """Why the API server takes no more of its pods, such as a quota; empty if it does."""
    budgets: tuple[BudgetLine, ...]
    usage: dict[str, str]
    """What its pods use together, where that is measured."""
    requested: dict[str, str]
    """What they request together."""
    example: str
    """A pod that waits; else one that has a node."""
    manifest: Object
    yaml: str
    room: WorkloadRoom | None
    verdict: PodVerdict | None
    """What would become of the example, or of one more like it."""
    members: tuple[tuple[str, str, str], ...]
    """Pods with their phases and nodes: those that wait first."""


def wanted_pods(workloads: Iterable[PodWorkload]) -> Iterator[WantedPods]:
    """What workloads of manifests or of a live cluster want; ReplicaSets of Deployments are part of those."""
    for workload in workloads:
        if workload.metadata.controller is not None:
            continue
        spec, kind = workload.spec, type(workload)
        count = 1 if spec.replicas is None else spec.replicas
        if kind is Job:
            parallel = spec.completions if spec.parallelism is None else spec.parallelism
            count = 1 if parallel is None else parallel
        pods = None if kind is DaemonSet else count
        yield WantedPods(workload.namespace, kind.__name__, workload.name, pods, workload.refusal)


class WorkloadModel:
    """Looks workloads up."""

    def __init__(
        self, observed: ObservedCluster, pending: PendingModel, headroom: HeadroomModel, pods: PodModel
    ) -> None:
        self._observed = observed
        self._pending = pending
        self._headroom = headroom
        self._pods = pods

    def lines(self) -> dict[WorkloadName, WorkloadLine]:
        """All workloads, those without pods included, and PodGroups; pods without an owner are none."""
        members: dict[WorkloadName, list[Pod]] = {}
        for pod in self._observed.pods.values():
            for name in self._names(pod):
                members.setdefault(name, []).append(pod)
        lines = {name: self._line(name, pods) for name, pods in members.items()}
        for wanted in self._wanted():
            name = WorkloadName(*wanted[:3])
            lines.setdefault(name, WorkloadLine(*name)).wanted = wanted.pods
        return lines

    def _line(self, name: WorkloadName, pods: Sequence[Pod]) -> WorkloadLine:
        """Of a workload that has pods."""
        phases, nodes = Counter[str](), set[str]()
        for pod in pods:
            node = self._observed.node_of(pod)
            phases[phase_of(pod, node)] += 1
            nodes.add(node)
        alive = phases.total() - phases[DONE] - phases[FAILED]
        first = pods[0]
        return WorkloadLine(*name, None, alive, phases, len(nodes - {""}), first.priority, requests_of(first))

    def view(self, workload: WorkloadName) -> WorkloadPage | None:
        """None if there is no such workload."""
        observed = self._observed
        pods = [pod for pod in observed.pods.values() if workload in self._names(pod)]
        wanted = next((wanted for wanted in self._wanted() if wanted[:3] == workload), None)
        if not pods and wanted is None:
            return None
        line = self._line(workload, pods) if pods else WorkloadLine(*workload)
        line.wanted = wanted.pods if wanted is not None else None
        placed = {pod.key: observed.node_of(pod) for pod in pods}
        alive = [pod for pod in pods if not pod.is_finished]
        on_nodes = Counter(node for pod in alive if (node := placed[pod.key]))
        zones = Counter(self._zone(node) for node in on_nodes.elements())
        waiting = [pod for pod in alive if not placed[pod.key]]
        example = next(iter([*waiting, *alive, *pods]), None)
        view = None if example is None else self._pods.view(example.key)
        phases = {pod.key: phase_of(pod, placed[pod.key]) for pod in pods}
        members = heapq.nsmallest(_MOST_MEMBERS, phases, key=lambda key: (PHASES.index(phases[key]), in_turn(key)))
        usage, requested = self._totals(alive)
        return WorkloadPage(
            line=line,
            zones=tuple((zone, zones[zone]) for zone in self._zones()),
            nodes=tuple(on_nodes.most_common(_MOST_NODES)),
            causes=tuple(self._causes(waiting)),
            refusal=wanted.refusal if wanted is not None else "",
            budgets=tuple(self._budgets(example)) if example is not None else (),
            usage=usage,
            requested=requested,
            example=example.key if example is not None else "",
            manifest=view.manifest if view is not None else {},
            yaml=view.yaml if view is not None else "",
            room=self._headroom.room(example, line.pods) if example and line.kind != "DaemonSet" else None,
            verdict=view.verdict if view is not None else None,
            members=tuple((key, phases[key], placed[key]) for key in members),
        )

    # -- parts --------------------------------------------------------------------------------------------------------

    def _names(self, pod: Pod) -> Iterator[WorkloadName]:
        if pod.metadata.controller is not None:
            yield owner_of(pod)
        if pod.spec.scheduling_group is not None:
            yield WorkloadName(pod.namespace, GROUP, pod.spec.scheduling_group.pod_group_name)

    def _wanted(self) -> Iterator[WantedPods]:
        if self._observed.wanted is not None:
            yield from self._observed.wanted()
        else:
            yield from wanted_pods(self._observed.cluster.workloads.values())
        for group in self._observed.state.objects.all(PodGroup):
            yield WantedPods(group.namespace, GROUP, group.name, group.min_count)

    def _zones(self) -> list[str]:
        """All there are: one without a pod of the workload says something, too."""
        nodes = filter(None, self._observed.state.nodes.nodes)
        zones = sorted({zone for node in nodes if (zone := node.metadata.labels.get(ZONE, ""))})
        return zones if len(zones) <= _MOST_ZONES else []

    def _zone(self, name: str) -> str:
        table = self._observed.state.nodes
        row = table.row_of.get(name)
        node = None if row is None else table.nodes[row]
        return node.metadata.labels.get(ZONE, "") if node is not None else ""

    def _causes(self, waiting: list[Pod]) -> list[tuple[str, int]]:
        keys = {pod.key for pod in waiting}
        pods = [pod for pod in self._pending.all() if pod.pod.key in keys] if keys else []
        return Counter(self._pending.cause_of(pod).title for pod in pods).most_common(_MOST_CAUSES)

    def _budgets(self, pod: Pod) -> Iterator[BudgetLine]:
        for budget in self._observed.state.objects.all(PodDisruptionBudget):
            spec, is_here = budget.spec, budget.namespace == pod.namespace
            if is_here and compile_selector(spec.selector).matches(pod.metadata.labels):
                least, most = spec.min_available, spec.max_unavailable
                says = f"at least {least} up" if most is None else f"at most {most} down"
                yield BudgetLine(budget.name, says, budget.status.disruptions_allowed)

    def _totals(self, pods: Iterable[Pod]) -> tuple[dict[str, str], dict[str, str]]:
        """What these pods use and request together."""
        used, requested = Counter[str](), Counter[str]()
        report = self._observed.usage()
        for pod in pods:
            used.update(report.pods.get(pod.key, {}) if report is not None else {})
            requested.update({name: amount for name, amount, _ in self._observed.state.facts(pod).amounts})
        return amounts_in_words(used), amounts_in_words(requested)
