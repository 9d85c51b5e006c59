"""Queueing hints of NodeResourcesFit: pods leave or shrink, nodes come or grow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import product
from typing import TypeVar

from kubesched.api.devices import IMPLICIT_PREFIX, DeviceClass
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.quantity import parse_quantity
from kubesched.api.release import Release
from kubesched.api.requests import PODS, Quantities, is_countable, pod_requests, whole
from kubesched.framework.events import Action, Hint, Interest, Kind, Lookup
from kubesched.plugins.shared.devices.extended_resources import is_served
from kubesched.plugins.shared.hinting import has_node, queue_if, waits_for, waits_for_pods
from kubesched.state.cluster import ClusterState

T = TypeVar("T")

Amounts = dict[str, int]

_MEMORY = 64 << 20
"""Bytes: smaller differences do not count for the size of a pod."""


def interests(release: Release, *, device_classes: bool = True) -> tuple[Interest, ...]:
    """What to wait for; `device_classes` if those may stand for resources."""
    shrinks = Action.UPDATE_POD_SCALE_DOWN
    always = (
        *waits_for_pods(release, placed=Action.DELETE | shrinks, placed_hint=after_pod, own=shrinks),
        waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, after_node, SIZES),
    )
    classes = waits_for(Kind.DEVICE_CLASS, Action.ADD | Action.UPDATE, after_device_class)
    return (*always, classes) if device_classes else always


def after_pod(pod: Pod, old: Pod, new: Pod | None, state: ClusterState) -> Hint:
    """A pod that leaves makes room, if only for one more; one that shrinks must give up something that is wanted."""
    if new is None:
        return queue_if(has_node(old))
    if not new.spec.node_name:
        return Hint.SKIP
    changed = state.companion(_LastChange)
    before, after = changed.amounts(old, _placed), changed.amounts(new, _placed)
    requests = state.facts(pod).without_node_names.derived(_wanted_of_pods, (pod, state))
    return queue_if(any(before.get(name, 0) > after.get(name, 0) for name in requests))


def after_node(pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
    """The pod must fit into the empty node, and of something that it wants there must be more than before.

    Resources that the profile ignores count here, as they do in kube-scheduler.
    """
    requests = _wanted_of_nodes(pod, state)
    offered = state.companion(_LastChange).amounts(new, _offered)
    by_devices = False
    for name, amount in requests.items():
        if not offered.get(name) and is_served(name, state):
            by_devices = True
        elif amount > offered.get(name, 0):
            return Hint.SKIP
    if old is None or by_devices:
        return Hint.QUEUE
    before = state.companion(_LastChange).amounts(old, _offered)
    return queue_if(any(offered.get(name, 0) > before.get(name, 0) for name in requests))


def after_device_class(pod: Pod, old: DeviceClass | None, new: DeviceClass, state: ClusterState) -> Hint:
    """Devices begin to stand for a resource that the pod asks for: one the class names, or that has its name."""
    explicit = new.spec.extended_resource_name or ""
    if old is None:
        provided = {explicit, IMPLICIT_PREFIX + new.name}
    else:
        provided = {explicit} if explicit != (old.spec.extended_resource_name or "") else set()
    return queue_if(not provided.isdisjoint(pod_requests(pod)))


class _LastChange:
    """What the objects of the last change amount to: each of very many kinds of waiting pods is held against them."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._last_two: tuple[tuple[object, Amounts], ...] = ()

    def amounts(self, obj: T, count: Callable[[T, ClusterState], Amounts]) -> Amounts:
        for last, amounts in self._last_two:
            if last is obj:
                return amounts
        amounts = count(obj, self._state)
        self._last_two = ((obj, amounts), *self._last_two[:1])
        return amounts


def _sizes_waited_for(pod: Pod, state: ClusterState) -> Iterable[Hashable]:
    return (_size(_wanted_of_nodes(pod, state)),)


def _sizes_brought(old: Node | None, new: Node, state: ClusterState) -> Iterable[Hashable]:
    cpu, memory = _size(state.companion(_LastChange).amounts(new, _offered))
    return product(range(cpu + 1), range(memory + 1))


def _size(amounts: Amounts) -> tuple[int, int]:
    """Cpu and memory as powers of two: a pod that fits into a node is of no greater size in either."""
    return amounts.get("cpu", 0).bit_length(), (amounts.get("memory", 0) // _MEMORY).bit_length()


SIZES = Lookup(_sizes_waited_for, _sizes_brought)
"""For `after_node`: it is not asked about pods that are clearly larger than the node, however many kinds there are."""


def _wanted_of_pods(source: tuple[Pod, ClusterState]) -> Amounts:
    return _placed(*source)


def _wanted_of_nodes(pod: Pod, state: ClusterState) -> Amounts:
    return state.facts(pod).without_node_names.derived(_desired, (pod, state))


def _desired(source: tuple[Pod, ClusterState]) -> Amounts:
    """A resize does not count for a pod without a node, whatever its status says."""
    pod, state = source
    return {**_counted(pod_requests(pod, pod_level=state.features.pod_level_resources)), PODS: 1}


def _placed(pod: Pod, state: ClusterState) -> Amounts:
    """As in kube-scheduler, pod-level requests count here even if that feature is off."""
    features = state.features
    requests = pod_requests(
        pod,
        from_status=True,
        pod_level_resize=features.pod_level_resize,
        resize_by_pod=features.release.resize_by_pod,
    )
    return _counted(requests)


def _counted(requests: Quantities) -> Amounts:
    amounts = {name: whole(name, quantity) for name, quantity in requests.items() if is_countable(name)}
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _offered(node: Node, state: ClusterState) -> Amounts:
    return {name: whole(name, parse_quantity(text)) for name, text in node.status.allocatable.items()}
