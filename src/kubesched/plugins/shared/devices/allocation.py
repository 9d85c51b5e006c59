"""From what a search found to what is written into claims: devices, parameters for drivers, nodes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence

import msgspec

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.device_claims import (
    AllocatedDevice,
    AllocationConfiguration,
    AllocationResult,
    DeviceAllocation,
    ResourceClaim,
)
from kubesched.api.devices import DeviceClass
from kubesched.api.release import Release
from kubesched.plugins.shared.devices.demand import AllocationError, RequestDemand
from kubesched.plugins.shared.devices.inventory import Inventory
from kubesched.plugins.shared.devices.pools import Spot
from kubesched.plugins.shared.devices.search import Chosen, FoundDevices

_SHARES = uuid.UUID("6f1c7f4e-4d63-4f0b-9f27-7a0b8a1d3b52")
"""The namespace of the UUIDs of shares."""


def allocations(
    solution: FoundDevices,
    inventory: Inventory,
    node_name: str,
    claims: Sequence[ResourceClaim],
    class_of: Callable[[str], DeviceClass | None],
    release: Release,
    attempt: str = "",
) -> list[AllocationResult]:
    """An allocation per claim. `attempt` tells the shares of this pod from those that it may have had before."""
    return [
        AllocationResult(
            devices=DeviceAllocation(
                results=tuple(
                    _device(chosen, inventory.spots[chosen.spot], f"{claim.key}/{claim.metadata.uid}/{attempt}/{i}")
                    for i, chosen in enumerate(devices)
                ),
                config=tuple(_configuration(claim, selected, class_of, once=release.parameters_once)),
            ),
            node_selector=node_selector([inventory.spots[chosen.spot] for chosen in devices], node_name),
        )
        for claim, devices, selected in zip(claims, solution.claims, solution.selected)
    ]


def check_nodes(solution: FoundDevices, inventory: Inventory) -> None:
    """Raises an AllocationError if the nodes of an allocation cannot be put into words."""
    for number, devices in enumerate(solution.claims):
        try:
            node_selector([inventory.spots[chosen.spot] for chosen in devices], "")
        except AllocationError as error:
            text = f"create NodeSelector for claim {{claim_name}}: {error.text}"
            raise AllocationError(text, claim=number) from None


def node_selector(spots: Iterable[Spot], node_name: str) -> NodeSelector | None:
    """The nodes from which all devices can be used; None if that is all nodes."""
    fields: dict[Hashable, NodeSelectorRequirement] = {}
    labels: dict[Hashable, NodeSelectorRequirement] = {}
    for spot in spots:
        spec = spot.slice.spec
        place = spot.device if spec.per_device_node_selection else spec
        if place.node_name is not None or spot.device.binds_to_node:
            only = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        terms = place.node_selector.node_selector_terms if place.node_selector is not None else ()
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            for requirement in term.match_fields:
                fields.setdefault(_identity_of(requirement), requirement)
            for requirement in term.match_expressions:
                labels.setdefault(_identity_of(requirement), requirement)
    if not fields and not labels:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields.values()), match_expressions=tuple(labels.values()))
    return NodeSelector(node_selector_terms=(term,))


def _identity_of(requirement: NodeSelectorRequirement) -> Hashable:
    return requirement.key, requirement.operator, frozenset(requirement.values)


def _device(chosen: Chosen, spot: Spot, share: str) -> AllocatedDevice:
    request, spec = chosen.request, spot.slice.spec
    return AllocatedDevice(
        request=request.name,
        driver=spec.driver,
        pool=spec.pool.name,
        device=spot.device.name,
        admin_access=True if request.has_admin_access else None,
        tolerations=request.spec.tolerations,
        binding_conditions=spot.device.binding_conditions,
        binding_failure_conditions=spot.device.binding_failure_conditions,
        share_id=str(uuid.uuid5(_SHARES, share)) if chosen.amounts is not None else None,
        consumed_capacity={name: amount.text for name, amount in (chosen.amounts or {}).items()},
    )


def _configuration(
    claim: ResourceClaim,
    selected: Sequence[RequestDemand],
    class_of: Callable[[str], DeviceClass | None],
    *,
    once: bool,
) -> list[AllocationConfiguration]:
    """The parameters of each class once, for all requests of it; then those of the claim.

    With `once`, so are those of the claim, and those that are for all requests name none.
    """
    requests_of: dict[str, list[str]] = {}
    for request in selected:
        requests_of.setdefault(request.spec.device_class_name, []).append(request.name)
    configuration = [
        AllocationConfiguration(source="FromClass", requests=tuple(requests), opaque=parameters.opaque)
        for class_name, requests in requests_of.items()
        for device_class in (class_of(class_name),)
        for parameters in (() if device_class is None else device_class.spec.config)
    ]
    for own in claim.spec.devices.config:
        times = (
            1 if not own.requests else sum(w.request_name in own.requests or w.name in own.requests for w in selected)
        )
        times = min(times, 1) if once else times
        configuration += [AllocationConfiguration(source="FromClaim", requests=own.requests, opaque=own.opaque)] * times
    return [_for_all(entry, selected) for entry in configuration] if once else configuration


def _for_all(configuration: AllocationConfiguration, selected: Sequence[RequestDemand]) -> AllocationConfiguration:
    """The same without names of requests, if it names all of them."""
    names = configuration.requests
    if all(request.request_name in names or request.name in names for request in selected):
        return msgspec.structs.replace(configuration, requests=())
    return configuration
