from __future__ import annotations

from tests.living_sandbox import LivingSandbox, pod

from kubesched.api.kinds import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
)
from kubesched_sandbox.nodes import publish_gpus
from kubesched_sandbox.nodes.manifests import DRIVER, DURATION

SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}}


def template(name: str = "gpus") -> Object:
    return {"metadata": {"name": name}, "spec": {"spec": SPEC}}


def asking(name: str = "train", **entry: str) -> Object:
    return pod(name, resourceClaims=[{"name": "gpu", **(entry or {"resourceClaimTemplateName": "gpus"})}])


def allocate(cluster: LivingSandbox, claim: str, *pods: str) -> None:
    """What the scheduler writes when it places pods that share a claim."""
    stored = cluster.get(RESOURCE_CLAIMS, claim)
    results = [{"request": "gpu", "driver": DRIVER, "pool": "node-0", "device": "gpu-0"}]
    users = [{"resource": "pods", "name": name, "uid": cluster.get(PODS, name)["metadata"]["uid"]} for name in pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    cluster.api.update(RESOURCE_CLAIMS, "default", claim, {**stored, "status": status}, subresource="status")
    cluster.settle()


def test_pod_gets_a_claim_of_its_own_from_a_template() -> None:
    cluster = LivingSandbox(binder=False)
    cluster.create(RESOURCE_CLAIM_TEMPLATES, template())
    cluster.create(PODS, asking())
    (claim,) = cluster.api.select(RESOURCE_CLAIMS)
    assert claim["metadata"]["name"].startswith("train-gpu-")
    assert claim["metadata"]["ownerReferences"][0]["name"] == "train"
    statuses = cluster.get(PODS, "train")["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]


def test_pod_waits_for_a_template_that_is_not_there_yet() -> None:
    cluster = LivingSandbox(binder=False)
    cluster.create(PODS, asking())
    assert cluster.reasons("train") == ["FailedResourceClaimCreation"]
    cluster.create(RESOURCE_CLAIM_TEMPLATES, template())
    assert len(cluster.api.select(RESOURCE_CLAIMS)) == 1


def test_claim_made_for_a_pod_goes_with_it() -> None:
    cluster = LivingSandbox(binder=False)
    cluster.create(RESOURCE_CLAIM_TEMPLATES, template())
    cluster.create(PODS, asking())
    cluster.delete(PODS, "train")
    assert cluster.api.select(RESOURCE_CLAIMS) == []


def test_shared_claim_is_released_by_each_pod_and_deallocated_after_the_last() -> None:
    cluster = LivingSandbox()
    cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared"}, "spec": SPEC})
    for name in ("one", "two"):
        cluster.create(PODS, asking(name, resourceClaimName="shared"))
    allocate(cluster, "shared", "one", "two")
    cluster.run(5)
    cluster.delete(PODS, "one")
    cluster.run(5)
    status = cluster.get(RESOURCE_CLAIMS, "shared")["status"]
    assert [user["name"] for user in status["reservedFor"]] == ["two"]
    cluster.delete(PODS, "two")
    cluster.run(5)
    assert not cluster.get(RESOURCE_CLAIMS, "shared").get("status")


def test_finished_pod_gives_its_devices_back_before_it_is_deleted() -> None:
    cluster = LivingSandbox(nodes=1)
    cluster.create(RESOURCE_CLAIM_TEMPLATES, template())
    work = asking()
    work["metadata"]["annotations"] = {DURATION: "5s"}
    work["spec"]["restartPolicy"] = "Never"
    cluster.create(PODS, work)
    (claim,) = cluster.api.select(RESOURCE_CLAIMS)
    allocate(cluster, claim["metadata"]["name"], "train")
    cluster.run(20)
    assert cluster.get(PODS, "train")["status"]["phase"] == "Succeeded"
    assert cluster.api.select(RESOURCE_CLAIMS) == []


def test_nodes_publish_their_gpus_and_take_them_along() -> None:
    cluster = LivingSandbox(nodes=2)
    publish_gpus(cluster.api, dict.fromkeys(cluster.hollow.names, 8))
    slices = cluster.api.select(RESOURCE_SLICES)
    assert [len(each["spec"]["devices"]) for each in slices] == [8, 8]
    assert cluster.get(DEVICE_CLASSES, DRIVER)["spec"]["selectors"]
    cluster.delete(NODES, "node-0")
    cluster.settle()
    assert [each["spec"]["nodeName"] for each in cluster.api.select(RESOURCE_SLICES)] == ["node-1"]


def test_scheduler_that_is_about_to_allocate_is_not_crossed() -> None:
    cluster = LivingSandbox(binder=False)
    cluster.create(RESOURCE_CLAIM_TEMPLATES, template())
    cluster.create(PODS, asking())
    (claim,) = cluster.api.select(RESOURCE_CLAIMS)
    kept = {**claim, "metadata": {**claim["metadata"], "finalizers": ["resource.kubernetes.io/delete-protection"]}}
    written = cluster.api.update(RESOURCE_CLAIMS, "default", claim["metadata"]["name"], kept)
    cluster.settle()
    assert cluster.get(RESOURCE_CLAIMS, claim["metadata"]["name"]) == written
    cluster.delete(PODS, "train")
    assert cluster.api.select(RESOURCE_CLAIMS) == []
