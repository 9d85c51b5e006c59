"""Nearest misses: the nodes on which least is in the way, and what it is, in numbers where there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.requests import pod_requests
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from kubesched.plugins.node_resources.fit import NodeResourcesFit
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.questions.remedies.node_options import missing_labels
from kubesched.questions.remedies.pod_options import taint_text, untolerated
from kubesched.questions.remedies.requests import requested, spelled
from kubesched.simulate.explanation import NodeVerdict, Refusal
from kubesched.state.cluster import ClusterState

MOST = 3


@dataclass(frozen=True, slots=True)
class Lack:
    """What a node has too little of."""

    resource: str
    amount: str


@dataclass(frozen=True, slots=True)
class Miss:
    """A node that almost fits."""

    node: str
    text: str
    """What is in the way: `lacks 200m cpu`."""
    lacking: tuple[Lack, ...] = ()


def nearest_misses(verdicts: Sequence[NodeVerdict], pod: Pod, state: ClusterState) -> tuple[Miss, ...]:
    """The few nodes that come closest, the nearest first."""
    finder = _Finder(pod, state)
    missed = [verdict for verdict in verdicts if verdict.refusal is not None]
    return tuple(finder.miss(verdict) for verdict in sorted(missed, key=finder.distance)[:MOST])


class _Finder:
    def __init__(self, pod: Pod, state: ClusterState) -> None:
        self._pod = pod
        self._state = state
        self._wanted = {
            name: amount
            for name in pod_requests(pod, pod_level=state.features.pod_level_resources)
            if (amount := requested(pod, name, pod_level=state.features.pod_level_resources)) > 0
            and name in state.nodes.resources
        }
        self._words: dict[str, Callable[[Node], str]] = {
            NodeResourcesFit.name: self._shortage,
            TaintToleration.name: self._taints,
            NodeUnschedulable.name: lambda node: "is cordoned",
            NodeAffinityPlugin.name: self._labels,
        }

    def distance(self, verdict: NodeVerdict) -> tuple[int, float, str]:
        """By the number of objections; of nodes without room by the share of the request that they lack."""
        objections = _objections(verdict)
        lack = 0.0
        if any(refusal.plugin == NodeResourcesFit.name for refusal in objections):
            shortage = list(self._lacking(verdict.node))
            lack = sum(amount / self._wanted[name] for name, amount in shortage) or 1.0
        return len(objections), lack, verdict.node

    def miss(self, verdict: NodeVerdict) -> Miss:
        node = self._state.nodes.node(self._state.nodes.row_of[verdict.node])
        texts: list[str] = []
        lacking: tuple[Lack, ...] = ()
        for refusal in _objections(verdict):
            words = self._words.get(refusal.plugin)
            texts.append((words(node) if words is not None else "") or _reason(refusal))
            if refusal.plugin == NodeResourcesFit.name:
                lacking = tuple(Lack(name, spelled(name, amount)) for name, amount in self._lacking(verdict.node))
        return Miss(verdict.node, "; ".join(texts), lacking)

    def _lacking(self, name: str) -> Iterator[tuple[str, int]]:
        table = self._state.nodes
        row = table.row_of[name]
        for resource, wanted in self._wanted.items():
            column = table.resources[resource]
            lack = wanted - int(table.allocatable[column, row]) + int(table.requested[column, row])
            if lack > 0:
                yield resource, min(lack, wanted)

    def _shortage(self, node: Node) -> str:
        lacking = [f"{spelled(name, amount)} {name}" for name, amount in self._lacking(node.name)]
        row = self._state.nodes.row_of[node.name]
        if self._state.nodes.pod_count[row] >= self._state.nodes.allowed_pods[row]:
            return f"has its {self._state.nodes.allowed_pods[row]} pods" + (
                f", and lacks {', '.join(lacking)}" if lacking else ""
            )
        return f"lacks {', '.join(lacking)}" if lacking else ""

    def _taints(self, node: Node) -> str:
        return f"has the taint {', '.join(map(taint_text, untolerated(self._pod, node.spec.taints, self._state)))}"

    def _labels(self, node: Node) -> str:
        labels = [f"{key}={value}" for key, value in missing_labels(self._pod, node)]
        return f"lacks the label {' and '.join(labels)}" if labels else ""


def _objections(verdict: NodeVerdict) -> tuple[Refusal, ...]:
    assert verdict.refusal is not None
    return (verdict.refusal, *verdict.also)


def _reason(refusal: Refusal) -> str:
    return refusal.text.removeprefix("node(s) ") or refusal.plugin
