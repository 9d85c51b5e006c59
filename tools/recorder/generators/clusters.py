"""Random nodes, pods and what they use: storage, devices, budgets, owners."""

from __future__ import annotations

from tools.recorder.generators.drawing import (
    APPS,
    DISKS,
    EFFECTS,
    EXTENDED,
    HOSTNAME,
    IMAGES,
    NAMESPACES,
    PRIORITIES,
    REGION,
    TAINT_KEYS,
    TOPOLOGIES,
    ZONE,
    Draw,
    Json,
    new_object,
)


def namespaces() -> list[Json]:
    labels: tuple[dict[str, str], ...] = (
        {"env": "dev"},
        {"env": "prod", "team": "a"},
        {"env": "prod", "team": "b"},
        {},
    )
    return [
        new_object("v1", "Namespace", name, labels={**own, "kubernetes.io/metadata.name": name})
        for name, own in zip(NAMESPACES, labels)
    ]


def node(draw: Draw, name: str) -> Json:
    labels = {HOSTNAME: name}
    if draw.chance(0.03):
        del labels[HOSTNAME]
    if draw.chance(0.92):
        labels[ZONE] = f"z{draw.number(0, 3)}"
        labels[REGION] = f"r{draw.number(0, 1)}"
    if draw.chance(0.5):
        labels["disk"] = draw.one(DISKS)
    if draw.chance(0.4):
        labels["rack"] = f"r{draw.number(0, 9)}"
    if draw.chance(0.3):
        labels["generation"] = draw.one(("1", "2", "9", "10", "-1", "x"))
    capacity: Json = {
        "cpu": draw.one(("0", "1", "2", "4", "3900m", "16", "64")),
        "memory": draw.one(("0", "2Gi", "4Gi", "8Gi", "7.5Gi", "32Gi")),
        "pods": draw.one(("0", "1", "3", "10", "110", "110")),
        "ephemeral-storage": draw.one(("0", "10Gi", "50Gi")),
    }
    for resource in draw.some(EXTENDED, 2):
        capacity[resource] = draw.one(("64Mi", "1Gi") if resource.startswith("huge") else ("0", "1", "4"))
    spec: Json = {}
    if draw.chance(0.06):
        spec["unschedulable"] = True
    taints = [taint(draw) for _ in range(draw.number(0, 2))] if draw.chance(0.25) else []
    if taints:
        spec["taints"] = taints
    images = [
        {"names": [image], "sizeBytes": draw.one((0, 20 << 20, 300 << 20, 1 << 30, 40 << 30))}
        for image in draw.some(IMAGES, 4)
    ]
    status: Json = {"capacity": capacity, "allocatable": dict(capacity)}
    if images:
        status["images"] = images
    return {**new_object("v1", "Node", name, labels=labels), "spec": spec, "status": status}


def taint(draw: Draw) -> Json:
    found: Json = {"key": draw.one(TAINT_KEYS), "effect": draw.one(EFFECTS)}
    return {**found, "value": draw.one(("a", "b"))} if draw.chance(0.6) else found


def pod(draw: Draw, name: str, namespace: str, *, plain: float = 0.3) -> Json:
    """Pending. With the chance `plain` it asks for no more than resources."""
    spec: Json = {
        "containers": [container(draw, f"c{i}") for i in range(draw.one((1, 1, 1, 2, 3)))],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
    }
    priority = draw.one(PRIORITIES)
    if priority is not None:
        spec["priority"] = priority
    if draw.chance(0.08):
        spec["preemptionPolicy"] = "Never"
    if draw.chance(0.15):
        spec["initContainers"] = [_init_container(draw, f"i{i}") for i in range(draw.number(1, 2))]
    if draw.chance(0.08):
        spec["overhead"] = {"cpu": "10m", "memory": "16Mi"}
    if draw.chance(0.06):
        spec["resources"] = {"requests": {"cpu": "4", "memory": "4Gi"}}
    if not draw.chance(plain):
        spec.update(_wishes(draw))
    made = new_object("v1", "Pod", name, namespace=namespace, labels=draw.labels())
    if draw.chance(0.3):
        made["metadata"]["ownerReferences"] = [_owner(draw)]
    return {**made, "spec": spec}


