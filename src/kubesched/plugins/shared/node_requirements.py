"""The nodes that a pod's nodeSelector and required node affinity allow, compiled once per equivalence class."""

from __future__ import annotations

from kubesched.api.node import Node
from kubesched.api.selectors import NodeRequirements, Selector
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.state.columns import Bool

_FEW = 64


class RequiredNodes(NodeRequirements):
    """The requirements as plugins ask them: once per equivalence class, and of all nodes at once."""

    __slots__ = ()

    @classmethod
    def of(cls, cycle: Cycle) -> RequiredNodes:
        return cycle.facts.derived(cls, cycle.pod)

    @property
    def is_short(self) -> bool:
        """Whether there are so few requirements that what follows from them is worth keeping."""
        return len(self.labels) + sum(1 + len(term.labels) for term in self.terms or ()) <= _FEW

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
