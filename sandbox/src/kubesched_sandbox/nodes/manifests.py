"""Node objects as a kubelet registers them, their example GPUs, and the annotations of hollow nodes and pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubesched.api.duration import Duration
from kubesched.api.kinds import DEVICE_CLASSES, NODES, RESOURCE_SLICES, Object
from kubesched.api.release import NEWEST
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.controllers.pod_templates import owner_reference
from kubesched_sandbox.api import Api

HOLLOW = "kubesched.io/hollow"
"""On a node: "true" if nothing but this process stands behind it."""
FAILED = "kubesched.io/failed"
"""On a hollow node: "true" while it is out of touch. `kubectl annotate` is a way to pull the plug."""
DURATION = "kubesched.io/duration"
"""On a pod: how long it runs until its work is done. The simulator reads the same."""
GPUS = "kubesched.io/gpus"
"""On a node of --node-file: how many example GPUs it has."""
STARTUP = "kubesched.io/startup"
"""On a pod: how long it takes from its placement until it runs."""
EXIT_CODE = "kubesched.io/exit-code"
"""On a pod: the exit code of its containers when the work is done; not 0 is a failure."""


def is_hollow(node: Object) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(HOLLOW) == "true")


def is_failed(node: Object) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(FAILED) == "true")


def seconds_in(pod: Object, annotation: str) -> float | None:
    """The time that an annotation says, or None: also if it says nothing that can be read."""
    text = (pod["metadata"].get("annotations") or {}).get(annotation)
    if text is None:
        return None
    try:
        return max(0.0, float(Duration.parse(text)))
    except ValueError:
        return None


def exit_code_of(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(EXIT_CODE, "0")
    return int(text) if text.isdigit() else 1


ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "sandbox"
_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_ANNOTATIONS = {"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"}


def node_manifests(nodes: int | Iterable[Mapping[str, Any]], *, prefix: str = "node") -> list[Object]:
    """Nodes by number, or by templates: Node objects that may say `count` and leave out what is usual."""
    if isinstance(nodes, int):
        width = len(str(max(nodes - 1, 0)))
        return [node_manifest(f"{prefix}-{i:0{width}}", i) for i in range(nodes)]
    found: list[Object] = []
    for template in nodes:
        name = (template.get("metadata") or {}).get("name") or prefix
        count = template.get("count")
        names = [name] if count is None else [f"{name}-{i}" for i in range(count)]
        found.extend(node_manifest(each, len(found) + i, template) for i, each in enumerate(names))
    return found


def node_manifest(name: str, index: int = 0, template: Mapping[str, Any] | None = None) -> Object:
    """One hollow node; the template's fields replace the defaults. The index spreads nodes over zones."""
    given = template or {}
    metadata, status = given.get("metadata") or {}, given.get("status") or {}
    labels = {
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": REGION,
        ZONE: ZONES[index % len(ZONES)],
        **(metadata.get("labels") or {}),
    }
    labels |= {
        "beta.kubernetes.io/os": labels["kubernetes.io/os"],
        "beta.kubernetes.io/arch": labels["kubernetes.io/arch"],
    }
    capacity = {**_CAPACITY, **(status.get("capacity") or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {**_ANNOTATIONS, **(metadata.get("annotations") or {}), HOLLOW: "true"},
        },
        "spec": dict(given.get("spec") or {}),
        "status": {
            "capacity": capacity,
            "allocatable": {**capacity, **(status.get("allocatable") or {})},
            "nodeInfo": _node_info(name, labels),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            **({"images": status["images"]} if status.get("images") else {}),
        },
    }


def _node_info(name: str, labels: Mapping[str, str]) -> Object:
    return {
        "architecture": labels["kubernetes.io/arch"],
        "operatingSystem": labels["kubernetes.io/os"],
        "osImage": "Hollow Linux",
        "kernelVersion": "6.12.0-hollow",
        "containerRuntimeVersion": "hollow://1.0",
        "kubeletVersion": f"v{NEWEST.version}",
        "kubeProxyVersion": "",
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
    }


