"""The claims of a pod, named by it or made for it from templates; and what may help a pod that cannot have them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubesched.api.device_claims import ConsumerReference, DeviceRequest, ResourceClaim
from kubesched.api.devices import DeviceClass
from kubesched.api.pod import Pod, PodResourceClaim
from kubesched.api.pod_groups import GROUP, PodGroup
from kubesched.api.release import Release
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind, Lookup
from kubesched.framework.status import Status, error, unresolvable
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.extended_resources import extended_resources_of, is_served
from kubesched.plugins.shared.devices.ledger import resource_claim_names
from kubesched.plugins.shared.hinting import has_node, queue_if, waits_for, waits_for_pods
from kubesched.state.cluster import ClusterState


class ClaimNotReadyError(Exception):
    """Why a pod cannot have one of its claims yet, in the words that users see."""


def claims_of(pod: Pod, state: ClusterState) -> list[tuple[PodResourceClaim, ResourceClaim]]:
    """The claims of a pod, in its order, with its entry for each. Raises ClaimNotReadyError."""
    claims = []
    ledger = state.companion(ClusterDevices).ledger
    for entry in pod.spec.resource_claims:
        name = _claim_name(pod, entry)
        if name is None:
            continue  # nothing was made from the template, on purpose
        claim = ledger.claim(name, pod.namespace)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp:
            raise ClaimNotReadyError(f'resourceclaim "{claim.name}" is being deleted')
        if entry.resource_claim_name is None:
            _check_owner(claim, pod, may_be_group=state.features.group_claims)
        claims.append((entry, claim))
    return claims


def _check_owner(claim: ResourceClaim, pod: Pod, *, may_be_group: bool) -> None:
    """Whether the claim was made for the pod or, where groups have claims, for its group."""
    owner, group_reference = claim.metadata.controller, pod.spec.scheduling_group
    if owner is not None and owner.uid == pod.uid:
        return
    refusal = "Pod is not owner"
    if may_be_group and group_reference is not None:
        group, _, _ = ("", "", "") if owner is None else owner.api_version.partition("/")
        if owner is not None and (group, owner.kind, owner.name) == (GROUP, "PodGroup", group_reference.pod_group_name):
            return
        refusal = f"neither Pod nor PodGroup {group_reference.pod_group_name} is the owner"
    raise ClaimNotReadyError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} ({refusal})")


def consumer_of(pod: Pod, entry: PodResourceClaim | None = None, group: PodGroup | None = None) -> ConsumerReference:
    """The consumer that a claim is reserved for: the group, if its spec has the very same entry; else the pod."""
    if group is not None and entry in group.spec.resource_claims:
        return ConsumerReference(api_group=GROUP, resource="podgroups", name=group.name, uid=group.metadata.uid)
    return ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def _claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        message = f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        raise ClaimNotReadyError(message)
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimNotReadyError(f'pod "{pod.key}": ResourceClaim not created yet')


def request_rejection(claim: ResourceClaim, request: DeviceRequest, cycle: Cycle) -> Status | None:
    """Why no devices can be searched for a request: an unknown type, or a missing DeviceClass. None if they can."""
    classes = [(request.name, request.exactly.device_class_name)] if request.exactly is not None else []
    classes += [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
    if not classes:
        return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
    for name, class_name in classes:
        if not class_name:
            return error(f"request {name}: unsupported request type")
        if cycle.state.objects.get(DeviceClass, class_name) is None:
            return unresolvable(f"request {name}: device class {class_name} does not exist")
    return None


_NEW_OR_CHANGED = Action.ADD | Action.UPDATE


def interests(release: Release, *, is_batched: bool) -> tuple[Interest, ...]:
    """What kube-scheduler has `overlooked` wakes pods in BATCHED mode alone."""
    overlooked = Action.DELETE if is_batched else Action(0)
    claims = _NEW_OR_CHANGED | Action.DELETE if release.deleted_claims_heard else _NEW_OR_CHANGED
    return (
        waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        waits_for(Kind.RESOURCE_CLAIM, claims, after_claim, Lookup(_claim_keys, _claim_brought)),
        *waits_for_pods(
            release,
            placed=overlooked,
            placed_hint=after_giving_back,
            own=Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            own_hint=after_own_change,
        ),
        waits_for(Kind.DEVICE_CLASS, _NEW_OR_CHANGED),
        waits_for(Kind.RESOURCE_SLICE, _NEW_OR_CHANGED | overlooked),
    )


def after_claim(pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None, state: ClusterState) -> Hint:
    """Any claim gave back its devices, or one of the pod's own came or changed its status."""
    if new is None:
        return queue_if(old is not None and old.status.allocation is not None)
    try:
        claims = claims_of(pod, state)
    except ClaimNotReadyError:
        return Hint.SKIP
    if _gave_back_devices(old, new):
        return Hint.QUEUE
    if all(claim.metadata.uid != new.metadata.uid for _, claim in claims):
        return Hint.SKIP
    return queue_if(old is None or old.status != new.status)


def after_giving_back(pod: Pod, old: Pod, new: None, state: ClusterState) -> Hint:
    """A pod is not bound after all: what was kept for its claims was never written to them, so they do not change."""
    if not has_node(old):
        return Hint.SKIP
    claims = (state.objects.get(ResourceClaim, key) for key in _claim_keys(old, state))
    if any(claim is not None and claim.status.allocation is None for claim in claims):
        return Hint.QUEUE
    return queue_if(any(is_served(name, state) for name in extended_resources_of(state.facts(old))))


def _gave_back_devices(old: ResourceClaim | None, new: ResourceClaim) -> bool:
    return old is not None and old.status.allocation is not None and new.status.allocation is None


def _claim_keys(pod: Pod, state: ClusterState) -> Iterator[str]:
    """The keys of the pod's claims, as far as they have a name yet. A pod with claims waits by itself."""
    return (f"{pod.namespace}/{name}" for name in resource_claim_names(pod))


def _claim_brought(
    old: ResourceClaim | None, new: ResourceClaim | None, state: ClusterState
) -> tuple[Hashable, ...] | None:
    return None if new is None or _gave_back_devices(old, new) else (new.key,)


def after_own_change(pod: Pod, old: Pod, new: Pod, state: ClusterState) -> Hint:
    """The pod's status names a claim that was made for it, and now it has all of them."""
    try:
        claims_of(new, state)
    except ClaimNotReadyError:
        return Hint.SKIP
    return Hint.QUEUE
