"""What a pod requests of each resource: containers, init containers, sidecars, overhead, pod level, resizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubesched.api.pod import Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from kubesched.api.quantity import ZERO, Family, Quantity, parse_quantity, spell
from kubesched.api.selectors import label_key_fault

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

Quantities = dict[str, Quantity]

SCORING_DEFAULTS: Quantities = {CPU: Quantity(100, -3), MEMORY: Quantity(200 * 1024 * 1024)}
"""What scoring assumes of a container without requests, which still uses something."""


def pod_requests(
    pod: Pod,
    *,
    from_status: bool = False,
    pod_level: bool = True,
    pod_level_resize: bool = True,
    resize_by_pod: bool = False,
    defaults: Quantities | None = None,
) -> Quantities:
    """The pod's requests.

    `from_status` takes a resize under way into account (placed pods); `pod_level` lets spec.resources override the sum
    of the containers, `pod_level_resize` a resize of those count; `resize_by_pod` as Release has it; `defaults` stand
    in for what a container does not mention.
    """
    if from_status and resize_by_pod:
        total = _largest_sum(pod, pod_level_resize, defaults or {})
    else:
        total = _sum_of_containers(pod, _statuses_of(pod) if from_status else {}, defaults or {})
    if pod_level and pod.spec.resources is not None:
        resized = from_status and pod_level_resize
        total.update(_pod_level_requests(pod, pod.spec.resources, resized, resize_by_pod))
    if pod.spec.overhead:
        _add(total, _parse(pod.spec.overhead))
    return total


def placed_requests(
    pod: Pod, *, pod_level: bool = True, pod_level_resize: bool = True, resize_by_pod: bool = False
) -> tuple[Quantities, Quantities]:
    """What a placed pod takes from its node: the real requests, and the same with scoring's defaults."""

    def requests(defaults: Quantities | None = None) -> Quantities:
        return pod_requests(
            pod,
            from_status=True,
            pod_level=pod_level,
            pod_level_resize=pod_level_resize,
            resize_by_pod=resize_by_pod,
            defaults=defaults,
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


def _statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    both = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {status.name: status for status in both if status.resources is not None}


def _sum_of_containers(pod: Pod, statuses: Mapping[str, ContainerStatus], defaults: Quantities) -> Quantities:
    """The sum over all containers. Those that keep running count with the larger of desired and actual requests."""
    return _most_at_once(
        pod,
        lambda container: _container_requests(pod, container, statuses.get(container.name), defaults),
        lambda container: _container_requests(pod, container, None, defaults),
    )


def _most_at_once(
    pod: Pod, requests: Callable[[Container], Quantities], at_start: Callable[[Container], Quantities]
) -> Quantities:
    """The most that the containers take at any time; `at_start` has the requests of init containers that end."""
    spec = pod.spec
    if len(spec.containers) == 1 and not spec.init_containers:  # most pods
        return requests(spec.containers[0])
    total: Quantities = {}
    for container in spec.containers:
        _add(total, requests(container))
    # While the i-th init container runs, so do the sidecars before it; the pod needs the largest such moment. Resources
    # that a container does not name were needed as much at an earlier moment.
    sidecars: Quantities = {}
    peak: Quantities = {}
    for container in spec.init_containers:
        if is_sidecar(container):
            own = requests(container)
            _add(total, own)
            _add(sidecars, own)
            moment = {name: sidecars[name] for name in own}
        else:
            moment = at_start(container)
            _add(moment, {name: sidecars[name] for name in moment if name in sidecars})
        _raise_to(peak, moment)
    _raise_to(total, peak)
    return total


def _container_requests(
    pod: Pod, container: Container, status: ContainerStatus | None, defaults: Quantities
) -> Quantities:
    requests = _parse(container.resources.requests)
    if status is not None and status.resources is not None:
        requests = _effective(pod, requests, status.resources, status.allocated_resources)
    for name, amount in defaults.items():
        requests.setdefault(name, amount)
    return requests


def _largest_sum(pod: Pod, pod_level: bool, defaults: Quantities) -> Quantities:
    """The largest of desired, allocated and actual requests, each summed up over the containers first.

    With `pod_level`, the pod's own sums in its status go before those.
    """
    infeasible, pod_status = _resize_is_infeasible(pod), pod.status
    statuses = {status.name: status for status in (*pod_status.init_container_statuses, *pod_status.container_statuses)}

    def desired(container: Container) -> ResourceList:
        return container.resources.requests

    def allocated(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        amounts = {} if status is None else status.allocated_resources
        return amounts or ({} if infeasible else desired(container))

    def actual(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        amounts = {} if status is None or status.resources is None else status.resources.requests
        return amounts or allocated(container)

    def total(amounts_of: Callable[[Container], ResourceList]) -> Quantities:
        def requests(container: Container) -> Quantities:
            return {**defaults, **_parse(amounts_of(container))}

        return _most_at_once(pod, requests, requests)

    result: Quantities = {} if infeasible else total(desired)
    own = pod_status.resources.requests if pod_status.resources is not None else {}
    if pod_level and own and pod_status.allocated_resources:
        _raise_to(result, _parse(own))
        _raise_to(result, _parse(pod_status.allocated_resources))
    elif statuses or infeasible:
        _raise_to(result, total(actual))
        _raise_to(result, total(allocated))
    return result


def _pod_level_requests(pod: Pod, resources: ResourceRequirements, from_status: bool, by_pod: bool) -> Quantities:
    desired = {name: amount for name, amount in _parse(resources.requests).items() if _allowed_at_pod_level(name)}
    if not desired or not from_status or pod.status.resources is None:
        return desired
    effective = _effective(pod, desired, pod.status.resources, pod.status.allocated_resources)
    if by_pod:
        return {name: amount for name, amount in effective.items() if _allowed_at_pod_level(name)}
    return {name: effective.get(name, ZERO) for name in desired}


def _effective(pod: Pod, desired: Quantities, actual: ResourceRequirements, allocated: ResourceList) -> Quantities:
    """A resize counts as the larger of what is desired and what is held, unless it can never happen on this node."""
    result: Quantities = {} if _resize_is_infeasible(pod) else dict(desired)
    _raise_to(result, _parse(actual.requests))
    _raise_to(result, _parse(allocated))
    return result


def _resize_is_infeasible(pod: Pod) -> bool:
    conditions = pod.status.conditions
    pending = next((condition for condition in conditions if condition.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _allowed_at_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _parse(resources: ResourceList) -> Quantities:
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
