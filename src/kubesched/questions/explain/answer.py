"""The answer about one pod: the decision in words, nodes in groups, nearest misses, and remedies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.api.pod import Pod
from kubesched.questions.explain.grouping import NodeGroup, groups_of
from kubesched.questions.explain.misses import Miss, nearest_misses
from kubesched.questions.explain.pod_groups import GroupExplanation, explain_group
from kubesched.questions.remedies import Remedies, remedies
from kubesched.questions.trial import Trial
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.explanation import Explanation, explain_pod


@dataclass(frozen=True, slots=True)
class Findings:
    """What an explanation amounts to, for programs."""

    node_groups: tuple[NodeGroup, ...]
    nearest_misses: tuple[Miss, ...]
    details: dict[str, Any]
    """What plugins add, by the names of their parts."""
    remedies: Remedies | None = None
    pod_group: GroupExplanation | None = None
    """What becomes of the group that the pod waits with; without it the pod goes nowhere."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything there is to say about one pod."""

    explanation: Explanation
    groups: tuple[NodeGroup, ...]
    misses: tuple[Miss, ...]
    """Only of a pod that fits nowhere."""
    remedies: Remedies | None = None
    """None for a pod that finds a node, or if they were not asked for."""
    pod_group: GroupExplanation | None = None

    @property
    def findings(self) -> Findings:
        """What goes into the document besides the explanation."""
        details = {name: part.data for name, part in self.explanation.details.items()}
        return Findings(self.groups, self.misses, details, self.remedies, self.pod_group)


def explain(
    cluster: ClusterModel,
    pod: Pod,
    *,
    with_remedies: bool = True,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Answer:
    """Explain the decision for a pod, as if it were pending. The cluster is the same afterwards.

    Remedies are looked for until `out_of_time`.
    """
    group = explain_group(cluster, pod, with_remedies=with_remedies)
    with Trial(cluster) as trial:
        trial.keep(pod)  # one that has a node is taken off it to be explained
        explanation = explain_pod(cluster, pod)
        fits = bool(explanation.node) and explanation.gate is None
        asked = with_remedies and not fits and not explanation.current_node and not pod.is_terminating
        return Answer(
            explanation,
            groups_of(explanation.verdicts, cluster.state),
            () if explanation.node else nearest_misses(explanation.verdicts, pod, cluster.state),
            remedies(cluster, pod, out_of_time=out_of_time) if asked and explanation.outcome != "error" else None,
            group,
        )
