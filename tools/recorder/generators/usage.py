"""What is added to a random cluster: storage, devices, budgets and owners, and values at the limits of the API."""

from __future__ import annotations

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
    for name, mode in _CLASSES.items():
        provisioner = "kubernetes.io/no-provisioner" if name == "local" else "csi.example.com"
        made = new_object("storage.k8s.io/v1", "StorageClass", name)
        objects.append({**made, "provisioner": provisioner, "reclaimPolicy": "Delete", "volumeBindingMode": mode})
    nodes = [each["metadata"] for each in objects if each["kind"] == "Node"]
    for node in nodes:
        if draw.chance(0.6):
            driver: Json = {"name": "csi.example.com", "nodeID": node["name"], "topologyKeys": []}
            if draw.chance(0.7):
                driver["allocatable"] = {"count": draw.number(0, 3)}
            made = new_object("storage.k8s.io/v1", "CSINode", node["name"])
            objects.append({**made, "spec": {"drivers": [driver]}})
    # Sizes differ: among volumes of one size kube-scheduler takes the first of a map.
    objects += [_volume(draw, f"pv{i}", draw.one(nodes), f"{10 + i}Gi") for i in range(draw.number(1, 8))]
    claims = {namespace: _claims(draw, objects, namespace) for namespace in NAMESPACES}
    for pod in objects:
        namespace = pod["metadata"].get("namespace")
        # Users of a claim on a node that is gone are counted on purpose: docs/differences.md.
        if pod["kind"] == "Pod" and pod["spec"].get("nodeName") != GONE and draw.chance(0.3) and claims[namespace]:
            used = draw.some(claims[namespace], 2) or [draw.one(claims[namespace])]
            pod["spec"]["volumes"] = [
                {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(used)
            ]


def _volume(draw: Draw, name: str, node: Json, size: str) -> Json:
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
    names = [f"claim{i}" for i in range(draw.number(0, 3))]
    for name in names:
        claim = new_object("v1", "PersistentVolumeClaim", name, namespace=namespace)
        spec: Json = {
            "accessModes": [draw.one(("ReadWriteOnce", "ReadWriteOncePod"))],
            "resources": {"requests": {"storage": draw.one(("1Gi", "12Gi", "50Gi"))}},
            "storageClassName": draw.one(tuple(_CLASSES)),
            "volumeMode": "Filesystem",
        }
        status = {"phase": "Pending"}
        if draw.chance(0.4):
            volume = f"bound-{namespace}-{name}"
            made = _volume(draw, volume, {"labels": {ZONE: f"z{draw.number(0, 3)}"}}, "60Gi")
            made["spec"]["claimRef"] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": name,
                "namespace": namespace,
                "uid": claim["metadata"]["uid"],
            }
            made["status"] = {"phase": "Bound"}
            objects.append(made)
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            spec["volumeName"], status = volume, {"phase": "Bound"}
        objects.append({**claim, "spec": spec, "status": status})
    if draw.chance(0.1):
        names.append("missing")
    return names


def add_devices(draw: Draw, objects: list[Json]) -> None:
    """Slices, classes and claims, which some of the pending pods then use."""
    for name, expression in (("gpu", 'device.driver == "gpu.example.com"'), ("any", "true")):
        made = new_object("resource.k8s.io/v1", "DeviceClass", name)
        objects.append({**made, "spec": {"selectors": [{"cel": {"expression": expression}}]}})
    nodes = [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]
    objects += [_slice(draw, node) for node in nodes if draw.chance(0.5)]
    for pod in objects:
        if pod["kind"] != "Pod" or pod["spec"].get("nodeName") or not draw.chance(0.25):
            continue
        name, namespace = f"{pod['metadata']['name']}-devices", pod["metadata"]["namespace"]
        request = {
            "allocationMode": "ExactCount",
            "count": draw.number(1, 3),
            "deviceClassName": draw.one(("gpu", "any")),
        }
        if draw.chance(0.3):
            expression = 'device.attributes["gpu.example.com"].model == "a"'
            request["selectors"] = [{"cel": {"expression": expression}}]
        claim = new_object("resource.k8s.io/v1", "ResourceClaim", name, namespace=namespace)
        objects.append({**claim, "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}}})
        pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]


def _slice(draw: Draw, node: str) -> Json:
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
