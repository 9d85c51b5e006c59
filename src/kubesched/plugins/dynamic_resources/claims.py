"""The claims of a pod: named by it, or made for it from templates."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.device_claims import DeviceRequest, ResourceClaim
from kubesched.api.devices import DeviceClass
from kubesched.api.pod import Pod, PodResourceClaim
from kubesched.framework.cycle import Cycle
from kubesched.framework.status import Status, error, unresolvable
from kubesched.plugins.shared.devices.ledger import Ledger
from kubesched.plugins.shared.devices.search import BEST_ALTERNATIVE


class ClaimFault(Exception):  # noqa: N818 - something that the pod waits for
    """Why a pod cannot have one of its claims yet, in the words that users see."""


def claims_of(pod: Pod, ledger: Ledger) -> list[ResourceClaim]:
    """The claims of a pod, in its order. Raises ClaimFault."""
    claims: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        name = _claim_name(pod, entry)
        if name is None:
            continue  # nothing was made from the template, on purpose
        claim = ledger.claim(name, pod.namespace)
        if claim is None:
            raise ClaimFault(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp:
            raise ClaimFault(f'resourceclaim "{claim.name}" is being deleted')
        if entry.resource_claim_name is None:
            owner = claim.metadata.controller
            if owner is None or owner.uid != pod.uid:
                raise ClaimFault(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        claims.append(claim)
    return claims


def _claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        fault = f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        raise ClaimFault(fault)
    for made in pod.status.resource_claim_statuses:
        if made.name == entry.name:
            return made.resource_claim_name
    raise ClaimFault(f'pod "{pod.key}": ResourceClaim not created yet')


def request_fault(claim: ResourceClaim, request: DeviceRequest, cycle: Cycle) -> Status | None:
    """What is missing for a request to be looked at at all."""
    asked = [(request.name, request.exactly)] if request.exactly is not None else []
    asked += [(f"{request.name}/{other.name}", other) for other in request.first_available]  # type: ignore[misc]
    if not asked:
        return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
    for name, one in asked:
        if not one.device_class_name:
            return error(f"request {name}: unsupported request type")
        if cycle.state.objects.get(DeviceClass, one.device_class_name) is None:
            return unresolvable(f"request {name}: device class {one.device_class_name} does not exist")
    return None


def score_of_allocated(claims: Iterable[ResourceClaim]) -> int:
    """What claims that have their devices already add to the score of every node."""
    score = 0
    for claim in claims:
        if claim.status.allocation is None:
            continue
        given = {device.request for device in claim.status.allocation.devices.results}
        for request in claim.spec.devices.requests:
            for position, alternative in enumerate(request.first_available):
                if f"{request.name}/{alternative.name}" in given:
                    score += BEST_ALTERNATIVE - position
    return score
