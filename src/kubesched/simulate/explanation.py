"""Why a pod goes where it goes, or nowhere: read from the trace that the engine left, never worked out again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from kubesched.api.pod import Pod
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.diagnosis import FilterOutcome
from kubesched.framework.extender import EXTENDER
from kubesched.framework.plugin import Details, ExplainPlugin
from kubesched.framework.scores import Scores
from kubesched.framework.status import Status
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.preemption import PreemptionProposal, preemption_of
from kubesched.state.columns import Int32, Int64


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a plugin has against a node, or against the pod as a whole."""

    plugin: str
    code: str
    reasons: tuple[str, ...]

    @property
    def text(self) -> str:
        return ", ".join(self.reasons)


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """Whether a node can take the pod; if not, who said so first, and who would have said so as well."""

    node: str
    fits: bool
    refusal: Refusal | None = None
    also: tuple[Refusal, ...] = ()
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
    """What was said before any node was looked at."""

    skipped: tuple[str, ...] = ()
    narrowed_by: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None
    """The only nodes worth a look; None for all."""
    refusal: Refusal | None = None


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
    """Why no scheduler would look at this pod at all: it runs, has finished, or is being deleted."""
    gate: Refusal | None
    """What keeps the pod from being looked at; the rest says what would happen without it."""
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

    def to_plain(self) -> dict[str, Any]:
        """Dictionaries, lists and scalars, for JSON."""
        plain = asdict(self)
        return plain | {name: part["data"] for name, part in plain.pop("details").items()}


def explain(cluster: ClusterModel, key: str) -> Explanation:
    """Explain the decision for one pod of the cluster."""
    return explain_pod(cluster, cluster.pods[key])


def explain_pod(cluster: ClusterModel, pod: Pod) -> Explanation:
    """Explain the decision for any pod. One that has a node is taken off it first."""
    current_node, remark = pod.spec.node_name, _why_not_pending(pod)
    if current_node or pod.is_finished:
        pod = cluster.taken_off_its_node(pod)
    gate = cluster.engine.pre_enqueue(pod)
    decision = cluster.engine.decide(pod, explain=True)
    return _Trace(cluster, decision).explanation(current_node, remark, gate)


def _why_not_pending(pod: Pod) -> str:
    if pod.is_finished:
        return f"it has finished ({pod.status.phase})"
    if pod.spec.node_name:
        return f"it runs on {pod.spec.node_name}"
    return "it is being deleted" if pod.is_terminating else ""


