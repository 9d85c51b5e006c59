"""Labels, annotations and names to which Kubernetes itself gives a meaning."""

from __future__ import annotations

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "doks.digitalocean.com/node-pool",
    "node-pool",
    "nodepool",
    "pool",
)
"""Labels that name the pool of a node, the most telling first."""
_OWNED_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "cloud.google.com",
    "amazonaws.com",
    "eksctl.io",
    "azure.com",
    "digitalocean.com",
)
"""Domains of labels that Kubernetes, kubelets or cloud providers set."""


def is_owned_label(key: str) -> bool:
    """Whether Kubernetes, a kubelet or a cloud provider sets this label of nodes, which nothing else should change."""
    domain = key.partition("/")[0] if "/" in key else ""
    return key in POOL_LABELS or any(domain == owned or domain.endswith(f".{owned}") for owned in _OWNED_DOMAINS)


NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label with which a namespace carries its own name."""

DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named a claim's class before there was a field for it."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation of a CSINode that names the in-tree drivers whose volumes CSI drivers serve there."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"

SYSTEM_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that every cluster has."""

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
EVICTION_ANNOTATIONS = frozenset((DO_NOT_DISRUPT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED, PREFER_NO_EVICTION))
"""Annotations of pods and nodes by which their owners say what may be evicted."""
