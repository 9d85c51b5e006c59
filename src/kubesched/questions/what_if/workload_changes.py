"""Changes to workloads: more or fewer replicas, and objects that are applied."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.questions.targets import unknown_of_kind
from kubesched.questions.what_if.change import ChangeError, Objects
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, Deployment, ReplicaSet, StatefulSet, Workload

SCALABLE = (Deployment, ReplicaSet, StatefulSet)
_REVISION = "deployment.kubernetes.io/revision"


@dataclass(frozen=True)
class Scale:
    """A Deployment, ReplicaSet or StatefulSet gets another number of replicas."""

    workload: type[Workload]
    name: str
    replicas: int
    namespace: str = DEFAULT_NAMESPACE

    def __str__(self) -> str:
        return f"scale {self._title} to {self.replicas}"

    @property
    def _title(self) -> str:
        return f"{self.namespace}/{self.workload.__name__.lower()}/{self.name}"

    def apply(self, objects: Objects) -> Objects:
        scaled = self._scaled(objects)
        pods = [obj for obj in objects if isinstance(obj, Pod) and _is_owned(obj, scaled) and not obj.is_finished]
        if len(pods) < self.replicas and not scaled.spec.template.spec.containers:
            raise ChangeError(f"--scale {self._title}: there is no pod template of which more could be made")
        leaving = {pod.key for pod in _in_order_of_leaving(pods)[: max(0, len(pods) - self.replicas)]}
        if isinstance(scaled, StatefulSet):
            start = scaled.spec.ordinals.start if scaled.spec.ordinals is not None else 0
            leaving = {pod.key for pod in pods if _ordinal(pod) >= start + self.replicas}
        changed = replace(scaled, spec=replace(scaled.spec, replicas=self.replicas))
        kept = (obj for obj in objects if not (isinstance(obj, Pod) and obj.key in leaving))
        return tuple(changed if obj is scaled else obj for obj in kept)

    def _scaled(self, objects: Objects) -> Workload:
        """The workload whose number is changed: of a Deployment it is its current ReplicaSet, if it has one."""
        there = [obj for obj in objects if isinstance(obj, self.workload)]
        found = next((obj for obj in there if (obj.namespace, obj.name) == (self.namespace, self.name)), None)
        if found is None:
            unknown = unknown_of_kind(self.workload, f"{self.namespace}/{self.name}", [obj.key for obj in there])
            raise ChangeError(f"--scale {self._title}: {unknown}")
        sets = [obj for obj in objects if isinstance(obj, ReplicaSet) and _is_owned(obj, found)]
        return max(sets, key=_newest) if sets else found


def _newest(replica_set: ReplicaSet) -> tuple[int, int]:
    revision = replica_set.metadata.annotations.get(_REVISION, "")
    return int(revision) if revision.isdigit() else 0, replica_set.spec.replicas or 0


def _is_owned(obj: KubeObject, by: Workload) -> bool:
    return _owner(obj) == (type(by).__name__, by.namespace, by.name)


def _in_order_of_leaving(pods: list[Pod]) -> list[Pod]:
    """As a ReplicaSet takes them away: those that wait, those with most beside them, the newest."""
    beside = Counter(pod.spec.node_name for pod in pods)
    newest_first = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    return sorted(newest_first, key=lambda pod: (bool(pod.spec.node_name), -beside[pod.spec.node_name]))


def _ordinal(pod: Pod) -> int:
    number = pod.name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


@dataclass(frozen=True)
class Apply:
    """Objects are added. One of the same kind and name is replaced, and what a workload had made is made anew."""

    objects: Objects
    source: str

    def __str__(self) -> str:
        return f"with {self.source}"

    def apply(self, objects: Objects) -> Objects:
        new = {(type(obj).__name__, obj.key) for obj in self.objects}
        owners: set[tuple[str, str, str] | None] = {
            (type(obj).__name__, obj.namespace, obj.name) for obj in self.objects if isinstance(obj, Workload)
        }
        owners |= {
            ("ReplicaSet", obj.namespace, obj.name)
            for obj in objects
            if isinstance(obj, ReplicaSet) and _owner(obj) in owners
        }
        kept = (obj for obj in objects if (type(obj).__name__, obj.key) not in new and _owner(obj) not in owners)
        return (*kept, *self.objects)


def _owner(obj: KubeObject) -> tuple[str, str, str] | None:
    owner = obj.metadata.controller
    return (owner.kind, obj.namespace, owner.name) if owner is not None else None
