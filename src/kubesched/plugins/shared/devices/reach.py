"""From which nodes the devices of a slice can be used."""

from __future__ import annotations

import numpy as np

from kubesched.api.devices import Device, ResourceSliceSpec
from kubesched.api.node import Node
from kubesched.api.selectors import NodeTerm, compile_node_selector, node_matches
from kubesched.framework.nodes import Nodes


class Reach:
    """The nodes that a slice names, or a device of one: one node, all of them, or those that a selector matches."""

    def __init__(self, source: ResourceSliceSpec | Device) -> None:
        selector = source.node_selector
        self.node_name = source.node_name or ""
        self._all_nodes = source.all_nodes
        self._terms: tuple[NodeTerm, ...] | None = None if selector is None else compile_node_selector(selector)

    @property
    def is_said(self) -> bool:
        return bool(self.node_name) or self._all_nodes or self._terms is not None

    def includes(self, node: Node) -> bool:
        if self.node_name:
            return node.name == self.node_name
        return self._all_nodes or (self._terms is not None and node_matches(self._terms, node))

    def rows(self, nodes: Nodes) -> list[int]:
        """All rows within reach."""
        if self.node_name:
            row = nodes.state.nodes.row_of.get(self.node_name)
            return [] if row is None else [row]
        if self._all_nodes:
            return list(range(len(nodes)))
        return [] if self._terms is None else np.flatnonzero(nodes.selected_by(self._terms)).tolist()
