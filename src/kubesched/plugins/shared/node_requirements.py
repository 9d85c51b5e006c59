"""The nodes that a pod's nodeSelector and required node affinity allow, compiled once per equivalence class."""

from __future__ import annotations

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import (
    NodeTerm,
    Requirement,
    Selector,
    compile_node_selector,
    node_matches,
    selector_from_labels,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.state.columns import Bool

_FEW = 64


class RequiredNodes:
    """The hard requirements of a pod on the labels and names of nodes. A malformed term just never matches."""

    __slots__ = ("labels", "terms")

    def __init__(self, pod: Pod) -> None:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        self.labels: tuple[Requirement, ...] = selector_from_labels(pod.spec.node_selector).requirements
        self.terms: tuple[NodeTerm, ...] | None = None if required is None else compile_node_selector(required)

    @classmethod
    def of(cls, cycle: Cycle) -> RequiredNodes:
        return cycle.facts.derived(cls, cycle.pod)

    @property
    def is_short(self) -> bool:
        """Whether there are so few requirements that what follows from them is worth keeping."""
        return len(self.labels) + sum(1 + len(term.labels) for term in self.terms or ()) <= _FEW

    @property
    def allow_all(self) -> bool:
        return not self.labels and self.terms is None

    def allow(self, node: Node) -> bool:
        """Whether the pod may run on this one node."""
        selected = self.terms is None or node_matches(self.terms, node)
        return selected and Selector(self.labels).matches(node.metadata.labels)

    def leave_in_doubt(self, node: Node) -> bool:
        """Whether a node that is not allowed might be, were it not for a malformed term."""
        faulty = any(term.fault for term in self.terms or ())
        return faulty and Selector(self.labels).matches(node.metadata.labels)

    def selects(self, nodes: Nodes) -> Bool:
        """Per row whether the pod may run there."""
        table = nodes.state.nodes
        if any(not table.has_label(requirement.key) for requirement in self.labels):  # they all ask for a value
            return nodes.none()
        allowed = ~nodes.none() if self.terms is None else nodes.selected_by(self.terms)
        for requirement in self.labels:
            allowed &= nodes.meets(requirement)
        return allowed
