"""Finds the waiting pods that an event of a node may help: by labels that it must have, and by those that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from kubesched.api.node import Node
from kubesched.api.selectors import Requirement, Selector
from kubesched.api.well_known import HOSTNAME
from kubesched.state.cluster import ClusterState
from kubesched.state.label_index import anchors, labels_as_anchors

Token = tuple[Literal["has", "came", "changed"], tuple[str, ...]]

ANY_NODE_EVENT: Token = ("has", ())
ANY_NEW_NODE: Token = ("came", ())
NODE_NAME = "field metadata.name"
"""As if it were a label. No label has such a key."""


def labels_brought(old: Node | None, new: Node | None, state: ClusterState) -> Iterator[Token]:
    """What any event of a node brings: labels that it has or had ("has"), labels that are new or gone ("changed").

    And all its labels ("came") if it came, went, or has other taints.
    """
    nodes = [node for node in (old, new) if node is not None]
    labels = {key: value for node in nodes for key, value in node.metadata.labels.items()}
    labels[NODE_NAME] = nodes[-1].name
    yield from (("has", anchor) for anchor in labels_as_anchors(labels))
    if old is None or new is None or old.spec.taints != new.spec.taints:
        yield from (("came", anchor) for anchor in labels_as_anchors(labels))
    if old is not None and new is not None:
        before, after = old.metadata.labels, new.metadata.labels
        for key in labels:
            if before.get(key) != after.get(key):
                yield "changed", (key,)
                yield "changed", (key, labels[key])


def events_that_may_help(requirements: Iterable[Requirement], state: ClusterState) -> Iterator[Token]:
    """Events after which a node may meet all the requirements that did not before, or does not any more.

    Best those of nodes with a label that none has now. Otherwise a node must come, or a label change that is asked for.
    """
    needed = tuple(requirements)
    rare = next((requirement for requirement in needed if _is_rare(requirement, state)), None)
    if rare is not None:
        yield from (("has", anchor) for anchor in anchors(Selector((rare,))))
        return
    yield from (("came", anchor) for anchor in anchors(Selector(needed)))
    for requirement in needed:
        if requirement.operator == "In":
            yield from (("changed", (requirement.key, value)) for value in requirement.values)
        else:
            yield "changed", (requirement.key,)


def _is_rare(requirement: Requirement, state: ClusterState) -> bool:
    """Whether a node that meets it has a label that no node has now, or is one of a few."""
    if requirement.operator not in ("In", "Exists"):
        return False
    if requirement.operator == "In" and requirement.key in (NODE_NAME, HOSTNAME):
        return True
    return requirement.key != NODE_NAME and not state.nodes.has_label(requirement.key)
