"""What a question is about: pods that exist, and the next pods of workloads, made as their controllers would."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.workloads import ReplicaSet as StoredReplicaSet
from kubesched.ask.trial import Trial
from kubesched.ask.wording import listed
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import (
    DEFAULT_NAMESPACE,
    DaemonSet,
    Deployment,
    Job,
    Ordinals,
    PodWorkload,
    PodWorkloadStatus,
    ReplicaSet,
    StatefulSet,
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


class UnknownTargetError(UserError):
    """There is no such pod or workload."""


def find_pod(
    cluster: ClusterModel, text: str, namespace: str = DEFAULT_NAMESPACE, *, trial: Trial | None = None
) -> Pod:
    """The pod that is meant by `NAME`, `NAMESPACE/NAME`, `TYPE/NAME` or `NAMESPACE/TYPE/NAME`.

    Of a workload it is a pod that is pending, else the next that it would make; of a group one that is pending, else
    one that is not. A `trial` takes back what comes with a new pod; without one it stays. Raises UnknownTargetError.
    """
    kind, key = parsed(text, namespace)
    if kind is Pod:
        if key not in cluster.pods:
            raise UnknownTargetError(unknown_pod(key, cluster))
        return cluster.pods[key]
    if kind is PodGroup:
        return _member_of(cluster, key)
    workload = cluster.workloads.get((kind, key))
    if workload is None:
        known = [other for other_kind, other in cluster.workloads if other_kind is kind]
        raise UnknownTargetError(unknown_of_kind(kind, key, known))
    pending = [pod for pod in cluster.pending() if _is_of(cluster, pod, workload)]
    return pending[0] if pending else _next_pod(cluster, workload, trial)


def _member_of(cluster: ClusterModel, key: str) -> Pod:
    known = {group.key for group in cluster.state.objects.all(PodGroup)}
    if key not in known:
        raise UnknownTargetError(unknown_of_kind(PodGroup, key, sorted(known)))
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
    made = expand([*nodes, *owned, _wanting_one_more(workload, cluster.pods)])
    pods = [pod for series in made.series for pod in series.pods if not pod.spec.node_name]
    if not pods:
        why = "every node that it may run on has its pod" if isinstance(workload, DaemonSet) else "it makes no pods"
        raise UnknownTargetError(f"{type(workload).__name__} {workload.key}: {why}")
    apply = cluster.handle if trial is None else trial.change
    for obj in made.objects:
        if not isinstance(obj, Node | Pod) and state.objects.get(type(obj), obj.name, obj.namespace) is None:
            apply(Change(None, obj))
    return (trial or cluster).with_claims(_with_free_name(cluster, pods[0]))


def _with_free_name(cluster: ClusterModel, pod: Pod) -> Pod:
    if pod.key not in cluster.pods:
        return pod
    name = f"{pod.name}-next"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}"))


def _wanting_one_more(workload: PodWorkload, pods: Collection[str]) -> PodWorkload:
    """The workload as if it had no pods and wanted one, which no pod has the name of."""
    spec = replace(workload.spec, replicas=1, parallelism=1, completions=1, suspend=False)
    if isinstance(workload, StatefulSet):
        first = workload.spec.ordinals.start if workload.spec.ordinals else 0
        ordinal = next(n for n in range(first, first + len(pods) + 1) if f"{workload.key}-{n}" not in pods)
        spec = replace(spec, ordinals=Ordinals(start=ordinal))
    return replace(workload, spec=spec, status=PodWorkloadStatus())


def parsed(text: str, namespace: str) -> tuple[type[KubeObject], str]:
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


def unknown_of_kind(kind: type[KubeObject], key: str, known: list[str]) -> str:
    """What there is instead, by `namespace/name`."""
    similar = _similar(key, known)
    if similar:
        return f"there is no {kind.__name__} {key}; did you mean {listed(similar)}?"
    return f"there is no {kind.__name__} {key}" + (f"; there are {listed(known, most=10)}" if known else "")


def _similar(key: str, known: Collection[str]) -> list[str]:
    """Those of the same name elsewhere, then those that are spelled alike."""
    name = key.rpartition("/")[2]
    namesakes = [other for other in known if other.rpartition("/")[2] == name]
    return list(dict.fromkeys([*namesakes, *difflib.get_close_matches(key, known, n=4, cutoff=0.85)]))
