"""Volumes on a live API server: the daemon begins a binding, the test plays whoever completes it."""

from __future__ import annotations

from typing import Any

from tests.integration.conftest import StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until

from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS as CLAIMS
from kubesched.api.kinds import PERSISTENT_VOLUMES as VOLUMES
from kubesched.api.kinds import STORAGE_CLASSES, Object

BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def test_volume_on_the_right_node_is_given_to_the_claim_and_the_pod_bound_once_that_is_settled(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _add_class(cluster, "kubernetes.io/no-provisioner")
    cluster.add_nodes(2)
    _add_volume(cluster, "disk", node="node-1")
    claim = _add_claim(cluster)
    _add_pod_with_claim(cluster)
    start_daemon(cluster)

    volume = wait_until(lambda: _claimed(cluster, "disk"), "the volume given to the claim")
    reference = volume["spec"]["claimRef"]
    assert (reference["kind"], reference["namespace"], reference["name"]) == (
        "PersistentVolumeClaim",
        "default",
        "data",
    )
    assert reference["uid"] == claim["metadata"]["uid"]
    assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert cluster.pod("pod")["status"].get("nominatedNodeName") == "node-1"
    assert cluster.node_of("pod") == ""

    _settle(cluster, "disk")
    wait_until(lambda: cluster.node_of("pod") == "node-1", "the pod bound where its volume is")


def test_claim_asks_for_a_volume_on_the_chosen_node_and_the_pod_is_bound_once_it_is_made(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _add_class(cluster, "example.com/disks")
    cluster.add_node("node")
    _add_claim(cluster)
    _add_pod_with_claim(cluster)
    start_daemon(cluster)

    wait_until(lambda: _selected_node(cluster) == "node", "the node written to the claim")
    assert cluster.node_of("pod") == ""
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": _uid_of_claim(cluster)}
    _add_volume(cluster, "made", node="node", claimRef=reference)
    _settle(cluster, "made")
    wait_until(lambda: cluster.node_of("pod") == "node", "the pod bound")


def test_provisioner_that_gives_up_on_a_node_sends_the_pod_back_to_the_queue(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _add_class(cluster, "example.com/disks")
    cluster.add_node("node")
    _add_claim(cluster)
    _add_pod_with_claim(cluster)
    daemon = start_daemon(cluster)
    wait_until(lambda: _selected_node(cluster), "the node written to the claim")
    cluster.patch(
        CLAIMS, "default", "data", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
    )
    daemon.wait_for_log('provisioning failed for PVC \\"data\\"')
    wait_until(lambda: _selected_node(cluster), "the claim asking again")


def test_pod_whose_claim_is_missing_is_bound_when_the_claim_comes(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _add_class(cluster, "kubernetes.io/no-provisioner")
    cluster.add_nodes(1)
    _add_pod_with_claim(cluster)
    start_daemon(cluster)
    message = wait_until(lambda: cluster.condition("pod").get("message"), "a condition")
    assert 'persistentvolumeclaim "data" not found' in message
    _add_volume(cluster, "disk", node="node-0")
    _add_claim(cluster)
    wait_until(lambda: _claimed(cluster, "disk"), "the volume given to the claim")
    _settle(cluster, "disk")
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")


def _add_class(cluster: LiveCluster, provisioner: str) -> None:
    storage_class = {
        "metadata": {"name": "local"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    cluster.create(STORAGE_CLASSES, storage_class)


def _add_volume(cluster: LiveCluster, name: str, *, node: str, **spec: Any) -> None:
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    volume = {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
            **spec,
        },
    }
    cluster.create(VOLUMES, volume)
    cluster.patch(VOLUMES, "", name, {"status": {"phase": "Available"}}, "status")


def _add_claim(cluster: LiveCluster) -> Object:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }
    return cluster.create(CLAIMS, claim, "default")


def _add_pod_with_claim(cluster: LiveCluster) -> None:
    cluster.add_pod("pod", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


def _claimed(cluster: LiveCluster, name: str) -> Object | None:
    volume = cluster.call(lambda: cluster.api.get(VOLUMES, "", name))
    return volume if volume["spec"].get("claimRef") else None


def _selected_node(cluster: LiveCluster) -> str:
    claim = cluster.call(lambda: cluster.api.get(CLAIMS, "default", "data"))
    return str((claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node", ""))


def _uid_of_claim(cluster: LiveCluster) -> str:
    return str(cluster.call(lambda: cluster.api.get(CLAIMS, "default", "data"))["metadata"]["uid"])


def _settle(cluster: LiveCluster, volume: str) -> None:
    """What the controller of persistent volumes does once a volume names its claim."""
    claim = {"metadata": {"annotations": BOUND}, "spec": {"volumeName": volume}}
    cluster.patch(CLAIMS, "default", "data", claim)
    cluster.patch(VOLUMES, "", volume, {"status": {"phase": "Bound"}}, "status")
    cluster.patch(CLAIMS, "default", "data", {"status": {"phase": "Bound"}}, "status")
