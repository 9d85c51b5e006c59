"""What is added to a random cluster: storage, devices, budgets and owners, and values at the limits of the API."""

from __future__ import annotations

from collections.abc import Sequence

from tools.recorder.generators.drawing import APPS, GONE, HOSTNAME, NAMESPACES, ZONE, Draw, Json, new_object

_CLASSES = {"late": "WaitForFirstConsumer", "now": "Immediate", "local": "WaitForFirstConsumer"}


def add_workloads(draw: Draw, objects: list[Json]) -> None:
    """Budgets, services and the owners that pods name."""
    for namespace in NAMESPACES:
        for app in draw.some(APPS, 3):
            selector = {"matchLabels": {"app": app}}
            allowed = draw.one((0, 0, 1, 3))
            budget = new_object("policy/v1", "PodDisruptionBudget", f"pdb-{app}", namespace=namespace)
            objects.append({**budget, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}})
        for app in draw.some(APPS, 2):
            service = new_object("v1", "Service", f"svc-{app}", namespace=namespace)
            objects.append({**service, "spec": {"selector": {"app": app}, "type": "ClusterIP"}})
        for app in draw.some(APPS, 3):
            name = f"replicaset-{app}"
            owner = new_object("apps/v1", "ReplicaSet", name, namespace=namespace)
            owner["metadata"]["uid"] = f"uid-{name}"
            objects.append({**owner, "spec": {"selector": {"matchLabels": {"app": app}}}})


def add_storage(draw: Draw, objects: list[Json]) -> None:
    """Classes, volumes and claims, which some of the pods then use."""
    objects += storage_classes()
    nodes = [each["metadata"] for each in objects if each["kind"] == "Node"]
    for node in nodes:
        if draw.chance(0.6):
            objects.append(csi_node(draw, node["name"]))
    # Sizes differ: among volumes of one size kube-scheduler takes the first of a map.
    objects += [volume(draw, f"pv{i}", draw.one(nodes), f"{10 + i}Gi") for i in range(draw.number(1, 8))]
    claims = {namespace: _claims(draw, objects, namespace) for namespace in NAMESPACES}
    for pod in objects:
        namespace = pod["metadata"].get("namespace")
        # Users of a claim on a node that is gone are counted on purpose: docs/differences.md.
        if pod["kind"] == "Pod" and pod["spec"].get("nodeName") != GONE and draw.chance(0.3) and claims[namespace]:
            used = draw.some(claims[namespace], 2) or [draw.one(claims[namespace])]
            pod["spec"]["volumes"] = [
                {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(used)
            ]


def storage_classes() -> list[Json]:
    provisioners = {"local": "kubernetes.io/no-provisioner"}
    return [
        {
            **new_object("storage.k8s.io/v1", "StorageClass", name),
            "provisioner": provisioners.get(name, "csi.example.com"),
            "reclaimPolicy": "Delete",
            "volumeBindingMode": mode,
        }
        for name, mode in _CLASSES.items()
    ]


def csi_node(draw: Draw, name: str) -> Json:
    driver: Json = {"name": "csi.example.com", "nodeID": name, "topologyKeys": []}
    if draw.chance(0.7):
        driver["allocatable"] = {"count": draw.number(0, 3)}
    return {**new_object("storage.k8s.io/v1", "CSINode", name), "spec": {"drivers": [driver]}}


def volume(draw: Draw, name: str, node: Json, size: str) -> Json:
    key = draw.one((HOSTNAME, ZONE))
    value = node.get("labels", {}).get(key, "none")
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": draw.one(("late", "local")),
        "volumeMode": "Filesystem",
    }
    return {**new_object("v1", "PersistentVolume", name), "spec": spec, "status": {"phase": "Available"}}


def _claims(draw: Draw, objects: list[Json], namespace: str) -> list[str]:
    names = [f"{namespace}-claim{i}" for i in range(draw.number(0, 3))]
    for name in names:
        objects += volume_claim(draw, name, namespace)
    if draw.chance(0.1):
        names.append("missing")
    return names


