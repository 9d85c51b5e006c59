"""Which nodes a pod's own spec allows: its node selector and the required terms of its node affinity."""

from __future__ import annotations

import msgspec

from kubesched.api.affinity import NodeSelector
from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.selectors import compile_node_selector, node_matches


class NodeChoice:
    """Read once from the spec of a pod, asked for many nodes."""

    def __init__(self, spec: Object) -> None:
        self._labels: dict[str, str] = spec.get("nodeSelector") or {}
        node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._terms = None if required is None else compile_node_selector(msgspec.convert(required, NodeSelector))

    @property
    def is_free(self) -> bool:
        """Whether any node will do."""
        return not self._labels and self._terms is None

    def allows(self, node: Object) -> bool:
        if not self._labels.items() <= (node["metadata"].get("labels") or {}).items():
            return False
        return self._terms is None or node_matches(self._terms, msgspec.convert(node, Node))