def register_node(manifest: Object, index: int, now: str) -> Object:
    """The node as its kubelet registers it: with addresses, pod CIDR and conditions."""
    name = manifest["metadata"]["name"]
    spec = {"providerID": f"hollow://{name}", **(manifest.get("spec") or {})}
    spec.setdefault("podCIDR", f"10.{64 + (index >> 8) % 128}.{index & 255}.0/24")
    spec["podCIDRs"] = [spec["podCIDR"]]
    addresses = [{"type": "InternalIP", "address": host_address(index)}, {"type": "Hostname", "address": name}]
    status = {"addresses": addresses, **(manifest.get("status") or {}), "conditions": ready_conditions(now)}
    return {**manifest, "spec": spec, "status": status}


def advertised(old: Object, new: Object) -> set[str]:
    """Resources whose capacity someone changed and nothing else: a kubelet then makes them allocatable."""
    before, after = old.get("status") or {}, new.get("status") or {}
    if before.get("capacity") == after.get("capacity"):
        return set()
    capacity, grown = before.get("capacity") or {}, after.get("capacity") or {}
    given, kept = before.get("allocatable") or {}, after.get("allocatable") or {}
    names = capacity.keys() | grown.keys()
    return {name for name in names if capacity.get(name) != grown.get(name) and given.get(name) == kept.get(name)}


def host_address(index: int) -> str:
    return f"172.{16 + (index // 62_500) % 16}.{index // 250 % 250}.{index % 250 + 2}"


def ready_conditions(now: str, old: Iterable[Object] = ()) -> list[Object]:
    """The conditions of a healthy node; those that were healthy keep their time of transition, those of others stay."""
    before = {condition["type"]: condition for condition in old}
    found = []
    for kind, status, reason, message in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ):
        known = before.pop(kind, {})
        since = known.get("lastTransitionTime", now) if known.get("status") == status else now
        found.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
            }
        )
    return [*before.values(), *found]


DRIVER = "gpu.example.com"
_MODEL, _MEMORY = "LATEST-GPU-MODEL", "80Gi"


def gpus_of(nodes: Sequence[Object], count: int, *, on_last: int | None = None) -> dict[str, int]:
    """How many GPUs each node has: what its annotation says, else the count, if it is one of so many last ones."""
    first = 0 if on_last is None else len(nodes) - on_last
    found = {}
    for i, node in enumerate(nodes):
        said = node["metadata"]["annotations"].get(GPUS)
        found[node["metadata"]["name"]] = int(said) if said is not None else count if i >= first else 0
    return found


def publish_gpus(api: Api, gpus: Mapping[str, int]) -> None:
    """Give each node this many GPUs, and the cluster the class to ask for them. What is there stays."""
    if api.find(DEVICE_CLASSES, "", DRIVER) is None:
        api.create(DEVICE_CLASSES, "", gpu_class())
    for name, count in gpus.items():
        if count and api.find(RESOURCE_SLICES, "", _slice_name(name)) is None:
            api.create(RESOURCE_SLICES, "", gpu_slice(api.get(NODES, "", name), count))


def gpu_class() -> Object:
    """The class by which GPUs are asked for."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}


def gpu_slice(node: Object, count: int) -> Object:
    """The GPUs of a node; it goes with the node."""
    node_name = node["metadata"]["name"]
    return {
        "metadata": {"name": _slice_name(node_name), "ownerReferences": [owner_reference(NODES, node)]},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [_gpu(node_name, index) for index in range(count)],
        },
    }


def _slice_name(node: str) -> str:
    return f"{node}-{DRIVER}"


def _gpu(node: str, index: int) -> Object:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "index": {"int": index},
            "uuid": {"string": f"gpu-{node}-{index}"},
            "model": {"string": _MODEL},
            "driverVersion": {"version": "1.0.0"},
        },
        "capacity": {"memory": {"value": _MEMORY}},
    }