class _Trace:
    """Reads a decision and turns rows into names."""

    def __init__(self, cluster: ClusterModel, decision: Decision) -> None:
        self._cluster = cluster
        self._table = cluster.state.nodes
        self._decision = decision
        self._trace = decision.trace

    def explanation(self, current_node: str, remark: str, gate: Status | None) -> Explanation:
        decision, scores = self._decision, self._trace.scores
        ranking = self._ranking(scores) if scores is not None and not scores.broken else ()
        winner_was_drawn = decision.draw.among > 1
        return Explanation(
            pod=decision.pod.key,
            profile=decision.profile,
            outcome=Outcome.GATED.value if gate is not None else decision.outcome.value,
            node=decision.node,
            message=decision.message,
            current_node=current_node,
            remark=remark,
            gate=_refusal(gate) if gate is not None else None,
            nominated=bool(decision.node) and decision.node == decision.pod.status.nominated_node_name,
            pre_filters=self._pre_filters(),
            verdicts=tuple(self._verdicts()),
            scores=ranking,
            skipped_scores=tuple(sorted(scores.skipped)) if scores is not None else (),
            ties=tuple(score.node for score in ranking if score.total == ranking[0].total) if winner_was_drawn else (),
            seed=self._cluster.seed,
            preemption=preemption_of(decision, self._cluster.state),
            details=self._details(),
        )

    # -- before any node ----------------------------------------------------------------------------------------------

    def _pre_filters(self) -> PreFilters:
        outcome = self._trace.pre_filter
        if outcome is None:
            return PreFilters()
        return PreFilters(
            skipped=tuple(sorted(self._decision.cycle.skipped_filters)) if self._decision.cycle else (),
            narrowed_by=tuple(sorted(outcome.narrowed_by)),
            nodes=None if outcome.names is None else tuple(sorted(outcome.names)),
            refusal=_refusal(outcome.rejected) if outcome.rejected is not None else None,
        )

    # -- node by node -------------------------------------------------------------------------------------------------

    def _verdicts(self) -> list[NodeVerdict]:
        rows = np.flatnonzero(self._table.live[: self._table.size]).tolist()
        rows.sort(key=self._table.names.__getitem__)
        if self._trace.filter_outcome is not None:
            return list(self._verdicts_of(rows, self._trace.filter_outcome))
        whole = self._trace.pre_filter.rejected if self._trace.pre_filter is not None else None
        if whole is None:
            return []
        return [NodeVerdict(self._table.names[row], fits=False, refusal=_refusal(whole)) for row in rows]

    def _verdicts_of(self, rows: list[int], outcome: FilterOutcome) -> Iterator[NodeVerdict]:
        """Rows of which all filters say the same share a verdict, but for the name."""
        columns = [ids for _, ids in (*outcome.for_nominated, *outcome.columns)]
        said = np.vstack([outcome.considered[: self._table.size], *columns]).T.tolist()
        known: dict[tuple[int, ...], NodeVerdict] = {}
        for row in rows:
            if row in outcome.overrides:
                yield self._verdict(row, outcome)
                continue
            key = tuple(said[row])
            verdict = known.get(key)
            if verdict is None:
                verdict = known[key] = self._verdict(row, outcome)
            names = self._table.names[row], verdict.fits, verdict.refusal, verdict.also, verdict.for_nominated
            yield NodeVerdict(*names)

    def _verdict(self, row: int, outcome: FilterOutcome) -> NodeVerdict:
        name = self._table.names[row]
        status = outcome.status_of(row)
        if status is None and outcome.considered[row]:
            return NodeVerdict(name, fits=True)
        refusal = self._outside() if status is None else _refusal(status)
        objections = [_refusal(said) for said in outcome.rejections_of(row)]
        also = tuple(other for other in objections if other != refusal)
        for_nominated = outcome.is_overridden(row) and not objections and refusal.plugin != EXTENDER
        return NodeVerdict(name, False, refusal, also, for_nominated=for_nominated)

    def _outside(self) -> Refusal:
        """The verdict on nodes that pre-filters left out."""
        outcome = self._trace.pre_filter
        assert outcome is not None
        names = " ".join(sorted(outcome.narrowed_by))
        return Refusal(names, "UnschedulableAndUnresolvable", (f"node(s) didn't satisfy plugin(s) [{names}]",))

    def _details(self) -> dict[str, Details]:
        """What plugins of the profile add, in their order."""
        cycle, outcome = self._decision.cycle, self._trace.filter_outcome
        assert cycle is not None
        found: dict[str, Details] = {}
        for plugin in self._cluster.profiles[self._decision.profile].plugins.values():
            if isinstance(plugin, ExplainPlugin):
                part = plugin.explained_as or plugin.name
                found[part] = Details()
                if outcome is not None:
                    about = (cycle, outcome, self._decision.node)
                    found[part] = cycle.ask(plugin.name, "Explain", plugin.explain, *about) or Details()
        return found

    # -- scores -------------------------------------------------------------------------------------------------------

    def _ranking(self, scores: Scores) -> tuple[NodeScore, ...]:
        weights = self._cluster.profiles[self._decision.profile].weights
        names = [self._table.names[row] for row in scores.nodes.row_ids.tolist()]
        columns = [
            (part.plugin, weights[part.plugin], _values(part.raw, names), _values(part.weighted, names))
            for part in scores.parts
        ]
        ranking = [
            NodeScore(
                name, total, tuple(PluginScore(p, weight, raw[i], weighted[i]) for p, weight, raw, weighted in columns)
            )
            for i, (name, total) in enumerate(zip(names, scores.total.tolist()))
        ]
        chosen = self._decision.node
        return tuple(sorted(ranking, key=lambda score: (-score.total, score.node != chosen, score.node)))


def _values(scores: Int64 | Int32 | int, names: list[str]) -> list[int]:
    """A score per node; plugins may give a single number for all."""
    return [scores] * len(names) if isinstance(scores, int) else scores.tolist()


def _refusal(status: Status) -> Refusal:
    return Refusal(status.plugin, str(status.code), status.reasons)
