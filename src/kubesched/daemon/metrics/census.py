"""Metrics that are counted only on a scrape: pods in the queue, the size of the cache, and what each pod requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from msgspec.structs import replace

from kubesched.api.pod import Container, Pod, ResourceRequirements
from kubesched.api.quantity import Quantity
from kubesched.api.requests import pod_requests
from kubesched.daemon.metrics.registry import MetricsRegistry, escaped
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods
from kubesched.scheduler.scheduler import Scheduler
from kubesched.state.cluster import ClusterState


def _count_rejections(place: Collection[QueuedPod]) -> Iterator[tuple[int, Collection[str], str, bool]]:
    """Pods of one place of the queue that the same plugins rejected: how many, the plugins, the profile, whether gated.

    Pods of an unschedulable class are counted together.
    """
    if isinstance(place, UnschedulablePods):
        for pending, members in place.classes():
            yield len(members), pending.rejectors, pending.scheduler_name, bool(pending.gating_plugin)
        return
    for queued in place:
        if queued.unschedulable_plugins or queued.pending_plugins:
            yield 1, queued.rejectors, queued.pod.spec.scheduler_name, queued.is_gated


class Census:
    """Counts a scheduler's queue and state before every scrape."""

    def __init__(self, registry: MetricsRegistry, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._pending = registry.family("scheduler_pending_pods")
        self._in_flight = registry.family("scheduler_inflight_events")
        self._sizes = registry.family("scheduler_cache_size")
        self._rejected = registry.family("scheduler_unschedulable_pods")
        registry.on_scrape(self.take)

    def take(self) -> None:
        """Count everything."""
        self._count_pending()
        self._count_in_flight()
        self._count_cached()

    def _count_pending(self) -> None:
        gated, rejections = 0, Counter[tuple[str, str]]()
        for name, places in self._scheduler.queue.places().items():
            self._pending.child(name).set(sum(len(place) for place in places))
            for pods, plugins, profile, is_gated in chain.from_iterable(map(_count_rejections, places)):
                gated += pods if is_gated else 0
                for plugin in plugins:
                    rejections[plugin, profile] += pods
        self._pending.child("unschedulable").inc(-gated)
        self._pending.child("gated").set(gated)
        self._rejected.clear()
        for (plugin, profile), pods in rejections.items():
            self._rejected.child(plugin, profile).set(pods)

    def _count_in_flight(self) -> None:
        labels = self._scheduler.queue.in_flight_events()
        self._in_flight.clear()
        for event, count in Counter("PodPopped" if label.startswith("pod:") else label for label in labels).items():
            self._in_flight.child(event).set(count)

    def _count_cached(self) -> None:
        state = self._scheduler.state
        placed = [pod for row in state.pods.on_row for pod in row]
        self._sizes.child("nodes").set(state.nodes.live_count)
        self._sizes.child("pods").set(len(placed))
        self._sizes.child("assumed_pods").set(sum(pod.assumed for pod in placed))


_REQUEST, _LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}


def resource_lines(pods: Iterable[Pod], state: ClusterState) -> Iterator[str]:
    """Lines in Prometheus' text format, all of one family together. Finished pods hold nothing."""
    limits = []
    yield from _header(_REQUEST, "What pods ask for, by pod and resource, and in which unit.")
    for pod in pods:
        if pod.spec.node_name and pod.is_finished:
            continue
        labels = _labels(pod)
        for family, amount in state.facts(pod).without_node_names.derived(_amounts_of, pod):
            line = f"{family}{{{labels},{amount}\n"
            if family == _REQUEST:
                yield line
            else:
                limits.append(line)
    yield from _header(_LIMIT, "What pods may use at most, by pod and resource, and in which unit.")
    yield from limits


def _header(family: str, help: str) -> tuple[str, str]:
    return f"# HELP {family} [STABLE] {help}\n", f"# TYPE {family} gauge\n"


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


def _amounts_of(pod: Pod) -> tuple[tuple[str, str], ...]:
    """By family, the ends of a pod's lines, which are the same for all equivalent pods."""
    totals = {_REQUEST: pod_requests(pod), _LIMIT: _limits(pod)}
    return tuple(
        (family, f'resource="{escaped(name)}",unit="{_unit(name)}"}} {_number(amount)}')
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
    limits = pod_requests(replace(pod, spec=spec))
    overhead = {name: text for name, text in pod.spec.overhead.items() if name in limits}
    return pod_requests(replace(pod, spec=replace(spec, overhead=overhead)))


def _with_limits(container: Container) -> Container:
    return replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def _unit(name: str) -> str:
    if name.startswith("hugepages-"):
        return "bytes"
    return "integer" if name.startswith("attachable-volumes-") else _UNITS.get(name, "")


def _number(amount: Quantity) -> str:
    return f"{amount.amount * 10.0**amount.scale:.15g}"
