"""What may help a pod whose devices could not be had: news about its claims, devices, classes and nodes."""

from __future__ import annotations

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.pod import Pod
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.plugins.dynamic_resources.claims import ClaimFault, claims_of
from kubesched.plugins.shared.devices.answers import DeviceView
from kubesched.plugins.shared.hinting import is_same_pod, queue_if, waits_for
from kubesched.state.cluster import ClusterState

_NEW_OR_CHANGED = Action.ADD | Action.UPDATE


def interests() -> tuple[Interest, ...]:
    return (
        waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        waits_for(Kind.RESOURCE_CLAIM, _NEW_OR_CHANGED, after_claim),
        waits_for(Kind.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, after_pod),
        waits_for(Kind.DEVICE_CLASS, _NEW_OR_CHANGED),
        waits_for(Kind.RESOURCE_SLICE, _NEW_OR_CHANGED),
    )


def after_claim(pod: Pod, old: ResourceClaim | None, new: ResourceClaim, state: ClusterState) -> Hint:
    """Any claim gave back its devices, or one of the pod's own came or changed its status."""
    try:
        claims = claims_of(pod, state.companion(DeviceView).ledger)
    except ClaimFault:
        return Hint.SKIP
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return Hint.QUEUE
    if all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return Hint.SKIP
    return queue_if(old is None or old.status != new.status)


def after_pod(pod: Pod, old: Pod, new: Pod, state: ClusterState) -> Hint:
    """The status of the pod names a claim that was made for it, and now has all of them."""
    if not is_same_pod(pod, new):
        return Hint.SKIP
    try:
        claims_of(new, state.companion(DeviceView).ledger)
    except ClaimFault:
        return Hint.SKIP
    return Hint.QUEUE
