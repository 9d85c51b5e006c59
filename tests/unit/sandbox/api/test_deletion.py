from __future__ import annotations

from typing import Any

import pytest
from tests.sandbox_server import fresh_api, refused

from kubesched.api.kinds import CONFIG_MAPS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from kubesched_sandbox.api import Api


class Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def with_pod(api: Api, *, node: str = "", grace: int | None = None, **metadata: Any) -> Api:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "nginx"}]}
    if grace is not None:
        spec["terminationGracePeriodSeconds"] = grace
    api.create(PODS, "default", {"metadata": {"name": "web", **metadata}, "spec": spec})
    if node:
        api.bind("default", "web", {"target": {"kind": "Node", "name": node}})
    return api


def test_a_pod_without_a_node_goes_at_once() -> None:
    api = with_pod(fresh_api())
    api.delete(PODS, "default", "web")
    assert api.find(PODS, "default", "web") is None


def test_a_pod_on_a_node_is_marked_and_goes_when_its_kubelet_says_so() -> None:
    api = with_pod(fresh_api(clock=Clock()), node="n", grace=20)
    generation = api.get(PODS, "default", "web")["metadata"].get("generation")
    metadata = api.delete(PODS, "default", "web")["metadata"]
    assert metadata["deletionTimestamp"] == "2023-11-14T22:13:40Z"
    assert metadata["deletionGracePeriodSeconds"] == 20
    assert metadata["generation"] == generation + 1
    api.delete(PODS, "default", "web", grace=0)
    assert api.find(PODS, "default", "web") is None


def test_a_second_deletion_can_only_shorten_the_grace() -> None:
    api = with_pod(fresh_api(clock=Clock()), node="n", grace=30)
    api.delete(PODS, "default", "web")
    assert api.delete(PODS, "default", "web", grace=60)["metadata"]["deletionGracePeriodSeconds"] == 30
    assert api.delete(PODS, "default", "web")["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = api.delete(PODS, "default", "web", grace=10)["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 10
    assert shorter["deletionTimestamp"] == "2023-11-14T22:13:30Z"


def test_finalizers_hold_an_object_until_the_last_is_taken_away() -> None:
    api = fresh_api()
    api.create(CONFIG_MAPS, "default", {"metadata": {"name": "a", "finalizers": ["x.io/one", "x.io/two"]}})
    assert api.delete(CONFIG_MAPS, "default", "a")["metadata"]["deletionTimestamp"]
    api.patch(CONFIG_MAPS, "default", "a", {"metadata": {"finalizers": ["x.io/two"]}})
    with refused(422, "Invalid") as refusal:
        api.patch(CONFIG_MAPS, "default", "a", {"metadata": {"finalizers": ["x.io/two", "x.io/three"]}})
    assert "no new finalizers can be added if the object is being deleted" in refusal.value.message
    api.patch(CONFIG_MAPS, "default", "a", {"metadata": {"finalizers": None}})
    assert api.find(CONFIG_MAPS, "default", "a") is None


def test_a_pod_with_grace_stays_when_its_finalizers_are_gone() -> None:
    api = with_pod(fresh_api(), node="n", finalizers=["x.io/one"])
    api.delete(PODS, "default", "web")
    api.patch(PODS, "default", "web", {"metadata": {"finalizers": None}})
    assert api.find(PODS, "default", "web") is not None
    api.delete(PODS, "default", "web", grace=0)
    assert api.find(PODS, "default", "web") is None


@pytest.mark.parametrize(("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_is_left_to_the_garbage_collector(propagation: str, finalizer: str) -> None:
    api = with_pod(fresh_api())
    assert api.delete(PODS, "default", "web", propagation=propagation)["metadata"]["finalizers"] == [finalizer]
    api.delete(PODS, "default", "web", propagation="Background")
    assert api.find(PODS, "default", "web") is None


def test_an_unknown_propagation_is_refused() -> None:
    with refused(400, "BadRequest"):
        with_pod(fresh_api()).delete(PODS, "default", "web", propagation="Sideways")


def test_preconditions_protect_another_object_of_that_name() -> None:
    api = with_pod(fresh_api())
    with refused(409, "Conflict") as refusal:
        api.delete(PODS, "default", "web", uid="other")
    assert "the UID in the precondition (other) does not match the UID in record" in refusal.value.message
    with refused(409, "Conflict"):
        api.delete(PODS, "default", "web", resource_version="1")
    made = api.get(PODS, "default", "web")["metadata"]
    api.delete(PODS, "default", "web", uid=made["uid"], resource_version=made["resourceVersion"])
    assert api.find(PODS, "default", "web") is None


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    api = fresh_api()
    api.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
    api.create(CONFIG_MAPS, "shop", {"metadata": {"name": "a"}})
    api.delete(NAMESPACES, "", "shop")
    assert api.find(NAMESPACES, "", "shop") is None
    assert api.select(CONFIG_MAPS, "shop") == []
    assert api.select(SERVICE_ACCOUNTS, "shop") == []


def test_a_namespace_waits_for_what_is_still_in_it_and_takes_in_nothing_new() -> None:
    api = fresh_api()
    api.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
    api.create(CONFIG_MAPS, "shop", {"metadata": {"name": "held", "finalizers": ["x.io/one"]}})
    assert api.delete(NAMESPACES, "", "shop")["status"]["phase"] == "Terminating"
    with refused(403, "Forbidden") as refusal:
        api.create(CONFIG_MAPS, "shop", {"metadata": {"name": "late"}})
    assert refusal.value.message == (
        'configmaps "late" is forbidden: unable to create new content in namespace shop because it is being terminated'
    )
    assert refusal.value.details["causes"][0]["reason"] == "NamespaceTerminating"
    api.patch(CONFIG_MAPS, "shop", "held", {"metadata": {"finalizers": None}})
    assert api.find(NAMESPACES, "", "shop") is None


def test_a_finalizer_of_a_namespace_is_for_its_owner_to_take_away() -> None:
    api = fresh_api()
    made = api.create(NAMESPACES, "", {"metadata": {"name": "shop"}, "spec": {"finalizers": ["x.io/mine"]}})
    assert set(made["spec"]["finalizers"]) >= {"x.io/mine"}
    api.delete(NAMESPACES, "", "shop")
    held = api.get(NAMESPACES, "", "shop")
    assert held["spec"]["finalizers"] == ["x.io/mine"]
    api.update(NAMESPACES, "", "shop", {**held, "spec": {"finalizers": []}}, subresource="finalize")
    assert api.find(NAMESPACES, "", "shop") is None


def test_the_namespaces_of_the_system_stay() -> None:
    with refused(403, "Forbidden") as refusal:
        fresh_api().delete(NAMESPACES, "", "kube-system")
    assert "this namespace may not be deleted" in refusal.value.message
