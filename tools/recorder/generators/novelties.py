"""What v1.37 does differently, in random clusters: resizes, budgets that overlap, image volumes, and devices."""

from __future__ import annotations

from tools.recorder.generators.drawing import APPS, IMAGES, Draw, Json, new_object

DRIVER = "gpu.example.com"
_AMOUNTS = (
    "0",
    "1",
    "1500m",
    "2",
    "2Gi",
    "3Gi",
    "0.25",
    "100m",
    "7",
    "1001m",
    "1n",
    "-1",
    "9223372036854775807",
    "10E",
)
_SELECTORS = (
    'device.attributes["gpu.example.com"].model == "a"',
    'device.attributes["gpu.example.com"].nope == "a"',
    'has(device.attributes["gpu.example.com"].numa)',
    'device.attributes["gpu.example.com"].numa > 0',
    'device.attributes["gpu.example.com"].models.includes("a")',
    'device.attributes["gpu.example.com"].models.exists(m, m == "b")',
    'device.attributes["gpu.example.com"].flag',
    'device.attributes["gpu.example.com"].models',
    'size(device.attributes["gpu.example.com"].sizes) > 1',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("2Gi")) >= 0',
    "device.allowMultipleAllocations",
    "1 / 0 == 1",
)


def devices(draw: Draw) -> Json:
    """Pools with shares, counters, lists and groups, and claims that ask for them in the ways that changed."""
    nodes = [_node(draw, f"n{i:02}") for i in range(draw.number(2, 4))]
    names = [node["metadata"]["name"] for node in nodes]
    objects = [*nodes, *(one for name in names for one in _pool(draw, name, names))]
    device_class = new_object("resource.k8s.io/v1", "DeviceClass", "gpu")
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    config = [{"opaque": {"driver": DRIVER, "parameters": {"of": "class"}}}] if draw.chance(0.4) else []
    objects.append({**device_class, "spec": {"selectors": [selector], "config": config}})
    held = _held(draw, names)
    objects += held
    pending = []
    for i in range(draw.number(2, 5)):
        objects += [_claim(draw, f"cl{i}"), _claiming_pod(draw, f"p{i}", f"cl{i}")]
        pending.append(f"default/p{i}")
    return {"mode": draw.one(("evaluate", "sequence", "sequence-bind")), "objects": objects, "pending": pending}


def _node(draw: Draw, name: str) -> Json:
    node = new_object("v1", "Node", name, labels={"kubernetes.io/hostname": name, "zone": draw.one(("a", "b"))})
    offered = {"cpu": draw.one(("2", "4")), "memory": "8Gi", "pods": "20"}
    images = [{"names": [image], "sizeBytes": draw.number(1, 900) << 20} for image in draw.some(IMAGES, 4)]
    return {**node, "spec": {}, "status": {"allocatable": offered, "capacity": offered, "images": images}}


def _pool(draw: Draw, name: str, nodes: list[str]) -> list[Json]:
    has_counters = draw.chance(0.5)
    spec: Json = {"driver": DRIVER, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1 + has_counters}}
    where: Json = draw.one(
        ({"nodeName": name}, {"nodeName": name}, {"allNodes": True}, {"nodeSelector": _zone(draw)}, {"each": True})
    )
    made = [_device(draw, f"d{i}", has_counters) for i in range(draw.number(1, 4))]
    if where.pop("each", False):
        where = {"perDeviceNodeSelection": True}
        made = [{**device, "nodeName": draw.one(nodes)} for device in made]
    slices = [
        {**new_object("resource.k8s.io/v1", "ResourceSlice", f"s-{name}"), "spec": {**spec, **where, "devices": made}}
    ]
    if has_counters:
        counters = {"memory": {"value": draw.one(("4", "8", "2500m"))}}
        of_counters: Json = draw.one(({"nodeName": name}, {"nodeName": draw.one(nodes)}, {"allNodes": True}))
        counting = {**spec, **of_counters, "sharedCounters": [{"name": "gpu", "counters": counters}]}
        slices.append({**new_object("resource.k8s.io/v1", "ResourceSlice", f"c-{name}"), "spec": counting})
    return slices if draw.chance(0.95) else slices[:1]


def _zone(draw: Draw) -> Json:
    zone = {"key": "zone", "operator": "In", "values": [draw.one(("a", "b"))]}
    return {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}


