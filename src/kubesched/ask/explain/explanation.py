"""Why a pod goes where it goes, or nowhere: read from the trace of the decision, never computed a second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kubesched.api.pod import Pod
from kubesched.ask.workloads import workload_of
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.decision_view import DecisionView, main_reason
from kubesched.framework.plugin import Details, ExplainPlugin
from kubesched.framework.scores import Scored
from kubesched.framework.status import Status
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import PreemptionProposal, preemption_of


@dataclass(frozen=True, slots=True)
class NodeRejection:
    """What a plugin has against a node, or against the pod as a whole."""

    plugin: str
    code: str
    reasons: tuple[str, ...]

    @staticmethod
    def of(status: Status) -> NodeRejection:
        return NodeRejection(status.plugin, str(status.code), status.reasons)

    @property
    def text(self) -> str:
        return ", ".join(self.reasons)


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """Whether the pod fits on a node; if not, the plugin that rejected it, and others that would reject it, too."""

    node: str
    fits: bool
    refusal: NodeRejection | None = None
    also: tuple[NodeRejection, ...] = ()
    for_nominated: bool = False
    """Refused only because room must be left for pods that are nominated to this node."""


@dataclass(frozen=True, slots=True)
class PluginScore:
    """What one plugin thinks of a node: the raw score, and what it adds to the total (normalised, times the weight)."""

    plugin: str
    weight: int
    raw: int
    weighted: int


@dataclass(frozen=True, slots=True)
class NodeScore:
    """The score of a node that fits, and what it is made of."""

    node: str
    total: int
    parts: tuple[PluginScore, ...]


@dataclass(frozen=True, slots=True)
class PreFilters:
    """What PreFilter plugins decided before the filters ran."""

    skipped: tuple[str, ...] = ()
    narrowed_by: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None
    """The only nodes that filters are asked about; None for all."""
    refusal: NodeRejection | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to know about one decision."""

    pod: str
    profile: str
    outcome: str
    node: str
    """The winner; empty if there is none."""
    message: str
    """What kube-scheduler would write into the pod's condition."""
    current_node: str
    """Where the pod is now; the explanation is then of the pod as if it were pending."""
    remark: str
    """Why no scheduler schedules this pod: it runs, has finished, or is being deleted."""
    gate: NodeRejection | None
    """The scheduling gates that hold the pod back; the other fields say what would happen without them."""
    nominated: bool
    """Whether the pod was nominated to the winner before, so that scores did not matter."""
    pre_filters: PreFilters
    verdicts: tuple[NodeVerdict, ...]
    """One per node, by name."""
    scores: tuple[NodeScore, ...]
    """One per node that was scored, best first; of equals the chosen one, then by name."""
    skipped_scores: tuple[str, ...]
    ties: tuple[str, ...]
    """The nodes with the best score, if they are several; one is drawn at random."""
    seed: int
    preemption: PreemptionProposal | None
    details: dict[str, Details] = field(default_factory=dict)
    """What plugins add (`ExplainPlugin`), by the names of their parts: what is missing, which devices were tried."""


# -- why it waits -----------------------------------------------------------------------------------------------------


class Cause(NamedTuple):
    """Why pods wait: a title, the plugins that reject them, and each reason with its number of nodes."""

    title: str
    """In the words of the pod's condition (`main_reason`)."""
    plugins: tuple[str, ...] = ()
    reasons: tuple[tuple[str, int], ...] = ()
    """The most frequent first."""
    pod_group: str = ""
    """The group whose pods wait together, whatever each of them lacks."""
    workload: str = ""
    """The workload of the pods; for pods without an owner, their namespace."""

    @property
    def key(self) -> tuple[str, str]:
        """Pods with equal keys are shown together by the command and the page: those of a workload, by title."""
        return (self.pod_group, "") if self.pod_group else (self.workload, self.title)

    def of_workload(self, pod: Pod) -> Cause:
        """This cause, with the pod's workload."""
        managed = pod.metadata.controller is not None
        return self._replace(workload=workload_of(pod) if managed else pod.namespace)


def cause_of(decision: Decision, gate: Status | None) -> Cause | None:
    """Why a pod is not scheduled; None if it is."""
    if gate is None and decision.outcome is Outcome.SCHEDULED:
        return None
    diagnosis = decision.diagnosis
    status = gate or (decision.status if diagnosis is None else diagnosis.rejected)
    if status is not None or diagnosis is None:
        text = status.message if status is not None else decision.message
        return Cause(text, (status.plugin,) if status is not None and status.plugin else (), ((text, 0),))
    plugins = sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins)
    return Cause(main_reason(diagnosis), tuple(plugins), tuple(Counter(diagnosis.reasons()).most_common()))


# -- reading a decision -----------------------------------------------------------------------------------------------


def explain_pod(cluster: ClusterModel, pod: Pod) -> Explanation:
    """Explain the decision for any pod. One that has a node is taken off it first."""
    return explain_decision(cluster, pod, *decide(cluster, pod))


