"""The resources that the sandbox serves without a CustomResourceDefinition."""

from __future__ import annotations

from kubesched.api.kinds import BUILT_IN

_KINDS = {
    "v1": "Namespace Node Pod Service PersistentVolume PersistentVolumeClaim ReplicationController Event ConfigMap"
    " Secret ServiceAccount",
    "apps/v1": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch/v1": "Job",
    "policy/v1": "PodDisruptionBudget",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment",
    "coordination.k8s.io/v1": "Lease",
    "events.k8s.io/v1": "Event",
    "resource.k8s.io/v1": "ResourceSlice ResourceClaim ResourceClaimTemplate DeviceClass",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "authentication.k8s.io/v1": "TokenReview SelfSubjectReview",
    "authorization.k8s.io/v1": "SubjectAccessReview LocalSubjectAccessReview SelfSubjectAccessReview"
    " SelfSubjectRulesReview",
}

SERVED = tuple(BUILT_IN[version, kind] for version, kinds in _KINDS.items() for kind in kinds.split())

REVIEWS = tuple(resource for resource in SERVED if resource.kind.endswith("Review"))
"""Questions that are answered and not stored."""