def _device(draw: Draw, name: str, has_counters: bool) -> Json:
    attributes: Json = {"model": {"string": draw.one(("a", "b"))}, "flag": {"bool": draw.chance(0.7)}}
    if draw.chance(0.7):
        attributes["numa"] = {"int": draw.number(0, 2)}
    if draw.chance(0.3):
        attributes["models"] = {"strings": draw.some(("a", "b", "c"), 3) or ["a"]}
    if draw.chance(0.2):
        attributes["sizes"] = {"ints": [1, 2][: draw.number(1, 2)]}
    device: Json = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": draw.one(("1", "4", "4Gi"))}},
    }
    if draw.chance(0.6):
        device["allowMultipleAllocations"] = True
        device["capacity"]["memory"]["requestPolicy"] = _policy(draw)
    if has_counters and draw.chance(0.8):
        used: Json = {"counterSet": "gpu", "counters": {"memory": {"value": draw.one(("1", "2", "500m"))}}}
        if draw.chance(0.05):
            used["compatibilityGroups"] = ["mig"]
        device["consumesCounters"] = [used]
    return device


def _policy(draw: Draw) -> Json:
    least, step = draw.one((("1", "1"), ("200m", "100m"), ("0.5", "0.25"), ("1Gi", "512Mi"), ("0", "7m"), ("1", "0.3")))
    allowed: Json = {"min": least, "step": step}
    if draw.chance(0.5):
        allowed["max"] = draw.one(("3", "2500m", "4Gi"))
    return (
        {"default": least, "validRange": allowed} if draw.chance(0.8) else {"default": "1", "validValues": ["1", "2"]}
    )


def _request(draw: Draw, name: str) -> Json:
    asked: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": draw.one((1, 1, 2, 3))}
    if draw.chance(0.15):
        asked = {"deviceClassName": "gpu", "allocationMode": "All"}
    if draw.chance(0.5):
        asked["selectors"] = [{"cel": {"expression": draw.one(_SELECTORS)}}]
    if draw.chance(0.5):
        asked["capacity"] = {"requests": {"memory": draw.one(_AMOUNTS)}}
    if draw.chance(0.03):
        asked["derivedAttributes"] = [{"name": "x", "cel": {"expression": "1"}}]
    return {"name": name, "exactly": asked}


def _claim(draw: Draw, name: str) -> Json:
    requests = [_request(draw, f"r{i}") for i in range(draw.number(1, 2))]
    asked: Json = {"requests": requests}
    if draw.chance(0.4):
        kind = draw.one(("distinctAttribute", "distinctAttribute", "matchAttribute"))
        asked["constraints"] = [{kind: f"{DRIVER}/{draw.one(('model', 'numa', 'models'))}"}]
    if draw.chance(0.4):
        named = draw.some([request["name"] for request in requests], 2)
        asked["config"] = [{"requests": named, "opaque": {"driver": DRIVER, "parameters": {"a": 1}}}]
    return {**new_object("resource.k8s.io/v1", "ResourceClaim", name, namespace="default"), "spec": {"devices": asked}}


def _held(draw: Draw, names: list[str]) -> list[Json]:
    """Claims that hold devices already, some of them shares that consume nothing."""
    made = []
    for i, name in enumerate(draw.some(names, 3)):
        result: Json = {"request": "r", "driver": DRIVER, "pool": name, "device": "d0"}
        if draw.chance(0.6):
            result["shareID"] = f"00000000-0000-4000-8000-00000000000{i}"
            if draw.chance(0.6):
                result["consumedCapacity"] = {"memory": draw.one(("1", "500m", "1Gi"))}
        claim = new_object("resource.k8s.io/v1", "ResourceClaim", f"held{i}", namespace="default")
        asked = {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}}
                ]
            }
        }
        users = [{"resource": "pods", "name": "other", "uid": f"uid-other-{i}"}]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}
        made.append({**claim, "spec": asked, "status": status})
    return made


def _claiming_pod(draw: Draw, name: str, claim: str) -> Json:
    pod = new_object("v1", "Pod", name, namespace="default")
    container = {"name": "c", "image": draw.one(IMAGES), "resources": {"requests": {"cpu": "100m"}}}
    claims = [{"name": "x", "resourceClaimName": claim}]
    spec = {"schedulerName": "default-scheduler", "containers": [container], "resourceClaims": claims}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