def volume_claim(
    draw: Draw, name: str, namespace: str, modes: Sequence[str] = ("ReadWriteOnce", "ReadWriteOncePod")
) -> list[Json]:
    """A claim, after the volume that it is bound to if it is bound."""
    claim = new_object("v1", "PersistentVolumeClaim", name, namespace=namespace)
    spec: Json = {
        "accessModes": [draw.one(modes)],
        "resources": {"requests": {"storage": draw.one(("1Gi", "12Gi", "50Gi"))}},
        "storageClassName": draw.one(tuple(_CLASSES)),
        "volumeMode": "Filesystem",
    }
    if not draw.chance(0.4):
        return [{**claim, "spec": spec, "status": {"phase": "Pending"}}]
    bound = volume(draw, f"bound-{name}", {"labels": {ZONE: f"z{draw.number(0, 3)}"}}, "60Gi")
    bound["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": name,
        "namespace": namespace,
        "uid": claim["metadata"]["uid"],
    }
    bound["status"] = {"phase": "Bound"}
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    spec["volumeName"] = bound["metadata"]["name"]
    return [bound, {**claim, "spec": spec, "status": {"phase": "Bound"}}]


def add_devices(draw: Draw, objects: list[Json]) -> None:
    """Slices, classes and claims, which some of the pending pods then use."""
    objects += device_classes()
    nodes = [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]
    objects += [device_slice(draw, node) for node in nodes if draw.chance(0.5)]
    for pod in objects:
        if pod["kind"] != "Pod" or pod["spec"].get("nodeName") or not draw.chance(0.25):
            continue
        name, namespace = f"{pod['metadata']['name']}-devices", pod["metadata"]["namespace"]
        objects.append(device_claim(draw, name, namespace))
        pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]


def device_classes() -> list[Json]:
    expressions = {"gpu": 'device.driver == "gpu.example.com"', "any": "true"}
    return [
        {
            **new_object("resource.k8s.io/v1", "DeviceClass", name),
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        for name, expression in expressions.items()
    ]


def device_claim(draw: Draw, name: str, namespace: str) -> Json:
    request: Json = {
        "allocationMode": "ExactCount",
        "count": draw.number(1, 3),
        "deviceClassName": draw.one(("gpu", "any")),
    }
    if draw.chance(0.3):
        expression = 'device.attributes["gpu.example.com"].model == "a"'
        request["selectors"] = [{"cel": {"expression": expression}}]
    claim = new_object("resource.k8s.io/v1", "ResourceClaim", name, namespace=namespace)
    return {**claim, "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}}}


def device_slice(draw: Draw, node: str) -> Json:
    devices = [
        {"name": f"d{i}", "attributes": {"model": {"string": draw.one(("a", "b"))}}} for i in range(draw.number(1, 4))
    ]
    pool = {"generation": 1, "name": node, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {**new_object("resource.k8s.io/v1", "ResourceSlice", f"slice-{node}"), "spec": spec}


def to_the_limit_of_nodes(draw: Draw, node: Json) -> None:
    """As large as it goes without sums beyond 64 bits, which docs/differences.md speaks of."""
    node["status"]["allocatable"].update(
        cpu=draw.one(("1", "1m", "9007199254740993m", "100000", "0.0001")),
        memory=draw.one(("1", "9007199254740993", "9223372036854775", "1e15", "4Pi", "999999999999m")),
        pods=draw.one(("0", "1", "2147483647", "9223372036854775807")),
    )
    node["metadata"].setdefault("labels", {})["long.example.com/" + "k" * 63] = "v" * 63


def to_the_limit_of_pods(draw: Draw, pod: Json) -> None:
    for container in pod["spec"]["containers"]:
        requests = container.setdefault("resources", {}).setdefault("requests", {})
        requests["cpu"] = draw.one(("1n", "1u", "1m", "999999", "0.0000001", "1e3", "4503599627370497m", "99999999n"))
        requests["memory"] = draw.one(("1m", "0.5", "1Ki", "1Pi", "9007199254740993", "4503599627370496", "1e15", "1n"))
    pod["spec"]["priority"] = draw.one((-2147483648, -1, 0, 1000000000, 2147483647))
