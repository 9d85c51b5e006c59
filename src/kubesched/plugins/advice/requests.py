"""NodeResourcesFit's advice: what a node lacks, and how much less the pod would have to request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from kubesched.api.pod import Container, Pod, ResourceRequirements
from kubesched.api.quantity import parse_quantity
from kubesched.api.requests import (
    EPHEMERAL_STORAGE,
    MEMORY,
    amount_text,
    is_scalar,
    is_sidecar,
    requested_amount,
    whole,
)
from kubesched.framework.advice import (
    AdvicePlugin,
    MissingResource,
    NodeShortfall,
    ObjectEdit,
    RemedyKind,
    RemedyProposal,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Float

MEBI = 1024 * 1024


class RequestAdvice(AdvicePlugin):
    """Compares what the pod requests with what nodes have left."""

    def distance(self, cycle: Cycle, nodes: Nodes) -> Float:
        """The parts of its requests that the pod would have to give up, summed over resources; 1 for a node that has
        enough of everything but allows no more pods, and 1 more for each resource of which a node never has enough."""
        table, total = cycle.state.nodes, np.zeros(len(nodes))
        for name, amount in _offered_requests(cycle).items():
            column = table.resources[name]
            offered = nodes.take(table.allocatable[column])
            total += np.clip(amount - offered + nodes.take(table.requested[column]), 0, amount) / amount
            total += offered < amount
        total[total == 0] = 1.0
        return total

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        totals, ids = node.totals, cycle.state.nodes.resources
        resources = tuple(
            MissingResource(name, amount_text(name, amount - free))
            for name, amount in _offered_requests(cycle).items()
            if (free := max(totals.allocatable[ids[name]] - totals.requested[ids[name]], 0)) < amount
        )
        amounts = ", ".join(f"{resource.amount} {resource.resource}" for resource in resources)
        if totals.pod_count >= totals.allowed_pods:
            return NodeShortfall(
                f"has its {totals.allowed_pods} pods" + (f", and lacks {amounts}" if amounts else ""), resources
            )
        return NodeShortfall(f"lacks {amounts}", resources) if amounts else None

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        pod_level = cycle.state.features.pod_level_resources
        requests = _requests(cycle)
        for resource in requests:
            if with_request(cycle.pod, resource, 0, pod_level=pod_level) is not None:
                yield _RequestLess(cycle.pod, resource, requests[resource], cycle.state).proposal(0)
        yield from _request_less_of_several(cycle, only_here, self.distance(cycle, only_here))


def _requests(cycle: Cycle) -> dict[str, int]:
    """What the pod requests, by resource, in the units of the node table."""
    return {name: amount for name, amount, _ in cycle.facts.amounts if amount > 0}


def _offered_requests(cycle: Cycle) -> dict[str, int]:
    """The same of resources that some node offers."""
    return {name: amount for name, amount in _requests(cycle).items() if name in cycle.state.nodes.resources}


def _request_less_of_several(cycle: Cycle, only_here: Nodes, distances: Float) -> Iterator[RemedyProposal]:
    """Where more than one resource is missing: request what the nearest node has left."""
    pod, state, requests = cycle.pod, cycle.state, _offered_requests(cycle)
    if not len(only_here) or len(requests) < 2:
        return
    node = only_here.view(int(np.argmin(distances)))
    free = {name: max(node.allocatable(name) - node.requested(name), 0) for name in requests}
    less = {name: amount for name, amount in free.items() if amount < requests[name]}
    if len(less) < 2:
        return
    less = {name: amount - amount % _unit_of(name, amount) for name, amount in less.items()}
    pod_level = state.features.pod_level_resources
    if any(with_request(pod, name, amount, pod_level=pod_level) is None for name, amount in less.items()):
        return
    edits = tuple(_RequestLess(pod, name, requests[name], state).edit(amount) for name, amount in less.items())
    parts = [f"{amount_text(n, amount)} {n} instead of {amount_text(n, requests[n])}" for n, amount in less.items()]
    text = f"Request what {node.name} has left: {', '.join(parts)}"
    kind = RemedyKind.REQUEST_LESS if any(less.values()) else RemedyKind.REQUEST_NONE
    yield RemedyProposal(kind, text, edits, float(len(less)), "requests")


@dataclass(frozen=True)
class _RequestLess:
    """Requests of a resource, from nothing up to what the pod requests."""

    pod: Pod
    resource: str
    requested: int
    state: ClusterState

    def proposal(self, amount: int) -> RemedyProposal:
        resource, requested, edits = self.resource, self.requested, (self.edit(amount),)
        about, tune = f"requests {resource}", self._tune
        if amount == 0:
            return RemedyProposal(RemedyKind.REQUEST_NONE, f"Request no {resource}", edits, 1.0, about, tune)
        less, most = amount_text(resource, requested - amount), amount_text(resource, amount)
        text = f"Request {less} less {resource}: {most} instead of {amount_text(resource, requested)}"
        size = (requested - amount) / requested
        return RemedyProposal(RemedyKind.REQUEST_LESS, text, edits, size, about, tune)

    def edit(self, amount: int) -> ObjectEdit:
        """The pod, requesting no more than that."""
        pod_level = self.state.features.pod_level_resources

        def make(current: Pod) -> Pod:
            reduced = with_request(current, self.resource, amount, pod_level=pod_level)
            assert reduced is not None, "a proposal is made only if the containers can request less"
            return reduced

        return ObjectEdit(self.pod, make)

    def _tune(self, helps: Callable[[RemedyProposal], bool]) -> RemedyProposal:
        """The most that can be requested: what some node has left, unless nominated pods have a say as well."""
        table = self.state.nodes
        column = table.resources.get(self.resource)
        if column is None:
            return self.proposal(0)

        def is_too_much(amount: int) -> bool:
            return not helps(self.proposal(amount))

        amounts_left = (table.allocatable[column] - table.requested[column])[: table.size][table.live[: table.size]]
        free = [0, *np.unique(amounts_left[(amounts_left > 0) & (amounts_left < self.requested)]).tolist()]
        most = free[bisect_left(free, True, lo=1, key=is_too_much) - 1]
        # With nominated pods, and on nodes that are yet to come, other amounts may be the limit.
        if not most or not is_too_much(most + 1):
            most += bisect_left(range(most + 1, self.requested), True, key=is_too_much)
        return self.proposal(most - most % _unit_of(self.resource, most))


# -- pods that request less -------------------------------------------------------------------------------------------


def _unit_of(resource: str, amount: int) -> int:
    """The steps in which people write about so much of a resource."""
    return MEBI if resource in (MEMORY, EPHEMERAL_STORAGE) and amount >= MEBI else 1


def with_request(pod: Pod, resource: str, most: int, *, pod_level: bool = True) -> Pod | None:
    """The pod, requesting at most so much, the largest containers giving up most; None if its overhead is more."""
    spec = pod.spec
    overhead = spec.overhead.get(resource)
    room = most - (0 if overhead is None else whole(resource, parse_quantity(overhead)))
    if room < 0:
        return None
    running = [*spec.containers, *(c for c in spec.init_containers if is_sidecar(c))]
    amounts = _reduce([_amount(c.resources, resource) for c in running], room)
    containers = _with_amounts(spec.containers, amounts[: len(spec.containers)], resource)
    sidecars = iter(amounts[len(spec.containers) :])
    beside, init_amounts = 0, []
    for container in spec.init_containers:
        if is_sidecar(container):
            init_amounts.append(next(sidecars))
            beside += init_amounts[-1]
        else:  # runs before the others, beside the sidecars that have started
            init_amounts.append(min(_amount(container.resources, resource), max(0, room - beside)))
    spec = replace(
        spec, containers=containers, init_containers=_with_amounts(spec.init_containers, init_amounts, resource)
    )
    if spec.resources is not None and _amount(spec.resources, resource) > room:
        spec = replace(spec, resources=_with_amount(spec.resources, resource, room))
    reduced = replace(pod, spec=spec)
    return reduced if requested_amount(reduced, resource, pod_level=pod_level) <= most else None


def _amount(resources: ResourceRequirements, resource: str) -> int:
    text = resources.requests.get(resource)
    return 0 if text is None else whole(resource, parse_quantity(text))


def _reduce(amounts: list[int], room: int) -> list[int]:
    """The amounts, taken from the largest until they fit into the room."""
    reduced, excess = list(amounts), sum(amounts) - room
    for i in sorted(range(len(amounts)), key=lambda i: (-amounts[i], i)):
        if excess <= 0:
            break
        cut = min(excess, reduced[i])
        reduced[i] -= cut
        excess -= cut
    return reduced


def _with_amounts(containers: Sequence[Container], amounts: Sequence[int], resource: str) -> tuple[Container, ...]:
    return tuple(
        container
        if _amount(container.resources, resource) <= amount
        else replace(container, resources=_with_amount(container.resources, resource, amount))
        for container, amount in zip(containers, amounts)
    )


def _with_amount(resources: ResourceRequirements, resource: str, amount: int) -> ResourceRequirements:
    """An extended resource has its request as its limit. A request of 0 is left out."""
    text = amount_text(resource, amount)
    requests = {**resources.requests, resource: text}
    limits = {**resources.limits, resource: text} if is_scalar(resource) else resources.limits
    if amount == 0:
        requests = {name: quantity for name, quantity in requests.items() if name != resource}
        limits = {name: quantity for name, quantity in limits.items() if name != resource}
    return replace(resources, requests=requests, limits=limits)
