from __future__ import annotations

from tests.living_sandbox import LivingSandbox, pod
from tests.sandbox_server import refused

from kubesched.api.kinds import CSI_NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES, Object

ZONE = "topology.kubernetes.io/zone"


def claim(name: str = "data", storage: str = "1Gi", storage_class: str = "", **spec: object) -> Object:
    requests = {"requests": {"storage": storage}}
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": requests, "storageClassName": storage_class, **spec},
    }


def volume(name: str, storage: str = "1Gi", **spec: object) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": storage},
            "nfs": {"server": "files", "path": f"/{name}"},
            **spec,
        },
    }


def storage_class(mode: str = "Immediate", provisioner: str = "disks.example.com", **more: object) -> Object:
    return {"metadata": {"name": "fast"}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def phase(cluster: LivingSandbox, name: str = "data") -> str:
    return str(cluster.get(PERSISTENT_VOLUME_CLAIMS, name)["status"]["phase"])


def with_claim(name: str, **spec: object) -> Object:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}], **spec)


def select_node(cluster: LivingSandbox, node: str) -> None:
    annotations = {"volume.kubernetes.io/selected-node": node}
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", {"metadata": {"annotations": annotations}})


def test_claim_is_bound_to_the_smallest_volume_that_suits() -> None:
    cluster = LivingSandbox(nodes=0)
    for name, storage in (("small", "500Mi"), ("large", "10Gi"), ("right", "2Gi")):
        cluster.create(PERSISTENT_VOLUMES, volume(name, storage))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    bound = cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")
    assert (bound["spec"]["volumeName"], bound["status"]["phase"]) == ("right", "Bound")
    assert bound["status"]["capacity"] == {"storage": "2Gi"}
    assert cluster.get(PERSISTENT_VOLUMES, "right")["status"]["phase"] == "Bound"
    assert cluster.get(PERSISTENT_VOLUMES, "large")["status"]["phase"] == "Available"


def test_claim_waits_for_a_volume_and_takes_it_when_it_comes() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    assert phase(cluster) == "Pending"
    assert "FailedBinding" in cluster.reasons("data")
    cluster.create(PERSISTENT_VOLUMES, volume("late"))
    assert phase(cluster) == "Bound"


def test_two_claims_never_share_a_volume() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(PERSISTENT_VOLUMES, volume("only"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("one"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("two"))
    assert (phase(cluster, "one"), phase(cluster, "two")) == ("Bound", "Pending")


def test_class_with_a_provisioner_makes_a_volume_and_takes_it_away_again() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(STORAGE_CLASSES, storage_class())
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    (made,) = cluster.api.select(PERSISTENT_VOLUMES)
    assert phase(cluster) == "Bound"
    assert made["spec"]["csi"]["driver"] == "disks.example.com"
    cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    assert cluster.api.select(PERSISTENT_VOLUMES) == []


def test_volume_that_is_to_be_retained_is_released_and_taken_by_nobody() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(PERSISTENT_VOLUMES, volume("kept"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    assert cluster.get(PERSISTENT_VOLUMES, "kept")["status"]["phase"] == "Released"
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    assert phase(cluster) == "Pending"


def test_claim_that_waits_for_its_consumer_is_provisioned_where_the_scheduler_says() -> None:
    cluster = LivingSandbox()
    cluster.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer"))
    cluster.run(1)
    driver = {"name": "disks.example.com", "nodeID": "node-1", "topologyKeys": [ZONE]}
    cluster.change(CSI_NODES, "node-1", {"spec": {"drivers": [driver]}})
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    assert phase(cluster) == "Pending"
    assert cluster.reasons("data") == ["WaitForFirstConsumer"]
    select_node(cluster, "node-1")
    (made,) = cluster.api.select(PERSISTENT_VOLUMES)
    expression = {"key": ZONE, "operator": "In", "values": ["zone-b"]}
    assert made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] == [{"matchExpressions": [expression]}]
    assert phase(cluster) == "Bound"


def test_node_outside_the_allowed_topologies_is_given_back_to_the_scheduler() -> None:
    cluster = LivingSandbox()
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-a"]}]}]
    cluster.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer", allowedTopologies=allowed))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    select_node(cluster, "node-1")
    assert phase(cluster) == "Pending"
    assert not cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")["metadata"].get("annotations")
    select_node(cluster, "node-0")
    assert phase(cluster) == "Bound"


def test_volume_that_the_scheduler_promised_is_bound() -> None:
    cluster = LivingSandbox()
    cluster.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer", "kubernetes.io/no-provisioner"))
    cluster.create(PERSISTENT_VOLUMES, volume("local", storageClassName="fast"))
    made = cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    assert phase(cluster) == "Pending"
    promise = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
    cluster.change(PERSISTENT_VOLUMES, "local", {"spec": {"claimRef": promise}})
    assert phase(cluster) == "Bound"


def test_claim_in_use_stays_until_its_pod_is_gone() -> None:
    cluster = LivingSandbox()
    cluster.create(STORAGE_CLASSES, storage_class())
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    cluster.create(PODS, with_claim("user"))
    cluster.run(5)
    cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    assert cluster.api.find(PERSISTENT_VOLUME_CLAIMS, "default", "data") is not None
    cluster.delete(PODS, "user")
    cluster.run(5)
    assert cluster.api.find(PERSISTENT_VOLUME_CLAIMS, "default", "data") is None


def test_bound_claim_whose_volume_vanishes_is_lost() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(PERSISTENT_VOLUMES, volume("fragile"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.delete(PERSISTENT_VOLUMES, "fragile")
    cluster.change(PERSISTENT_VOLUMES, "fragile", {"metadata": {"finalizers": None}})
    assert phase(cluster) == "Lost"


def test_ephemeral_volume_has_a_claim_that_goes_with_its_pod() -> None:
    cluster = LivingSandbox()
    cluster.create(STORAGE_CLASSES, storage_class())
    made = {"volumeClaimTemplate": {"spec": claim(storage_class="fast")["spec"]}}
    cluster.create(PODS, pod("short", volumes=[{"name": "scratch", "ephemeral": made}]))
    assert phase(cluster, "short-scratch") == "Bound"
    cluster.run(5)
    cluster.delete(PODS, "short")
    cluster.run(5)
    assert cluster.api.select(PERSISTENT_VOLUME_CLAIMS) == []


def ask_for_more(cluster: LivingSandbox) -> None:
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})


def test_claim_grows_with_its_volume_where_the_class_allows_it() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(STORAGE_CLASSES, storage_class(allowVolumeExpansion=True))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    ask_for_more(cluster)
    bound = cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")
    assert bound["status"]["capacity"] == {"storage": "2Gi"}
    assert cluster.get(PERSISTENT_VOLUMES, bound["spec"]["volumeName"])["spec"]["capacity"] == {"storage": "2Gi"}


def test_claim_may_not_grow_where_the_class_does_not_allow_it_or_before_it_is_bound() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(STORAGE_CLASSES, storage_class())
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class="fast"))
    with refused(403, "Forbidden") as caught:
        ask_for_more(cluster)
    assert "the storageclass that provisions the pvc must support resize" in caught.value.message
    late = storage_class("WaitForFirstConsumer", allowVolumeExpansion=True)
    cluster.create(STORAGE_CLASSES, {**late, "metadata": {"name": "late"}})
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("waiting", storage_class="late"))
    with refused(422, "Invalid"):
        cluster.change(PERSISTENT_VOLUME_CLAIMS, "waiting", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
