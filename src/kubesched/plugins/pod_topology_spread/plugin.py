"""PodTopologySpread: filters by skew, and scores nodes whose domains have fewer matching pods higher."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import Requirement
from kubesched.api.well_known import HOSTNAME
from kubesched.config.args import PodTopologySpreadArgs
from kubesched.framework.advice import NodeShortfall
from kubesched.framework.copies import CopyRoom
from kubesched.framework.copy_limits import CopyLimit
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import FilterOutcome
from kubesched.framework.events import Action, Hint, Interest, Kind, Lookup
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import (
    Details,
    ExplainPlugin,
    FilterPlugin,
    PluginContext,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unresolvable, unschedulable
from kubesched.plugins.advice.pods import SpreadAdvice
from kubesched.plugins.pod_topology_spread.cells import Cells, Part, part_by_domain, part_by_node
from kubesched.plugins.pod_topology_spread.constraints import SpreadConstraint, SpreadConstraints
from kubesched.plugins.pod_topology_spread.domains import (
    CachedNodes,
    CountedNodes,
    Domains,
    EligibleNodesCache,
    matching_pods,
)
from kubesched.plugins.pod_topology_spread.skew import counts_of, details_of, skew_in_words
from kubesched.plugins.shared.hinting import has_node, is_same_pod, queue_if, waits_for, waits_for_pods
from kubesched.plugins.shared.node_lookup import ANY_NODE_EVENT, events_that_may_help, labels_brought
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64, LabelColumn
from kubesched.state.facts import StateKey
from kubesched.state.label_index import anchors, labels_as_anchors
from kubesched.state.pods import PlacedPod

SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")

_PODS = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
_OWN = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
_NODES = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT

_DOMAINS = StateKey[list[Domains]]("PodTopologySpread", is_for_deciding=True)
_CELLS = StateKey[Cells]("PreScorePodTopologySpread", is_for_deciding=True)
_HARD, _SOFT = (
    StateKey[CachedNodes]("nodes that hard constraints count"),
    StateKey[CachedNodes]("nodes that soft ones count"),
)


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, SpreadAdvice, ExplainPlugin):
    """Keeps pods of a kind evenly spread."""

    name = "PodTopologySpread"
    explained_as = "spread"
    adjusts = True
    pre_filter_reads = filter_reads = pre_score_reads = score_reads = Reads(
        PodFields.SPEC | PodFields.NODE_NAMES | PodFields.LABELS | PodFields.NAMESPACE | PodFields.OWNER, Scope.CLUSTER
    )

    def __init__(self, args: PodTopologySpreadArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        features = self.context.features
        self._constraints = SpreadConstraints(
            args or PodTopologySpreadArgs(), match_label_keys=features.match_label_keys_in_spread
        )
        self._eligible_nodes = EligibleNodesCache(numeric=features.taint_comparisons)

    def events_to_register(self) -> tuple[Interest, ...]:
        pods = waits_for_pods(
            self.context.features.release,
            placed=_PODS,
            placed_hint=self.after_pod,
            lookup=Lookup(self._counted_by, _labels_brought),
            own=_OWN,
            own_hint=self.after_own_change,
        )
        domains = Lookup(self._domains_waited_for, labels_brought)
        return *pods, waits_for(Kind.NODE, _NODES, self.after_node, domains)

    # -- hints ---------------------------------------------------------------------------------------------------------

    def after_pod(self, pod: Pod, old: Pod | None, new: Pod | None, state: ClusterState) -> Hint:
        """A pod that counts came or went, or began or ceased to count."""
        if any(other is not None and not _is_involved(other, pod) for other in (old, new)):
            return Hint.SKIP
        constraints = self._constraints.hard(Cycle(pod, state))
        return queue_if(any(_counts(constraint, old) != _counts(constraint, new) for constraint in constraints))

    def after_own_change(self, pod: Pod, old: Pod, new: Pod, state: ClusterState) -> Hint:
        """The waiting pod tolerates more nodes, or is counted by other constraints of its own."""
        constraints = self._constraints.hard(Cycle(pod, state))
        if old.spec.tolerations != new.spec.tolerations and any(constraint.honors_taints for constraint in constraints):
            return Hint.QUEUE
        return queue_if(any(_counts(constraint, old) != _counts(constraint, new) for constraint in constraints))

    def _counted_by(self, pod: Pod, state: ClusterState) -> Iterator[Hashable]:
        """The pods that constraints count; any in the namespace, if services and owners say which."""
        if not pod.spec.topology_spread_constraints:
            yield pod.namespace, ()
        for constraint in self._constraints.hard(Cycle(pod, state)):
            yield from ((pod.namespace, anchor) for anchor in anchors(constraint.selector))

    def after_node(self, pod: Pod, old: Node | None, new: Node | None, state: ClusterState) -> Hint:
        """A node that has a place in all topologies came or went, or changed its place or its taints."""
        constraints = self._constraints.hard(Cycle(pod, state))
        before, after = _domains_of(old, constraints), _domains_of(new, constraints)
        if before is None or after is None or old is None or new is None:
            return queue_if(before is not after)
        return queue_if(before != after or old.spec.taints != new.spec.taints)

    def _domains_waited_for(self, pod: Pod, state: ClusterState) -> Iterator[Hashable]:
        """Nodes that have all topology keys; any, if services and owners say whether there are constraints."""
        constraints = self._constraints.hard(Cycle(pod, state))
        if not pod.spec.topology_spread_constraints or not constraints:
            yield ANY_NODE_EVENT
            return
        keys = (constraint.topology_key for constraint in constraints)
        yield from events_that_may_help((Requirement(key, "Exists") for key in keys), state)

    # -- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: Cycle) -> Status | None:
        constraints = self._constraints.hard(cycle)
        if not constraints:
            return SKIP
        keys = tuple(constraint.topology_key for constraint in constraints)
        counted = self._eligible_nodes.of_all(cycle, constraints, keys, _HARD)
        cycle.write(_DOMAINS, [Domains.count(cycle, constraint, nodes) for constraint, nodes in counted])
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        skewed, unlabelled = self.rejections.id_of(SKEWED), self.rejections.id_of(NO_LABEL)
        rejected: Int32 | None = None
        topologies = cycle.read(_DOMAINS)
        for number, domains in enumerate(topologies, 1):
            constraint = domains.constraint
            ids = nodes.label_ids(constraint.topology_key)
            self_match = constraint.selector.matches(cycle.pod.metadata.labels)
            # pods there + 1 if the pod counts itself - pods where they are fewest: at most maxSkew
            limit = constraint.max_skew - self_match + domains.fewest()
            if len(ids) < len(domains.pods):
                skewed_ids = np.where(domains.pods[ids] > limit, np.int32(skewed), np.int32(0))
                skewed_ids[ids < 0] = unlabelled
            else:  # fewer domains than rows: judge domains, then pick for each row
                of_domains = np.where(domains.pods > limit, np.int32(skewed), np.int32(0))
                of_domains[-1] = unlabelled
                skewed_ids = of_domains.take(ids)  # as of_domains[ids], in half the time
            rejected = skewed_ids if rejected is None else np.where(rejected == 0, skewed_ids, rejected)
            if number < len(topologies) and rejected.all():
                break
        return np.zeros(len(nodes), dtype=np.int32) if rejected is None else rejected

    def copies(self, cycle: Cycle, nodes: Nodes) -> CopyRoom:
        rejected, limits = nodes.none(), []
        for domains in cycle.read(_DOMAINS):
            constraint = domains.constraint
            ids, self_match = nodes.label_ids(constraint.topology_key), constraint.selector.matches(cycle.facts.labels)
            rejected |= ids < 0
            if self_match and not constraint.selector.is_empty:
                lacks = domains.counted.domains < constraint.min_domains
                limits.append(CopyLimit(ids, constraint.max_skew, domains.pods, domains.counted.present, lacks))
            else:
                rejected |= domains.pods[ids] > constraint.max_skew - self_match + domains.fewest()
        return CopyRoom(np.where(rejected, 0, np.iinfo(np.int64).max), tuple(limits))

    def add_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        self._adjust(cycle, pod, row, 1)

    def remove_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        self._adjust(cycle, pod, row, -1)

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall:
        text = skew_in_words(cycle, cycle.read(_DOMAINS), node)
        return NodeShortfall(text or SKEWED.message.removeprefix("node(s) "))

    def explain(self, cycle: Cycle, outcome: FilterOutcome, node: str) -> Details:
        """The pods of each domain, where a constraint rejects nodes."""
        rejects = any(rejections is self.rejections for rejections, _ in outcome.columns)
        if node or not rejects:
            return Details()
        return details_of(tuple(counts_of(cycle, domains) for domains in cycle.find(_DOMAINS) or ()))

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        if pod.facts.namespace != cycle.facts.namespace:
            return False
        return any(domains.constraint.selector.matches(pod.facts.labels) for domains in cycle.read(_DOMAINS))

    def _adjust(self, cycle: Cycle, pod: PlacedPod, row: int, sign: int) -> None:
        if pod.facts.namespace != cycle.facts.namespace:
            return
        for domains in cycle.read(_DOMAINS):
            if domains.counts_row(row) and domains.constraint.selector.matches(pod.facts.labels):
                domains.pods[cycle.state.nodes.label(domains.constraint.topology_key).ids[row]] += sign

    # -- score --------------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        constraints = self._constraints.soft(cycle)
        if not constraints:
            return SKIP
        # Under the system's own defaults a node without a zone still spreads by host.
        lenient = self._constraints.system_defaulted and not cycle.pod.spec.topology_spread_constraints
        keys = () if lenient else tuple(c.topology_key for c in constraints)
        ignored = _lacking(keys, nodes)
        scored = len(nodes) if ignored is None else len(nodes) - int(np.count_nonzero(ignored))
        if scored == 0:
            cycle.write(_CELLS, Cells([Part(np.zeros(len(nodes), dtype=np.int32), np.zeros(1))], ignored))
            return None
        counted = self._eligible_nodes.of_all(cycle, constraints, keys, _SOFT)
        parts = [self._part(cycle, c, domains, nodes, ignored, scored) for c, domains in counted]
        cycle.write(_CELLS, Cells(parts, ignored))
        return None

    def _part(
        self,
        cycle: Cycle,
        constraint: SpreadConstraint,
        counted: CountedNodes,
        nodes: Nodes,
        ignored: Bool | None,
        scored: int,
    ) -> Part:
        """What one constraint adds to the score."""
        column = cycle.state.nodes.label(constraint.topology_key)
        ids = nodes.take(column.ids)
        lacking = ids < 0 if lacks_some(column, nodes) else None
        if constraint.topology_key == HOSTNAME:
            matching = matching_pods(cycle, constraint)
            pods = np.zeros(len(nodes), dtype=np.int32) if matching is None else nodes.take(matching.counts)
            return part_by_node(pods, scored, constraint.max_skew, lacking)
        domains = Domains.count(cycle, constraint, counted)
        if nodes.rows is None and lacking is None:
            size = column.values.distinct
        else:
            present = np.zeros(len(domains.pods), dtype=np.bool_)
            present[ids if ignored is None else ids[~ignored]] = True
            size = int(np.count_nonzero(present))
        return part_by_domain(ids, domains.pods, size, constraint.max_skew, lacking)

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        return cycle.read(_CELLS).scores()

    def normalize(self, cycle: Cycle, scores: Int64 | int, nodes: Nodes) -> Int32:
        assert not isinstance(scores, int)
        return cycle.read(_CELLS).normalized(scores)


def lacks_some(column: LabelColumn, nodes: Nodes) -> bool:
    """Whether some node in the cluster does not have the label."""
    return column.carriers < nodes.state.nodes.live_count


def _lacking(keys: tuple[str, ...], nodes: Nodes) -> Bool | None:
    """The rows that lack one of the labels; None if there are none."""
    lacking: Bool | None = None
    for key in keys:
        if not nodes.state.nodes.has_label(key):
            return ~nodes.none()
        if lacks_some(nodes.state.nodes.label(key), nodes):
            without = nodes.label_ids(key) < 0
            lacking = without if lacking is None else lacking | without
    return lacking if lacking is not None and lacking.any() else None


def _labels_brought(old: Pod | None, new: Pod | None, state: ClusterState) -> Iterator[Hashable]:
    for pod in (old, new):
        if pod is not None:
            yield from ((pod.namespace, anchor) for anchor in labels_as_anchors(pod.metadata.labels))


def _is_involved(other: Pod, pod: Pod) -> bool:
    return is_same_pod(other, pod) or (has_node(other) and other.namespace == pod.namespace)


def _counts(constraint: SpreadConstraint, pod: Pod | None) -> bool:
    return pod is not None and constraint.selector.matches(pod.metadata.labels)


def _domains_of(node: Node | None, constraints: tuple[SpreadConstraint, ...]) -> tuple[str, ...] | None:
    """The domains that the node is in, one for each constraint; None if one of them does not know the node."""
    if node is None:
        return None
    labels: Mapping[str, str] = node.metadata.labels
    keys = [constraint.topology_key for constraint in constraints]
    return tuple(labels[key] for key in keys) if all(key in labels for key in keys) else None
