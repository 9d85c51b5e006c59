"""Why does a pod go where it goes, or nowhere, and what would help? `explain(cluster, pod)` has it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.well_known import HOSTNAME, POOL_LABELS, REGION, ZONE
from kubesched.ask.explain.explanation import (
    Explanation,
    NodeRejection,
    NodeVerdict,
    cause_of,
    decide,
    explain_decision,
)
from kubesched.ask.explain.pod_groups import GroupExplanation, explain_group
from kubesched.ask.remedies import Remedies, remedies
from kubesched.ask.trial import Trial
from kubesched.framework.decision_view import NearMiss
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.state.cluster import ClusterState

NAMED_ONE_BY_ONE = 3
"""Groups of at most this many nodes are shown by the names of the nodes."""
MOST_VALUES = 4
_GROUPING_LABELS = (*POOL_LABELS, INSTANCE_TYPE, ZONE, REGION)
_IGNORED_LABELS = (
    HOSTNAME,
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)
MOST_MISSES = 3


@dataclass(frozen=True, slots=True)
class Trait:
    """What the nodes of a group have in common and no other node has: values of a label, or a prefix of the name."""

    values: tuple[str, ...]
    label: str = ""

    @property
    def text(self) -> str:
        values = ", ".join(self.values)
        if not self.label:
            return f"names that begin with {values}"
        short = self.label.rpartition("/")[2]
        word = "pool" if self.label in POOL_LABELS else short
        return f"{word} {values}"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes with the same verdict."""

    nodes: tuple[str, ...]
    fits: bool
    refusal: NodeRejection | None = None
    for_nominated: bool = False
    also: tuple[NodeRejection, ...] = ()
    """Further rejections that all of these nodes have in common."""
    trait: Trait | None = None


def groups_of(verdicts: Sequence[NodeVerdict], state: ClusterState) -> tuple[NodeGroup, ...]:
    """Nodes that fit, then groups of rejected nodes, the largest first."""
    verdicts_by_refusal: dict[tuple[NodeRejection | None, bool], list[NodeVerdict]] = {}
    for verdict in verdicts:
        verdicts_by_refusal.setdefault((verdict.refusal, verdict.for_nominated), []).append(verdict)
    traits = Traits(state, [verdict.node for verdict in verdicts])
    groups = [
        NodeGroup(
            tuple(verdict.node for verdict in alike),
            refusal is None,
            refusal,
            for_nominated,
            _common_rejections(alike),
            traits.of([verdict.node for verdict in alike]) if len(verdicts_by_refusal) > 1 else None,
        )
        for (refusal, for_nominated), alike in verdicts_by_refusal.items()
    ]
    return tuple(sorted(groups, key=lambda group: (not group.fits, -len(group.nodes), group.nodes[0])))


def _common_rejections(verdicts: Sequence[NodeVerdict]) -> tuple[NodeRejection, ...]:
    first = verdicts[0].also
    distinct = {verdict.also for verdict in verdicts}
    return tuple(rejection for rejection in first if all(rejection in also for also in distinct))


