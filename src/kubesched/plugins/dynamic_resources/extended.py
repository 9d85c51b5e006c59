"""Extended resources served by devices: the requests of the one claim that is made for all of a pod's containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubesched.api.device_claims import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.pod import Container, ExtendedResourceRequest, Pod
from kubesched.api.quantity import parse_quantity
from kubesched.api.requests import is_sidecar

IN_MEMORY_NAME = "<extended-resources>"
"""The name of the claim until it is written; no claim in the API can have it."""


class ExtendedDemand(NamedTuple):
    """What must be asked for, and what serves which container."""

    requests: tuple[DeviceRequest, ...] = ()
    mappings: tuple[ExtendedResourceRequest, ...] = ()


class _OwnRequest(NamedTuple):
    """A request of a container's own, for devices that it shares with no other container."""

    name: str
    devices: int


def claim_for(pod: Pod) -> ResourceClaim:
    """The claim for a pod's extended resources, as yet without requests: those differ from node to node."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    meta = ObjectMeta(
        name=IN_MEMORY_NAME,
        namespace=pod.namespace,
        uid=pod.uid,
        generate_name=f"{pod.name}-extended-resources-",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(api_version="resource.k8s.io/v1", kind="ResourceClaim", metadata=meta)


def spec_with(requests: tuple[DeviceRequest, ...]) -> ResourceClaimSpec:
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests))


def demand_of(pod: Pod, class_of: Mapping[str, str]) -> ExtendedDemand:
    """The requests for some extended resources, given by name with the class that serves each.

    Init containers that end before others begin use the devices of those first; beyond that only the largest of them
    counts, as they run one after another.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    ends = [i < len(pod.spec.init_containers) and not is_sidecar(c) for i, c in enumerate(containers)]
    requests: list[DeviceRequest] = []
    mappings: list[ExtendedResourceRequest] = []
    for resource in sorted(class_of):
        lasting: dict[int, _OwnRequest] = {}
        passing: list[_OwnRequest] = []
        of_lasting: list[ExtendedResourceRequest] = []
        of_passing: list[ExtendedResourceRequest] = []
        for i, container in enumerate(containers):
            if not ends[i]:
                own, served = _requests_of(i, container, resource, ())
                of_lasting += served
                if own is not None:
                    lasting[i] = own
        for i, container in enumerate(containers):
            if ends[i]:
                own, served = _requests_of(i, container, resource, (lasting[j] for j in sorted(lasting) if j >= i))
                of_passing += served
                if own is not None:
                    passing.append(own)
        largest = max(passing, key=lambda own: own.devices, default=None)
        owned = [*([largest] if largest is not None else []), *lasting.values()]
        requests += [_request(own, class_of[resource]) for own in owned]
        replaced = {own.name for own in passing}
        mappings += of_lasting
        mappings += [
            _mapping(m.container_name, resource, largest.name) if largest and m.request_name in replaced else m
            for m in of_passing
        ]
    requests.sort(key=lambda request: request.name)
    return ExtendedDemand(tuple(requests), tuple(mappings))


def _requests_of(
    i: int, container: Container, resource: str, reusable: Iterable[_OwnRequest]
) -> tuple[_OwnRequest | None, list[ExtendedResourceRequest]]:
    """What a container asks for beyond the devices of others that it can use, and all that serves it."""
    requests = container.resources.requests
    amount = parse_quantity(requests[resource]) if resource in requests else None
    if amount is None or not amount.amount or amount.nano() % 10**9:
        return None, []
    count, served = amount.value(), []
    for reusable_request in reusable:
        served.append(_mapping(container.name, resource, reusable_request.name))
        count -= reusable_request.devices
        if count <= 0:
            return None, served
    own = _OwnRequest(f"container-{i}-request-{sorted(requests).index(resource)}", count)
    return own, [*served, _mapping(container.name, resource, own.name)]


def _mapping(container: str, resource: str, request: str) -> ExtendedResourceRequest:
    return ExtendedResourceRequest(container_name=container, resource_name=resource, request_name=request)


def _request(own: _OwnRequest, class_name: str) -> DeviceRequest:
    return DeviceRequest(name=own.name, exactly=ExactDeviceRequest(device_class_name=class_name, count=own.devices))
