"""What pods ask for and may use at most, a line per pod and resource: the text of /metrics/resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from kubesched.api.pod import Container, Pod, ResourceRequirements
from kubesched.api.quantity import Quantity
from kubesched.api.requests import pod_requests
from kubesched.daemon.metrics.family import escaped
from kubesched.state.cluster import ClusterState

_FAMILIES = {
    "kube_pod_resource_request": "[STABLE] What pods ask for, by pod and resource, and in which unit.",
    "kube_pod_resource_limit": "[STABLE] What pods may use at most, by pod and resource, and in which unit.",
}
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


class _Amount(NamedTuple):
    """The end of a line, which is the same for all equivalent pods."""

    family: str
    text: str


def resource_lines(pods: Iterable[Pod], state: ClusterState) -> Iterator[str]:
    """Lines in Prometheus' text format, all of one family together. Finished pods hold nothing."""
    limits = []
    yield from _header("kube_pod_resource_request")
    for pod in pods:
        if pod.spec.node_name and pod.is_finished:
            continue
        labels = _labels(pod)
        for amount in state.facts(pod).without_node_names.derived(_amounts_of, pod):
            line = f"{amount.family}{{{labels},{amount.text}\n"
            if amount.family == "kube_pod_resource_request":
                yield line
            else:
                limits.append(line)
    yield from _header("kube_pod_resource_limit")
    yield from limits


def _header(family: str) -> tuple[str, str]:
    return f"# HELP {family} {_FAMILIES[family]}\n", f"# TYPE {family} gauge\n"


def _labels(pod: Pod) -> str:
    priority = "" if pod.spec.priority is None else pod.spec.priority
    names = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "node": pod.spec.node_name,
        "scheduler": escaped(pod.spec.scheduler_name),
        "priority": priority,
    }
    return ",".join(f'{label}="{value}"' for label, value in names.items())


def _amounts_of(pod: Pod) -> tuple[_Amount, ...]:
    totals = {"kube_pod_resource_request": pod_requests(pod), "kube_pod_resource_limit": _limits(pod)}
    return tuple(
        _Amount(family, f'resource="{escaped(name)}",unit="{_unit(name)}"}} {_number(amount)}')
        for family, amounts in totals.items()
        for name, amount in amounts.items()
        if amount.amount
    )


def _limits(pod: Pod) -> dict[str, Quantity]:
    """Limits add up as requests do; the overhead counts only for what is limited."""
    spec = replace(
        pod.spec,
        containers=tuple(map(_with_limits, pod.spec.containers)),
        init_containers=tuple(map(_with_limits, pod.spec.init_containers)),
        resources=None if pod.spec.resources is None else ResourceRequirements(requests=pod.spec.resources.limits),
        overhead={},
    )
    limited = pod_requests(replace(pod, spec=spec))
    overhead = {name: text for name, text in pod.spec.overhead.items() if name in limited}
    return pod_requests(replace(pod, spec=replace(spec, overhead=overhead)))


def _with_limits(container: Container) -> Container:
    return replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def _unit(name: str) -> str:
    if name.startswith("hugepages-"):
        return "bytes"
    return "integer" if name.startswith("attachable-volumes-") else _UNITS.get(name, "")


def _number(amount: Quantity) -> str:
    return f"{amount.amount * 10.0**amount.scale:.15g}"
