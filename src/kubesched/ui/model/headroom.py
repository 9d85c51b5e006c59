"""Headroom: how many more pods like those that run or wait would fit, by what nodes have left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from kubesched.state.columns import Bool, Int64
from kubesched.state.facts import PodFacts
from kubesched.state.pods import PlacedPod
from kubesched.ui.model.observed import ObservedCluster, one_more

_SHAPES = 6
_PLENTY = 1_000_000
_UNITS = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_FACTS: Callable[[PlacedPod], PodFacts] = attrgetter("facts")


@dataclass(frozen=True, slots=True)
class WorkloadRoom:
    """How many more of a kind of pod there is room for on the nodes that would take one now.

    By resources and the number of pods alone: what copies do to each other (spread, anti-affinity) is not counted.
    """

    workload: str
    example: str
    running: int
    more: int
    at_least: bool
    """Whether there may be room for more: devices are allocated by search, so only one per node is counted."""
    nodes: int
    """Nodes that would take one."""
    requests: dict[str, str]


class HeadroomModel:
    """Counts room on columns."""

    def __init__(self, observed: ObservedCluster) -> None:
        self._observed = observed

    def rooms(self) -> list[WorkloadRoom]:
        """For the workloads with most pods."""
        placed = [each for each in self._observed.state.pods.at if each is not None]
        counts = Counter(map(_FACTS, placed))
        one = {each.facts: each.pod for each in reversed(placed)}
        common: dict[str, PodFacts] = {}
        for facts, _ in counts.most_common():  # a workload that is being rolled out has pods of two kinds
            common.setdefault(workload_of(one[facts]), facts)
            if len(common) == _SHAPES:
                break
        return [self._room(one[facts], facts, counts[facts]) for facts in common.values()]

    def per_row(self, facts: PodFacts) -> Int64:
        """How many more pods with these facts each row has room for."""
        table = self._observed.state.nodes
        size = table.size
        left: Int64 = np.maximum(table.allowed_pods[:size] - table.pod_count[:size], 0)
        for name, wanted, _ in facts.amounts:
            if wanted > 0:
                resource = table.resources.get(name)
                if resource is None:  # no node offers it: devices serve it, or nothing does
                    return np.zeros(size, dtype=np.int64)
                free = table.allocatable[resource, :size] - table.requested[resource, :size]
                left = np.minimum(left, np.maximum(free, 0) // wanted)
        left[left > _PLENTY] = _PLENTY
        return left

    def requests(self, facts: PodFacts) -> dict[str, str]:
        return {name: rounded_amount(name, amount) for name, amount, _ in facts.amounts if amount}

    def _room(self, pod: Pod, facts: PodFacts, running: int) -> WorkloadRoom:
        fits = self._fitting(pod)
        left = self.per_row(facts)
        nodes = 0 if fits is None else int(np.count_nonzero(fits))
        at_least = nodes > 0 and (bool(pod.spec.resource_claims) or not left[fits].all())
        more = nodes if at_least or fits is None else int(left[fits].sum())
        return WorkloadRoom(workload_of(pod), pod.key, running, more, at_least, nodes, self.requests(facts))

    def _fitting(self, pod: Pod) -> Bool | None:
        """The rows that would take one more; None if no row would."""
        decision = self._observed.decide(one_more(pod))
        outcome = decision.trace.filter_outcome if decision is not None else None
        if outcome is None:
            return None
        state = self._observed.state
        return outcome.feasible[: state.nodes.size] & state.nodes.live[: state.nodes.size]


def workload_of(pod: Pod) -> str:
    """What manages the pod, or the pod itself: `shop/web`. The hash in the name of a ReplicaSet says nothing."""
    owner = pod.metadata.controller
    if owner is None:
        return pod.key
    name = owner.name
    hashed = pod.metadata.labels.get("pod-template-hash")
    if hashed and name.endswith(f"-{hashed}"):
        name = name.removesuffix(f"-{hashed}")
    return f"{pod.namespace}/{name}"


def rounded_amount(resource: str, amount: int) -> str:
    """An amount in the units of the node table, with at most one digit after the point."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for size, unit in _UNITS:
            if abs(amount) >= size:
                return f"{amount / size:.1f}".removesuffix(".0") + unit
    return str(amount)