def decide(cluster: ClusterModel, pod: Pod) -> tuple[DecisionView, Status | None]:
    """The decision for any pod, and its gate. A pod that has a node is taken off it first."""
    if pod.spec.node_name or pod.is_finished:
        pod = cluster.take_off_node(pod)
    gate = cluster.engine.pre_enqueue(pod)
    decision = cluster.engine.decide(pod, explain=True)
    return DecisionView(decision, cluster.profiles[decision.profile]), gate


def explain_decision(cluster: ClusterModel, pod: Pod, view: DecisionView, gate: Status | None) -> Explanation:
    """The explanation of a decision. `pod` is the pod as it is, maybe on a node."""
    decision, scores = view.decision, _scores(view)
    return Explanation(
        pod=pod.key,
        profile=decision.profile,
        outcome=Outcome.GATED.value if gate is not None else decision.outcome.value,
        node=decision.node,
        message=decision.message,
        current_node=pod.spec.node_name,
        remark=_why_not_pending(pod),
        gate=NodeRejection.of(gate) if gate is not None else None,
        nominated=view.is_nominated,
        pre_filters=_pre_filters(view),
        verdicts=tuple(_verdicts(view)),
        scores=scores,
        skipped_scores=tuple(sorted(decision.trace.scores.skipped)) if decision.trace.scores is not None else (),
        ties=tuple(s.node for s in scores if s.total == scores[0].total) if decision.draw.among > 1 else (),
        seed=cluster.seed,
        preemption=preemption_of(decision, cluster.state),
        details=_details(view),
    )


def _why_not_pending(pod: Pod) -> str:
    if pod.is_finished:
        return f"it has finished ({pod.status.phase})"
    if pod.spec.node_name:
        return f"it runs on {pod.spec.node_name}"
    return "it is being deleted" if pod.is_terminating else ""


def _pre_filters(view: DecisionView) -> PreFilters:
    outcome = view.pre_filter
    if outcome is None:
        return PreFilters()
    return PreFilters(
        skipped=tuple(sorted(view.cycle.skipped_filters)),
        narrowed_by=tuple(sorted(outcome.narrowed_by)),
        nodes=None if outcome.names is None else tuple(sorted(outcome.names)),
        refusal=NodeRejection.of(outcome.rejected) if outcome.rejected is not None else None,
    )


def _verdicts(view: DecisionView) -> Iterator[NodeVerdict]:
    """A verdict per node, by name. Rows with the same answer of every filter share all of it but the name."""
    if view.outcome is None and view.rejected_whole is None:
        return
    rows = np.flatnonzero(view.live).tolist()
    rows.sort(key=view.names.__getitem__)
    verdicts: dict[int, NodeVerdict] = {}
    for row, like in view.rows_by_rejection(rows):
        verdict = verdicts.get(like)
        if verdict is None:
            verdict = verdicts[like] = _verdict(view, like)
        yield NodeVerdict(view.names[row], verdict.fits, verdict.refusal, verdict.also, verdict.for_nominated)


def _verdict(view: DecisionView, row: int) -> NodeVerdict:
    objections = [NodeRejection.of(status) for status in view.objections(row)]
    if not objections:
        return NodeVerdict(view.names[row], fits=True)
    is_for_nominated = view.is_rejected_for_nominated(row)
    return NodeVerdict(view.names[row], False, objections[0], tuple(objections[1:]), for_nominated=is_for_nominated)


def _details(view: DecisionView) -> dict[str, Details]:
    """What plugins of the profile add, in their order."""
    details: dict[str, Details] = {}
    for plugin in view.profile.plugins.values():
        if isinstance(plugin, ExplainPlugin):
            part = plugin.explained_as or plugin.name
            details[part] = Details()
            if view.outcome is not None:
                about = (view.cycle, view.outcome, view.decision.node)
                details[part] = view.cycle.ask(plugin.name, "Explain", plugin.explain, *about) or Details()
    return details


def _scores(view: DecisionView) -> tuple[NodeScore, ...]:
    """All scored nodes, the best first."""
    if view.scores is None:
        return ()
    names = [view.names[row] for row in view.scores.nodes.row_ids.tolist()]
    total, weights = view.scores.total.tolist(), view.profile.weights
    columns = [
        (part.plugin, weights[part.plugin], _per_node(part.raw, len(names)), _per_node(part.weighted, len(names)))
        for part in view.scores.parts
    ]
    return tuple(
        NodeScore(
            names[i], total[i], tuple(PluginScore(p, weight, raw[i], points[i]) for p, weight, raw, points in columns)
        )
        for i in view.ranking()
    )


def _per_node(scores: Scored, nodes: int) -> list[int]:
    """A score per node; plugins may give a single number for all."""
    return [scores] * nodes if isinstance(scores, int) else scores.tolist()
