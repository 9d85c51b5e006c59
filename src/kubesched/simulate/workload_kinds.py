"""Workloads as far as a simulation makes pods of them: how many, from which template, with which claims."""

from __future__ import annotations

from typing import Literal

from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta, Record
from kubesched.api.pod import PodSpec
from kubesched.api.storage import PersistentVolumeClaim


class PodTemplate(Record, frozen=True):
    """The pod that a workload makes copies of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class Ordinals(Record, frozen=True):
    """Where a StatefulSet begins to count."""

    start: int = 0


class WorkloadSpec(Record, frozen=True):
    """The fields of all kinds of workloads; each kind reads its own."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    pod_management_policy: Literal["OrderedReady", "Parallel", ""] = ""
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: Literal["NonIndexed", "Indexed", ""] = ""
    ordinals: Ordinals | None = None
    suspend: bool = False


class WorkloadStatus(Record, frozen=True):
    """What has been done already."""

    succeeded: int = 0
    completed_indexes: str = ""


class Workload(KubeObject, frozen=True):
    """Something that makes pods."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class Deployment(Workload, frozen=True):
    """Makes a ReplicaSet."""


class ReplicaSet(Workload, frozen=True):
    """Makes a number of pods that are all alike."""


class StatefulSet(Workload, frozen=True):
    """Makes pods that have a number and claims of their own, one after another."""


class DaemonSet(Workload, frozen=True):
    """Makes a pod for every node that suits."""


class Job(Workload, frozen=True):
    """Makes pods that end, a few at a time."""


WORKLOADS: dict[str, type[Workload]] = {
    kind.__name__: kind for kind in (Deployment, ReplicaSet, StatefulSet, DaemonSet, Job)
}
