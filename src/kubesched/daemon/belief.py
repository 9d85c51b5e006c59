"""What the scheduler believes, held against what the API server says: every difference is told, and repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubesched.api.change import Change
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.scheduler.scheduler import Scheduler
from kubesched.state.pods import PlacedPod


class Difference(NamedTuple):
    """One object about which belief and truth do not agree."""

    kind: str
    name: str
    what: str


def compared(scheduler: Scheduler, nodes: Mapping[str, Node], pods: Mapping[str, Pod]) -> list[Difference]:
    """All differences. Pods that are being bound are ahead of the truth, and no difference."""
    return [*_nodes(scheduler, nodes), *_pods(scheduler, pods)]


def repaired(scheduler: Scheduler, nodes: Mapping[str, Node], pods: Mapping[str, Pod]) -> list[Difference]:
    """The differences there were; the scheduler has been told the truth as if the watch had."""
    found = compared(scheduler, nodes, pods)
    for difference in found:
        if difference.kind == "Node":
            _correct_node(scheduler, difference.name, nodes.get(difference.name))
        else:
            _correct_pod(scheduler, difference.name, pods.get(difference.name))
    return found


def _nodes(scheduler: Scheduler, nodes: Mapping[str, Node]) -> Iterator[Difference]:
    table = scheduler.state.nodes
    for name, node in nodes.items():
        row = table.row_of.get(name)
        if row is None or not table.live[row]:
            yield Difference("Node", name, "not known")
        elif table.node(row) != node:
            yield Difference("Node", name, "known in another version")
    for name, row in table.row_of.items():
        if table.live[row] and name not in nodes:
            yield Difference("Node", name, "known but gone")


def _pods(scheduler: Scheduler, pods: Mapping[str, Pod]) -> Iterator[Difference]:
    for key, pod in pods.items():
        known = scheduler.pods.get(key)
        if known is None:
            yield Difference("Pod", key, "not known")
        elif known.uid != pod.uid:
            yield Difference("Pod", key, "known as another pod of that name")
        elif known.spec.node_name != pod.spec.node_name:
            yield Difference("Pod", key, f'known on "{known.spec.node_name}", is on "{pod.spec.node_name}"')
        elif pod.spec.node_name and _node_of(scheduler, pod) != pod.spec.node_name:
            yield Difference("Pod", key, f'not counted on "{pod.spec.node_name}"')
    for key in scheduler.pods:
        if key not in pods:
            yield Difference("Pod", key, "known but gone")
    for placed in scheduler.state.pods.at:
        if placed is not None and not placed.assumed and placed.pod.key not in pods and _is_stray(scheduler, placed):
            yield Difference("Pod", placed.pod.key, "counted but gone")


def _is_stray(scheduler: Scheduler, placed: PlacedPod) -> bool:
    """Counted on a node though the scheduler does not even know it: the lines above did not find it."""
    return placed.pod.key not in scheduler.pods


def _node_of(scheduler: Scheduler, pod: Pod) -> str:
    placed = scheduler.state.placed(pod)
    return "" if placed is None else scheduler.state.nodes.names[placed.row]


def _correct_node(scheduler: Scheduler, name: str, truth: Node | None) -> None:
    table = scheduler.state.nodes
    row = table.row_of.get(name)
    known = table.node(row) if row is not None and table.live[row] else None
    if known is not None or truth is not None:
        scheduler.handle(Change(known, truth))


def _correct_pod(scheduler: Scheduler, key: str, truth: Pod | None) -> None:
    known = scheduler.pods.get(key)
    stray = next((p.pod for p in scheduler.state.pods.at if p is not None and p.pod.key == key), None)
    if truth is None:
        gone = known or stray
        if gone is not None:
            scheduler.handle(Change(old=gone))
    elif known == truth:
        scheduler.state.apply(truth)  # known, but not counted
    else:
        scheduler.handle(Change(known, truth))
