"""Node objects as a kubelet registers them: capacity, labels, addresses, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubesched.api.kinds import Object
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.sandbox.nodes.annotations import HOLLOW

ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "sandbox"
VERSION = "v1.36.0"
_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


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
    """One hollow node; what the template says goes before what is usual. The index spreads nodes over zones."""
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
            "annotations": {**(metadata.get("annotations") or {}), HOLLOW: "true"},
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
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
    }


def registered(manifest: Object, index: int, now: str) -> Object:
    """The node with what only shows once it runs: its addresses, its range of pod addresses, its conditions."""
    name = manifest["metadata"]["name"]
    spec = {"providerID": f"hollow://{name}", **(manifest.get("spec") or {})}
    spec.setdefault("podCIDR", f"10.{64 + (index >> 8) % 128}.{index & 255}.0/24")
    spec["podCIDRs"] = [spec["podCIDR"]]
    addresses = [{"type": "InternalIP", "address": host_address(index)}, {"type": "Hostname", "address": name}]
    status = {"addresses": addresses, **(manifest.get("status") or {}), "conditions": ready_conditions(now)}
    return {**manifest, "spec": spec, "status": status}


def host_address(index: int) -> str:
    return f"172.{16 + (index // 62_500) % 16}.{index // 250 % 250}.{index % 250 + 2}"


def ready_conditions(now: str, old: Iterable[Object] = ()) -> list[Object]:
    """All is well; what was already well keeps its time of transition. Conditions of others are kept."""
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
