"""A pod that requests less of a resource: containers that ask for most give first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.api.pod import Container, Pod, ResourceRequirements
from kubesched.api.quantity import Family, parse_quantity, spell
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar, is_sidecar, pod_requests, whole

_NANO, _NANO_PER_MILLI = 10**9, 10**6
MEBI = 1024 * 1024


def requested(pod: Pod, resource: str, *, pod_level: bool = True) -> int:
    """What the pod requests of a resource, as it is counted: thousandths of a cpu, whole units of anything else."""
    found = pod_requests(pod, pod_level=pod_level).get(resource)
    return 0 if found is None else whole(resource, found)


def spelled(resource: str, amount: int) -> str:
    """So much of a resource, as one would write it."""
    if resource == CPU:
        return spell(amount * _NANO_PER_MILLI, Family.DECIMAL)
    family = Family.BINARY if resource in (MEMORY, EPHEMERAL_STORAGE) else Family.DECIMAL
    return spell(amount * _NANO, family)


def unit_of(resource: str, amount: int) -> int:
    """The steps in which one would write about so much of a resource."""
    return MEBI if resource in (MEMORY, EPHEMERAL_STORAGE) and amount >= MEBI else 1


def with_request(pod: Pod, resource: str, most: int, *, pod_level: bool = True) -> Pod | None:
    """The pod, requesting at most so much; None if it cannot be: the overhead alone is more."""
    spec = pod.spec
    overhead = spec.overhead.get(resource)
    room = most - (0 if overhead is None else whole(resource, parse_quantity(overhead)))
    if room < 0:
        return None
    running = [*spec.containers, *(c for c in spec.init_containers if is_sidecar(c))]
    amounts = _reduced([_amount(c.resources, resource) for c in running], room)
    containers = _written(spec.containers, amounts[: len(spec.containers)], resource)
    sidecars = iter(amounts[len(spec.containers) :])
    beside, init_amounts = 0, []
    for container in spec.init_containers:
        if is_sidecar(container):
            init_amounts.append(next(sidecars))
            beside += init_amounts[-1]
        else:  # runs before the others, beside the sidecars that have started
            init_amounts.append(min(_amount(container.resources, resource), max(0, room - beside)))
    spec = replace(spec, containers=containers, init_containers=_written(spec.init_containers, init_amounts, resource))
    if spec.resources is not None and _amount(spec.resources, resource) > room:
        spec = replace(spec, resources=_with_amount(spec.resources, resource, room))
    reduced = replace(pod, spec=spec)
    return reduced if requested(reduced, resource, pod_level=pod_level) <= most else None


def _amount(resources: ResourceRequirements, resource: str) -> int:
    text = resources.requests.get(resource)
    return 0 if text is None else whole(resource, parse_quantity(text))


def _reduced(amounts: list[int], room: int) -> list[int]:
    """The amounts, taken from the largest until they fit into the room."""
    reduced, excess = list(amounts), sum(amounts) - room
    for i in sorted(range(len(amounts)), key=lambda i: (-amounts[i], i)):
        if excess <= 0:
            break
        taken = min(excess, reduced[i])
        reduced[i] -= taken
        excess -= taken
    return reduced


def _written(containers: Sequence[Container], amounts: Sequence[int], resource: str) -> tuple[Container, ...]:
    return tuple(
        container
        if _amount(container.resources, resource) <= amount
        else replace(container, resources=_with_amount(container.resources, resource, amount))
        for container, amount in zip(containers, amounts)
    )


def _with_amount(resources: ResourceRequirements, resource: str, amount: int) -> ResourceRequirements:
    """Of what cannot be shared out twice, the limit is the request. A request of nothing is none."""
    text = spelled(resource, amount)
    requests = {**resources.requests, resource: text}
    limits = {**resources.limits, resource: text} if is_scalar(resource) else resources.limits
    if amount == 0:
        requests = {name: other for name, other in requests.items() if name != resource}
        limits = {name: other for name, other in limits.items() if name != resource}
    return replace(resources, requests=requests, limits=limits)