class Traits:
    """Finds a trait that some nodes of a cluster have and the others do not."""

    def __init__(self, state: ClusterState, nodes: Sequence[str]) -> None:
        self._nodes: dict[str, Node] = {name: state.nodes.node(state.nodes.row_of[name]) for name in nodes}
        self._sizes: dict[str, Counter[str | None]] = {}

    @cached_property
    def _keys(self) -> list[str]:
        """Labels by which people tell nodes apart: those known for it, then those with few values."""
        values: dict[str, set[str]] = {}
        for node in self._nodes.values():
            for key, value in node.metadata.labels.items():
                values_of_key = values.setdefault(key, set())
                if len(values_of_key) <= 50:
                    values_of_key.add(value)
        telling = [key for key in _GROUPING_LABELS if key in values]
        others = sorted(key for key in values if len(values[key]) <= 50 and key not in _IGNORED_LABELS)
        return [*telling, *(key for key in others if key not in telling)]

    def of(self, names: Sequence[str]) -> Trait | None:
        """The trait of a group of more than a few nodes; None if they have none of their own."""
        if len(names) <= NAMED_ONE_BY_ONE:
            return None
        for key in self._keys:
            mine = self._counts(key, names)
            if None in mine or len(mine) > MOST_VALUES:
                continue
            if key not in self._sizes:
                self._sizes[key] = self._counts(key, self._nodes)
            if all(self._sizes[key][value] == count for value, count in mine.items()):
                return Trait(tuple(sorted(value for value in mine if value is not None)), key)
        return self._prefix(names)

    def _counts(self, key: str, names: Iterable[str]) -> Counter[str | None]:
        """How many of these nodes have each value of a label."""
        return Counter(self._nodes[name].metadata.labels.get(key) for name in names)

    def _prefix(self, names: Sequence[str]) -> Trait | None:
        first, last = min(names), max(names)
        same = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), len(first))
        prefix = first[:same]
        if len(prefix) < 3 or sum(name.startswith(prefix) for name in self._nodes) != len(names):
            return None
        return Trait((prefix,))


@dataclass(frozen=True, slots=True)
class ExplanationFindings:
    """What an explanation amounts to, for programs."""

    cause: str
    """Why the pod is not scheduled; empty if it is. Pending pods are grouped by it."""
    node_groups: tuple[NodeGroup, ...]
    nearest_misses: tuple[NearMiss, ...]
    """Only of a pod that fits nowhere."""
    contradiction: str
    """Where the pod's own condition says that it fits nowhere, and a node is found here: what may explain that."""
    details: dict[str, Any]
    """What plugins add, by the names of their parts."""
    remedies: Remedies | None = None
    """None for a pod that finds a node, or if they were not asked for."""
    pod_group: GroupExplanation | None = None
    """What becomes of the group that the pod waits with; without it the pod goes nowhere."""


def contradiction_of(pod: Pod) -> str:
    """What may explain that a scheduler found no node for a pod that waits, where one is found here."""
    said = [c for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"]
    if pod.spec.node_name or not said or said[0].reason != "Unschedulable":
        return ""
    return (
        f"Its condition says otherwise: {said[0].message or 'Unschedulable'} Either the cluster has changed since, or"
        " its scheduler goes by another configuration, or by plugins or extenders that are not known here (--config)."
    )


class ExplainedPod(NamedTuple):
    """Everything there is to say about one pod: the parts of its document."""

    explanation: Explanation
    findings: ExplanationFindings


def explain(
    cluster: ClusterModel,
    pod: Pod,
    *,
    with_remedies: bool = True,
    out_of_time: Callable[[], bool] = lambda: False,
) -> ExplainedPod:
    """Explain the decision for a pod, as if it were pending. The cluster is the same afterwards.

    Remedies are looked for until `out_of_time`.
    """
    group = explain_group(cluster, pod, with_remedies=with_remedies)
    with Trial(cluster) as trial:
        trial.keep(pod)  # one that has a node is taken off it to be explained
        view, gate = decide(cluster, pod)
        explanation, cause = explain_decision(cluster, pod, view, gate), cause_of(view.decision, gate)
        misses = () if explanation.node else view.near_misses(MOST_MISSES)  # remedies change the state that it reads
        wants_help = with_remedies and cause is not None and not explanation.current_node and not pod.is_terminating
        helping = (
            remedies(cluster, pod, out_of_time=out_of_time) if wants_help and explanation.outcome != "error" else None
        )
        findings = ExplanationFindings(
            cause.title if cause is not None else "",
            groups_of(explanation.verdicts, cluster.state),
            misses,
            contradiction_of(pod) if explanation.node and gate is None else "",
            {name: part.data for name, part in explanation.details.items()},
            helping,
            group,
        )
        return ExplainedPod(explanation, findings)
