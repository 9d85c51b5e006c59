"""Is a cluster ready for a drain or an upgrade? What would block it, what is at risk, and in which order to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import HOSTNAME
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.ask.edits import DrainNodes, UpgradeNodes
from kubesched.ask.hypothetical import ObjectSet, node_names
from kubesched.ask.output import counted, listed
from kubesched.ask.what_if.answer import WhatIfAnswer
from kubesched.ask.what_if.what_if import what_if
from kubesched.config import SchedulerConfiguration
from kubesched.simulate.kinds import PodWorkload
from kubesched.simulate.nodes import leaves
from kubesched.simulate.rolling_upgrade import BudgetTracker
from kubesched.simulate.simulation import Progress


class Severity(StrEnum):
    """How bad it is."""

    BLOCKS = "blocks"
    RISK = "risk"


@dataclass(frozen=True, slots=True)
class ReadinessFinding:
    """Something that blocks the operation, or that it puts at risk."""

    severity: Severity
    topic: str
    """budget, room, replicas, owner, local-data or gate."""
    subject: str
    """The budget, pod or workload that it is about."""
    text: str
    advice: str


@dataclass(frozen=True)
class ReadinessReport:
    """Whether nodes can be drained or upgraded now."""

    operation: str
    nodes: tuple[str, ...]
    """In the order in which to go: those that the least stands against first."""
    pods: int
    """How many have to leave."""
    ready: bool
    """Whether nothing blocks it."""
    findings: tuple[ReadinessFinding, ...]
    """What blocks first."""
    moved: int
    seconds: float | None = None
    """How long an upgrade would take."""


def check_readiness(
    objects: Iterable[KubeObject],
    configuration: SchedulerConfiguration,
    edit: DrainNodes | UpgradeNodes,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> ReadinessReport:
    """Apply the drain or upgrade to a copy of the cluster, and report what blocks it. Raises EditError, UserError."""
    cluster = tuple(objects)
    nodes = node_names(edit, ObjectSet(cluster))
    answer = what_if(cluster, configuration, [edit], seed=seed, progress=progress).difference
    inspection = _Inspection(cluster, nodes, answer)
    findings = [*inspection.budgets(), *inspection.room(), *inspection.pods(), *inspection.gates()]
    upgrade = answer.upgrade
    return ReadinessReport(
        operation="upgrade" if isinstance(edit, UpgradeNodes) else "drain",
        nodes=tuple(sorted(nodes, key=inspection.hardness)),
        pods=len(inspection.leaving),
        ready=all(finding.severity is not Severity.BLOCKS for finding in findings),
        findings=tuple(sorted(findings, key=lambda finding: finding.severity is not Severity.BLOCKS)),
        moved=len(answer.moved),
        seconds=upgrade.seconds if upgrade is not None else None,
    )


class _Inspection:
    """The pods on the nodes, and the budgets that guard them."""

    def __init__(self, objects: tuple[KubeObject, ...], nodes: set[str], answer: WhatIfAnswer) -> None:
        self._objects = objects
        self._answer = answer
        pods = [obj for obj in objects if isinstance(obj, Pod) and not obj.is_finished]
        self.leaving = [pod for pod in pods if pod.spec.node_name in nodes and leaves(pod)]
        self._tracker = BudgetTracker((obj for obj in objects if isinstance(obj, PodDisruptionBudget)), pods)
        self._siblings = Counter(owner for pod in pods if (owner := _owner(pod)))

    def hardness(self, node: str) -> tuple[int, int, str]:
        """A node's number of pods that may not be evicted now, and of pods that have to leave."""
        pods = [pod for pod in self.leaving if pod.spec.node_name == node]
        return sum(bool(self._tracker.forbid(pod)) for pod in pods), len(pods), node

    def budgets(self) -> Iterator[ReadinessFinding]:
        guarded: Counter[str] = Counter()
        for pod in self.leaving:
            budgets = [budget.key for budget in self._tracker.guarding(pod)]
            guarded.update(budgets)
            if len(budgets) > 1:
                text = f"is guarded by {listed(budgets)}: an eviction is refused where more than one budget matches"
                yield _blocks("budget", pod.key, text, "leave it to one budget")
        for budget, count in guarded.items():
            allowed = self._tracker.allowed(budget)
            state = f"{self._tracker.wanted[budget]} have to be up and {self._tracker.up.get(budget, 0)} are"
            if not allowed:
                text = f"allows no eviction: {state}; {counted(count, 'pod')} would have to leave"
                yield _blocks("budget", budget, text, "more replicas, or a budget that allows one to be unavailable")
            elif allowed < count:
                text = f"allows {allowed} at once: {state}; {counted(count, 'pod')} have to leave, one after another"
                yield _risk("budget", budget, text, "go node by node, and give it time")

    def room(self) -> Iterator[ReadinessFinding]:
        for reason, pods in self._answer.reasons:
            names = [pod.pod for pod in pods]
            text = f"{counted(len(names), 'pod')} would find no node: {reason}"
            yield _blocks("room", listed(names), text, "add nodes first, or go with a surge")

    def pods(self) -> Iterator[ReadinessFinding]:
        orphans = [pod.key for pod in self.leaving if not _owner(pod)]
        if orphans:
            text = "no owner: no controller recreates it, and kubectl drain asks for --force"
            yield _blocks("owner", listed(orphans), text, "delete it by hand, or give it an owner")
        single = [pod.key for pod in self.leaving if self._siblings[_owner(pod)] == 1]
        if single:
            yield _risk("replicas", listed(single), "the only replica: there is an interruption", "scale up first")
        if scratch := [pod.key for pod in self.leaving if pod.spec.has_local_data]:
            text = "data in an emptyDir or a hostPath stays behind, and kubectl drain asks for --delete-emptydir-data"
            yield _risk("local-data", listed(scratch), text, "see that it can be lost")
        volumes = {obj.name for obj in self._objects if isinstance(obj, PersistentVolume) and _is_local(obj)}
        claims_in_cluster = (obj for obj in self._objects if isinstance(obj, PersistentVolumeClaim))
        local = {claim.key for claim in claims_in_cluster if claim.spec.volume_name in volumes}
        for pod in self.leaving:
            claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
            names = [f"{pod.namespace}/{claim.claim_name}" for claim in claims if claim is not None]
            if pinned := [name for name in names if name in local]:
                text = f"data on its node alone ({listed(pinned)}): it can run nowhere else"
                yield _risk("local-data", pod.key, text, "keep the node, or let the application copy its data")

    def gates(self) -> Iterator[ReadinessFinding]:
        """Workloads that recreate their pods with scheduling gates, which have to be lifted."""
        owners = set(map(_owner, self.leaving))
        for obj in self._objects:
            if not isinstance(obj, PodWorkload) or f"{obj.namespace}/{type(obj).__name__}/{obj.name}" not in owners:
                continue
            if obj.spec.template.spec.scheduling_gates:
                gates = listed([gate.name for gate in obj.spec.template.spec.scheduling_gates])
                subject = f"{obj.namespace}/{type(obj).__name__.lower()}/{obj.name}"
                yield _risk("gate", subject, f"new pods wait for their gates: {gates}", "see that they are lifted")


def _is_local(volume: PersistentVolume) -> bool:
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    return any(expression.key == HOSTNAME for term in terms for expression in term.match_expressions)


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller
    return f"{pod.namespace}/{owner.kind}/{owner.name}" if owner is not None else ""


def _blocks(topic: str, subject: str, text: str, advice: str) -> ReadinessFinding:
    return ReadinessFinding(Severity.BLOCKS, topic, subject, text, advice)


def _risk(topic: str, subject: str, text: str, advice: str) -> ReadinessFinding:
    return ReadinessFinding(Severity.RISK, topic, subject, text, advice)
