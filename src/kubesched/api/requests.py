"""What a pod requests of each resource: containers, init containers, sidecars, overhead, pod level, resizes."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.pod import Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from kubesched.api.quantity import Family, Quantity, parse_quantity, spell
from kubesched.api.selectors import label_key_fault

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

Quantities = dict[str, Quantity]

SCORING_DEFAULTS: Quantities = {CPU: Quantity(100, -3), MEMORY: Quantity(200 * 1024 * 1024)}
"""What scoring assumes of a container that does not say: a pod without requests still uses something."""


def pod_requests(
    pod: Pod,
    *,
    from_status: bool = False,
    pod_level: bool = True,
    pod_level_resize: bool = True,
    defaults: Quantities | None = None,
) -> Quantities:
    """The pod's requests.

    `from_status` takes a resize under way into account (placed pods); `pod_level` lets spec.resources override the sum
    of the containers, `pod_level_resize` a resize of those count; `defaults` stand in for what a container does not
    mention.
    """
    total = _sum_of_containers(pod, from_status, defaults or {})
    if pod_level and pod.spec.resources is not None:
        total.update(_pod_level_requests(pod, pod.spec.resources, from_status and pod_level_resize))
    if pod.spec.overhead:
        _add(total, _parsed(pod.spec.overhead))
    return total


def placed_requests(
    pod: Pod, *, pod_level: bool = True, pod_level_resize: bool = True
) -> tuple[Quantities, Quantities]:
    """What a placed pod takes from its node: the real requests, and the same with scoring's defaults."""

    def requests(defaults: Quantities | None = None) -> Quantities:
        return pod_requests(
            pod, from_status=True, pod_level=pod_level, pod_level_resize=pod_level_resize, defaults=defaults
        )

    real = requests()
    if not (pod_level and sets_pod_level(pod)):
        missing = SCORING_DEFAULTS
    else:
        missing = {name: amount for name, amount in SCORING_DEFAULTS.items() if name not in real}
    return real, requests(missing) if missing else real


def sets_pod_level(pod: Pod) -> bool:
    """Whether spec.resources has requests that count."""
    resources = pod.spec.resources
    return resources is not None and any(_allowed_at_pod_level(name) for name in resources.requests)


def whole(name: str, amount: Quantity) -> int:
    """The integer that is counted for a resource: thousandths of a cpu, whole units of anything else."""
    return amount.milli() if name == CPU else amount.value()


def is_countable(name: str) -> bool:
    """Whether the scheduler keeps account of this resource at all."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def is_scalar(name: str) -> bool:
    """Extended resources, huge pages, attachable volumes, and what lives under kubernetes.io/."""
    return name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name or is_extended(name)


def is_extended(name: str) -> bool:
    """A resource that some vendor defined: `domain/name`, outside kubernetes.io."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key_fault("requests." + name)


def is_sidecar(container: Container) -> bool:
    """Whether an init container keeps running beside the main ones."""
    return container.restart_policy == "Always"


def _sum_of_containers(pod: Pod, from_status: bool, defaults: Quantities) -> Quantities:
    statuses: dict[str, ContainerStatus] = {}
    if from_status:
        both = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        statuses = {status.name: status for status in both if status.resources is not None}
    spec = pod.spec
    if len(spec.containers) == 1 and not spec.init_containers:  # most pods
        only = spec.containers[0]
        return _container_requests(pod, only, statuses.get(only.name), defaults)
    total: Quantities = {}
    for container in spec.containers:
        _add(total, _container_requests(pod, container, statuses.get(container.name), defaults))
    # While the i-th init container runs, so do the sidecars before it; the pod needs the largest such moment.
    sidecars: Quantities = {}
    peak: Quantities = {}
    for container in spec.init_containers:
        if is_sidecar(container):
            own = _container_requests(pod, container, statuses.get(container.name), defaults)
            _add(total, own)
            _add(sidecars, own)
            moment = sidecars
        else:
            moment = _container_requests(pod, container, None, defaults)
            _add(moment, sidecars)
        _raise_to(peak, moment)
    _raise_to(total, peak)
    return total


def _container_requests(
    pod: Pod, container: Container, status: ContainerStatus | None, defaults: Quantities
) -> Quantities:
    requests = _parsed(container.resources.requests)
    if status is not None and status.resources is not None:
        requests = _effective(pod, requests, status.resources, status.allocated_resources)
    for name, amount in defaults.items():
        requests.setdefault(name, amount)
    return requests


def _pod_level_requests(pod: Pod, resources: ResourceRequirements, from_status: bool) -> Quantities:
    wanted = {n: q for n, q in _parsed(resources.requests).items() if _allowed_at_pod_level(n)}
    if not wanted or not from_status or pod.status.resources is None:
        return wanted
    effective = _effective(pod, wanted, pod.status.resources, pod.status.allocated_resources)
    return {name: effective.get(name, Quantity(0)) for name in wanted}


def _effective(pod: Pod, wanted: Quantities, actual: ResourceRequirements, allocated: ResourceList) -> Quantities:
    """A resize counts as the larger of what is wanted and what is held, unless it can never happen on this node."""
    result: Quantities = {} if _resize_is_infeasible(pod) else dict(wanted)
    _raise_to(result, _parsed(actual.requests))
    _raise_to(result, _parsed(allocated))
    return result


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = next((c for c in pod.status.conditions if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _allowed_at_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _parsed(resources: ResourceList) -> Quantities:
    return {name: parse_quantity(text) for name, text in resources.items()}


def _add(total: Quantities, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name].plus(amount) if name in total else amount


def _raise_to(total: Quantities, floor: Mapping[str, Quantity]) -> None:
    for name, amount in floor.items():
        if name not in total or amount.exceeds(total[name]):
            total[name] = amount


def requested_amount(pod: Pod, resource: str, *, pod_level: bool = True) -> int:
    """What the pod requests of a resource, in the units of the node table: thousandths of a cpu, units of others."""
    quantity = pod_requests(pod, pod_level=pod_level).get(resource)
    return 0 if quantity is None else whole(resource, quantity)


def amount_text(resource: str, amount: int) -> str:
    """An amount in the units of the node table, as people write it in manifests."""
    family = Family.BINARY if resource in (MEMORY, EPHEMERAL_STORAGE) else Family.DECIMAL
    return spell(amount * (10**6 if resource == CPU else 10**9), family)
