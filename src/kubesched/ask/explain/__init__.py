"""Why does a pod go where it goes, or nowhere, and what would help? `explain(cluster, pod)` has it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.api.pod import Pod
from kubesched.ask.explain.explanation import Explanation, cause_of, decide, explain_decision
from kubesched.ask.explain.grouping import NodeGroup, groups_of
from kubesched.ask.explain.pod_groups import GroupExplanation, explain_group
from kubesched.ask.remedies import Remedies, remedies
from kubesched.ask.trial import Trial
from kubesched.framework.decision_view import NearMiss
from kubesched.simulate.cluster import ClusterModel

__all__ = ["ExplainedPod", "ExplanationFindings", "explain"]

MOST_MISSES = 3


@dataclass(frozen=True, slots=True)
class ExplanationFindings:
    """What an explanation amounts to, for programs."""

    cause: str
    """Why the pod is not scheduled; empty if it is. Pending pods are grouped by it."""
    node_groups: tuple[NodeGroup, ...]
    nearest_misses: tuple[NearMiss, ...]
    details: dict[str, Any]
    """What plugins add, by the names of their parts."""
    remedies: Remedies | None = None
    pod_group: GroupExplanation | None = None
    """What becomes of the group that the pod waits with; without it the pod goes nowhere."""


@dataclass(frozen=True, slots=True)
class ExplainedPod:
    """Everything there is to say about one pod."""

    explanation: Explanation
    cause: str
    groups: tuple[NodeGroup, ...]
    misses: tuple[NearMiss, ...]
    """Only of a pod that fits nowhere."""
    remedies: Remedies | None = None
    """None for a pod that finds a node, or if they were not asked for."""
    pod_group: GroupExplanation | None = None

    @property
    def findings(self) -> ExplanationFindings:
        """What goes into the document besides the explanation."""
        details = {name: part.data for name, part in self.explanation.details.items()}
        return ExplanationFindings(self.cause, self.groups, self.misses, details, self.remedies, self.pod_group)


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
        wants_help = with_remedies and cause is not None and not explanation.current_node and not pod.is_terminating
        return ExplainedPod(
            explanation,
            cause.title if cause is not None else "",
            groups_of(explanation.verdicts, cluster.state),
            () if explanation.node else view.near_misses(MOST_MISSES),
            remedies(cluster, pod, out_of_time=out_of_time) if wants_help and explanation.outcome != "error" else None,
            group,
        )
