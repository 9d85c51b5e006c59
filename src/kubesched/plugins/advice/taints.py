"""The advice of TaintToleration and NodeUnschedulable: tolerate a taint, remove it from a node, uncordon a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod, Toleration
from kubesched.api.tolerations import KEEPS_AWAY, UNSCHEDULABLE_TAINT, tolerates_any_way
from kubesched.framework.advice import (
    AdvicePlugin,
    NodeShortfall,
    ObjectEdit,
    RemedyKind,
    RemedyProposal,
    propose_for_nearest,
    propose_spec,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.state.cluster import ClusterState

SYSTEM_TAINTS = "node.kubernetes.io/"
"""Taints that begin so say how a node is. They go by themselves, and pods had better not tolerate them."""

MOST_TAINTS = 30


def untolerated(pod: Pod, taints: tuple[Taint, ...], state: ClusterState) -> list[Taint]:
    """The taints that keep the pod away."""
    numeric, tolerations = state.features.taint_comparisons, pod.spec.tolerations
    return [t for t in taints if t.effect in KEEPS_AWAY and not tolerates_any_way(tolerations, t, numeric=numeric)]


def taint_text(taint: Taint) -> str:
    """`key=value:effect`, as kubectl writes it."""
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


class TaintAdvice(AdvicePlugin):
    """Names the taints that the pod does not tolerate."""

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall:
        taints = untolerated(cycle.pod, node.node.spec.taints, cycle.state)
        return NodeShortfall(f"has the taint {', '.join(map(taint_text, taints))}")

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        yield from _tolerations(cycle.pod, cycle.state)
        yield from propose_for_nearest(nearest, lambda node: _removed_taints(cycle, node))


def _tolerations(pod: Pod, state: ClusterState) -> Iterator[RemedyProposal]:
    """A toleration per taint that keeps the pod away, those first that are all that keeps it away from most nodes."""
    table = state.nodes
    counts = Counter(table.taint_ids[: table.size][table.live[: table.size]].tolist())
    nodes: Counter[Taint] = Counter()
    for list_id, count in counts.items():
        taints = untolerated(pod, table.taint_lists.values[list_id] or (), state)
        for taint in taints:
            nodes[taint] += count * (1000 if len(taints) == 1 else 1)
    shown = [taint for taint, _ in nodes.most_common() if not taint.key.startswith(SYSTEM_TAINTS)]
    for place, taint in enumerate(shown[:MOST_TAINTS]):
        toleration = Toleration(
            key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect
        )
        yield propose_spec(
            pod,
            RemedyKind.TOLERATE,
            f"Tolerate the taint {taint_text(taint)}",
            lambda spec, toleration=toleration: replace(spec, tolerations=(*spec.tolerations, toleration)),  # type: ignore[misc]
            size=place,
        )


def _removed_taints(cycle: Cycle, node: Node) -> Iterator[RemedyProposal]:
    for taint in untolerated(cycle.pod, node.spec.taints, cycle.state):
        if taint.key == UNSCHEDULABLE_TAINT.key:
            continue
        about = f"taint {node.name} {taint_text(taint)}"
        text = f"Remove the taint {taint_text(taint)} from {node.name}"
        removed: tuple[Taint, ...] = (taint,)
        if taint.key.startswith(SYSTEM_TAINTS):  # with both effects: they come and go together
            state = taint.key.removeprefix(SYSTEM_TAINTS).replace("-", " ")
            text = f"Bring {node.name} back: its taint says {state}"
            about = f"state of {node.name}"
            removed = tuple(other for other in node.spec.taints if other.key == taint.key)
        yield RemedyProposal(RemedyKind.REMOVE_TAINT, text, (_remove_taints(node, removed),), about=about)


def _remove_taints(node: Node, removed: tuple[Taint, ...]) -> ObjectEdit:
    def make(current: Node) -> Node:
        taints = tuple(taint for taint in current.spec.taints if taint not in removed)
        return replace(current, spec=replace(current.spec, taints=taints))

    return ObjectEdit(node, make)


class CordonAdvice(AdvicePlugin):
    """Proposes to uncordon nodes."""

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall:
        return NodeShortfall("is cordoned")

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        yield from propose_for_nearest(nearest, lambda node: _uncordon(cycle, node))


def _uncordon(cycle: Cycle, node: Node) -> Iterator[RemedyProposal]:
    taints = untolerated(cycle.pod, node.spec.taints, cycle.state)
    if node.spec.unschedulable or any(taint.key == UNSCHEDULABLE_TAINT.key for taint in taints):
        edits = (ObjectEdit(node, uncordon),)
        yield RemedyProposal(RemedyKind.UNCORDON, f"Uncordon {node.name}", edits, about=f"cordon {node.name}")


def uncordon(node: Node) -> Node:
    """The node as `kubectl uncordon` leaves it: the taint goes with the mark."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT.key)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
