"""The table of kinds: the path of each resource, the record that kubesched reads it as, the event that it makes.

`kinds-1.36.json` and so on have every resource that Kubernetes itself serves, by release; tools/kinds.py writes them
from upstream's discovery documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec

from kubesched.api.device_claims import ResourceClaim, ResourceClaimTemplate
from kubesched.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import VERSIONS as POD_GROUP_VERSIONS
from kubesched.api.pod_groups import PodGroup, Workload
from kubesched.api.release import RELEASES
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as JSON."""

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _quote(name: str) -> str:
    """The name as part of a path, in which nearly all names need no quoting."""
    return name if _PLAIN.match(name) else quote(name, safe="")


_PLAIN = re.compile(r"[-.0-9A-Za-z_~]*\Z")


class Resource(msgspec.Struct, frozen=True):
    """One resource of the API, as discovery describes it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    singular: str = ""
    """The kind in lower case, unless said otherwise."""
    schema: bytes = b""
    """Of a custom resource: the openAPIV3Schema of its version, as JSON."""
    selectable_fields: tuple[str, ...] = ()
    """Of a custom resource: fields that a fieldSelector may name, besides those of every kind."""

    def __post_init__(self) -> None:
        if not self.singular:
            msgspec.structs.force_setattr(self, "singular", self.kind.lower())

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: v1, apps/v1, ..."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Its name in error messages: pods, deployments.apps, ..."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """The path of all its objects: /api/v1/pods, /apis/apps/v1/deployments, ..."""
        return self.path_of()

    def path_of(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of all objects, those of a namespace, one of them, or a part of it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        path = f"{root}/namespaces/{_quote(namespace)}/{self.plural}" if namespace else f"{root}/{self.plural}"
        if name:
            path += f"/{_quote(name)}"
        return f"{path}/{subresource}" if subresource else path


class _Table(msgspec.Struct, frozen=True):
    """A file that tools/kinds.py writes."""

    release: str
    resources: tuple[Resource, ...]


_TABLES = {
    name: msgspec.json.decode(Path(__file__).with_name(f"kinds-{name}.json").read_bytes(), type=_Table)
    for name in RELEASES
}

BUILT_IN: dict[tuple[str, str], Resource] = {
    (resource.api_version, resource.kind): resource for table in _TABLES.values() for resource in table.resources
}
"""Every resource of all releases by API version and kind, as the newest has it."""

BUILT_INTO: dict[str, frozenset[Resource]] = {
    name: frozenset(BUILT_IN[resource.api_version, resource.kind] for resource in table.resources)
    for name, table in _TABLES.items()
}
"""The resources of each release, by its name."""

NAMESPACES = BUILT_IN["v1", "Namespace"]
NODES = BUILT_IN["v1", "Node"]
PODS = BUILT_IN["v1", "Pod"]
SERVICES = BUILT_IN["v1", "Service"]
ENDPOINT_SLICES = BUILT_IN["discovery.k8s.io/v1", "EndpointSlice"]
PERSISTENT_VOLUMES = BUILT_IN["v1", "PersistentVolume"]
PERSISTENT_VOLUME_CLAIMS = BUILT_IN["v1", "PersistentVolumeClaim"]
REPLICATION_CONTROLLERS = BUILT_IN["v1", "ReplicationController"]
CORE_EVENTS = BUILT_IN["v1", "Event"]
CONFIG_MAPS = BUILT_IN["v1", "ConfigMap"]
SECRETS = BUILT_IN["v1", "Secret"]
SERVICE_ACCOUNTS = BUILT_IN["v1", "ServiceAccount"]
LIMIT_RANGES = BUILT_IN["v1", "LimitRange"]
RESOURCE_QUOTAS = BUILT_IN["v1", "ResourceQuota"]
DEPLOYMENTS = BUILT_IN["apps/v1", "Deployment"]
REPLICA_SETS = BUILT_IN["apps/v1", "ReplicaSet"]
STATEFUL_SETS = BUILT_IN["apps/v1", "StatefulSet"]
DAEMON_SETS = BUILT_IN["apps/v1", "DaemonSet"]
CONTROLLER_REVISIONS = BUILT_IN["apps/v1", "ControllerRevision"]
JOBS = BUILT_IN["batch/v1", "Job"]
CRON_JOBS = BUILT_IN["batch/v1", "CronJob"]
AUTOSCALERS = BUILT_IN["autoscaling/v2", "HorizontalPodAutoscaler"]
OLDER_AUTOSCALERS = BUILT_IN["autoscaling/v1", "HorizontalPodAutoscaler"]
"""The same stored autoscalers in the older version, which has no metric but cpu."""
INGRESSES = BUILT_IN["networking.k8s.io/v1", "Ingress"]
NETWORK_POLICIES = BUILT_IN["networking.k8s.io/v1", "NetworkPolicy"]
CERTIFICATE_SIGNING_REQUESTS = BUILT_IN["certificates.k8s.io/v1", "CertificateSigningRequest"]
RUNTIME_CLASSES = BUILT_IN["node.k8s.io/v1", "RuntimeClass"]
POD_DISRUPTION_BUDGETS = BUILT_IN["policy/v1", "PodDisruptionBudget"]
PRIORITY_CLASSES = BUILT_IN["scheduling.k8s.io/v1", "PriorityClass"]
STORAGE_CLASSES = BUILT_IN["storage.k8s.io/v1", "StorageClass"]
CSI_NODES = BUILT_IN["storage.k8s.io/v1", "CSINode"]
CSI_DRIVERS = BUILT_IN["storage.k8s.io/v1", "CSIDriver"]
CSI_STORAGE_CAPACITIES = BUILT_IN["storage.k8s.io/v1", "CSIStorageCapacity"]
VOLUME_ATTACHMENTS = BUILT_IN["storage.k8s.io/v1", "VolumeAttachment"]
LEASES = BUILT_IN["coordination.k8s.io/v1", "Lease"]
EVENTS = BUILT_IN["events.k8s.io/v1", "Event"]
"""The same stored events as CORE_EVENTS, in the newer version."""
RESOURCE_SLICES = BUILT_IN["resource.k8s.io/v1", "ResourceSlice"]
RESOURCE_CLAIMS = BUILT_IN["resource.k8s.io/v1", "ResourceClaim"]
RESOURCE_CLAIM_TEMPLATES = BUILT_IN["resource.k8s.io/v1", "ResourceClaimTemplate"]
DEVICE_CLASSES = BUILT_IN["resource.k8s.io/v1", "DeviceClass"]
DEVICE_TAINT_RULES = BUILT_IN["resource.k8s.io/v1", "DeviceTaintRule"]
POD_GROUPS = BUILT_IN["scheduling.k8s.io/v1alpha2", "PodGroup"]
WORKLOADS = BUILT_IN["scheduling.k8s.io/v1alpha2", "Workload"]
POD_GROUPS_BY_VERSION, WORKLOADS_BY_VERSION = (
    tuple(BUILT_IN[f"scheduling.k8s.io/{version}", kind] for version in POD_GROUP_VERSIONS)
    for kind in ("PodGroup", "Workload")
)
VERSIONS_BY_SERVER: dict[Resource, tuple[Resource, ...]] = {
    POD_GROUPS: POD_GROUPS_BY_VERSION,
    WORKLOADS: WORKLOADS_BY_VERSION,
    DEVICE_TAINT_RULES: (DEVICE_TAINT_RULES, BUILT_IN["resource.k8s.io/v1beta2", "DeviceTaintRule"]),
}
"""Resources of which each API server has another version, or none: the same objects, in the newest version first."""
CUSTOM_RESOURCE_DEFINITIONS = BUILT_IN["apiextensions.k8s.io/v1", "CustomResourceDefinition"]


class Kind(msgspec.Struct, frozen=True):
    """A kind that the scheduler reads."""

    record: type[KubeObject]
    resource: Resource
    event: str = ""
    """Its name in kube-scheduler's events; empty for kinds whose changes wake no pod."""
    watched: bool = True
    """Whether decisions depend on it. Of the other kinds an API server copies what matters into pods and claims."""
    gate: str = ""
    """The feature gate without which it does not matter, and is not watched."""


