from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.pod import (
    ContainerStatus,
    ExtendedResourceClaimStatus,
    Pod,
    PodCondition,
    PodResourceClaimStatus,
    ResourceRequirements,
)
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.scheduler.cluster_events import pod_events
from kubesched.testing import make_pod

POD = make_pod("p")
GENERATED = [ClusterEvent(Kind.PENDING_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)]

SCALED_DOWN = ClusterEvent(Kind.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)


def test_a_claim_made_from_a_template_is_a_change_of_generated_claims() -> None:
    status = PodResourceClaimStatus(name="gpu", resource_claim_name="p-gpu")
    assert pod_events(POD.build(), POD.status(resource_claim_statuses=(status,)).build()) == GENERATED


def test_a_claim_made_for_extended_resources_is_a_change_of_generated_claims() -> None:
    status = ExtendedResourceClaimStatus(resource_claim_name="p-extended")
    assert pod_events(POD.build(), POD.status(extended_resource_claim_status=status).build()) == GENERATED


def test_a_change_that_nobody_waits_for_is_a_plain_update() -> None:
    assert pod_events(POD.build(), POD.priority(5).build()) == [ClusterEvent(Kind.PENDING_POD, Action.UPDATE)]


def test_a_pod_that_requests_less_is_scaled_down() -> None:
    old, new = (make_pod("p").requests(cpu=cpu).on("n").build() for cpu in ("2", "1"))
    assert pod_events(old, new) == [SCALED_DOWN]


def test_a_container_that_was_given_less_scales_its_pod_down() -> None:
    assert pod_events(resizing("1", "2"), resizing("1", "1")) == [SCALED_DOWN]


def test_a_resize_that_turns_out_to_be_infeasible_scales_its_pod_down() -> None:
    infeasible = PodCondition(type="PodResizePending", status="True", reason="Infeasible")
    assert pod_events(resizing("2", "1"), resizing("2", "1", infeasible)) == [SCALED_DOWN]


def test_a_condition_of_a_pod_that_is_not_resized_is_a_plain_update() -> None:
    pod = make_pod("p").requests(cpu="2").build()
    why = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
    new = replace(pod, status=replace(pod.status, conditions=(why,)))
    assert pod_events(pod, new) == [ClusterEvent(Kind.PENDING_POD, Action.UPDATE)]


def resizing(wanted: str, held: str, *conditions: PodCondition) -> Pod:
    """A pod on a node, whose container wants so much cpu and holds so much."""
    pod = make_pod("p").requests(cpu=wanted).on("n").build()
    actual = ContainerStatus(name=pod.spec.containers[0].name, resources=ResourceRequirements(requests={"cpu": held}))
    return replace(pod, status=replace(pod.status, container_statuses=(actual,), conditions=conditions))
