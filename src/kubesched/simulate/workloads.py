"""Workloads to pods, as their controllers would create them before the clock of a simulation starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api import workloads as api
from kubesched.api.affinity import Affinity
from kubesched.api.kinds import DAEMON_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS, WORKLOADS, Object, Resource
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.api.pod_groups import Workload as GroupWorkload
from kubesched.api.release import V1_36, Release
from kubesched.api.schema import Mistake
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.config import Duration
from kubesched.controllers.job_groups import JobGroups, controller_of, with_group, workload_named_by
from kubesched.controllers.jobs import index_of, new_pods, remaining_pods, wanted_pods
from kubesched.controllers.pod_templates import (
    Eligibility,
    affinity_to,
    claim_of,
    claim_templates,
    daemon_pod,
    hash_of,
    ordinals_of,
    owner_reference,
    pod_from,
    revision_data,
    stateful_pod,
    target_of,
)
from kubesched.controllers.rollout import new_replica_set
from kubesched.simulate.kinds import DaemonSet, Deployment, Job, PodWorkload, ReplicaSet, StatefulSet

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class PodSeries:
    """Pods of one workload, of which only some exist at once; the next comes when one before it is bound or done."""

    pods: tuple[Pod, ...]
    at_once: int
    after: Literal["bound", "finished"]


@dataclass(frozen=True)
class Expansion:
    """What there is once all controllers have done their work."""

    objects: tuple[KubeObject, ...]
    """Everything but pending pods."""
    series: tuple[PodSeries, ...]
    """The pending pods; each one of its own is a series too."""


def expand(objects: Iterable[KubeObject], *, job_groups: bool = False, release: Release = V1_36) -> Expansion:
    """Make the pods that workloads lack. Pods that are there already and name their owner count as made.

    With `job_groups`, Jobs make groups of their pods as the Job controller of the release does.
    """
    all_objects = list(objects)
    expander = _Expander(all_objects, release if job_groups else None)
    for obj in all_objects:
        expander.take(obj)
    return Expansion(tuple(expander.objects), tuple(expander.in_order()))


def as_owner(workload: PodWorkload) -> KubeObject | None:
    """The workload as schedulers see it: an owner of pods; None if they do not look at its kind."""
    stored = _OWNERS.get(type(workload))
    if stored is None:
        return None
    return stored(metadata=workload.metadata, spec=api.OwnerSpec(selector=workload.spec.selector))


_OWNERS: dict[type[PodWorkload], type[api.ReplicaSet] | type[api.StatefulSet]] = {
    ReplicaSet: api.ReplicaSet,
    StatefulSet: api.StatefulSet,
}


class _Expander:
    def __init__(self, objects: Sequence[KubeObject], job_groups: Release | None) -> None:
        self.objects: list[KubeObject] = []
        self._groups = job_groups_among(objects, self.objects.append, job_groups) if job_groups is not None else None
        self.series: list[PodSeries] = []
        self._made_after: dict[str, list[Pod]] = {}
        """Pods of StatefulSets that come once another, by its key, has its node."""
        self._nodes = [obj for obj in objects if isinstance(obj, Node)]
        self._names = {obj.key for obj in objects if isinstance(obj, Pod | PersistentVolumeClaim)}
        self._owned: dict[tuple[str, str, str], list[KubeObject]] = {}
        for obj in objects:
            owner = obj.metadata.controller if isinstance(obj, Pod | ReplicaSet) else None
            if owner is not None and not (isinstance(obj, Pod) and obj.is_finished):
                self._owned.setdefault((obj.namespace, owner.kind, owner.name), []).append(obj)

    def take(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                if obj.spec.node_name or obj.is_finished:
                    self.objects.append(obj)
                else:
                    self.series.append(PodSeries((obj,), 1, "bound"))
            case Deployment():
                if not self._owned_by(obj):
                    replicas = 1 if obj.spec.replicas is None else obj.spec.replicas
                    replica_set = _record(new_replica_set(_plain(obj), replicas, {}), ReplicaSet, obj.namespace)
                    self._replica_set(replica_set)
            case ReplicaSet():
                self._replica_set(obj)
            case StatefulSet():
                self._stateful_set(obj)
            case DaemonSet():
                self._all_at_once(list(self._daemon_pods(obj)))
            case Job():
                self._job(obj)
            case _:
                self.objects.append(obj)

    def _replica_set(self, workload: ReplicaSet) -> None:
        spec = workload.spec
        self._owner(workload)
        if not spec.template.spec.containers:
            return
        replica_set = _plain(workload)
        missing = (1 if spec.replicas is None else spec.replicas) - len(self._owned_by(workload))
        model = _pod(REPLICA_SETS, replica_set, pod_from(replica_set["spec"]["template"], prefix=workload.name))
        self._all_at_once(list(islice(self._copies(model, workload), max(0, missing))))

    def _stateful_set(self, workload: StatefulSet) -> None:
        spec = workload.spec
        self._owner(workload)
        if not spec.template.spec.containers:
            return
        stateful_set, pods = _plain(workload), []
        template, revision = stateful_set["spec"]["template"], f"{workload.name}-{hash_of(revision_data(stateful_set))}"
        for ordinal in ordinals_of(stateful_set):
            for claim_template in claim_templates(stateful_set):
                self._claim(claim_of(stateful_set, claim_template, ordinal), workload.namespace)
            if f"{workload.namespace}/{workload.name}-{ordinal}" not in self._names:
                pod = stateful_pod(stateful_set, ordinal, template, revision)
                pods.append(_pod(STATEFUL_SETS, stateful_set, pod))
        if spec.pod_management_policy == "Parallel":
            self._all_at_once(pods)
        elif pods:
            waiting = [obj for obj in self._owned_by(workload) if isinstance(obj, Pod) and not obj.spec.node_name]
            if waiting:  # in their order: none is made before the one that waits has its node
                self._made_after[min(waiting, key=lambda pod: (len(pod.name), pod.name)).key] = pods
            else:
                self.series.append(PodSeries(tuple(pods), 1, "bound"))

    def in_order(self) -> Iterator[PodSeries]:
        """All series; those of a StatefulSet begin with its pod that waits."""
        for series in self.series:
            later = self._made_after.get(series.pods[0].key, ()) if len(series.pods) == 1 else ()
            yield PodSeries((*series.pods, *later), series.at_once, series.after) if later else series

    def _owner(self, workload: PodWorkload) -> None:
        owner = as_owner(workload)
        assert owner is not None
        self.objects.append(owner)

    def _claim(self, claim: Object, namespace: str) -> None:
        record = _record(claim, PersistentVolumeClaim, namespace)
        if record.key not in self._names:
            self._names.add(record.key)
            self.objects.append(replace(record, metadata=replace(record.metadata, uid=f"claim/{record.key}")))

    def _daemon_pods(self, workload: DaemonSet) -> Iterator[Pod]:
        daemon_set = _plain(workload)
        eligible, revision_hash = Eligibility(daemon_set), hash_of(revision_data(daemon_set))
        model = _pod(DAEMON_SETS, daemon_set, daemon_pod(daemon_set, "", revision_hash))
        affinity = msgspec.to_builtins(model.spec.affinity)
        targets = {target_of(msgspec.to_builtins(pod)) for pod in self._owned_by(workload)}
        for node in self._nodes:
            name = f"{workload.name}-{node.name}"
            should_run, _ = eligible.of(node)
            if should_run and node.name not in targets and f"{workload.namespace}/{name}" not in self._names:
                only_there = msgspec.convert(affinity_to(node.name, affinity), Affinity)
                yield replace(_named(model, name), spec=replace(model.spec, affinity=only_there))

    def _job(self, workload: Job) -> None:
        if workload.spec.suspend:
            return
        job, active = _plain(workload), self._owned_by(workload)
        at_once, missing = wanted_pods(job, active=len(active)), remaining_pods(job) - len(active)
        if at_once and missing > 0:
            indexes = (index_of(msgspec.to_builtins(pod)) for pod in active)
            group = self._groups.group_of(job, has_pods=bool(active)) if self._groups is not None else None
            new = new_pods(job, indexes)
            pods: Iterator[Pod] = (_pod(JOBS, job, pod if group is None else with_group(pod, group)) for pod in new)
            if workload.spec.completion_mode != "Indexed":
                pods = self._copies(next(pods), workload)
            self.series.append(PodSeries(tuple(islice(pods, missing)), max(at_once - len(active), 1), "finished"))

    def _copies(self, model: Pod, workload: PodWorkload) -> Iterator[Pod]:
        """Pods that are all alike, without end, numbered by names that are free."""
        names = (f"{workload.name}-{number}" for number in count())
        return (_named(model, name) for name in names if f"{workload.namespace}/{name}" not in self._names)

    def _all_at_once(self, pods: Sequence[Pod]) -> None:
        if pods:
            self.series.append(PodSeries(tuple(pods), len(pods), "bound"))

    def _owned_by(self, workload: PodWorkload) -> list[KubeObject]:
        """The pods that it has, or, if it is a Deployment, the ReplicaSets."""
        return self._owned.get((workload.namespace, type(workload).__name__, workload.name), [])


def _plain(workload: PodWorkload) -> Object:
    """The workload as JSON, with what every stored object has."""
    plain: Object = msgspec.to_builtins(workload)
    plain["metadata"]["uid"] = workload.metadata.uid or f"{type(workload).__name__}/{workload.key}"
    plain.setdefault("spec", {}).setdefault("template", {}).setdefault("spec", {})
    return plain


def _record(obj: Object, kind: type[T], namespace: str) -> T:
    return msgspec.convert({**obj, "metadata": {**obj["metadata"], "namespace": namespace}}, kind)


def _pod(resource: Resource, owner: Object, obj: Object) -> Pod:
    """A pod that the owner controls. Where a server would complete the name, it is taken as it is."""
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata["generateName"].removesuffix("-")
    owned = {**metadata, "name": name, "generateName": "", "ownerReferences": [owner_reference(resource, owner)]}
    pod = _record({**obj, "apiVersion": "v1", "kind": "Pod", "metadata": owned}, Pod, owner["metadata"]["namespace"])
    return _named(pod, name)


def _named(pod: Pod, name: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}"))


ARRIVAL = "kubesched.io/arrival"
DURATION = "kubesched.io/duration"


def arrival_of(pod: Pod) -> float:
    """Seconds after the start at which the pod is created."""
    return float(Duration.parse(pod.metadata.annotations.get(ARRIVAL, "0s")))


def duration_of(pod: Pod) -> float | None:
    """Seconds from its placement until the pod has done its work; None if it runs on."""
    text = pod.metadata.annotations.get(DURATION)
    return None if text is None else float(Duration.parse(text))


def trace_mistakes(obj: KubeObject) -> list[Mistake]:
    """Annotations of a pod, or of the template of a workload, that cannot be read."""
    if isinstance(obj, Pod):
        return _mistakes("metadata.annotations", obj.metadata)
    if isinstance(obj, PodWorkload):
        return _mistakes("spec.template.metadata.annotations", obj.spec.template.metadata)
    return []


def _mistakes(path: str, meta: ObjectMeta) -> list[Mistake]:
    mistakes = []
    for key in (ARRIVAL, DURATION):
        text = meta.annotations.get(key)
        if text is None:
            continue
        try:
            if Duration.parse(text) < 0:
                mistakes.append(Mistake(f"{path}.{key}", f"must not be negative, got {text!r}"))
        except ValueError as error:
            mistakes.append(Mistake(f"{path}.{key}", str(error)))
    return mistakes


def job_groups_among(objects: Iterable[KubeObject], add: Callable[[KubeObject], None], release: Release) -> JobGroups:
    """The groups of all Jobs; `add` is called with each object made for one. Objects that exist keep their size."""
    plain_objects = [msgspec.to_builtins(obj) for obj in objects if isinstance(obj, PodGroup | GroupWorkload)]

    def find(namespace: str, name: str, name_in: Callable[[Object], str]) -> list[Object]:
        return [obj for obj in plain_objects if obj["metadata"]["namespace"] == namespace and name_in(obj) == name]

    def groups(workload: Object) -> list[Object]:
        return find(workload["metadata"]["namespace"], workload["metadata"]["name"], workload_named_by)

    def create(resource: Resource, job: Object, obj: Object) -> Object:
        namespace = job["metadata"]["namespace"]
        key = f"{namespace}/{obj['metadata']['name']}"
        stored = {**obj, "metadata": {**obj["metadata"], "namespace": namespace, "uid": f"{resource.kind}/{key}"}}
        plain_objects.append(stored)
        add(msgspec.convert(stored, GroupWorkload if resource is WORKLOADS else PodGroup))
        return stored

    return JobGroups(
        release, lambda namespace, owner: find(namespace, owner, controller_of), groups, create, lambda *_: None
    )
