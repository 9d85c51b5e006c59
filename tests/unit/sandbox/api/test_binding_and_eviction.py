from __future__ import annotations

from typing import Any

import pytest
from tests.sandbox_server import fresh_api, refused

from kubesched.api.kinds import NODES, POD_DISRUPTION_BUDGETS, PODS
from kubesched_sandbox.api import Api

ZONE = "topology.kubernetes.io/zone"


def with_pod(*, phase: str = "", **spec: Any) -> Api:
    api = fresh_api(clock=lambda: 1_700_000_000)
    containers = [{"name": "c", "image": "nginx"}]
    labelled = {"name": "web", "labels": {"app": "web"}}
    api.create(PODS, "default", {"metadata": labelled, "spec": {"containers": containers, **spec}})
    if phase:
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": phase, "conditions": [ready]}
        api.patch(PODS, "default", "web", {"status": status}, subresource="status")
    return api


def binding(node: str = "n1", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", **metadata}, "target": {"kind": "Node", "name": node}}


def test_binding_assigns_the_node_and_says_so_in_a_condition() -> None:
    api = with_pod()
    api.patch(PODS, "default", "web", {"status": {"nominatedNodeName": "n2"}}, subresource="status")
    api.bind("default", "web", binding(annotations={"why": "free"}))
    pod = api.get(PODS, "default", "web")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"] == {"why": "free"}
    assert "nominatedNodeName" not in pod["status"]
    scheduled = next(entry for entry in pod["status"]["conditions"] if entry["type"] == "PodScheduled")
    assert scheduled["status"] == "True"
    assert scheduled["lastTransitionTime"] == "2023-11-14T22:13:20Z"


def test_binding_copies_the_zone_of_the_node() -> None:
    api = with_pod()
    api.create(NODES, "", {"metadata": {"name": "n1", "labels": {ZONE: "east", "other": "x"}}})
    api.bind("default", "web", binding())
    assert api.get(PODS, "default", "web")["metadata"]["labels"] == {"app": "web", ZONE: "east"}


def test_a_pod_is_bound_once() -> None:
    api = with_pod()
    api.bind("default", "web", binding())
    with refused(409, "Conflict") as refusal:
        api.bind("default", "web", binding("n2"))
    assert refusal.value.message == (
        'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    )


def test_a_pod_that_is_going_is_not_bound() -> None:
    api = with_pod()
    api.patch(PODS, "default", "web", {"metadata": {"finalizers": ["x.io/one"]}})
    api.delete(PODS, "default", "web")
    with refused(409, "Conflict") as refusal:
        api.bind("default", "web", binding())
    assert "pod web is being deleted, cannot be assigned to a host" in refusal.value.message


def test_a_gated_pod_is_not_bound() -> None:
    with refused(409, "Conflict") as refusal:
        with_pod(schedulingGates=[{"name": "x.io/gate"}]).bind("default", "web", binding())
    assert "non-empty .spec.schedulingGates" in refusal.value.message


def test_a_binding_for_another_pod_of_that_name_is_a_conflict() -> None:
    api = with_pod()
    with refused(409, "Conflict"):
        api.bind("default", "web", binding(uid="other"))
    api.bind("default", "web", binding(uid=api.get(PODS, "default", "web")["metadata"]["uid"]))


@pytest.mark.parametrize(
    "wrong", [{"target": {"name": ""}}, {"target": None}, {"target": {"kind": "Pod", "name": "x"}}, {}]
)
def test_a_binding_without_a_node_is_invalid(wrong: dict[str, Any]) -> None:
    with refused(422, "Invalid"):
        with_pod().bind("default", "web", wrong)


def with_budget(api: Api, *, allowed: int, healthy: int = 1, desired: int = 1, name: str = "pdb") -> Api:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": desired}
    made = api.create(POD_DISRUPTION_BUDGETS, "default", {"metadata": {"name": name}, "spec": spec})
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": 1,
        "observedGeneration": made["metadata"].get("generation", 0),
    }
    api.update(POD_DISRUPTION_BUDGETS, "default", name, {**made, "status": status}, subresource="status")
    return api


EVICTION = {"metadata": {"name": "web"}}


def test_an_eviction_deletes_the_pod_and_charges_the_budget() -> None:
    api = with_budget(with_pod(phase="Running"), allowed=1, healthy=2)
    api.evict("default", "web", EVICTION)
    assert api.find(PODS, "default", "web") is None
    status = api.get(POD_DISRUPTION_BUDGETS, "default", "pdb")["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"] == {"web": "2023-11-14T22:13:20Z"}


def test_an_eviction_that_the_budget_forbids_is_too_many_requests() -> None:
    api = with_budget(with_pod(phase="Running"), allowed=0)
    with refused(429, "TooManyRequests") as refusal:
        api.evict("default", "web", EVICTION)
    assert refusal.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refusal.value.details["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget pdb needs 1 healthy pods and has 1 currently"}
    ]
    assert api.find(PODS, "default", "web") is not None


def test_a_budget_that_nobody_looked_at_yet_asks_to_come_back() -> None:
    api = with_pod(phase="Running")
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    api.create(POD_DISRUPTION_BUDGETS, "default", {"metadata": {"name": "pdb"}, "spec": spec})
    with refused(429, "TooManyRequests") as refusal:
        api.evict("default", "web", EVICTION)
    assert refusal.value.details["retryAfterSeconds"] == 10


def test_a_pending_pod_needs_no_budget() -> None:
    api = with_budget(with_pod(), allowed=0)
    api.evict("default", "web", EVICTION)
    assert api.find(PODS, "default", "web") is None


def test_two_budgets_for_one_pod_are_not_supported() -> None:
    api = with_budget(with_budget(with_pod(phase="Running"), allowed=1), allowed=1, name="second")
    with refused(500, "InternalError"):
        api.evict("default", "web", EVICTION)


def test_an_evicted_pod_on_a_node_says_why_it_goes() -> None:
    api = with_pod(phase="Running")
    api.bind("default", "web", binding())
    api.evict("default", "web", {**EVICTION, "deleteOptions": {"gracePeriodSeconds": 5}})
    pod = api.get(PODS, "default", "web")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 5
    target = next(entry for entry in pod["status"]["conditions"] if entry["type"] == "DisruptionTarget")
    assert target["reason"] == "EvictionByEvictionAPI"


def test_a_dry_eviction_changes_nothing() -> None:
    api = with_budget(with_pod(phase="Running"), allowed=1)
    revision = api.store.revision
    api.evict("default", "web", EVICTION, dry_run=True)
    assert api.store.revision == revision
