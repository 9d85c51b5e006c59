"""The utilization that no policy could exceed: the last line of `simulate`, `compare` and `capacity`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.requests import CPU, PODS, is_extended
from kubesched.config import SchedulerConfiguration
from kubesched.framework.nodes import Nodes
from kubesched.planning import solver
from kubesched.planning.bounds import upper_bound
from kubesched.planning.kinds import ANY_NUMBER, KindReader, Problem, classes_of, free_of, problem_of, without_node
from kubesched.simulate.cluster import ClusterModel

_ROUNDING = 1e-4
"""Reports round shares to this."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most of a resource that can be requested at once, whatever the policy."""

    resource: str
    share: float
    """Of what all nodes offer."""

    def beside(self, reached: float) -> str:
        """In words, with what was reached; empty if the bound does not hold for what was simulated."""
        if reached > self.share + _ROUNDING:
            return ""  # nodes came while time passed: what there was at first says nothing about that
        return f"{reached:.1%} of {self.resource} in use; no policy could exceed {min(self.share, 1.0):.1%}"


def ceilings_of(objects: Iterable[KubeObject], configuration: SchedulerConfiguration) -> tuple[Ceiling, ...]:
    """Of each extended resource that pods request, or of cpu if there is none; nothing without a solver.

    Every pod may go anywhere that filters on node objects allow, those that run already as well: a policy could have
    put them there, or have evicted them.
    """
    if not solver.is_installed():
        return ()
    cluster = ClusterModel.with_missing_pods(objects, configuration)
    pods = [pod for pod in cluster.pods.values() if not pod.is_finished]
    reader = KindReader(cluster)
    astray = {pod.key: cluster.state.facts(pod) for pod in pods if _stands_where_it_may_not(cluster, reader, pod)}
    kinds = reader.kinds_of(without_node(pod) for pod in pods if pod.key not in astray)
    names = {name for kind in kinds for name, _ in kind.amounts}
    names |= {name for facts in astray.values() for name, amount, _ in facts.amounts if amount}
    resources = (*sorted(names), PODS)
    free = free_of(cluster, resources, pods)
    live = cluster.state.nodes.live[: len(free)]
    problem = Problem(resources, kinds, classes_of(kinds, free, live))
    extended = [name for name in resources if is_extended(name)]
    nodes = Nodes(cluster.state)
    ceilings = []
    for name in extended or [name for name in resources if name == CPU]:
        offered = int(nodes.allocatable(name)[live].sum())
        if offered:
            values = problem.requests[:, resources.index(name)].astype(np.float64)
            more = sum(facts.amount_of(name) for facts in astray.values())
            scale = float(values.max(initial=1.0))
            ceilings.append(Ceiling(name, (upper_bound(problem, values / scale).value * scale + more) / offered))
    return tuple(ceilings)


def highest(ceilings: Iterable[Iterable[Ceiling]]) -> list[Ceiling]:
    """The highest of each resource: other filters may let more pods pass."""
    shares: dict[str, float] = {}
    for ceiling in chain.from_iterable(ceilings):
        shares[ceiling.resource] = max(ceiling.share, shares.get(ceiling.resource, 0.0))
    return [Ceiling(resource, share) for resource, share in shares.items()]


def lines_beside(ceilings: Iterable[Ceiling], reached: Mapping[str, float]) -> list[str]:
    """A line for each ceiling; `reached` are shares by the name of the resource."""
    lines = (ceiling.beside(reached[ceiling.resource]) for ceiling in ceilings if ceiling.resource in reached)
    return [line for line in lines if line]


def most_copies(cluster: ClusterModel, pod: Pod) -> int | None:
    """No policy places more copies of the pod beside what runs: what fits on each node if only room is looked at.

    None if room is no limit.
    """
    problem = problem_of(cluster, [pod])
    most = int((problem.nodes * problem.most).sum()) if len(problem.kinds) else 0
    return most if most < ANY_NUMBER else None


def _stands_where_it_may_not(cluster: ClusterModel, reader: KindReader, pod: Pod) -> bool:
    """Whether filters would now reject the pod on its node, or its scheduler has no profile here."""
    if not pod.spec.node_name:
        return False
    row = cluster.state.nodes.row_of.get(pod.spec.node_name)
    if row is None or not cluster.engine.knows(pod.spec.scheduler_name):
        return True
    return not reader.possible_rows(without_node(pod))[row]
