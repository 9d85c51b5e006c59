"""What the API server and its controllers would have filled in, so that hand-written objects mean what they mean there.

Objects taken from a cluster have all of this already and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from kubesched.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from kubesched.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from kubesched.api.node import Node
from kubesched.api.pod import Container, Pod, PodSpec, ResourceRequirements
from kubesched.api.requests import CPU, MEMORY, pod_requests
from kubesched.api.schema import Mistake
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.api.workloads import Namespace, PriorityClass
from kubesched.simulate.kinds import NAMESPACED

DEFAULT_NAMESPACE = "default"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_NAME_LABEL = "kubernetes.io/metadata.name"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

S = TypeVar("S", bound=msgspec.Struct)
replace = msgspec.structs.replace
