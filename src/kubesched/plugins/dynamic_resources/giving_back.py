"""PostFilter of DynamicResources: deallocates claims that keep the pod from nodes and that no pod uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import FilterOutcome
from kubesched.framework.status import Status, unschedulable
from kubesched.plugins.dynamic_resources.attempt import NOTES, ClaimAttempt
from kubesched.plugins.dynamic_resources.writes import DeallocateClaim, DeleteClaim, UnreserveClaim
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.ledger import Ledger
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool

NO_CLAIMS = unschedulable("no new claims to deallocate")
DEALLOCATED = unschedulable("deallocation of ResourceClaim completed")
DELETED = unschedulable("deletion of ResourceClaim completed")
STILL_NOT_SCHEDULABLE = unschedulable("still not schedulable")
GROUP_DEALLOCATED = unschedulable("deallocation of PodGroup ResourceClaim completed")
GROUP_UNRESERVED = unschedulable("ResourceClaim unreserved for PodGroup")


@dataclass(frozen=True)
class FailedPod:
    """A pod of a group that found no node."""

    cycle: Cycle
    attempt: ClaimAttempt
    unavailable: Sequence[ResourceClaim]
    """Its claims that keep it from nodes."""


def in_the_way(attempt: ClaimAttempt, refused: Bool, outcome: FilterOutcome) -> list[ResourceClaim]:
    """Claims that are not available where the pod might run otherwise: on rows that were refused for that alone.

    Not those that are being allocated for another pod.
    """
    refused_rows = [
        row
        for row in np.flatnonzero(refused & outcome.considered).tolist()
        if (status := outcome.status_of(row)) is not None and status.plugin == NOTES.name
    ]
    return [
        attempt.claims[index]
        for index, rows in sorted(attempt.unavailable.items())
        if index not in attempt.shared and rows[refused_rows].any()
    ]


def for_pod(attempt: ClaimAttempt, unavailable: Sequence[ResourceClaim]) -> Status:
    """Note what is to be written so that the pod may find a node next time, and say it."""
    idle = idle_of(unavailable, attempt.pod.uid)
    if idle:
        attempt.writes = [DeallocateClaim(idle[0])]
        return DEALLOCATED
    extended = attempt.extended_claim
    if extended is not None and attempt.has_leftover:
        attempt.writes = [DeleteClaim(extended)]
        return DELETED
    return STILL_NOT_SCHEDULABLE


def for_group(group: PodGroup, failing: Sequence[FailedPod], state: ClusterState) -> tuple[list[str], list[FailedPod]]:
    """The same for pods of a group: the reasons to report, and the pods whose claims are to be written.

    If there is nothing to write for some of them, and no pod of the group has a node, claims of the group are tried.
    """
    texts: dict[str, None] = {}
    helpless, writing = [], []
    for failed in failing:
        status = for_pod(failed.attempt, failed.unavailable)
        if status is STILL_NOT_SCHEDULABLE:
            helpless.append(failed)
        else:
            writing.append(failed)
            texts.update(dict.fromkeys(status.reasons))
    if helpless and state.features.group_claims and not state.groups.placed(group.key):
        unavailable = [claim for failed in helpless for claim in failed.unavailable]
        group_status = _of_group(group, helpless[0].attempt, unavailable, state.companion(ClusterDevices).ledger)
        if group_status is not None:
            writing.append(helpless[0])
            texts.update(dict.fromkeys(group_status.reasons))
    return list(texts), writing


def _of_group(
    group: PodGroup, attempt: ClaimAttempt, unavailable: Sequence[ResourceClaim], ledger: Ledger
) -> Status | None:
    """A claim that only the group uses gives back its devices, or is no longer reserved, so that it can next time."""
    uid = group.metadata.uid
    idle = idle_of(unavailable, uid)
    if idle:
        attempt.writes = [DeallocateClaim(idle[0])]
        return GROUP_DEALLOCATED
    names = {status.name: status.resource_claim_name for status in group.status.resource_claim_statuses}
    for entry in group.spec.resource_claims:
        name = entry.resource_claim_name or names.get(entry.name)
        claim = ledger.claim(name, group.namespace) if name else None
        if claim is None or (entry.resource_claim_name is None and not _is_made_for(claim, group)):
            continue
        if claim.status.allocation is not None and claim.is_reserved_for(uid):
            attempt.writes = [UnreserveClaim(claim, uid)]
            return GROUP_UNRESERVED
    return None


def idle_of(claims: Sequence[ResourceClaim], uid: str) -> list[ResourceClaim]:
    """The claims that no pod uses, or only the pod with this uid."""
    return [claim for claim in claims if all(consumer.uid == uid for consumer in claim.status.reserved_for)]


def _is_made_for(claim: ResourceClaim, group: PodGroup) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.uid == group.metadata.uid
