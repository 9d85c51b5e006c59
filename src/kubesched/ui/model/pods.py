"""One pod for the page, with the verdict on it, and lists of pods: of a node, of a search; always a page of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.kinds import Object
from kubesched.api.pod import Pod
from kubesched.api.yaml import YamlError, documents, dump
from kubesched.ask.headroom import one_more
from kubesched.ask.targets import RequestError, RequestObjects
from kubesched.framework.decision import Outcome
from kubesched.framework.decision_view import DecisionView, FilterStep, NearMiss, score_at
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.scores import Scores
from kubesched.framework.status import Status
from kubesched.simulate.placement import ProposedEviction, chosen_eviction
from kubesched.ui.model.decisions import DecisionEntry
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import WorkloadName, owner_of, phase_of
from kubesched.ui.model.pending import PendingModel, PendingPodLine

MOST_MISSES = 8
_SCORED = 12

_SHOWN = 8
_MOST_BY_ALIASES = 1 << 18
_LEFT_OUT = ("nodeName", "volumes")
"""Not for editing: where a pod is, and volumes, whose claims belong to it."""


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node that fits, with what each plugin adds to its total."""

    node: str
    total: int
    parts: tuple[int, ...]
    raw: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best nodes, the chosen one first. `parts` of nodes are in the order of `plugins`."""

    plugins: tuple[tuple[str, int], ...]
    """Names and weights."""
    nodes: tuple[ScoredNode, ...]
    scored: int
    ties: int
    """How many have the best score; one of them is drawn."""


@dataclass(frozen=True, slots=True)
class ScoreLead:
    """Why the winner won: how far it is ahead of the best other node, and by the scores of which plugins."""

    over: str
    points: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What the scheduler would do with a pod now, and why."""

    outcome: str
    node: str
    message: str
    nodes: int
    fitting: int
    nominated: bool
    """Whether room was kept for the pod there before, so that scores did not matter."""
    gate: str | None
    """What keeps the pod from being looked at; the rest says what would happen without it."""
    funnel: tuple[FilterStep, ...]
    silent: int
    """How many filters let every node pass."""
    misses: tuple[NearMiss, ...]
    """Only of a pod that fits nowhere."""
    ranking: Ranking | None
    lead: ScoreLead | None
    eviction: ProposedEviction | None


def page_verdict(view: DecisionView, gate: Status | None = None) -> PodVerdict:
    """The verdict that a decision amounts to."""
    decision, funnel = view.decision, tuple(view.funnel())
    ranking = _ranking(view, view.scores) if view.scores is not None else None
    filters = len(view.profile.at("filter", FilterPlugin))
    return PodVerdict(
        outcome=Outcome.GATED.value if gate is not None else decision.outcome.value,
        node=decision.node,
        message=decision.message,
        nodes=int(np.count_nonzero(view.live)),
        fitting=view.fitting,
        nominated=view.is_nominated,
        gate=None if gate is None else f"{gate.plugin}: {gate.message}",
        funnel=funnel,
        silent=max(filters - len({step.plugin for step in funnel}), 0),
        misses=() if decision.node else view.near_misses(MOST_MISSES),
        ranking=ranking,
        lead=None if ranking is None else _lead(ranking),
        eviction=chosen_eviction(decision, view.state),
    )


def _ranking(view: DecisionView, scores: Scores) -> Ranking:
    rows, total, chosen = scores.nodes.row_ids, scores.total, view.place_of(view.decision.node)
    # Of all if the pod was nominated, the chosen one comes first; of equals it does anyway.
    first = [] if chosen is None else [chosen]
    places = (first + [place for place in view.ranking(_SCORED) if place != chosen])[:_SCORED]
    nodes = tuple(
        ScoredNode(
            view.names[int(rows[place])],
            int(total[place]),
            tuple(score_at(part.weighted, place) for part in scores.parts),
            tuple(score_at(part.raw, place) for part in scores.parts),
        )
        for place in places
    )
    weights = view.profile.weights
    plugins = tuple((part.plugin, weights.get(part.plugin, 1)) for part in scores.parts)
    return Ranking(plugins, nodes, len(rows), max(view.decision.draw.among, 1))


def _lead(ranking: Ranking) -> ScoreLead | None:
    """None if there is no other node, or the chosen one is not ahead of it."""
    if len(ranking.nodes) < 2 or ranking.ties > 1:
        return None
    first, second = ranking.nodes[:2]
    if first.total <= second.total:
        return None
    parts = [(plugin, a - b) for (plugin, _), a, b in zip(ranking.plugins, first.parts, second.parts) if a != b]
    parts.sort(key=lambda part: -abs(part[1]))
    return ScoreLead(second.node, first.total - second.total, tuple(parts))


@dataclass(frozen=True, slots=True)
class PodView:
    """Everything about one pod."""

    pod: str
    workload: WorkloadName
    pod_group: str
    """The PodGroup that it names."""
    priority: int
    scheduler: str
    phase: str
    node: str
    """Where it is; empty if it waits."""
    nominated_node: str
    labels: dict[str, str]
    manifest: dict[str, object]
    """What can be edited of it."""
    yaml: str
    waiting: PendingPodLine | None
    cause: str
    wakes: tuple[str, ...]
    history: tuple[DecisionEntry, ...]
    now: float
    """By the clock of the history."""
    verdict: PodVerdict | None
    """What would become of it now; of a pod that has a node, of one more like it. None if another scheduler decides."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search found."""

    nodes: tuple[str, ...]
    workloads: tuple[WorkloadName, ...]
    pods: tuple[tuple[str, str, str], ...]
    """Names, the nodes they are on, and their phases: those that wait first."""
    more_nodes: int
    more_workloads: int
    more_pods: int


