"""Every resource that is there without a CustomResourceDefinition."""

from __future__ import annotations

from kubesched.sandbox.kinds.resource import Resource

_APPS, _STORAGE, _DRA = "apps", "storage.k8s.io", "resource.k8s.io"
_ALL = ("all",)
_SCALED = ("scale", "status")

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, ("ns",), subresources=("finalize", "status"))
NODES = Resource("", "v1", "nodes", "Node", False, ("no",))
PODS = Resource(
    "", "v1", "pods", "Pod", True, ("po",), _ALL, ("binding", "ephemeralcontainers", "eviction", "resize", "status")
)
SERVICES = Resource("", "v1", "services", "Service", True, ("svc",), _ALL)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, ("pv",))
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",))
REPLICATION_CONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", True, ("rc",), _ALL, _SCALED
)
CORE_EVENTS = Resource("", "v1", "events", "Event", True, ("ev",), subresources=())
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",), subresources=())
SECRETS = Resource("", "v1", "secrets", "Secret", True, subresources=())
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",), subresources=("token",))

DEPLOYMENTS = Resource(_APPS, "v1", "deployments", "Deployment", True, ("deploy",), _ALL, _SCALED)
REPLICA_SETS = Resource(_APPS, "v1", "replicasets", "ReplicaSet", True, ("rs",), _ALL, _SCALED)
STATEFUL_SETS = Resource(_APPS, "v1", "statefulsets", "StatefulSet", True, ("sts",), _ALL, _SCALED)
DAEMON_SETS = Resource(_APPS, "v1", "daemonsets", "DaemonSet", True, ("ds",), _ALL)
CONTROLLER_REVISIONS = Resource(_APPS, "v1", "controllerrevisions", "ControllerRevision", True, subresources=())

JOBS = Resource("batch", "v1", "jobs", "Job", True, (), _ALL)

POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",))

PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",), subresources=()
)

STORAGE_CLASSES = Resource(_STORAGE, "v1", "storageclasses", "StorageClass", False, ("sc",), subresources=())
CSI_NODES = Resource(_STORAGE, "v1", "csinodes", "CSINode", False, subresources=())
CSI_DRIVERS = Resource(_STORAGE, "v1", "csidrivers", "CSIDriver", False, subresources=())
CSI_STORAGE_CAPACITIES = Resource(
    _STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity", True, subresources=(), singular="csistoragecapacity"
)
VOLUME_ATTACHMENTS = Resource(_STORAGE, "v1", "volumeattachments", "VolumeAttachment", False)

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, subresources=())

EVENTS = Resource("events.k8s.io", "v1", "events", "Event", True, ("ev",), subresources=())
"""The same stored events as CORE_EVENTS, in the newer shape."""

RESOURCE_SLICES = Resource(_DRA, "v1", "resourceslices", "ResourceSlice", False, subresources=())
RESOURCE_CLAIMS = Resource(_DRA, "v1", "resourceclaims", "ResourceClaim", True, subresources=("binding", "status"))
RESOURCE_CLAIM_TEMPLATES = Resource(
    _DRA, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True, subresources=()
)
DEVICE_CLASSES = Resource(_DRA, "v1", "deviceclasses", "DeviceClass", False, subresources=())

CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("crd", "crds")
)

_REVIEW = ("create",)
REVIEWS = (
    Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, (), (), (), _REVIEW),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, (), (), (), _REVIEW),
    Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, (), (), (), _REVIEW),
    Resource(
        "authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True, (), (), (), _REVIEW
    ),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, (), (), (), _REVIEW
    ),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False, (), (), (), _REVIEW
    ),
)
"""Questions that are answered and not stored."""

SERVED = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    REPLICATION_CONTROLLERS,
    CORE_EVENTS,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    LEASES,
    EVENTS,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    CUSTOM_RESOURCE_DEFINITIONS,
    *REVIEWS,
)
