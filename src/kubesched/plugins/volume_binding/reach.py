"""From which nodes a volume can be reached."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.affinity import NodeSelector
from kubesched.api.selectors import NodeTerm, Requirement, compile_node_selector
from kubesched.api.storage import PersistentVolume
from kubesched.framework.nodes import Nodes
from kubesched.state.columns import Bool

Reach = tuple[NodeTerm, ...]
"""Any of these terms must hold."""


def reach_of(volume: PersistentVolume) -> Reach | None:
    """The compiled node affinity of a volume; None if it can be reached from everywhere."""
    affinity = volume.spec.node_affinity
    return compiled(affinity.required if affinity else None)


def compiled(selector: NodeSelector | None) -> Reach | None:
    """The terms of a volume's node selector. Volumes know nodes by labels only, so fields always match."""
    if selector is None:
        return None
    return tuple(term._replace(fields=()) for term in compile_node_selector(selector))


def within(nodes: Nodes, reach: Reach | None) -> Bool:
    """Per row whether a volume of this reach can be used there."""
    return ~nodes.none() if reach is None else nodes.selected_by(reach)


def only_label_values(reach: Reach | None) -> Requirement | None:
    """The single list of label values that a reach comes down to, as it does for local and for zonal volumes."""
    if reach is None or len(reach) != 1 or reach[0].fault or len(reach[0].labels) != 1:
        return None
    requirement = reach[0].labels[0]
    return requirement if requirement.operator == "In" else None


def within_any(nodes: Nodes, reaches: Iterable[Reach]) -> Bool:
    """Per row whether any of many reaches includes it. Lists of values of one label are answered together."""
    values: dict[str, set[str]] = {}
    included = nodes.none()
    for reach in reaches:
        listed = only_label_values(reach)
        if listed is None:
            included |= nodes.selected_by(reach)
        else:
            values.setdefault(listed.key, set()).update(listed.values)
    for key, listed_values in values.items():
        included |= nodes.meets(Requirement(key, "In", frozenset(listed_values)))
    return included
