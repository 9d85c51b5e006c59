"""Volumes and devices, with the real controllers that bind claims and make them from templates."""

from __future__ import annotations

import urllib.error
from typing import Any

import pytest
from tests.control_plane.conftest import StartKubesched
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import DEVICE_TAINT_RULES, PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS, RESOURCE_SLICES

LATE = "WaitForFirstConsumer"


def local_volume(cluster: RealCluster, name: str, node: str, storage_class: str) -> None:
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
    }
    cluster.create("v1", "PersistentVolume", name, spec=spec)


def claim(cluster: RealCluster, name: str, storage_class: str) -> None:
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": requests}
    cluster.create("v1", "PersistentVolumeClaim", name, spec=spec)


def uses(claim_name: str) -> list[dict[str, Any]]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]


def test_claim_that_waits_for_its_pod_is_bound_to_a_volume_where_the_pod_goes(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    start_kubesched()
    cluster.add_node("with-disk")
    cluster.add_node("without-disk")
    provisioner = "kubernetes.io/no-provisioner"
    cluster.create("storage.k8s.io/v1", "StorageClass", "local", provisioner=provisioner, volumeBindingMode=LATE)
    local_volume(cluster, "disk", "with-disk", "local")
    claim(cluster, "data", "local")
    cluster.add_pod("database", volumes=uses("data"))
    assert cluster.wait_bound("database") == "with-disk"
    assert cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")["spec"]["volumeName"] == "disk"


def test_pod_waits_for_a_claim_that_a_controller_binds(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    start_kubesched()
    cluster.add_node("with-disk")
    cluster.add_pod("database", volumes=uses("data"))
    assert 'persistentvolumeclaim "data" not found' in cluster.wait_rejected("database")
    provisioner = "kubernetes.io/no-provisioner"
    cluster.create("storage.k8s.io/v1", "StorageClass", "at-once", provisioner=provisioner)
    local_volume(cluster, "disk", "with-disk", "at-once")
    claim(cluster, "data", "at-once")
    assert cluster.wait_bound("database") == "with-disk"


def test_provisioner_is_told_which_node_was_chosen(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    start_kubesched()
    cluster.add_node("only")
    cluster.create("storage.k8s.io/v1", "StorageClass", "made", provisioner="example.com/disk", volumeBindingMode=LATE)
    claim(cluster, "data", "made")
    cluster.add_pod("database", volumes=uses("data"))

    def chosen() -> str:
        annotations = cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")["metadata"].get("annotations", {})
        return str(annotations.get("volume.kubernetes.io/selected-node", ""))

    assert wait_until(chosen, "a node for the provisioner", within=60) == "only"
    assert cluster.node_of("database") == ""
    local_volume(cluster, "disk", "only", "made")
    cluster.patch(PERSISTENT_VOLUME_CLAIMS, "data", {"spec": {"volumeName": "disk"}})
    assert cluster.wait_bound("database") == "only"


def test_claims_from_a_template_get_devices_until_there_are_none(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    start_kubesched()
    cluster.add_node("with-gpu")
    cluster.add_node("without-gpu")
    cluster.add_gpu_class()
    cluster.offer_gpus("with-gpu", "gpu-0", "gpu-1")
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaimTemplate", "one-gpu", spec={"spec": {"devices": {"requests": [request]}}}
    )
    wanted = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    for number in range(3):
        cluster.add_pod(f"train-{number}", resourceClaims=wanted, resources={"claims": [{"name": "gpu"}]})
    pods = [f"train-{number}" for number in range(3)]
    wait_until(lambda: sum(bool(cluster.node_of(pod)) for pod in pods) == 2, "two pods bound", within=60)
    (waiting,) = [pod for pod in pods if not cluster.node_of(pod)]
    assert "cannot allocate all claims" in cluster.wait_rejected(waiting)
    given = [each["status"]["allocation"]["devices"]["results"][0]["device"] for each in allocated(cluster)]
    assert sorted(given) == ["gpu-0", "gpu-1"]

    cluster.delete(RESOURCE_SLICES, "with-gpu")
    cluster.offer_gpus("with-gpu", "gpu-0", "gpu-1", "gpu-2", slice_name="with-more-gpus", generation=2)
    assert cluster.wait_bound(waiting) == "with-gpu"


def allocated(cluster: RealCluster) -> list[dict[str, Any]]:
    return [each for each in cluster.list(RESOURCE_CLAIMS) if each.get("status", {}).get("allocation")]


def test_a_taint_rule_keeps_devices_from_pods_until_it_is_gone(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    start_kubesched()
    cluster.add_node("with-gpu")
    cluster.add_gpu_class()
    cluster.offer_gpus("with-gpu", "gpu-0")
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    try:
        cluster.create("resource.k8s.io/v1", "DeviceTaintRule", "broken", spec={"taint": taint})
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            pytest.skip("servers have DeviceTaintRules since v1.37")
        raise
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "one-gpu", spec={"devices": {"requests": [request]}})
    wanted = [{"name": "gpu", "resourceClaimName": "one-gpu"}]
    cluster.add_pod("train", resourceClaims=wanted, resources={"claims": [{"name": "gpu"}]})
    assert "cannot allocate all claims" in cluster.wait_rejected("train")
    cluster.delete(DEVICE_TAINT_RULES, "broken")
    assert cluster.wait_bound("train") == "with-gpu"
