"""What a remedy costs and which objects it touches; and which evictions are never proposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kubesched.api.pod import Pod
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.ask.output import listed
from kubesched.ask.workloads import workload_of
from kubesched.framework.advice import RemedyKind, RemedyProposal
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.rolling_upgrade import BudgetTracker

_OTHERS_TOO = "Other pods may go there, too."
_COSTS = {
    RemedyKind.UNCORDON: _OTHERS_TOO,
    RemedyKind.LABEL_NODE: _OTHERS_TOO,
    RemedyKind.REMOVE_TAINT: _OTHERS_TOO,
    RemedyKind.ADD_NODE: "It is one more node to pay for.",
    RemedyKind.REMOVE_GATES: "Whoever set it may still wait for something.",
}
_IN_PLACE = (RemedyKind.TOLERATE, RemedyKind.REMOVE_GATES)
"""Changes that the API server takes of a pod that is there."""


def evicted_by(proposal: RemedyProposal) -> list[Pod]:
    """The pods that a proposal deletes."""
    if proposal.kind is not RemedyKind.EVICT:
        return []
    return [edit.obj for edit in proposal.edits if isinstance(edit.obj, Pod)]


def ends_by_itself(pod: Pod) -> bool:
    """Whether a Job runs the pod, so that it may be waited for."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "Job"


class EvictionRules:
    """Which pods may be evicted for a pod: none that a budget protects, or that comes before it in the queue."""

    def __init__(self, cluster: ClusterModel, pod: Pod) -> None:
        self._pod = pod
        budgets = cluster.state.objects.all(PodDisruptionBudget)
        self._budgets = BudgetTracker(budgets, cluster.pods.values()) if budgets else None

    def allow(self, victims: Sequence[Pod]) -> bool:
        if any(victim.priority > self._pod.priority for victim in victims):
            return False
        if self._budgets is None:
            return True
        leaving = Counter(budget.key for victim in victims for budget in self._budgets.guarding(victim))
        return all(count <= self._budgets.allowed(budget) for budget, count in leaving.items())


def touched_by(proposals: Sequence[RemedyProposal], pod: Pod) -> tuple[str, ...]:
    """The workloads, pods, nodes and other objects that are changed or go."""
    names: dict[str, None] = {}
    for edit in (edit for proposal in proposals for edit in proposal.edits):
        if edit.obj is None:
            continue
        kind = type(edit.obj).__name__
        changes_template = edit.obj is pod and pod.metadata.controller is not None
        names[f"workload {workload_of(pod)}" if changes_template else f"{kind} {edit.obj.key}"] = None
    return tuple(names)


def cost_of(proposals: Sequence[RemedyProposal], pod: Pod, new_nodes: Mapping[str, str]) -> str:
    """What it takes, in sentences. `new_nodes` says where evicted pods find a place that a controller makes anew."""
    sentences: dict[str, None] = {}
    for proposal in proposals:
        if proposal.kind in _COSTS and (proposal.kind is not RemedyKind.REMOVE_GATES or len(proposals) == 1):
            sentences[_COSTS[proposal.kind]] = None
        if any(edit.obj is pod for edit in proposal.edits) and (cost := _cost_of_template(proposal.kind, pod)):
            sentences[cost] = None
        sentences |= dict.fromkeys(_costs_of_evictions(evicted_by(proposal), new_nodes))
    return " ".join(sentences)


def _cost_of_template(kind: RemedyKind, pod: Pod) -> str:
    if pod.metadata.controller is not None:
        return f"It replaces the pods of {workload_of(pod)}."
    return "" if kind in _IN_PLACE else "The pod must be created anew."


def _costs_of_evictions(victims: Sequence[Pod], new_nodes: Mapping[str, str]) -> list[str]:
    lost = [victim.key for victim in victims if victim.metadata.controller is None]
    moved = [f"{victim.key} on {node}" for victim in victims if (node := new_nodes.get(victim.key))]
    sentences = [f"Nobody makes {listed(lost)} anew."] if lost else []
    return [*sentences, f"Made anew: {listed(moved)}."] if moved else sentences
