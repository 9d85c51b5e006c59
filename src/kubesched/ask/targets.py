"""What a question is about: pods that exist, the next pods of workloads, and objects that the question brings along."""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.errors import UserError
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodStatus
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.schema import Mistake
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import PriorityClass
from kubesched.api.workloads import ReplicaSet as StoredReplicaSet
from kubesched.ask.output import listed
from kubesched.ask.trial import Trial
from kubesched.simulate.admission import Admission, Classes
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import (
    DEFAULT_NAMESPACE,
    DaemonSet,
    Deployment,
    Job,
    Ordinals,
    PodWorkload,
    PodWorkloadStatus,
    ReadAs,
    ReplicaSet,
    StatefulSet,
    kind_of,
)
from kubesched.simulate.workloads import expand

TYPES: dict[str, type[KubeObject]] = {
    **dict.fromkeys(("pod", "pods", "po"), Pod),
    **dict.fromkeys(("deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"), Deployment),
    **dict.fromkeys(("replicaset", "replicasets", "rs", "replicaset.apps", "replicasets.apps"), ReplicaSet),
    **dict.fromkeys(("statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps"), StatefulSet),
    **dict.fromkeys(("daemonset", "daemonsets", "ds", "daemonset.apps", "daemonsets.apps"), DaemonSet),
    **dict.fromkeys(("job", "jobs", "job.batch", "jobs.batch"), Job),
    **dict.fromkeys(("podgroup", "podgroups", "podgroup.scheduling.k8s.io", "podgroups.scheduling.k8s.io"), PodGroup),
}
"""What kubectl calls them."""
_MOST_KEPT = 1024


class UnknownTargetError(UserError):
    """There is no such pod or workload."""


def find_pod(
    cluster: ClusterModel, text: str, namespace: str = DEFAULT_NAMESPACE, *, trial: Trial | None = None
) -> Pod:
    """The pod that is meant by `NAME`, `NAMESPACE/NAME`, `TYPE/NAME` or `NAMESPACE/TYPE/NAME`.

    Of a workload it is a pod that is pending, else the next that it would make; of a group one that is pending, else
    one that is not. A `trial` takes back what comes with a new pod; without one it stays. Raises UnknownTargetError.
    """
    kind, key = parse_target(text, namespace)
    if kind is Pod:
        if key not in cluster.pods:
            raise UnknownTargetError(unknown_pod(key, cluster))
        return cluster.pods[key]
    if kind is PodGroup:
        return _member_of(cluster, key)
    workload = cluster.workloads.get((kind, key))
    if workload is None:
        others = [other for other_kind, other in cluster.workloads if other_kind is kind]
        raise UnknownTargetError(unknown_of_kind(kind, key, others))
    pending = [pod for pod in cluster.pending() if _is_of(cluster, pod, workload)]
    return pending[0] if pending else _next_pod(cluster, workload, trial)


def pending_of(cluster: ClusterModel, text: str, namespace: str = DEFAULT_NAMESPACE) -> list[Pod]:
    """All pending pods of the pod, workload or group that is meant. Raises UnknownTargetError."""
    kind, key = parse_target(text, namespace)
    find_pod(cluster, text, namespace)
    if kind is Pod:
        return [pod for pod in cluster.pending() if pod.key == key]
    if kind is PodGroup:
        return [pod for pod in cluster.pending() if group_key(pod) == key]
    return [pod for pod in cluster.pending() if _is_of(cluster, pod, cluster.workloads[kind, key])]


def _member_of(cluster: ClusterModel, key: str) -> Pod:
    keys = {group.key for group in cluster.state.objects.all(PodGroup)}
    if key not in keys:
        raise UnknownTargetError(unknown_of_kind(PodGroup, key, sorted(keys)))
    if not cluster.state.features.pod_groups:
        raise UnknownTargetError(f"PodGroup {key}: groups need --feature-gates=GenericWorkload=true")
    members = [pod for pod in (*cluster.pending(), *cluster.pods.values()) if group_key(pod) == key]
    if not members:
        raise UnknownTargetError(f"PodGroup {key}: no pod names it in spec.schedulingGroup")
    return members[0]


def _is_of(cluster: ClusterModel, pod: Pod, workload: PodWorkload) -> bool:
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "ReplicaSet" and isinstance(workload, Deployment):
        replica_set = cluster.state.objects.get(StoredReplicaSet, owner.name, pod.namespace)
        owner = replica_set.metadata.controller if replica_set is not None else None
    if owner is None or pod.namespace != workload.namespace:
        return False
    return (owner.kind, owner.name) == (type(workload).__name__, workload.name)


