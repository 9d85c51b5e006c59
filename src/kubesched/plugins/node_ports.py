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
        for port in cycle.facts.ports:
            for i, addresses in nodes.ports_in_use(port.protocol, port.port):
                taken[i] |= _clash(port.ip, addresses)
        return self.reject(taken, TAKEN)

    def capacity(self, cycle: Cycle, nodes: Nodes) -> Int64:
        room: Int64 = (self.filter(cycle, nodes) == 0).astype(np.int64)
        return room

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        pod_of_port = {
            f"{own.port}/{own.protocol}": placed.pod.key
            for own in cycle.facts.ports
            for placed in node.pods
            if any(_is_same_port(own, other) for other in placed.facts.ports)
        }
        ports = ", ".join(f"its port {port} to {pod}" for port, pod in pod_of_port.items())
        return NodeShortfall(f"gave {ports}") if ports else None

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        return any(_is_same_port(own, other) for own in cycle.facts.ports for other in pod.facts.ports)


def _clash(address: str, addresses: Set[str]) -> bool:
    """Whether an address is among those where a port is in use.

    0.0.0.0 is every address; "::" is, to kube-scheduler, an address like any other.
    """
    return address == ANY_ADDRESS or address in addresses or ANY_ADDRESS in addresses


def _after_pod_left(pod: Pod, old: Pod, new: None, state: ClusterState) -> Hint:
    """The pod that left had a port which this one wants."""
    freed = state.facts(old).ports if has_node(old) else ()
    return queue_if(any(_is_same_port(own, other) for own in state.facts(pod).ports for other in freed))


def _is_same_port(port: HostPort, other: HostPort) -> bool:
    return (port.protocol, port.port) == (other.protocol, other.port) and _clash(port.ip, {other.ip})
