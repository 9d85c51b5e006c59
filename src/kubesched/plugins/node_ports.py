"""NodePorts: two pods cannot claim one port of a node."""

from __future__ import annotations

from collections.abc import Hashable, Set

import numpy as np

from kubesched.api.pod import Pod
from kubesched.framework.advice import NodeShortfall
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unschedulable
from kubesched.plugins.advice.pods import PortAdvice
from kubesched.plugins.shared.hinting import has_node, queue_if, waits_for, waits_for_pods
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64
from kubesched.state.facts import HostPort
from kubesched.state.pods import PlacedPod

TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")
ANY_ADDRESS = "0.0.0.0"


class NodePorts(PreFilterPlugin, FilterPlugin, PortAdvice):
    """Rejects nodes where a wanted host port is taken."""

    name = "NodePorts"
    pre_filter_reads = Reads(PodFields.SPEC, Scope.NOTHING)
    filter_reads = Reads(PodFields.SPEC, Scope.NODE)

    def events_to_register(self) -> tuple[Interest, ...]:
        release = self.context.features.release
        pods = waits_for_pods(release, placed=Action.DELETE, placed_hint=_after_pod_left)
        return *pods, waits_for(Kind.NODE, Action.ADD)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.facts.ports else SKIP

    def sign(self, cycle: Cycle) -> Hashable:
        return cycle.facts.ports

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        taken = nodes.none()
        for wanted in cycle.facts.ports:
            for i, addresses in nodes.ports_in_use(wanted.protocol, wanted.port):
                taken[i] |= _clash(wanted.ip, addresses)
        return self.reject(taken, TAKEN)

    def capacity(self, cycle: Cycle, nodes: Nodes) -> Int64:
        room: Int64 = (self.filter(cycle, nodes) == 0).astype(np.int64)
        return room

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        taken = {
            f"{mine.port}/{mine.protocol}": each.pod.key
            for mine in cycle.facts.ports
            for each in node.pods
            if any(_is_same_port(mine, theirs) for theirs in each.facts.ports)
        }
        words = ", ".join(f"its port {port} to {pod}" for port, pod in taken.items())
        return NodeShortfall(f"gave {words}") if words else None

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        return any(_is_same_port(mine, theirs) for mine in cycle.facts.ports for theirs in pod.facts.ports)


def _clash(wanted: str, addresses: Set[str]) -> bool:
    """Whether an address is among those where a port is in use.

    0.0.0.0 is every address; "::" is, to kube-scheduler, an address like any other.
    """
    return wanted == ANY_ADDRESS or wanted in addresses or ANY_ADDRESS in addresses


def _after_pod_left(pod: Pod, old: Pod, new: None, state: ClusterState) -> Hint:
    """The pod that left had a port which this one wants."""
    freed = state.facts(old).ports if has_node(old) else ()
    return queue_if(any(_is_same_port(mine, theirs) for mine in state.facts(pod).ports for theirs in freed))


def _is_same_port(mine: HostPort, theirs: HostPort) -> bool:
    return (mine.protocol, mine.port) == (theirs.protocol, theirs.port) and _clash(mine.ip, {theirs.ip})