def _next_pod(cluster: ClusterModel, workload: PodWorkload, trial: Trial | None) -> Pod:
    """One more pod than there are. What comes with it, such as its claims, is in the cluster, too."""
    state = cluster.state
    nodes: list[KubeObject] = [node for node in state.nodes.nodes if node is not None]
    owned: list[KubeObject] = []
    if isinstance(workload, DaemonSet):
        owned = [pod for pod in cluster.pods.values() if _is_of(cluster, pod, workload)]
    expansion = expand([*nodes, *owned, _wants_one_pod(workload, cluster.pods)])
    pods = [pod for series in expansion.series for pod in series.pods if not pod.spec.node_name]
    if not pods:
        why = "every node that it may run on has its pod" if isinstance(workload, DaemonSet) else "it makes no pods"
        raise UnknownTargetError(f"{type(workload).__name__} {workload.key}: {why}")
    apply = cluster.handle if trial is None else trial.change
    for obj in expansion.objects:
        if not isinstance(obj, Node | Pod) and state.objects.get(type(obj), obj.name, obj.namespace) is None:
            apply(Change(None, obj))
    return (trial or cluster).with_claims(_under_free_name(cluster, pods[0]))


def _under_free_name(cluster: ClusterModel, pod: Pod) -> Pod:
    if pod.key not in cluster.pods:
        return pod
    name = f"{pod.name}-next"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}"))


def _wants_one_pod(workload: PodWorkload, pods: Collection[str]) -> PodWorkload:
    """The workload as if it had no pods and wanted one, which no pod has the name of."""
    spec = replace(workload.spec, replicas=1, parallelism=1, completions=1, suspend=False)
    if isinstance(workload, StatefulSet):
        first = workload.spec.ordinals.start if workload.spec.ordinals else 0
        ordinal = next(n for n in range(first, first + len(pods) + 1) if f"{workload.key}-{n}" not in pods)
        spec = replace(spec, ordinals=Ordinals(start=ordinal))
    return replace(workload, spec=spec, status=PodWorkloadStatus())


def parse_target(text: str, namespace: str) -> tuple[type[KubeObject], str]:
    """The kind and the `namespace/name` that a text means."""
    parts = text.split("/")
    if len(parts) == 3 and parts[1].lower() in TYPES:
        return TYPES[parts[1].lower()], f"{parts[0]}/{parts[2]}"
    if len(parts) == 2 and parts[0].lower() in TYPES:
        return TYPES[parts[0].lower()], f"{namespace}/{parts[1]}"
    return Pod, text if len(parts) == 2 else f"{namespace}/{text}"


# -- what is unknown --------------------------------------------------------------------------------------------------


def unknown_pod(key: str, cluster: ClusterModel) -> str:
    if not cluster.pods:
        return f"there is no pod {key}: there are no pods at all"
    similar = _similar(key, cluster.pods)
    if similar:
        return f"there is no pod {key}; did you mean {listed(similar)}?"
    pending = [pod.key for pod in cluster.pending()]
    if pending:
        return f"there is no pod {key}; pending are {listed(pending, most=10)}"
    return f"there is no pod {key}; there are {listed(list(cluster.pods), most=10)}"


def unknown_of_kind(kind: type[KubeObject], key: str, keys: list[str]) -> str:
    """What there is instead, by `namespace/name`."""
    similar = _similar(key, keys)
    if similar:
        return f"there is no {kind.__name__} {key}; did you mean {listed(similar)}?"
    return f"there is no {kind.__name__} {key}" + (f"; there are {listed(keys, most=10)}" if keys else "")


def _similar(key: str, keys: Collection[str]) -> list[str]:
    """Keys with the same name in other namespaces, then keys that are spelled alike."""
    name = key.rpartition("/")[2]
    namesakes = [other for other in keys if other.rpartition("/")[2] == name]
    return list(dict.fromkeys([*namesakes, *difflib.get_close_matches(key, keys, n=4, cutoff=0.85)]))


# -- objects that a question brings along -----------------------------------------------------------------------------


