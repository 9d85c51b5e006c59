"""Where objects live in the API: group, version and plural of each kind, and the paths made of them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """A kind of objects as the API serves it."""

    group: str
    version: str
    plural: str
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of all objects, those of a namespace, one of them, or a part of it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        one = f"/{quote(name, safe='')}" if name else ""
        part = f"/{subresource}" if subresource else ""
        return f"{root}{within}/{self.plural}{one}{part}"


def with_query(path: str, query: Mapping[str, str]) -> str:
    """The path with those parameters that have a value."""
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


PODS = Resource("", "v1", "pods", namespaced=True)
NODES = Resource("", "v1", "nodes")
LEASES = Resource("coordination.k8s.io", "v1", "leases", namespaced=True)
EVENTS = Resource("events.k8s.io", "v1", "events", namespaced=True)

RESOURCES: dict[str, Resource] = {
    "CSIDriver": Resource("storage.k8s.io", "v1", "csidrivers"),
    "CSINode": Resource("storage.k8s.io", "v1", "csinodes"),
    "CSIStorageCapacity": Resource("storage.k8s.io", "v1", "csistoragecapacities", namespaced=True),
    "DeviceClass": Resource("resource.k8s.io", "v1", "deviceclasses"),
    "Namespace": Resource("", "v1", "namespaces"),
    "Node": NODES,
    "PersistentVolume": Resource("", "v1", "persistentvolumes"),
    "PersistentVolumeClaim": Resource("", "v1", "persistentvolumeclaims", namespaced=True),
    "Pod": PODS,
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets", namespaced=True),
    "PriorityClass": Resource("scheduling.k8s.io", "v1", "priorityclasses"),
    "ReplicaSet": Resource("apps", "v1", "replicasets", namespaced=True),
    "ReplicationController": Resource("", "v1", "replicationcontrollers", namespaced=True),
    "ResourceClaim": Resource("resource.k8s.io", "v1", "resourceclaims", namespaced=True),
    "ResourceClaimTemplate": Resource("resource.k8s.io", "v1", "resourceclaimtemplates", namespaced=True),
    "ResourceSlice": Resource("resource.k8s.io", "v1", "resourceslices"),
    "Service": Resource("", "v1", "services", namespaced=True),
    "StatefulSet": Resource("apps", "v1", "statefulsets", namespaced=True),
    "StorageClass": Resource("storage.k8s.io", "v1", "storageclasses"),
    "VolumeAttachment": Resource("storage.k8s.io", "v1", "volumeattachments"),
}
"""By kind: what a scheduler may want to follow."""

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that hold something or want to."""
