"""What may help a pod that would lie unevenly: pods that its constraints count, and nodes that make domains."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.plugins.pod_topology_spread.constraints import Constraint, Constraints
from kubesched.plugins.shared.hinting import has_node, is_same_pod, queue_if, waits_for
from kubesched.state.cluster import ClusterState

_PODS = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
_NODES = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


class SpreadHints:
    """The hints under one configuration, which may give constraints to pods that have none."""

    def __init__(self, constraints: Constraints) -> None:
        self._constraints = constraints

    def interests(self) -> tuple[Interest, ...]:
        return waits_for(Kind.POD, _PODS, self.after_pod), waits_for(Kind.NODE, _NODES, self.after_node)

    def after_pod(self, pod: Pod, old: Pod | None, new: Pod | None, state: ClusterState) -> Hint:
        """A pod that counts came or went, or began or ceased to count; or the waiting pod tolerates more nodes."""
        if any(other is not None and not _is_involved(other, pod) for other in (old, new)):
            return Hint.SKIP
        constraints = self._hard(pod, state)
        if old is not None and new is not None:
            tolerates_other = is_same_pod(pod, new) and old.spec.tolerations != new.spec.tolerations
            if tolerates_other and any(constraint.honors_taints for constraint in constraints):
                return Hint.QUEUE
        return queue_if(any(_counts(constraint, old) != _counts(constraint, new) for constraint in constraints))

    def after_node(self, pod: Pod, old: Node | None, new: Node | None, state: ClusterState) -> Hint:
        """A node that has a place in all topologies came or went, or changed its place or its taints."""
        constraints = self._hard(pod, state)
        before, after = _place(old, constraints), _place(new, constraints)
        if before is None or after is None or old is None or new is None:
            return queue_if(before is not after)
        return queue_if(before != after or old.spec.taints != new.spec.taints)

    def _hard(self, pod: Pod, state: ClusterState) -> tuple[Constraint, ...]:
        return self._constraints.hard(Cycle(pod, state))


def _is_involved(other: Pod, pod: Pod) -> bool:
    return is_same_pod(other, pod) or (has_node(other) and other.namespace == pod.namespace)


def _counts(constraint: Constraint, pod: Pod | None) -> bool:
    return pod is not None and constraint.selector.matches(pod.metadata.labels)


def _place(node: Node | None, constraints: tuple[Constraint, ...]) -> tuple[str, ...] | None:
    """The domains that the node is in, one for each constraint; None if one of them does not know the node."""
    if node is None:
        return None
    labels: Mapping[str, str] = node.metadata.labels
    keys = [constraint.topology_key for constraint in constraints]
    return tuple(labels[key] for key in keys) if all(key in labels for key in keys) else None
