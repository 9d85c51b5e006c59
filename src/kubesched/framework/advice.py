"""What explanations ask of plugins: how near a rejected node comes, what it is short of, and which changes may help.

No attempt asks any of this. A plugin proposes changes; `ask/remedies` tries each of them on the engine, and only
changes after which the pod finds a node are shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodSpec
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import Plugin
from kubesched.state.columns import Float

MOST_NODES = 30
"""Plugins propose changes of single nodes for at most so many nodes: each proposal costs a trial."""


@dataclass(frozen=True, slots=True)
class MissingResource:
    """How much of a resource a node lacks."""

    resource: str
    amount: str


class NodeShortfall(NamedTuple):
    """Why a plugin rejects a node, as a phrase with the node as its subject: `lacks 200m cpu`."""

    text: str
    resources: tuple[MissingResource, ...] = ()


class RemedyKind(Enum):
    """The kinds of remedies, the least harm first: answers list them in this order."""

    PREEMPTION = "preemption"
    WAIT_FOR_PODS = "waitForPods"
    REMOVE_GATES = "removeSchedulingGates"
    PROVIDE_VOLUME = "provideVolume"
    RELEASE_CLAIM = "releaseClaim"
    UNCORDON = "uncordon"
    REQUEST_LESS = "requestLess"
    FEWER_DEVICES = "requestFewerDevices"
    OTHER_LABEL_VALUE = "otherLabelValue"
    HONOR_TAINTS = "honorTaints"
    TOLERATE = "tolerate"
    RELAX_SPREAD = "relaxSpread"
    REMOVE_TAINT = "removeTaint"
    LABEL_NODE = "labelNode"
    OTHER = "other"
    """What a plugin proposes that is none of these."""
    ADD_NODE = "addNode"
    DROP_NODE_SELECTOR = "dropNodeSelector"
    DROP_NODE_AFFINITY = "dropNodeAffinity"
    DROP_SPREAD = "dropSpread"
    DROP_ANTI_AFFINITY = "dropPodAntiAffinity"
    DROP_AFFINITY = "dropPodAffinity"
    DROP_HOST_PORT = "dropHostPort"
    EVICT = "evictPods"
    REQUEST_NONE = "requestNone"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {kind: rank for rank, kind in enumerate(RemedyKind)}


class ObjectEdit(NamedTuple):
    """A change of one API object: `make` is given the object, None for a new one, and returns None to delete it."""

    obj: KubeObject | None
    make: Callable[[Any], KubeObject | None]


def created(obj: KubeObject) -> ObjectEdit:
    """The edit that creates an object."""
    return ObjectEdit(None, lambda _: obj)


@dataclass(frozen=True, eq=False)
class RemedyProposal:
    """A change that may help a pod, not tried yet."""

    kind: RemedyKind
    text: str
    """What to do, in the imperative: `Uncordon node-1`."""
    edits: tuple[ObjectEdit, ...]
    size: float = 0.0
    """Of proposals of one kind the smaller ones are shown first."""
    about: str = ""
    """What it changes; the text if empty. Two proposals about the same are never combined."""
    tune: Callable[[Callable[[RemedyProposal], bool]], RemedyProposal] | None = None
    """For a change that has a degree: given a function that tries a proposal, the mildest one that still helps."""

    @property
    def subject(self) -> str:
        return self.about or self.text

    @property
    def cost(self) -> tuple[int, float]:
        return self.kind.rank, self.size


SpecEdit = Callable[[PodSpec], PodSpec]


def edit_spec(pod: Pod, edit: SpecEdit) -> ObjectEdit:
    """The edit that gives the pod another spec."""
    return ObjectEdit(pod, lambda current: replace(current, spec=edit(current.spec)))


def propose_spec(
    pod: Pod, kind: RemedyKind, text: str, edit: SpecEdit, *, size: float = 0.0, about: str = ""
) -> RemedyProposal:
    """A proposal to give the pod another spec."""
    return RemedyProposal(kind, text, (edit_spec(pod, edit),), size, about)


def propose_label(node: Node, key: str, value: str) -> RemedyProposal:
    """A proposal to label a node."""

    def make(current: Node) -> Node:
        labels = {**current.metadata.labels, key: value}
        return replace(current, metadata=replace(current.metadata, labels=labels))

    text = f"Label {node.name} with {key}={value}"
    return RemedyProposal(RemedyKind.LABEL_NODE, text, (ObjectEdit(node, make),), about=f"label {node.name} {key}")


def propose_for_nearest(
    nearest: Nodes, proposals: Callable[[Node], Iterable[RemedyProposal]]
) -> Iterator[RemedyProposal]:
    """Proposals to change single nodes, of a few nodes only; the nearer the node, the smaller the change."""
    node_count = 0
    for place in range(len(nearest)):
        node_proposals = list(proposals(nearest.node(place)))
        yield from (dataclasses.replace(proposal, size=place / len(nearest)) for proposal in node_proposals)
        node_count += bool(node_proposals)
        if node_count >= MOST_NODES:
            return


class AdvicePlugin(Plugin):
    """Says more about the nodes that it rejects than the reason of the rejection. Every method may be left out."""

    def distance(self, cycle: Cycle, nodes: Nodes) -> Float:
        """Per node how far it is from passing this plugin, which rejects all of them: from 0 to 1 is usual, the part
        of the demand that is not met. Nearest misses are ranked by it, after the number of plugins that reject."""
        return np.ones(len(nodes))

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        """Why this plugin rejects a node, in words and amounts; None if the reason of the rejection says it all."""
        return None

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterable[RemedyProposal]:
        """Changes that may help the pod of the cycle: of `cycle.pod`, of nodes, or of other objects.

        `nearest` are all live nodes, those first that fewest plugins reject; `only_here` those that this plugin alone
        rejects. Asked once, whether the plugin rejects nodes or not: it may be in the way once others are not.
        """
        return ()
