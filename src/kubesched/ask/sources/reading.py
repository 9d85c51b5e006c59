"""What was read of a cluster, from wherever: its objects, what could not be read, and how it is scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kubesched.api.meta import KubeObject

Objects = Mapping[str, tuple[KubeObject, ...]]
"""Records by kind; custom resources by `plural.version.group`."""

CONSEQUENCES = {
    "CSIDriver": "whether a driver publishes how much storage is left is not known, so it is not looked at",
    "CSINode": "limits of volumes per node are not looked at",
    "CSIStorageCapacity": "nodes for new volumes of drivers that publish their capacity are said to have too little",
    "DaemonSet": "pods that it has not created yet are missing",
    "Deployment": "pods that it has not created yet are missing",
    "DeviceClass": "pods that ask for devices are said to fit nowhere",
    "DeviceTaintRule": "devices that a rule keeps pods from look free",
    "Job": "pods that it has not created yet are missing",
    "Namespace": "namespace selectors of pod affinity match no namespace by its labels",
    "PersistentVolume": "pods with bound claims are said to fit nowhere",
    "PersistentVolumeClaim": "pods with claims are said to fit nowhere, and volumes in use are not counted",
    "PodDisruptionBudget": "preemption may be reported that a budget forbids",
    "PodGroup": "pods of groups are said to wait for their group, where the gate for groups is on",
    "PriorityClass": "pods that workloads have not created yet have priority 0",
    "ReplicaSet": "its pods that do not say how to spread are not spread by default",
    "ReplicationController": "its pods that do not say how to spread are not spread by default",
    "ResourceClaim": "pods with device claims are said to fit nowhere, and devices in use look free",
    "ResourceClaimTemplate": "pods that ask for devices by a template are said to wait for their claims",
    "ResourceSlice": "there seem to be no devices, and pods that ask for some are said to fit nowhere",
    "Service": "pods of a service that do not say how to spread are not spread by default",
    "StatefulSet": "its pods that do not say how to spread are not spread by default",
    "StorageClass": "pods with claims that are not bound yet are said to fit nowhere",
    "VolumeAttachment": "volumes that are attached without a pod are not counted",
    "Workload": "groups of Jobs that have not been made yet may be missing",
}
"""What follows from not being allowed to read a kind. Without nodes or pods there is no answer at all."""


@dataclass(frozen=True)
class UnreadableKind:
    """A kind that could not be read."""

    kind: str
    consequence: str

    @classmethod
    def of(cls, kind: str) -> UnreadableKind:
        return cls(kind, CONSEQUENCES.get(kind, "plugins that wait for it see none"))

    def __str__(self) -> str:
        return f"{self.kind}s cannot be read: {self.consequence}"


@dataclass(frozen=True)
class FoundConfiguration:
    """The configuration of the scheduler in charge; without one `text` is empty, and `origin` says why."""

    text: str
    origin: str


@dataclass(frozen=True)
class ClusterReading:
    """A cluster at one time."""

    origin: str
    """What messages call it: the context and the server, or the file."""
    objects: Objects
    unreadable: tuple[UnreadableKind, ...] = ()
    server_version: str = ""
    taken_at: str = ""
    """In UTC, as Kubernetes writes times."""
    configuration: FoundConfiguration = field(default=FoundConfiguration("", ""))

    def records(self) -> Iterator[KubeObject]:
        for records in self.objects.values():
            yield from records

    def count(self, kind: str) -> int:
        return len(self.objects.get(kind, ()))
