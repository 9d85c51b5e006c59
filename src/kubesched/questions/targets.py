"""What a question is about: pods that exist, and the next pods of workloads, made as their controllers would."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.workloads import ReplicaSet as StoredReplicaSet
from kubesched.config import SchedulerConfiguration
from kubesched.framework.profile import Profile
from kubesched.questions.trial import Trial
from kubesched.simulate.cluster import SimulatedCluster
from kubesched.simulate.kinds import (
    DEFAULT_NAMESPACE,
    DaemonSet,
    Deployment,
    Job,
    Ordinals,
    ReplicaSet,
    StatefulSet,
    Workload,
    WorkloadStatus,
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


@dataclass(frozen=True)
class AskedCluster:
    """A cluster to ask about, and the workloads that its manifests had."""

    cluster: SimulatedCluster
    workloads: Mapping[tuple[type[KubeObject], str], Workload]
    """By kind and `namespace/name`."""
    trial: Trial | None = None
    """Takes back what comes with new pods; without one it stays."""

    def find(self, text: str, namespace: str = DEFAULT_NAMESPACE) -> Pod:
        """The pod that is meant by `NAME`, `NAMESPACE/NAME`, `TYPE/NAME` or `NAMESPACE/TYPE/NAME`.

        Of a workload it is a pod that is pending, else the next that it would make; of a group one that is pending,
        else one that is not. Raises UnknownTargetError.
        """
        kind, key = parsed(text, namespace)
        if kind is Pod:
            if key not in self.cluster.pods:
                raise UnknownTargetError(unknown_pod(key, self.cluster))
            return self.cluster.pods[key]
        if kind is PodGroup:
            return self._member_of(key)
        workload = self.workloads.get((kind, key))
        if workload is None:
            known = [other for other_kind, other in self.workloads if other_kind is kind]
            raise UnknownTargetError(unknown_of_kind(kind, key, known))
        pending = [pod for pod in self.cluster.pending() if self._is_of(pod, workload)]
        return pending[0] if pending else self._next(workload)

    def _member_of(self, key: str) -> Pod:
        known = {group.key for group in self.cluster.state.objects.all(PodGroup)}
        if key not in known:
            raise UnknownTargetError(unknown_of_kind(PodGroup, key, sorted(known)))
        if not self.cluster.state.features.pod_groups:
            raise UnknownTargetError(f"PodGroup {key}: groups need --feature-gates=GenericWorkload=true")
        members = [pod for pod in (*self.cluster.pending(), *self.cluster.pods.values()) if group_key(pod) == key]
        if not members:
            raise UnknownTargetError(f"PodGroup {key}: no pod names it in spec.schedulingGroup")
        return members[0]

    def _is_of(self, pod: Pod, workload: Workload) -> bool:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "ReplicaSet" and isinstance(workload, Deployment):
            replica_set = self.cluster.state.objects.get(StoredReplicaSet, owner.name, pod.namespace)
            owner = replica_set.metadata.controller if replica_set is not None else None
        if owner is None or pod.namespace != workload.namespace:
            return False
        return (owner.kind, owner.name) == (type(workload).__name__, workload.name)

    def _next(self, workload: Workload) -> Pod:
        """One more pod than there are. What comes with it, such as its claims, is in the cluster, too."""
        state = self.cluster.state
        nodes: list[KubeObject] = [node for node in state.nodes.nodes if node is not None]
        owned: list[KubeObject] = []
        if isinstance(workload, DaemonSet):
            owned = [pod for pod in self.cluster.pods.values() if self._is_of(pod, workload)]
        made = expand([*nodes, *owned, _wanting_one_more(workload, self.cluster.pods)])
        pods = [pod for series in made.series for pod in series.pods if not pod.spec.node_name]
        if not pods:
            why = "every node that it may run on has its pod" if isinstance(workload, DaemonSet) else "it makes no pods"
            raise UnknownTargetError(f"{type(workload).__name__} {workload.key}: {why}")
        put = self.cluster.handle if self.trial is None else self.trial.change
        for obj in made.objects:
            if not isinstance(obj, Node | Pod) and state.objects.get(type(obj), obj.name, obj.namespace) is None:
                put(Change(None, obj))
        return (self.trial or self.cluster).with_claims(self._named(pods[0]))

    def _named(self, pod: Pod) -> Pod:
        """The pod, under a name that no other has."""
        if pod.key not in self.cluster.pods:
            return pod
        name = f"{pod.name}-next"
        return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}"))


def asked_cluster(
    objects: Iterable[KubeObject],
    settings: SchedulerConfiguration,
    *,
    seed: int = 0,
    profiles: Mapping[str, Profile] | None = None,
) -> AskedCluster:
    """The cluster of manifests that may hold workloads: the pods that they lack are pending."""
    given = list(objects)
    workloads: dict[tuple[type[KubeObject], str], Workload] = {
        (type(obj), obj.key): obj for obj in given if isinstance(obj, Workload)
    }
    expansion = expand(given, job_groups=settings.features.job_groups)
    pods = [pod for series in expansion.series for pod in series.pods]
    cluster = SimulatedCluster([*expansion.objects, *pods], settings, seed=seed, profiles=profiles)
    return AskedCluster(cluster, workloads)


def _wanting_one_more(workload: Workload, pods: Collection[str]) -> Workload:
    """The workload as if it had no pods and wanted one, which no pod has the name of."""
    spec = replace(workload.spec, replicas=1, parallelism=1, completions=1, suspend=False)
    if isinstance(workload, StatefulSet):
        first = workload.spec.ordinals.start if workload.spec.ordinals else 0
        ordinal = next(n for n in range(first, first + len(pods) + 1) if f"{workload.key}-{n}" not in pods)
        spec = replace(spec, ordinals=Ordinals(start=ordinal))
    return replace(workload, spec=spec, status=WorkloadStatus())


def parsed(text: str, namespace: str) -> tuple[type[KubeObject], str]:
    """The kind and the `namespace/name` that a text means."""
    parts = text.split("/")
    if len(parts) == 3 and parts[1].lower() in TYPES:
        return TYPES[parts[1].lower()], f"{parts[0]}/{parts[2]}"
    if len(parts) == 2 and parts[0].lower() in TYPES:
        return TYPES[parts[0].lower()], f"{namespace}/{parts[1]}"
    return Pod, text if len(parts) == 2 else f"{namespace}/{text}"


# -- what is unknown --------------------------------------------------------------------------------------------------


def unknown_pod(key: str, cluster: SimulatedCluster) -> str:
    if not cluster.pods:
        return f"there is no pod {key}: there are no pods at all"
    similar = _similar(key, cluster.pods)
    if similar:
        return f"there is no pod {key}; did you mean {_listed(similar)}?"
    pending = [pod.key for pod in cluster.pending()]
    if pending:
        return f"there is no pod {key}; pending are {_listed(pending, most=10)}"
    return f"there is no pod {key}; there are {_listed(list(cluster.pods), most=10)}"


def unknown_of_kind(kind: type[KubeObject], key: str, known: list[str]) -> str:
    """What there is instead, by `namespace/name`."""
    similar = _similar(key, known)
    if similar:
        return f"there is no {kind.__name__} {key}; did you mean {_listed(similar)}?"
    return f"there is no {kind.__name__} {key}" + (f"; there are {_listed(known, most=10)}" if known else "")


def _similar(key: str, known: Collection[str]) -> list[str]:
    """Those of the same name elsewhere, then those that are spelled alike."""
    name = key.rpartition("/")[2]
    namesakes = [other for other in known if other.rpartition("/")[2] == name]
    return list(dict.fromkeys([*namesakes, *difflib.get_close_matches(key, known, n=4, cutoff=0.85)]))


def _listed(names: list[str], most: int = 4) -> str:
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