class QuestionRequest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is sent to ask."""


class RequestError(UserError):
    """What is wrong with a question: a line per field, each beginning with its path."""


class RequestObjects:
    """Reads what comes with questions to one cluster. Pods are kept, as programs ask about the same again and again."""

    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster
        self._versions: tuple[int, int] | None = None
        self._admission = Admission(Classes())
        self._pods: OrderedDict[tuple[bytes, str], Pod] = OrderedDict()

    def pod(self, raw: msgspec.Raw, path: str, trial: Trial) -> Pod:
        """A new pod from its manifest, or the one of the cluster that a text means. Raises RequestError."""
        self._follow_classes()
        key = (bytes(raw), path)
        if key in self._pods:
            self._pods.move_to_end(key)
            return self._pods[key]
        try:
            value = msgspec.json.decode(raw)
        except msgspec.DecodeError as error:  # such as text that is not UTF-8
            raise RequestError(f"{path}: {error}") from None
        if isinstance(value, str):
            return self._find_pod(value, path, trial)
        pod = self.new_pod(value, path)
        self._pods[key] = pod
        if len(self._pods) > _MOST_KEPT:
            self._pods.popitem(last=False)
        return pod

    def pods(self, raws: Iterable[msgspec.Raw], path: str, trial: Trial) -> list[Pod]:
        """Several pods, none of them twice. RequestError with the mistakes of all of them."""
        pods: dict[str, Pod] = {}
        lines: list[str] = []
        for i, raw in enumerate(raws):
            try:
                pod = self.pod(raw, f"{path}[{i}]", trial)
            except RequestError as error:
                lines += error.lines
                continue
            if pod.identity in pods:
                lines.append(f"{path}[{i}]: the pod {pod.key} is named twice")
            pods[pod.identity] = pod
        if lines:
            raise RequestError(*lines)
        return list(pods.values())

    def object(self, value: Mapping[str, Any], path: str, *, workloads: bool = False) -> KubeObject:
        """A new object of any kind that scheduling looks at, or that makes pods. Raises RequestError."""
        self._follow_classes()
        read_as = kind_of(value.get("apiVersion"), value.get("kind"), workloads=workloads)
        if read_as is None:
            raise RequestError(f"{_field(path, 'kind')}: scheduling does not look at objects of {value['kind']!r}")
        if isinstance(read_as, Mistake):
            raise RequestError(_at(path, read_as))
        metadata = value.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise RequestError(f"{_field(path, 'metadata')}: expected an object")
        if read_as.resource.namespaced:
            metadata = {"namespace": DEFAULT_NAMESPACE, **metadata}
        record, mistakes = self._admission.admit(read_as, {**value, "metadata": metadata})
        if record is None:
            raise RequestError(*(_at(path, mistake) for mistake in mistakes))
        return record

    def _find_pod(self, text: str, path: str, trial: Trial) -> Pod:
        try:
            pod = find_pod(self.cluster, text, trial=trial)
        except UnknownTargetError as error:
            raise RequestError(*(f"{path}: {line}" for line in error.lines)) from None
        self._check_profile(pod, path)
        return pod

    def new_pod(self, value: Any, path: str) -> Pod:
        """A pod that has no node yet. Its uid is its own, so it may be the manifest of one that is there."""
        if not isinstance(value, dict):
            raise RequestError(f"{path}: expected the manifest of a pod, or the namespace/name of one that is there")
        manifest: Object = {"apiVersion": "v1", "kind": "Pod", **value}
        read_as = kind_of(manifest["apiVersion"], manifest["kind"])
        if not isinstance(read_as, ReadAs) or read_as.record is not Pod:
            raise RequestError(f"{_field(path, 'kind')}: expected a Pod of v1")
        metadata = manifest.get("metadata")
        if metadata is None or isinstance(metadata, dict):
            named = dict(metadata or {})
            named["name"] = named.get("name") or f"{named.get('generateName') or 'pod-'}asked"
            manifest["metadata"] = named
        pod = self.object(manifest, path)
        assert isinstance(pod, Pod)
        self._check_profile(pod, path)
        metadata = replace(pod.metadata, uid=f"asked/{path}", deletion_timestamp="")
        return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())

    def _check_profile(self, pod: Pod, path: str) -> None:
        if not self.cluster.engine.knows(pod.spec.scheduler_name):
            profiles = ", ".join(self.cluster.profiles)
            raise RequestError(
                f"{_field(path, 'spec.schedulerName')}: {pod.spec.scheduler_name!r}; there are profiles for {profiles}"
            )

    def _follow_classes(self) -> None:
        """Priorities and storage classes are filled in from the classes that there are now."""
        objects = self.cluster.state.objects
        versions = objects.version(PriorityClass), objects.version(StorageClass)
        if versions != self._versions:
            self._versions = versions
            self._admission = Admission(Classes([*objects.all(PriorityClass), *objects.all(StorageClass)]))
            self._pods.clear()


def _at(path: str, mistake: Mistake) -> str:
    return _field(path, str(mistake)) if mistake.path else f"{path}: {mistake}"


def _field(path: str, name: str) -> str:
    """The path of a field of what is at `path`; an empty path is that of the whole question."""
    return f"{path}.{name}" if path else name