_RECORDS: dict[str, tuple[type[KubeObject], ...]] = {
    "v1": (Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service),
    "apps/v1": (ReplicaSet, StatefulSet),
    "policy/v1": (PodDisruptionBudget,),
    "resource.k8s.io/v1": (DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice),
    "scheduling.k8s.io/v1": (PriorityClass,),
    "scheduling.k8s.io/v1alpha2": (PodGroup, Workload),
    "storage.k8s.io/v1": (CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment),
}
_GATES: dict[type[KubeObject], str] = {
    PodGroup: "GenericWorkload",
    Workload: "GenericWorkload",
    DeviceTaintRule: "DRADeviceTaintRules",
}
_UNWATCHED = (PriorityClass, ResourceClaimTemplate, Workload)
_WITHOUT_EVENTS = (
    *_UNWATCHED,
    DeviceTaintRule,  # whose changes are changes of slices
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


def _kind(record: type[KubeObject], resource: Resource) -> Kind:
    event = f"{resource.group}/{resource.kind}".lstrip("/") if record not in _WITHOUT_EVENTS else ""
    return Kind(record, resource, event, record not in _UNWATCHED, _GATES.get(record, ""))


KINDS: dict[str, Kind] = {
    record.__name__: _kind(record, BUILT_IN[api_version, record.__name__])
    for api_version, records in _RECORDS.items()
    for record in records
}
"""The kinds that the scheduler reads, by the name in their `kind` field."""

WATCHED: tuple[Kind, ...] = tuple(kind for kind in KINDS.values() if kind.watched and not kind.gate)
"""The kinds that decisions depend on, whatever the feature gates are."""


def watched(gates: Callable[[str], bool]) -> tuple[Kind, ...]:
    """The kinds that decisions depend on under these feature gates."""
    return WATCHED + tuple(kind for kind in KINDS.values() if kind.watched and kind.gate and gates(kind.gate))


def resource_named(name: str) -> Resource | None:
    """By the kind of its objects (`ConfigMap`), or as `plural.version.group`; None if Kubernetes has no such kind."""
    if name in KINDS:
        return KINDS[name].resource
    if name.count(".") >= 2:
        plural, version, group = name.split(".", 2)
        return Resource(group, version, plural, kind="")
    return next((resource for resource in BUILT_IN.values() if resource.kind == name), None)
