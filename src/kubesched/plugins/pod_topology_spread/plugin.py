"""PodTopologySpread: filters by skew, and scores nodes whose domains have fewer matching pods higher."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubesched.config.args import PodTopologySpreadArgs
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Interest
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
from kubesched.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint, Constraints
from kubesched.plugins.pod_topology_spread.domains import CountedNodesOf, Domains, matching_pods
from kubesched.plugins.pod_topology_spread.hints import SpreadHints
from kubesched.state.columns import Bool, Float, Int32, Int64
from kubesched.state.labels import LabelColumn
from kubesched.state.pods import PlacedPod

SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Keeps pods of a kind evenly spread."""

    name = "PodTopologySpread"
    adjusts = True

    def __init__(self, args: PodTopologySpreadArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._constraints = Constraints(args or PodTopologySpreadArgs())
        numeric = self.context.enabled("TaintTolerationComparisonOperators", default=False)
        self._counted_nodes = CountedNodesOf(numeric=numeric)

    def events_to_register(self) -> tuple[Interest, ...]:
        return SpreadHints(self._constraints).interests()

    # -- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: Cycle) -> Status | None:
        constraints = self._constraints.hard(cycle)
        if not constraints:
            return SKIP
        keys = tuple(constraint.topology_key for constraint in constraints)
        cycle.write(self.name, [self._domains(cycle, constraint, keys) for constraint in constraints])
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        skewed, unlabelled = self.verdicts.id_of(SKEWED), self.verdicts.id_of(NO_LABEL)
        verdicts: Int32 | None = None
        domains: Domains
        for domains in cycle.read(self.name):
            constraint = domains.constraint
            ids = nodes.label_ids(constraint.topology_key)
            itself = constraint.selector.matches(cycle.pod.metadata.labels)
            # pods there + the pod itself - pods where they are fewest, at most maxSkew
            limit = constraint.max_skew - itself + domains.fewest()
            if len(ids) < len(domains.pods):
                found = np.where(domains.pods[ids] > limit, np.int32(skewed), np.int32(0))
                found[ids < 0] = unlabelled
            else:  # fewer domains than rows: judge domains, then pick for each row
                of_domains = np.where(domains.pods > limit, np.int32(skewed), np.int32(0))
                of_domains[-1] = unlabelled
                found = of_domains[ids]
            verdicts = found if verdicts is None else np.where(verdicts == 0, found, verdicts)
        return np.zeros(len(nodes), dtype=np.int32) if verdicts is None else verdicts

    def add_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        self._adjust(cycle, pod, row, 1)

    def remove_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        self._adjust(cycle, pod, row, -1)

    def _adjust(self, cycle: Cycle, pod: PlacedPod, row: int, sign: int) -> None:
        if pod.facts.namespace != cycle.facts.namespace:
            return
        domains: Domains
        for domains in cycle.read(self.name):
            if domains.counts_row(row) and domains.constraint.selector.matches(pod.facts.labels):
                domains.pods[cycle.state.nodes.label(domains.constraint.topology_key).ids[row]] += sign

    def _domains(self, cycle: Cycle, constraint: Constraint, keys: tuple[str, ...]) -> Domains:
        return Domains.count(cycle, constraint, self._counted_nodes(cycle, constraint, keys))

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
        parts = [self._part(cycle, c, keys, nodes, ignored, scored) for c in constraints]
        cycle.write(f"PreScore{self.name}", (parts, ignored))
        return None

    def _part(
        self,
        cycle: Cycle,
        constraint: Constraint,
        keys: tuple[str, ...],
        nodes: Nodes,
        ignored: Bool | None,
        scored: int,
    ) -> Part:
        """What one constraint adds to the score."""
        column = cycle.state.nodes.label(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            matching = matching_pods(cycle, constraint)
            pods = np.zeros(len(nodes)) if matching is None else nodes.take(matching.counts)
            part = _weighed(pods, scored, constraint.max_skew)
            return Part(None, np.where(nodes.take(column.ids) < 0, 0.0, part) if lacks_some(column, nodes) else part)
        domains = self._domains(cycle, constraint, keys)
        if nodes.rows is None and not lacks_some(column, nodes):
            size = column.values.distinct
        else:
            present = np.zeros(len(domains.pods), dtype=np.bool_)
            ids = nodes.take(column.ids)
            present[ids if ignored is None else ids[~ignored]] = True
            size = int(np.count_nonzero(present))
        part = _weighed(domains.pods, size, constraint.max_skew)
        part[-1] = 0.0
        return Part(constraint.topology_key, part)

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        parts: list[Part]
        parts, ignored = cycle.read(f"PreScore{self.name}")
        if len(parts) == 1 and parts[0].key is not None:
            # One topology, few domains: round per domain, then pick for each row.
            scores = _rounded(parts[0].values)[nodes.label_ids(parts[0].key)]
        else:
            total = parts[0].on(nodes)
            for part in parts[1:]:
                total = total + part.on(nodes)
            scores = _rounded(total)
        if ignored is not None:
            scores[ignored] = 0
        return scores

    def normalize(self, cycle: Cycle, scores: Int64 | int, nodes: Nodes) -> Int64 | int:
        _, ignored = cycle.read(f"PreScore{self.name}")
        assert not isinstance(scores, int)
        counted = scores if ignored is None else scores[~ignored]
        most = max(int(counted.max()), 0) if len(counted) else 0
        fewest = int(counted.min()) if len(counted) else 0
        if most == 0:
            result: Int64 = np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        else:
            result = MAX_NODE_SCORE * (most + fewest - scores) // most
        if ignored is not None:
            result[ignored] = 0
        return result


class Part(NamedTuple):
    """What one constraint adds: per domain of a topology, or, without a key, per row."""

    key: str | None
    values: Float

    def on(self, nodes: Nodes) -> Float:
        return self.values if self.key is None else self.values[nodes.label_ids(self.key)]


def lacks_some(column: LabelColumn, nodes: Nodes) -> bool:
    """Whether some node in the cluster does not have the label."""
    return column.carriers < nodes.state.nodes.live_count


def _lacking(keys: tuple[str, ...], nodes: Nodes) -> Bool | None:
    """The rows that lack one of the labels; None if there are none."""
    lacking: Bool | None = None
    for key in keys:
        if lacks_some(nodes.state.nodes.label(key), nodes):
            without = nodes.label_ids(key) < 0
            lacking = without if lacking is None else lacking | without
    return lacking if lacking is not None and lacking.any() else None


def _rounded(values: Float) -> Int64:
    """Half up, as Go rounds."""
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _weighed(pods: NDArray[Any], size: int, max_skew: int) -> Float:
    """Pods count more in larger topologies; a tolerated skew waters differences down."""
    return pods.astype(np.float64) * math.log(size + 2) + float(max_skew - 1)