def pods(draw: Draw) -> Json:
    """Pods that are resized, budgets that overlap, image volumes, and namespaces without labels."""
    nodes = [_node(draw, f"n{i:02}") for i in range(draw.number(1, 4))]
    objects = list(nodes)
    for namespace in ("default", "team-a", "team-b"):
        labels = {"kind": "team"} if draw.chance(0.5) else {}
        objects.append(new_object("v1", "Namespace", namespace, labels=labels))
    for i in range(draw.number(0, 5)):
        budget = new_object("policy/v1", "PodDisruptionBudget", f"b{i}", namespace="default")
        selector = {"matchLabels": draw.one(({"app": "web"}, {"app": "api"}, {"tier": "front"}))}
        objects.append({**budget, "spec": {"selector": selector}, "status": {"disruptionsAllowed": draw.number(0, 2)}})
    names = [node["metadata"]["name"] for node in nodes]
    objects += [_placed(draw, f"b{i:02}", draw.one(names), i) for i in range(draw.number(2, 10))]
    pending = []
    for i in range(draw.number(1, 4)):
        objects.append(_wanting(draw, f"p{i}"))
        pending.append(f"default/p{i}")
    return {"mode": draw.one(("evaluate", "sequence")), "objects": objects, "pending": pending}


def _containers(draw: Draw, prefix: str, count: int) -> list[Json]:
    return [
        {"name": f"{prefix}{i}", "image": draw.one(IMAGES), "resources": {"requests": _amounts(draw)}}
        for i in range(count)
    ]


def _amounts(draw: Draw) -> Json:
    """Never none at all: an API server leaves out what is empty."""
    found = {name: amount for name, amount in (("cpu", draw.cpu()), ("memory", draw.memory())) if draw.chance(0.8)}
    return found or {"cpu": draw.cpu()}


def _placed(draw: Draw, name: str, node: str, number: int) -> Json:
    labels = {"app": draw.one(APPS[:3]), "tier": draw.one(("front", "back"))}
    pod = new_object("v1", "Pod", name, namespace=draw.one(("default", "default", "team-a", "team-b")), labels=labels)
    containers, inits = _containers(draw, "c", draw.number(1, 3)), _containers(draw, "i", draw.number(0, 2))
    for container in inits:
        if draw.chance(0.5):
            container["restartPolicy"] = "Always"
    spec: Json = {
        "schedulerName": "default-scheduler",
        "nodeName": node,
        "containers": containers,
        "priority": draw.number(0, 3),
    }
    if inits:
        spec["initContainers"] = inits
    started = f"2026-02-{1 + number:02}T00:00:00Z"
    status: Json = {"phase": "Running", "startTime": started}
    if draw.chance(0.6):
        status["containerStatuses"] = [_status(draw, one["name"]) for one in containers if draw.chance(0.8)]
        status["initContainerStatuses"] = [_status(draw, one["name"]) for one in inits if draw.chance(0.8)]
        if draw.chance(0.3):
            status["conditions"] = [
                {"type": "PodResizePending", "status": "True", "reason": draw.one(("Infeasible", "Deferred"))}
            ]
    if draw.chance(0.3):
        spec["resources"] = {"requests": _amounts(draw)}
        if draw.chance(0.6):
            status["resources"] = {"requests": _amounts(draw)}
        if draw.chance(0.6):
            status["allocatedResources"] = _amounts(draw)
    return {**pod, "spec": spec, "status": status}


def _status(draw: Draw, name: str) -> Json:
    found: Json = {"name": name}
    if draw.chance(0.8):
        found["resources"] = {"requests": _amounts(draw)}
    if draw.chance(0.7):
        found["allocatedResources"] = _amounts(draw)
    return found


def _wanting(draw: Draw, name: str) -> Json:
    pod = new_object("v1", "Pod", name, namespace="default", labels={"app": draw.one(APPS[:3])})
    spec: Json = {"containers": _containers(draw, "c", draw.number(1, 2)), "priority": draw.number(2, 6)}
    if draw.chance(0.8):
        spec["schedulerName"] = "default-scheduler"
    if draw.chance(0.5):
        spec["volumes"] = [
            {"name": f"v{i}", "image": {"reference": draw.one(IMAGES)}} for i in range(draw.number(1, 2))
        ]
    if draw.chance(0.5):
        found: Json = {
            "matchExpressions": [{"key": "kind", "operator": draw.one(("DoesNotExist", "NotIn")), "values": ["team"]}]
        }
        if found["matchExpressions"][0]["operator"] == "DoesNotExist":
            del found["matchExpressions"][0]["values"]
        term: Json = {"labelSelector": {"matchLabels": {"app": draw.one(APPS[:3])}}, "namespaceSelector": found}
        term["topologyKey"] = draw.one(("kubernetes.io/hostname", "zone"))
        kind = draw.one(("podAffinity", "podAntiAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if draw.chance(0.5):
            preferred = [{"weight": draw.number(1, 100), "podAffinityTerm": term}]
            spec["affinity"] = {kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


FAMILIES = {"dra-novelties": devices, "novelties": pods}
