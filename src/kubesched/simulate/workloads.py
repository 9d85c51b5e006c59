"""Workloads to pods, as their controllers would make them: names, owners, labels, claims, and who waits for whom."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from kubesched.api import workloads as api
from kubesched.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.node import Node
from kubesched.api.pod import PersistentVolumeClaimSource, Pod, PodSpec, Toleration, Volume
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.api.tolerations import has_untolerated
from kubesched.plugins.shared.node_requirements import RequiredNodes
from kubesched.simulate.workload_kinds import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet, Workload

replace = msgspec.structs.replace

TEMPLATE_HASH = "pod-template-hash"

_NODE_TROUBLES = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
DAEMON_TOLERATIONS = tuple(
    Toleration(key=f"node.kubernetes.io/{trouble}", operator="Exists", effect=effect)  # type: ignore[arg-type]
    for trouble, effect in _NODE_TROUBLES
)
"""What pods of a DaemonSet put up with, besides what their template says."""

_HOST_NETWORK = Toleration(key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule")


@dataclass(frozen=True)
class Series:
    """Pods of one workload, of which only some exist at once; the next comes when one before it is bound or done."""

    pods: tuple[Pod, ...]
    at_once: int
    after: Literal["bound", "finished"]


@dataclass(frozen=True)
class Expansion:
    """What there is once all controllers have done their work."""

    objects: tuple[KubeObject, ...]
    """Everything but pending pods."""
    series: tuple[Series, ...]
    """The pending pods; each one of its own is a series too."""


def expand(objects: Iterable[KubeObject]) -> Expansion:
    """Make the pods that workloads lack. Pods that are there already and say who owns them count as made."""
    given = list(objects)
    expander = _Expander(given)
    for obj in given:
        expander.take(obj)
    return Expansion(tuple(expander.objects), tuple(expander.series))


class _Expander:
    def __init__(self, given: Sequence[KubeObject]) -> None:
        self.objects: list[KubeObject] = []
        self.series: list[Series] = []
        self._nodes = [obj for obj in given if isinstance(obj, Node)]
        self._names = {obj.key for obj in given if isinstance(obj, Pod | PersistentVolumeClaim)}
        self._owned = Counter(
            (obj.namespace, owner.kind, owner.name)
            for obj in given
            if isinstance(obj, Pod | ReplicaSet) and (owner := obj.metadata.controller) is not None
            if not (isinstance(obj, Pod) and obj.is_finished)
        )

    def take(self, obj: KubeObject) -> None:
        match obj:
            case Pod():
                if obj.spec.node_name or obj.is_finished:
                    self.objects.append(obj)
                else:
                    self.series.append(Series((obj,), 1, "bound"))
            case Deployment():
                if not self._already(obj):
                    self._replica_set(_replica_set_of(obj))
            case ReplicaSet():
                self._replica_set(obj)
            case StatefulSet():
                self._stateful_set(obj)
            case DaemonSet():
                self._all_at_once(list(self._daemons(obj)))
            case Job():
                self._job(obj)
            case _:
                self.objects.append(obj)

    def _replica_set(self, workload: Workload) -> None:
        owner = api.ReplicaSet(metadata=workload.metadata, spec=api.WorkloadSpec(selector=workload.spec.selector))
        self.objects.append(owner)
        if workload.spec.template.spec.containers:
            missing = _count(workload.spec.replicas) - self._already(workload)
            self._all_at_once(list(self._copies(workload, missing)))

    def _stateful_set(self, workload: Workload) -> None:
        spec = workload.spec
        self.objects.append(api.StatefulSet(metadata=workload.metadata, spec=api.WorkloadSpec(selector=spec.selector)))
        if not spec.template.spec.containers:
            return
        ordinals = range(_count(spec.replicas))
        pods = [pod for i in ordinals if (pod := self._ordinal(workload, i)).key not in self._names]
        if spec.pod_management_policy == "Parallel":
            self._all_at_once(pods)
        elif pods:
            self.series.append(Series(tuple(pods), 1, "bound"))

    def _ordinal(self, workload: Workload, ordinal: int) -> Pod:
        spec, name = workload.spec.template.spec, f"{workload.name}-{ordinal}"
        claimed = []
        for template in workload.spec.volume_claim_templates:
            claim = f"{template.name}-{name}"
            self._claim(template, claim, workload.namespace)
            source = PersistentVolumeClaimSource(claim_name=claim)
            claimed.append(Volume(name=template.name, persistent_volume_claim=source))
        if claimed:
            names = {volume.name for volume in claimed}
            spec = replace(spec, volumes=(*(v for v in spec.volumes if v.name not in names), *claimed))
        labels = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}
        return _made(workload, name, labels, spec)

    def _claim(self, template: PersistentVolumeClaim, name: str, namespace: str) -> None:
        key = f"{namespace}/{name}"
        if key not in self._names:
            self._names.add(key)
            meta = replace(template.metadata, name=name, namespace=namespace, uid=f"claim/{key}")
            self.objects.append(replace(template, metadata=meta))

    def _daemons(self, workload: Workload) -> Iterator[Pod]:
        spec = workload.spec.template.spec
        more = (*DAEMON_TOLERATIONS, _HOST_NETWORK) if spec.host_network else DAEMON_TOLERATIONS
        spec = replace(spec, tolerations=(*spec.tolerations, *(t for t in more if t not in spec.tolerations)))
        required = RequiredNodes(Pod(spec=spec))
        for node in self._nodes:
            pod = _made(workload, f"{workload.name}-{node.name}", {}, _only_on(spec, node.name))
            suits = required.allow(node) and not has_untolerated(node.spec.taints, spec.tolerations)
            if suits and pod.key not in self._names and not self._has_daemon(workload, node):
                yield pod

    def _has_daemon(self, workload: Workload, node: Node) -> bool:
        if not self._already(workload):
            return False
        return any(
            isinstance(obj, Pod) and obj.spec.node_name == node.name and _is_owned_by(obj, workload)
            for obj in self.objects
        )

    def _job(self, workload: Workload) -> None:
        spec = workload.spec
        if spec.suspend:
            return
        at_once = _count(spec.parallelism)
        total = at_once if spec.completions is None else spec.completions
        running = self._already(workload)
        pods = tuple(self._copies(workload, total - workload.status.succeeded - running))
        if pods and at_once:
            self.series.append(Series(pods, max(at_once - running, 1), "finished"))

    def _copies(self, workload: Workload, count: int) -> Iterator[Pod]:
        ordinal = 0
        while count > 0:
            name = f"{workload.name}-{ordinal}"
            ordinal += 1
            if f"{workload.namespace}/{name}" not in self._names:
                count -= 1
                yield _made(workload, name, {}, workload.spec.template.spec)

    def _all_at_once(self, pods: Sequence[Pod]) -> None:
        if pods:
            self.series.append(Series(tuple(pods), len(pods), "bound"))

    def _already(self, workload: Workload) -> int:
        """How many it owns: pods, or, if it is a Deployment, ReplicaSets."""
        return self._owned[workload.namespace, type(workload).__name__, workload.name]


def _replica_set_of(deployment: Deployment) -> ReplicaSet:
    """The ReplicaSet of a Deployment, named after what is in its template."""
    spec = deployment.spec
    digest = hashlib.sha256(msgspec.json.encode(spec.template)).hexdigest()[:8]
    labels = {**spec.template.metadata.labels, TEMPLATE_HASH: digest}
    template = replace(spec.template, metadata=replace(spec.template.metadata, labels=labels))
    selector = spec.selector or LabelSelector()
    selector = replace(selector, match_labels={**selector.match_labels, TEMPLATE_HASH: digest})
    name = f"{deployment.name}-{digest}"
    meta = ObjectMeta(name=name, namespace=deployment.namespace, labels=labels, owner_references=(_owner(deployment),))
    return ReplicaSet(metadata=meta, spec=replace(spec, template=template, selector=selector))


def _made(workload: Workload, name: str, labels: dict[str, str], spec: PodSpec) -> Pod:
    template = workload.spec.template.metadata
    key = f"{workload.namespace}/{name}"
    meta = ObjectMeta(
        name=name,
        namespace=workload.namespace,
        uid=key,
        labels={**template.labels, **labels} if labels else template.labels,
        annotations=template.annotations,
        owner_references=(_owner(workload),),
    )
    return Pod(api_version="v1", kind="Pod", metadata=meta, spec=spec)


def _owner(workload: Workload) -> OwnerReference:
    kind = type(workload).__name__
    version = "batch/v1" if kind == "Job" else "apps/v1"
    uid = workload.metadata.uid or f"{kind}/{workload.key}"
    return OwnerReference(api_version=version, kind=kind, name=workload.name, uid=uid, controller=True)


def _is_owned_by(pod: Pod, workload: Workload) -> bool:
    owner = pod.metadata.controller
    names = (pod.namespace, owner.kind, owner.name) if owner else None
    return names == (workload.namespace, type(workload).__name__, workload.name)


def _only_on(spec: PodSpec, node_name: str) -> PodSpec:
    """Required node affinity gives way to the one node; it was asked already whether that suits."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    affinity = spec.affinity or Affinity()
    on_nodes = affinity.node_affinity or NodeAffinity()
    on_nodes = replace(on_nodes, required_during_scheduling_ignored_during_execution=required)
    return replace(spec, affinity=replace(affinity, node_affinity=on_nodes))


def _count(number: int | None) -> int:
    return 1 if number is None else number
