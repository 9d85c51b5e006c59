"""InterPodAffinity: required and preferred terms of the incoming pod, and those of placed pods that match it."""

from __future__ import annotations

import numpy as np

from kubesched.config.args import InterPodAffinityArgs
from kubesched.framework.advice import NodeShortfall
from kubesched.framework.client import SchedulerMode
from kubesched.framework.copies import CopyRoom
from kubesched.framework.copy_limits import CopyLimit
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Interest, Kind
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PluginContext, PreFilterPlugin, PreScorePlugin, ScorePlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import MAX_NODE_SCORE, SKIP, Status, unresolvable, unschedulable
from kubesched.plugins.advice.affinity import PodAffinityAdvice
from kubesched.plugins.inter_pod_affinity.hints import (
    AVOIDED_DOMAINS,
    DOMAINS,
    CompanyHints,
    after_domain,
    after_namespace,
    after_node,
)
from kubesched.plugins.inter_pod_affinity.in_the_way import rejection_in_words
from kubesched.plugins.inter_pod_affinity.neighbours import (
    Neighbours,
    add_carriers,
    by_topology,
    matching_carried_terms,
)
from kubesched.plugins.shared.hinting import waits_for, waits_for_pods
from kubesched.state.columns import Int32, Int64
from kubesched.state.facts import StateKey, Term
from kubesched.state.pods import PlacedPod

AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

_NEIGHBOURS = StateKey[Neighbours]("InterPodAffinity", is_for_deciding=True)
_TOPOLOGIES = StateKey[list[tuple[str, Int64]]]("PreScoreInterPodAffinity", is_for_deciding=True)


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, PodAffinityAdvice):
    """Near to some pods, far from others, in any topology."""

    name = "InterPodAffinity"
    adjusts = True
    pre_filter_reads = filter_reads = pre_score_reads = score_reads = Reads(
        PodFields.SPEC | PodFields.LABELS | PodFields.NAMESPACE, Scope.CLUSTER
    )

    def __init__(self, args: InterPodAffinityArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._args = args or InterPodAffinityArgs()

    def events_to_register(self) -> tuple[Interest, ...]:
        release = self.context.features.release
        is_batched = self.context.handle.mode is SchedulerMode.BATCHED
        any_unwanted = release.any_unwanted_company or is_batched
        hints = CompanyHints(any_unwanted=any_unwanted, knows_namespaces=is_batched)
        of_nodes = Action.ADD | Action.UPDATE_NODE_LABEL
        overlooked = (
            waits_for(Kind.NODE, of_nodes, after_domain, AVOIDED_DOMAINS),
            waits_for(Kind.NAMESPACE, Action.ADD | Action.UPDATE | Action.DELETE, after_namespace),
        )
        return (
            *waits_for_pods(
                release,
                placed=Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL,
                placed_hint=hints.after_pod,
                lookup=hints.company,
                own=Action.UPDATE_POD_LABEL,
            ),
            waits_for(Kind.NODE, of_nodes, after_node, DOMAINS),
            *(overlooked if is_batched else ()),
        )

    # -- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: Cycle) -> Status | None:
        neighbours = Neighbours.of(cycle)
        if neighbours is None:
            return SKIP
        cycle.write(_NEIGHBOURS, neighbours)
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        neighbours = cycle.read(_NEIGHBOURS)
        worst = np.zeros(len(nodes), dtype=np.int32)
        for unwanted, severity in ((neighbours.unwelcome, 1), (neighbours.avoided, 2)):
            for key, pods in unwanted:
                ids_of_values = nodes.label_ids(key)  # `take` is as indexing with them, in half the time
                near = (pods > 0).take(ids_of_values) if len(nodes) > 1 else pods[ids_of_values] > 0
                np.maximum(worst, near * np.int32(severity), out=worst)
        statuses = (None, EXISTING_ANTI_AFFINITY, ANTI_AFFINITY)
        ids = np.array([self.rejections.id_of(status) for status in statuses], dtype=np.int32).take(worst)
        if neighbours.wanted:
            ids[~neighbours.satisfied(nodes)] = self.rejections.id_of(AFFINITY)
        return ids

    def copies(self, cycle: Cycle, nodes: Nodes) -> CopyRoom | None:
        neighbours = cycle.read(_NEIGHBOURS)
        if neighbours.is_first_of_its_kind:
            return None
        rows = np.where(self.filter(cycle, nodes) == 0, np.iinfo(np.int64).max, 0)
        keys = neighbours.keys_of_copies_apart(cycle)
        return CopyRoom(rows, tuple(CopyLimit(nodes.label_ids(key)) for key in keys))

    def add_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        cycle.read(_NEIGHBOURS).adjust(cycle, pod, row, 1)

    def remove_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        cycle.read(_NEIGHBOURS).adjust(cycle, pod, row, -1)

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        text = rejection_in_words(cycle, node)
        return NodeShortfall(text) if text else None

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        return cycle.read(_NEIGHBOURS).concerns(cycle, pod.facts)

    # -- score --------------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        if not cycle.facts.terms and not cycle.state.matches.carried:
            return SKIP
        near = cycle.facts.terms_of("preferred-affinity")
        far = cycle.facts.terms_of("preferred-anti-affinity")
        carried = matching_carried_terms(cycle)
        if not near and not far and (self._args.ignore_preferred_terms_of_existing_pods or not carried):
            return SKIP
        topologies: dict[str, Int64] = {}
        for own_terms in (near, far):  # apart, for what cancels out is still there
            _add_matching(topologies, own_terms, cycle)
        for terms in carried.get("preferred-affinity", ()):
            add_carriers(topologies, terms, terms.weight, cycle.state)
        for terms in carried.get("preferred-anti-affinity", ()):
            add_carriers(topologies, terms, -terms.weight, cycle.state)
        hard_weight = self._args.hard_pod_affinity_weight
        for terms in carried.get("required-affinity", ()) if hard_weight > 0 else ():
            add_carriers(topologies, terms, terms.number * hard_weight, cycle.state)
        if not topologies:
            return SKIP
        cycle.write(_TOPOLOGIES, list(topologies.items()))
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        (key, weights), *others = cycle.read(_TOPOLOGIES)
        scores = weights[nodes.label_ids(key)]
        for key, weights in others:
            scores += weights[nodes.label_ids(key)]
        return scores

    def normalize(self, cycle: Cycle, scores: Int64 | int, nodes: Nodes) -> Int64 | int:
        assert not isinstance(scores, int)
        least = int(scores.min())
        span = int(scores.max()) - least
        if span == 0:
            return 0
        return (float(MAX_NODE_SCORE) * ((scores - least) / float(span))).astype(np.int64)


def _add_matching(sums: dict[str, Int64], terms: tuple[Term, ...], cycle: Cycle) -> None:
    """Add the weights of the terms to each domain in which are pods that they match, by topology key."""
    table = cycle.state.nodes
    for key, selectors in by_topology(terms, cycle).items():
        weights = cycle.state.matches.total(tuple(selectors)).by_value(table.label(key), table.size)
        if weights.any():
            sums[key] = sums[key] + weights if key in sums else weights.copy()
