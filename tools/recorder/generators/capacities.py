"""Storage that is not there yet: capacities by which v1.37 scores nodes, and drivers without which it rejects them."""

from __future__ import annotations

from tools.recorder.generators.drawing import HOSTNAME, ZONE, Draw, Json, new_object

_DRIVERS = ("csi.example.com", "slow.example.com")
_SIZES = ("1Gi", "1.5Gi", "5Gi", "10Gi", "33Gi", "100Gi", "1", "12345678901")


def storage(draw: Draw) -> Json:
    """Claims of several sizes, to be provisioned by drivers that say, or do not say, how much room they have where."""
    nodes = [_node(draw, f"n{i:02}") for i in range(draw.number(2, 6))]
    objects = [*nodes]
    objects += [_driver(draw, name) for name in _DRIVERS if draw.chance(0.8)]
    for name, driver in zip(("fast", "slow"), _DRIVERS):
        made = new_object("storage.k8s.io/v1", "StorageClass", name)
        objects.append({**made, "provisioner": driver, "volumeBindingMode": "WaitForFirstConsumer"})
    for node in nodes:
        if draw.chance(0.8):
            name = node["metadata"]["name"]
            drivers: list[Json] = []
            for driver in draw.some(_DRIVERS, 2):
                drivers.append({"name": driver, "nodeID": name, "topologyKeys": []})
                if draw.chance(0.5):
                    drivers[-1]["allocatable"] = {"count": draw.number(0, 3)}
            objects.append({**new_object("storage.k8s.io/v1", "CSINode", name), "spec": {"drivers": drivers}})
    objects += [_capacity(draw, f"cap{i:02}", nodes) for i in range(draw.number(0, 10))]
    for i in range(draw.number(0, 4)):
        objects.append(_volume(draw, f"pv{i}", f"{7 * i + 3}Gi", draw.one(nodes)))
    pending = []
    for i in range(draw.number(2, 6)):
        names = [f"c{i}-{j}" for j in range(draw.number(1, 3))]
        # Of one class: which of several missing drivers is named is left to the order of a Go map.
        kept = draw.one(("fast", "slow"))
        objects += [_claim(draw, name, kept) for name in names]
        objects.append(_pod(f"p{i}", names))
        pending.append(f"default/p{i}")
    case: Json = {"mode": draw.one(("evaluate", "sequence")), "objects": objects, "pending": pending}
    if draw.chance(0.3):
        case["config"] = _configuration(draw)
    return case


def _node(draw: Draw, name: str) -> Json:
    node = new_object("v1", "Node", name, labels={HOSTNAME: name, ZONE: draw.one(("z0", "z1"))})
    offered = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    return {**node, "spec": {}, "status": {"allocatable": offered, "capacity": offered}}


def _driver(draw: Draw, name: str) -> Json:
    spec: Json = {"storageCapacity": draw.chance(0.8)}
    if draw.chance(0.6):
        spec["preventPodSchedulingIfMissing"] = draw.chance(0.7)
    return {**new_object("storage.k8s.io/v1", "CSIDriver", name), "spec": spec}


def _capacity(draw: Draw, name: str, nodes: list[Json]) -> Json:
    made = new_object("storage.k8s.io/v1", "CSIStorageCapacity", name, namespace="default")
    labels = draw.one(nodes)["metadata"]["labels"]
    key = draw.one((HOSTNAME, ZONE))
    made["storageClassName"] = draw.one(("fast", "slow"))
    if draw.chance(0.9):
        made["nodeTopology"] = {"matchLabels": {key: labels[key]}} if draw.chance(0.9) else {}
    if draw.chance(0.9):
        made["capacity"] = draw.one(_SIZES)
        if draw.chance(0.3):  # by itself it makes kube-scheduler v1.37 panic: docs/differences.md
            made["maximumVolumeSize"] = draw.one(_SIZES)
    return made


def _volume(draw: Draw, name: str, size: str, node: Json) -> Json:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node["metadata"]["name"]]}]}
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "csi": {"driver": draw.one(_DRIVERS), "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": draw.one(("fast", "slow")),
        "volumeMode": "Filesystem",
    }
    return {**new_object("v1", "PersistentVolume", name), "spec": spec, "status": {"phase": "Available"}}


def _claim(draw: Draw, name: str, storage_class: str) -> Json:
    made = new_object("v1", "PersistentVolumeClaim", name, namespace="default")
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": draw.one(_SIZES)}},
        "storageClassName": storage_class,
        "volumeMode": "Filesystem",
    }
    return {**made, "spec": spec, "status": {"phase": "Pending"}}


def _pod(name: str, claims: list[str]) -> Json:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": one}} for i, one in enumerate(claims)]
    spec = {"schedulerName": "default-scheduler", "containers": [container], "volumes": volumes}
    return {**new_object("v1", "Pod", name, namespace="default"), "spec": spec, "status": {"phase": "Pending"}}


def _configuration(draw: Draw) -> Json:
    shape = [{"utilization": 0, "score": draw.number(0, 10)}, {"utilization": 50, "score": draw.number(0, 10)}]
    shape.append({"utilization": 100, "score": draw.number(0, 10)})
    arguments = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "VolumeBindingArgs",
        "bindTimeoutSeconds": 600,
        "shape": shape,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "VolumeBinding", "args": arguments}]}
        ],
    }


FAMILIES = {"storage": storage}
