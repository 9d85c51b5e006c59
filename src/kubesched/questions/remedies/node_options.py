"""Changes of nodes that may help: uncordon one, remove a taint from it, give it a label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kubesched.api.affinity import NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod
from kubesched.api.selectors import compile_node_term, node_matches
from kubesched.api.tolerations import UNSCHEDULABLE_TAINT
from kubesched.questions.remedies.pod_options import SYSTEM_TAINTS, taint_text, untolerated
from kubesched.questions.remedies.remedy import Edit, Option, Sort
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int64

_CAN_BE_SET = ("In", "Exists")


def node_options(pod: Pod, state: ClusterState, blocked: Int64, *, most: int) -> Iterator[Option]:
    """Changes of single nodes, those first on which least is in the way; of at most so many nodes."""
    table = state.nodes
    live = np.flatnonzero(table.live[: table.size])
    objections = np.array([bits.bit_count() for bits in blocked[live].tolist()], dtype=np.int64)
    nearest = live[np.argsort(objections, kind="stable")].tolist()
    shown = 0
    for place, row in enumerate(nearest):
        node = table.node(row)
        options = list(_options(pod, node, state, place / len(nearest)))
        yield from options
        shown += bool(options)
        if shown >= most:
            return


def _options(pod: Pod, node: Node, state: ClusterState, size: float) -> Iterator[Option]:
    keeping = untolerated(pod, node.spec.taints, state)
    if node.spec.unschedulable or _is_cordon(keeping):
        yield Option(Sort.UNCORDON, f"Uncordon {node.name}", (Edit(node, uncordoned),), size, f"cordon {node.name}")
    for taint in keeping:
        if taint.key == UNSCHEDULABLE_TAINT.key:
            continue
        about = f"taint {node.name} {taint_text(taint)}"
        text = f"Remove the taint {taint_text(taint)} from {node.name}"
        if taint.key.startswith(SYSTEM_TAINTS):
            text = f"Get {node.name} rid of {taint_text(taint)}, which says how the node is"
        yield Option(Sort.REMOVE_TAINT, text, (Edit(node, _Untainted(taint)),), size, about)
    for key, value in missing_labels(pod, node):
        text = f"Label {node.name} with {key}={value}"
        yield Option(Sort.LABEL_NODE, text, (Edit(node, _Labelled(key, value)),), size, f"label {node.name} {key}")


def _is_cordon(taints: Sequence[Taint]) -> bool:
    return any(taint.key == UNSCHEDULABLE_TAINT.key for taint in taints)


def uncordoned(node: Node) -> Node:
    """The node, open again: the taint goes with the mark."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT.key)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


class _Untainted:
    def __init__(self, taint: Taint) -> None:
        self._taint = taint

    def __call__(self, node: Node) -> Node:
        taints = tuple(taint for taint in node.spec.taints if taint != self._taint)
        return replace(node, spec=replace(node.spec, taints=taints))


class _Labelled:
    def __init__(self, key: str, value: str) -> None:
        self._labels = {key: value}

    def __call__(self, node: Node) -> Node:
        return replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **self._labels}))


def missing_labels(pod: Pod, node: Node) -> Iterator[tuple[str, str]]:
    """Labels that the pod's node selector and node affinity ask for, and that the node does not have."""
    labels = node.metadata.labels
    wanted = dict.fromkeys(item for item in pod.spec.node_selector.items() if labels.get(item[0]) != item[1])
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required else ():
        for condition in term.match_expressions:
            if condition.operator in _CAN_BE_SET and not _meets(condition, node):
                wanted[condition.key, condition.values[0] if condition.values else "true"] = None
    hard = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    yield from wanted
    yield from ((key, node.name) for key in dict.fromkeys(c.topology_key for c in hard) if key not in labels)


def _meets(condition: NodeSelectorRequirement, node: Node) -> bool:
    return node_matches((compile_node_term(NodeSelectorTerm(match_expressions=(condition,))),), node)