class PodModel:
    """Looks pods up."""

    def __init__(self, observed: ObservedCluster, pending: PendingModel) -> None:
        self._observed = observed
        self._pending = pending
        self._objects = RequestObjects(observed.cluster)

    def view(self, key: str) -> PodView | None:
        """None if there is no such pod."""
        observed = self._observed
        pod = observed.pods.get(key)
        if pod is None:
            return None
        placed, node = observed.state.placed(pod), observed.node_of(pod)
        waiting = self._pending.find(key) if not node else None
        cause = self._pending.cause_of(waiting) if waiting is not None else None
        manifest = _manifest_of(pod)
        return PodView(
            pod=pod.key,
            workload=owner_of(pod),
            pod_group=pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else "",
            priority=pod.priority,
            scheduler=pod.spec.scheduler_name,
            phase=phase_of(pod, node),
            node=node,
            nominated_node=observed.state.nominated.node_of(pod),
            labels=pod.metadata.labels,
            manifest=manifest,
            yaml=dump(manifest),
            waiting=self._pending.line(waiting) if waiting is not None else None,
            cause=cause.title if cause is not None else "",
            wakes=self._pending.wakes(cause.plugins, pod.spec.scheduler_name) if cause is not None else (),
            history=tuple(observed.log.of(key)) if observed.log is not None else (),
            now=observed.clock(),
            verdict=self._verdict(one_more(placed.pod if placed is not None else pod)),
        )

    def try_it(self, text: str, key: str) -> PodVerdict | None:
        """What would become of the pod if it were like this. RequestError if it cannot be."""
        return self._verdict(self._edited(text, self._observed.pods.get(key)))

    def _verdict(self, pod: Pod) -> PodVerdict | None:
        """None if the pod waits for a scheduler that is not this one."""
        decision = self._observed.decide(pod, explain=True)
        if decision is None:
            return None
        view = DecisionView(decision, self._observed.profiles[decision.profile])
        return page_verdict(view, self._observed.engine.pre_enqueue(pod))

    def _edited(self, text: str, original: Pod | None = None) -> Pod:
        """The pod of a manifest, as an API server would complete it. RequestError with all that is wrong with it.

        It takes the place of the original, if there is one: with its name, and with the claims that were made for it.
        """
        obj = _read_document(text)
        metadata = {**(obj.get("metadata") or {})}
        metadata.setdefault("namespace", original.namespace if original else "default")
        metadata.setdefault("name", original.name if original else "new-pod")
        pod = self._objects.new_pod({**obj, "metadata": metadata}, "")
        if original is None:
            return pod
        spec = replace(pod.spec, node_name="", volumes=original.spec.volumes)
        labels = pod.metadata.labels
        return one_more(replace(original, metadata=replace(original.metadata, labels=labels), spec=spec))

    def search(self, text: str) -> SearchResults:
        """Nodes, workloads and pods with the text in their names; those whose names begin with it first."""
        wanted = text.strip().lower()
        if not wanted:
            return SearchResults((), (), (), 0, 0, 0)
        table = self._observed.state.nodes
        nodes = [name for name, row in table.row_of.items() if wanted in name.lower() and table.live[row]]
        owned = {owner_of(pod) for pod in self._observed.pods.values() if pod.metadata.controller is not None}
        workloads = [name for name in owned if wanted in f"{name.namespace}/{name.name}".lower()]
        pods = [pod for key, pod in self._observed.pods.items() if wanted in key.lower()]
        best_nodes = heapq.nsmallest(_SHOWN, nodes, key=lambda name: _rank(name, wanted))
        best_workloads = heapq.nsmallest(_SHOWN, workloads, key=lambda name: (_rank(name.name, wanted), name))
        node_of = self._observed.node_of
        best_pods = heapq.nsmallest(_SHOWN, pods, key=lambda pod: (bool(node_of(pod)), _rank(pod.name, wanted)))
        return SearchResults(
            tuple(best_nodes),
            tuple(best_workloads),
            tuple((pod.key, node_of(pod), phase_of(pod, node_of(pod))) for pod in best_pods),
            len(nodes) - len(best_nodes),
            len(workloads) - len(best_workloads),
            len(pods) - len(best_pods),
        )


def _rank(name: str, wanted: str) -> tuple[bool, int, str]:
    return not name.lower().startswith(wanted), len(name), name


def _manifest_of(pod: Pod) -> Object:
    """What can be edited of a pod, as a manifest."""
    plain: dict[str, Any] = msgspec.to_builtins(pod)
    spec = {key: value for key, value in plain.get("spec", {}).items() if key not in _LEFT_OUT}
    metadata = {"name": pod.name, "namespace": pod.namespace, "labels": dict(pod.metadata.labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _read_document(text: str) -> Object:
    try:
        values = [document.value for document in documents(text, most_by_aliases=_MOST_BY_ALIASES) if document.value]
    except (YamlError, RecursionError) as error:
        raise RequestError(str(error)) from error
    if len(values) != 1 or not isinstance(values[0], dict):
        raise RequestError("expected one Pod")
    if not isinstance(values[0].get("metadata") or {}, dict):
        raise RequestError("metadata: expected a mapping")
    return values[0]