def placed(draw: Draw, name: str, namespace: str, node_name: str) -> Json:
    """A pod on a node; some are resized, terminating, or finished."""
    made = pod(draw, name, namespace, plain=0.6)
    spec = made["spec"]
    spec["nodeName"] = node_name
    spec.pop("schedulingGates", None)
    status: Json = {"phase": draw.one(("Running", "Running", "Running", "Pending", "Succeeded", "Failed"))}
    hour, minute, second = draw.number(0, 23), draw.number(0, 59), draw.number(0, 59)
    status["startTime"] = f"2026-01-{draw.number(1, 28):02}T{hour:02}:{minute:02}:{second:02}Z"
    if draw.chance(0.2):
        status["containerStatuses"] = [_status_of(draw, each["name"]) for each in spec["containers"]]
        if draw.chance(0.3):
            reason = draw.one(("Infeasible", "Deferred"))
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if draw.chance(0.05):
        made["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
        target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        status["conditions"] = [target] if draw.chance(0.5) else []
    return {**made, "status": status}


def container(draw: Draw, name: str) -> Json:
    found: Json = {"name": name, "image": draw.one(IMAGES)}
    requests: Json = {}
    if draw.chance(0.8):
        requests["cpu"] = draw.cpu()
    if draw.chance(0.8):
        requests["memory"] = draw.memory()
    if draw.chance(0.1):
        requests["ephemeral-storage"] = draw.one(("1Gi", "20Gi"))
    limits: Json = {}
    if draw.chance(0.12):
        resource = draw.one(EXTENDED)
        requests[resource] = limits[resource] = "64Mi" if resource.startswith("huge") else draw.one(("1", "2", 1))
        requests.setdefault("cpu", "100m")
    if requests:
        found["resources"] = {"requests": requests, **({"limits": limits} if limits else {})}
    if draw.chance(0.1):
        port: Json = {"containerPort": 80, "hostPort": draw.one((80, 8080)), "protocol": draw.one(("TCP", "UDP"))}
        found["ports"] = [{**port, "hostIP": draw.one(("10.0.0.1", "0.0.0.0"))} if draw.chance(0.4) else port]
    return found


def _init_container(draw: Draw, name: str) -> Json:
    found = container(draw, name)
    found.pop("ports", None)
    return {**found, "restartPolicy": "Always"} if draw.chance(0.4) else found


def _status_of(draw: Draw, name: str) -> Json:
    found: Json = {"name": name, "image": "x", "imageID": "", "ready": True, "restartCount": 0}
    actual = {"cpu": draw.cpu(), "memory": draw.memory()}
    return {**found, "allocatedResources": actual, "resources": {"requests": actual}}


def _wishes(draw: Draw) -> Json:
    found: Json = {}
    affinity: Json = {}
    if draw.chance(0.25):
        found["nodeSelector"] = {"disk": draw.one(DISKS)}
    if draw.chance(0.35):
        affinity["nodeAffinity"] = _node_affinity(draw)
    if draw.chance(0.3):
        affinity["podAffinity"] = _pod_affinity(draw, required=0.35)
    if draw.chance(0.35):
        affinity["podAntiAffinity"] = _pod_affinity(draw, required=0.5)
    if affinity:
        found["affinity"] = affinity
    if draw.chance(0.3):
        found["tolerations"] = [_toleration(draw) for _ in range(draw.number(1, 3))]
    if draw.chance(0.35):
        constraints = [_spread(draw) for _ in range(draw.number(1, 3))]
        unique = {(each["topologyKey"], each["whenUnsatisfiable"]): each for each in constraints}
        found["topologySpreadConstraints"] = list(unique.values())
    if draw.chance(0.03):
        found["schedulingGates"] = [{"name": "example.com/wait"}]
    return found


def _node_affinity(draw: Draw) -> Json:
    found: Json = {}
    if draw.chance(0.6):
        terms = [{"matchExpressions": [draw.node_requirement() for _ in range(draw.number(1, 2))]}]
        if draw.chance(0.3):
            terms.append({"matchExpressions": [draw.node_requirement()]})
        if draw.chance(0.1):
            names = [f"n{draw.number(0, 9):03}" for _ in range(1)]
            terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]})
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draw.chance(0.6) or not found:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw.number(1, 100), "preference": {"matchExpressions": [draw.node_requirement()]}}
            for _ in range(draw.number(1, 3))
        ]
    return found


def _pod_affinity(draw: Draw, *, required: float) -> Json:
    found: Json = {}
    if draw.chance(required):
        terms = [_term(draw) for _ in range(draw.number(1, 2))]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    if draw.chance(0.6) or not found:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw.number(1, 100), "podAffinityTerm": _term(draw)} for _ in range(draw.number(1, 2))
        ]
    return found


def _term(draw: Draw) -> Json:
    found: Json = {"topologyKey": draw.one(TOPOLOGIES)}
    if draw.chance(0.95):
        found["labelSelector"] = draw.selector()
    if draw.chance(0.2):
        found["namespaces"] = draw.some(NAMESPACES, 2)
    if draw.chance(0.2):
        found["namespaceSelector"] = draw.one(({}, {"matchLabels": {"env": "prod"}}, {"matchLabels": {"team": "b"}}))
    return found


def _toleration(draw: Draw) -> Json:
    if draw.chance(0.1):
        return {"operator": "Exists"}
    found: Json = {"key": draw.one(TAINT_KEYS)}
    found.update(draw.one(({"operator": "Exists"}, {"operator": "Equal", "value": "a"}, {"value": "b"})))
    return {**found, "effect": draw.one(EFFECTS)} if draw.chance(0.5) else found


def _spread(draw: Draw) -> Json:
    found: Json = {
        "maxSkew": draw.one((1, 1, 2, 5)),
        "topologyKey": draw.one(TOPOLOGIES),
        "whenUnsatisfiable": draw.one(("DoNotSchedule", "ScheduleAnyway")),
    }
    if draw.chance(0.9):
        found["labelSelector"] = draw.selector()
    if draw.chance(0.2) and found["whenUnsatisfiable"] == "DoNotSchedule":
        found["minDomains"] = draw.number(1, 6)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.chance(0.2):
            found[policy] = draw.one(("Honor", "Ignore"))
    if draw.chance(0.2) and "labelSelector" in found:
        found["matchLabelKeys"] = ["version"]
    return found


def _owner(draw: Draw) -> Json:
    kind, version = draw.one((("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("ReplicationController", "v1")))
    name = f"{kind.lower()}-{draw.one(APPS)}"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
