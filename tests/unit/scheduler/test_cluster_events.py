from __future__ import annotations

from kubesched.api.pod import ExtendedResourceClaimStatus, PodResourceClaimStatus
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.scheduler.cluster_events import pod_events
from kubesched.testing import make_pod

POD = make_pod("p")
GENERATED = [ClusterEvent(Kind.PENDING_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)]


def test_a_claim_made_from_a_template_is_a_change_of_generated_claims() -> None:
    status = PodResourceClaimStatus(name="gpu", resource_claim_name="p-gpu")
    assert pod_events(POD.build(), POD.status(resource_claim_statuses=(status,)).build()) == GENERATED


def test_a_claim_made_for_extended_resources_is_a_change_of_generated_claims() -> None:
    status = ExtendedResourceClaimStatus(resource_claim_name="p-extended")
    assert pod_events(POD.build(), POD.status(extended_resource_claim_status=status).build()) == GENERATED


def test_a_change_that_nobody_waits_for_is_a_plain_update() -> None:
    assert pod_events(POD.build(), POD.priority(5).build()) == [ClusterEvent(Kind.PENDING_POD, Action.UPDATE)]
