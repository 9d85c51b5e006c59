"""The advice of PodTopologySpread and NodePorts: relax or drop a constraint, label a node, do without a host port."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodSpec
from kubesched.api.well_known import is_owned_label
from kubesched.framework.advice import (
    AdvicePlugin,
    RemedyKind,
    RemedyProposal,
    SpecEdit,
    edit_spec,
    propose_for_nearest,
    propose_label,
    propose_spec,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.state.cluster import ClusterState

_NO_LIMIT = 2**31 - 1


class SpreadAdvice(AdvicePlugin):
    """Proposes a greater maxSkew, to drop a constraint, and to label nodes that lack the topology key."""

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        yield from _relaxed_constraints(cycle.pod, cycle.state)
        yield from propose_for_nearest(nearest, lambda node: _labels(cycle.pod, node))


def _labels(pod: Pod, node: Node) -> Iterator[RemedyProposal]:
    hard = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    for key in dict.fromkeys(constraint.topology_key for constraint in hard):
        if key not in node.metadata.labels and not is_owned_label(key):
            yield propose_label(node, key, node.name)


def _relaxed_constraints(pod: Pod, state: ClusterState) -> Iterator[RemedyProposal]:
    for i, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        if constraint.node_taints_policy != "Honor":
            text = (
                f"Leave nodes out of the spread over {constraint.topology_key} whose taints the pod does not tolerate"
            )
            yield propose_spec(
                pod,
                RemedyKind.HONOR_TAINTS,
                f"{text}: nodeTaintsPolicy Honor",
                partial(_with_constraint, i=i, node_taints_policy="Honor"),
                size=i,
                about=f"spread {i}",
            )
        yield _Skew(pod, i, state).proposal(_NO_LIMIT)
        text = f"Let pods spread unevenly over {constraint.topology_key}: whenUnsatisfiable ScheduleAnyway"
        soften = partial(_with_constraint, i=i, when_unsatisfiable="ScheduleAnyway")
        yield propose_spec(pod, RemedyKind.DROP_SPREAD, text, soften, size=i, about=f"spread {i}")


def _with_constraint(spec: PodSpec, i: int, **fields: Any) -> PodSpec:
    constraints = list(spec.topology_spread_constraints)
    constraints[i] = replace(constraints[i], **fields)
    return replace(spec, topology_spread_constraints=tuple(constraints))


class _Skew:
    """Greater values of maxSkew of one constraint."""

    def __init__(self, pod: Pod, i: int, state: ClusterState) -> None:
        self._pod = pod
        self._i = i
        self._constraint = pod.spec.topology_spread_constraints[i]
        self._most = state.pods.size + self._constraint.max_skew + 1

    def proposal(self, skew: int) -> RemedyProposal:
        constraint = self._constraint
        text = f"Raise maxSkew over {constraint.topology_key} from {constraint.max_skew} to {skew}"
        return RemedyProposal(
            RemedyKind.RELAX_SPREAD,
            text,
            (edit_spec(self._pod, lambda spec: _with_constraint(spec, self._i, max_skew=skew)),),
            skew - constraint.max_skew,
            f"spread {self._i}",
            tune=self._tune,
        )

    def _tune(self, helps: Callable[[RemedyProposal], bool]) -> RemedyProposal:
        low = self._constraint.max_skew + 1
        enough = bisect_left(range(low, self._most), True, key=lambda skew: helps(self.proposal(skew)))
        return self.proposal(low + enough)


class PortAdvice(AdvicePlugin):
    """Proposes to do without a host port."""

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        pod = cycle.pod
        for i, container in enumerate((*pod.spec.containers, *pod.spec.init_containers)):
            for n, port in enumerate(container.ports):
                if port.host_port:
                    text = f"Do without the host port {port.host_port}/{port.protocol or 'TCP'} of {container.name}"
                    edit = _without_port(i, n)
                    yield propose_spec(pod, RemedyKind.DROP_HOST_PORT, text, edit, about=f"port {i} {n}")


def _without_port(i: int, n: int) -> SpecEdit:
    def edit(spec: PodSpec) -> PodSpec:
        containers = [*spec.containers, *spec.init_containers]
        ports = list(containers[i].ports)
        ports[n] = replace(ports[n], host_port=0)
        containers[i] = replace(containers[i], ports=tuple(ports))
        count = len(spec.containers)
        return replace(spec, containers=tuple(containers[:count]), init_containers=tuple(containers[count:]))

    return edit
