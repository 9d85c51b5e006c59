"""NodeAffinity: nodeSelector, required and preferred node affinity, and what a profile adds to every pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from hashlib import blake2b

import msgspec
import numpy as np

from kubesched.api.affinity import NodeAffinity as NodeAffinityOfPod
from kubesched.api.affinity import PreferredSchedulingTerm
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import NodeTerm, compile_node_selector, compile_node_term, node_matches
from kubesched.config.args import NodeAffinityArgs
from kubesched.framework.budget import Expense
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind, Lookup
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PluginContext, PreFilterPlugin, PreScorePlugin, ScorePlugin
from kubesched.framework.profile import ProfileError
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, error, unresolvable
from kubesched.plugins.advice.affinity import NodeAffinityAdvice
from kubesched.plugins.shared.arithmetic import scaled_to_maximum
from kubesched.plugins.shared.hinting import queue_if, waits_for
from kubesched.plugins.shared.node_lookup import ANY_NODE_EVENT, NODE_NAME, Token, events_that_may_help, labels_brought
from kubesched.plugins.shared.node_requirements import RequiredNodes
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64

NOT_SELECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = unresolvable("pod affinity terms conflict")

EXPENSE = Expense("NodeAffinity", "the terms of its node affinity")
_LARGE = 1000
"""Bytes of what a pod says about nodes."""

WeightedTerm = tuple[int, NodeTerm]


class NodeAffinityPlugin(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, NodeAffinityAdvice):
    """Where pods want to be, by the labels and names of nodes."""

    name = "NodeAffinity"
    pre_filter_reads = Reads(PodFields.SPEC | PodFields.NODE_NAMES, Scope.NOTHING)
    filter_reads = Reads(PodFields.SPEC | PodFields.NODE_NAMES, Scope.NODE_OBJECT)
    pre_score_reads = Reads(PodFields.SPEC, Scope.NOTHING)
    score_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def __init__(self, args: NodeAffinityArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        added = args.added_affinity if args else None
        required = added.required_during_scheduling_ignored_during_execution if added else None
        self._enforced = None if required is None else compile_node_selector(required)
        preferred = added.preferred_during_scheduling_ignored_during_execution if added else ()
        self._preferred = _weighted(preferred)
        self._adds_preferences = bool(preferred)
        for term in (*(self._enforced or ()), *(term for _, term in self._preferred)):
            if term.fault:
                raise ProfileError(f"NodeAffinity: addedAffinity: {term.fault}")

    def events_to_register(self) -> tuple[Interest, ...]:
        return (waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node, LABELS),)

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        affinity = _node_affinity(cycle.pod)
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        if required is None:
            return SKIP if self._enforced is None and not cycle.pod.spec.node_selector else None
        names: set[str] = set()
        for term in required.node_selector_terms:
            by_name = [set(f.values) for f in term.match_fields if f.key == "metadata.name" and f.operator == "In"]
            if not by_name:
                return None
            names |= set.intersection(*by_name)
        if not required.node_selector_terms:
            return None
        return frozenset(names) if names else CONFLICT

    def sign(self, cycle: Cycle) -> Hashable:
        """All of the pod that matters here, as bytes: records with dictionaries inside have no hash."""
        return cycle.facts.derived(_encoded, cycle.pod)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        ids = self.reject(~RequiredNodes.of(cycle).selects(nodes), NOT_SELECTED)
        if self._enforced is not None:
            ids[~nodes.selected_by(self._enforced)] = self.rejections.id_of(NOT_ENFORCED)
        return ids

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        if self._enforced is not None and not node_matches(self._enforced, node.node):
            return NOT_ENFORCED
        return None if RequiredNodes.of(cycle).allow(node.node) else NOT_SELECTED

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        affinity = _node_affinity(cycle.pod)
        if affinity is None or not affinity.preferred_during_scheduling_ignored_during_execution:
            return None if self._adds_preferences else SKIP
        fault = next((term.fault for _, term in self._terms(cycle) if term.fault), "")
        return error(fault) if fault else None

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in cycle.budget.watched((*self._preferred, *self._terms(cycle)), EXPENSE):
            scores += weight * nodes.selected_by_term(term)
        return scores

    def normalize(self, cycle: Cycle, scores: Int64 | int, nodes: Nodes) -> Int64 | int:
        return scaled_to_maximum(scores)

    def _after_node(self, pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
        """The node is what the pod asks for, and was not before. Of what the profile adds only the present counts.

        A malformed term makes it an error to find that the node is not, and then kube-scheduler tries the pod again.
        """
        if self._enforced is not None and not node_matches(self._enforced, new):
            return Hint.SKIP
        required = state.facts(pod).derived(RequiredNodes, pod)
        if not required.allow(new):
            return queue_if(required.leave_in_doubt(new))
        return queue_if(old is None or not required.allow(old))

    def _terms(self, cycle: Cycle) -> list[WeightedTerm]:
        return cycle.facts.derived(_preferred_terms, cycle.pod)


def _labels_waited_for(pod: Pod, state: ClusterState) -> Iterator[Token]:
    """What may happen to a node that is not allowed, so that it is. Its labels count whatever the terms say."""
    required = state.facts(pod).derived(RequiredNodes, pod)
    terms = required.terms or ()
    if any(term.fault for term in terms):
        yield ANY_NODE_EVENT
    by_labels = []
    if required.labels or required.terms is None:
        by_labels = list(events_that_may_help(required.labels, state))
    yield from by_labels
    if not any(event == "has" for event, _ in by_labels):
        for term in terms:
            fields = (requirement._replace(key=NODE_NAME) for requirement in term.fields)
            yield from events_that_may_help((*fields, *term.labels), state)


LABELS = Lookup(_labels_waited_for, labels_brought)


def _node_affinity(pod: Pod) -> NodeAffinityOfPod | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity else None


def _encoded(pod: Pod) -> bytes:
    """The bytes, or a digest of them if they are many: a large key would push other answers out of the cache."""
    encoded = msgspec.json.encode((pod.spec.node_selector, _node_affinity(pod)))
    return encoded if len(encoded) < _LARGE else blake2b(encoded).digest()


def _preferred_terms(pod: Pod) -> list[WeightedTerm]:
    affinity = _node_affinity(pod)
    return _weighted(affinity.preferred_during_scheduling_ignored_during_execution if affinity else ())


def _weighted(terms: Iterable[PreferredSchedulingTerm]) -> list[WeightedTerm]:
    """Terms that count: neither weightless nor empty."""
    return [
        (term.weight, compile_node_term(term.preference))
        for term in terms
        if term.weight and (term.preference.match_expressions or term.preference.match_fields)
    ]
