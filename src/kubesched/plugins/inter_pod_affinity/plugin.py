"""InterPodAffinity: required and preferred terms of the incoming pod, and those of placed pods that mean it."""

from __future__ import annotations

import numpy as np

from kubesched.config.args import InterPodAffinityArgs
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
    FilterPlugin,
    PluginContext,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kubesched.framework.status import SKIP, Status, unresolvable, unschedulable
from kubesched.plugins.inter_pod_affinity.neighbours import Neighbours
from kubesched.plugins.inter_pod_affinity.terms import carried_terms_that_mean, counter_of
from kubesched.state.columns import Int32, Int64
from kubesched.state.facts import Term
from kubesched.state.pods import PlacedPod

AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Near to some pods, far from others, in any topology."""

    name = "InterPodAffinity"
    adjusts = True

    def __init__(self, args: InterPodAffinityArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._args = args or InterPodAffinityArgs()

    # -- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: Cycle) -> Status | None:
        neighbours = Neighbours.of(cycle)
        if neighbours is None:
            return SKIP
        cycle.write(self.name, neighbours)
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        neighbours: Neighbours = cycle.read(self.name)
        verdicts = np.zeros(len(nodes), dtype=np.int32)
        for unwanted, status in (
            (neighbours.unwelcome, EXISTING_ANTI_AFFINITY),
            (neighbours.avoided, ANTI_AFFINITY),
        ):
            for key, pods in unwanted:
                verdicts[(pods > 0)[nodes.label_ids(key)]] = self.verdicts.id_of(status)
        if neighbours.wanted:
            verdicts[~neighbours.satisfied(nodes)] = self.verdicts.id_of(AFFINITY)
        return verdicts

    def add_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        cycle.read(self.name).adjust(cycle, pod, row, 1)

    def remove_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        cycle.read(self.name).adjust(cycle, pod, row, -1)

    # -- score --------------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        near = cycle.facts.terms_of("preferred-affinity")
        far = cycle.facts.terms_of("preferred-anti-affinity")
        if self._args.ignore_preferred_terms_of_existing_pods and not near and not far:
            return SKIP
        weighted = [(term, term.weight, self._counts(cycle, term)) for term in near]
        weighted += [(term, -term.weight, self._counts(cycle, term)) for term in far]
        carried = carried_terms_that_mean(cycle)
        for term in carried.get("preferred-affinity", ()):
            weighted.append((term.term, term.term.weight, term.counts))
        for term in carried.get("preferred-anti-affinity", ()):
            weighted.append((term.term, -term.term.weight, term.counts))
        if self._args.hard_pod_affinity_weight > 0:
            for term in carried.get("required-affinity", ()):
                weighted.append((term.term, self._args.hard_pod_affinity_weight, term.counts))
        topologies = _topologies(cycle, weighted)
        if not topologies:
            return SKIP
        cycle.write(f"PreScore{self.name}", topologies)
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for key, weights in cycle.read(f"PreScore{self.name}"):
            scores += weights[nodes.label_ids(key)]
        return scores

    def normalize(self, cycle: Cycle, scores: Int64 | int, nodes: Nodes) -> Int64 | int:
        assert not isinstance(scores, int)
        least = int(scores.min())
        span = int(scores.max()) - least
        if span == 0:
            return 0
        return (float(MAX_NODE_SCORE) * ((scores - least) / float(span))).astype(np.int64)

    def _counts(self, cycle: Cycle, term: Term) -> Int32:
        return counter_of((term,), cycle.state).counts


def _topologies(cycle: Cycle, weighted: list[tuple[Term, int, Int32]]) -> list[tuple[str, Int64]]:
    """Per topology key the weight of each of its domains; keys where no term matched any pod are left out."""
    table = cycle.state.nodes
    rows: dict[str, Int64] = {}
    matched: set[str] = set()
    for term, weight, counts in weighted:
        counts = counts[: table.size]
        key = term.topology_key
        labelled = table.label(key).ids[: table.size] >= 0
        if not (counts > 0)[labelled].any():
            continue
        matched.add(key)
        rows[key] = rows.get(key, 0) + weight * counts.astype(np.int64)
    return [(key, table.label(key).sum_by_value(rows[key])) for key in rows]
