"""Applies hypothetical edits: to a list of objects, or to a cluster for as long as a trial lasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count, islice
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.api_error import ApiError
from kubesched.api.change import Change
from kubesched.api.custom import CustomObject
from kubesched.api.device_claims import ResourceClaim, ResourceClaimStatus
from kubesched.api.devices import ResourceSlice
from kubesched.api.json_patch import json_patch
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, NodeCondition, Taint
from kubesched.api.pod import Pod, PodStatus
from kubesched.api.schema import convert
from kubesched.api.storage import CSINode
from kubesched.api.tolerations import UNSCHEDULABLE_TAINT, tolerates
from kubesched.ask.edits import (
    AddNodes,
    AddNodesFromTemplate,
    ApplyObjects,
    CordonNodes,
    CreateObject,
    DeleteObject,
    DrainNodes,
    Edit,
    EditError,
    EditMistake,
    FailNodes,
    PatchObject,
    RemoveNodes,
    RescheduleAll,
    ScaleWorkload,
    UncordonNodes,
    UpgradeNodes,
)
from kubesched.ask.targets import RequestError, RequestObjects, unknown_of_kind
from kubesched.ask.trial import Trial
from kubesched.simulate.kinds import PodWorkload, ReplicaSet, StatefulSet
from kubesched.simulate.nodes import belongs_to, leaves, new_node, nodes_meant, whats_wrong

K = TypeVar("K", bound=KubeObject)

Changes = Iterator[Change[KubeObject]]
NodesEdit = CordonNodes | UncordonNodes | DrainNodes | FailNodes | RemoveNodes | UpgradeNodes
UNREACHABLE_TAINTS = (
    Taint("node.kubernetes.io/unreachable", "NoSchedule"),
    Taint("node.kubernetes.io/unreachable", "NoExecute"),
)
"""What the node controller adds to a node that is out of reach."""
_STUCK = "1970-01-01T00:00:00Z"
"""When a pod was deleted whose kubelet does not say that it is gone."""
_REVISION = "deployment.kubernetes.io/revision"


class EditableCluster(Protocol):
    """What edits look at: a list of objects, or a `ClusterModel`."""

    def all(self, kind: type[K]) -> Collection[K]:
        """All objects of a kind, in their order."""

    def find(self, kind: type[KubeObject], name: str, namespace: str = "") -> KubeObject | None:
        """The object of this kind and name."""


class ObjectSet:
    """Objects by kind and name, in the order in which they came."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._objects = {(_kind(obj), obj.key): obj for obj in objects}

    def all(self, kind: type[K]) -> Collection[K]:
        return [obj for obj in self._objects.values() if isinstance(obj, kind)]

    def find(self, kind: type[KubeObject], name: str, namespace: str = "") -> KubeObject | None:
        return self._objects.get((kind.__name__, f"{namespace}/{name}" if namespace else name))

    def apply(self, change: Change[KubeObject]) -> None:
        if change.new is None:
            self._objects.pop((_kind(change.obj), change.obj.key), None)
        else:
            self._objects[_kind(change.new), change.new.key] = change.new

    def __iter__(self) -> Iterator[KubeObject]:
        return iter(self._objects.values())


def _kind(obj: KubeObject) -> str:
    return obj.kind if isinstance(obj, CustomObject) else type(obj).__name__


def apply_hypothetical(objects: Iterable[KubeObject], edits: Iterable[Edit]) -> tuple[KubeObject, ...]:
    """The objects once all edits have been made, one after another. EditError with the mistakes of all of them."""
    cluster, mistakes = ObjectSet(objects), list[EditMistake]()
    for edit in edits:
        try:
            for change in list(changes_of(edit, cluster)):
                cluster.apply(change)
        except EditError as error:
            mistakes += error.mistakes
    if mistakes:
        raise EditError(mistakes=mistakes)
    return tuple(cluster)


def apply_to_trial(
    edits: Iterable[Edit], trial: Trial, objects: RequestObjects, check_time: Callable[[], None]
) -> None:
    """Make these edits, which a program sent, on the cluster of a trial. Raises RequestError."""
    for i, edit in enumerate(edits):
        path = f"changes[{i}]"
        try:
            if isinstance(edit, CreateObject):
                trial.change(_creation(edit, path, trial, objects))
                continue
            for change in list(changes_of(edit, trial.cluster)):
                check_time()
                trial.change(change)
        except EditError as error:
            lines = [
                f"{path}{mistake.field and '.'}{mistake.field}: {mistake.problem_named}" for mistake in error.mistakes
            ]
            raise RequestError(*lines) from None


def _creation(edit: CreateObject, path: str, trial: Trial, objects: RequestObjects) -> Change[KubeObject]:
    obj = objects.object(edit.object, f"{path}.object")
    if trial.cluster.find(type(obj), obj.name, obj.namespace) is not None:
        raise RequestError(f"{path}.object: there is a {obj.kind} {obj.key} already")
    return Change(None, obj)


def changes_of(edit: Edit, cluster: EditableCluster) -> Changes:
    """The changes of objects that an edit comes to. Raises EditError."""
    match edit:
        case CordonNodes() | UncordonNodes():
            yield from _cordon(_nodes(edit, cluster), isinstance(edit, CordonNodes))
        case DrainNodes():
            nodes = _nodes(edit, cluster)
            yield from _evict(nodes, cluster)
            yield from _cordon(nodes, True)
        case RescheduleAll():
            yield from _evict(list(cluster.all(Node)), cluster)
        case FailNodes():
            yield from _fail(_nodes(edit, cluster), cluster)
        case RemoveNodes():
            yield from _remove(_nodes(edit, cluster), cluster)
        case AddNodes():
            names = nodes_meant(cluster.all(Node), edit.like)
            if not names:
                raise _error_of(edit, "like", edit.like, whats_wrong(cluster.all(Node), edit.like))
            model = cluster.find(Node, min(names))
            assert isinstance(model, Node)
            kinds: tuple[type[KubeObject], ...] = (CSINode, ResourceSlice, Pod)
            belongings = [obj for kind in kinds for obj in cluster.all(kind) if belongs_to(obj, model.name)]
            yield from _add(model, edit.count, belongings, cluster)
        case AddNodesFromTemplate():
            yield from _add(edit.template, edit.count, (), cluster)
        case DeleteObject():
            yield Change(_find_object(edit, cluster), None)
        case PatchObject():
            obj = _find_object(edit, cluster)
            yield Change(obj, _patch(obj, edit))
        case ScaleWorkload():
            yield from _scale(edit, cluster)
        case ApplyObjects():
            yield from _apply(edit, cluster)


def _error_of(edit: Edit, field: str, target: str, problem: str) -> EditError:
    return EditError(mistakes=[EditMistake(edit, field, target, problem)])


# -- nodes ------------------------------------------------------------------------------------------------------------


def node_names(edit: NodesEdit, cluster: EditableCluster) -> set[str]:
    """The nodes that an edit names, or means by a label. EditError where a text means none."""
    if bool(edit.nodes) == bool(edit.selector):
        raise _error_of(edit, "", "", "expected either nodes or a selector")
    if edit.selector and "=" not in edit.selector:
        raise _error_of(edit, "selector", edit.selector, "expected key=value")
    nodes, names, mistakes = list(cluster.all(Node)), set[str](), list[EditMistake]()
    all_names = {node.name for node in nodes}
    for i, text in enumerate(edit.nodes or (edit.selector,)):
        matching = {text} if text in all_names else nodes_meant(nodes, text)
        names |= matching
        if not matching:
            field = f"nodes[{i}]" if edit.nodes else "selector"
            mistakes.append(EditMistake(edit, field, text, whats_wrong(nodes, text)))
    if mistakes:
        raise EditError(mistakes=mistakes)
    return names


def _nodes(edit: NodesEdit, cluster: EditableCluster) -> list[Node]:
    names = node_names(edit, cluster)
    return [node for node in cluster.all(Node) if node.name in names]


def _cordon(nodes: Iterable[Node], is_cordoned: bool) -> Changes:
    """With the taint that the node controller adds to nodes that are cordoned."""
    for node in nodes:
        if node.spec.unschedulable != is_cordoned:
            others = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT.key)
            taints = (*others, UNSCHEDULABLE_TAINT) if is_cordoned else others
            yield Change(node, replace(node, spec=replace(node.spec, unschedulable=is_cordoned, taints=taints)))


def _fail(nodes: list[Node], cluster: EditableCluster) -> Changes:
    """What becomes of nodes that are out of reach, once their pods' `tolerationSeconds` are over."""
    yield from _evict(nodes, cluster, waits_for_kubelet=True)
    for node in nodes:
        others = [taint for taint in node.spec.taints if taint not in UNREACHABLE_TAINTS]
        conditions = [condition for condition in node.status.conditions if condition.type != "Ready"]
        status = replace(node.status, conditions=(*conditions, NodeCondition("Ready", "Unknown")))
        spec = replace(node.spec, taints=(*others, *UNREACHABLE_TAINTS))
        yield Change(node, replace(node, spec=spec, status=status))


def _evict(nodes: Iterable[Node], cluster: EditableCluster, *, waits_for_kubelet: bool = False) -> Changes:
    """The pods of the nodes that a drain evicts are pending, under the names they have. Their devices are free.

    Where a kubelet would have to confirm that they are gone and does not, the pods of a StatefulSet stay on their way
    out, as it makes none of the same name meanwhile; and those that tolerate the loss for ever stay.
    """
    names = {node.name for node in nodes}
    pods = [pod for pod in cluster.all(Pod) if pod.spec.node_name in names and leaves(pod)]
    if waits_for_kubelet:
        pods = [pod for pod in pods if not _tolerates_loss(pod)]
    uids = {pod.uid for pod in pods}
    for pod in pods:
        status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
        owner, metadata = pod.metadata.controller, pod.metadata
        if waits_for_kubelet and owner is not None and owner.kind == "StatefulSet":
            metadata = replace(metadata, deletion_timestamp=_STUCK)
        yield Change(pod, replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status))
    for claim in cluster.all(ResourceClaim):
        staying = tuple(user for user in claim.status.reserved_for if user.uid not in uids)
        if staying != claim.status.reserved_for:
            held = replace(claim.status, reserved_for=staying) if staying else ResourceClaimStatus()
            yield Change(claim, replace(claim, status=held))


def _tolerates_loss(pod: Pod) -> bool:
    """Whether it stays on an unreachable node for as long as that takes."""
    tolerating = [toleration for toleration in pod.spec.tolerations if tolerates(toleration, UNREACHABLE_TAINTS[1])]
    return bool(tolerating) and all(toleration.toleration_seconds is None for toleration in tolerating)


def _remove(nodes: list[Node], cluster: EditableCluster) -> Changes:
    """What stands on the nodes leaves first, so that a trial can put it back after them."""
    yield from _evict(nodes, cluster)
    names = {node.name for node in nodes}
    for pod in cluster.all(Pod):
        if pod.spec.node_name in names and not leaves(pod):
            yield Change(pod, None)
    for device_slice in cluster.all(ResourceSlice):
        if device_slice.spec.node_name in names:
            yield Change(device_slice, None)
    for limits in cluster.all(CSINode):
        if limits.name in names:
            yield Change(limits, None)
    for node in nodes:
        yield Change(node, None)


def _add(model: Node, number: int, belongings: Collection[KubeObject], cluster: EditableCluster) -> Changes:
    taken = {node.name for node in cluster.all(Node)}
    free = (name for i in count(1) if (name := f"{model.name}-new-{i}") not in taken)
    for name in islice(free, number):
        for obj in new_node(model, name, belongings):
            yield Change(cluster.find(type(obj), obj.name, obj.namespace), obj)


# -- objects ----------------------------------------------------------------------------------------------------------


def _find_object(edit: DeleteObject | PatchObject, cluster: EditableCluster) -> KubeObject:
    if edit.kind not in KINDS:
        raise _error_of(edit, "kind", edit.kind, f"scheduling does not look at objects of {edit.kind!r}")
    kind = KINDS[edit.kind]
    namespace = (edit.namespace or "default") if kind.resource.namespaced else ""
    obj = cluster.find(kind.record, edit.name, namespace)
    if obj is None:
        key = f"{namespace}/{edit.name}" if namespace else edit.name
        why = whats_wrong(cluster.all(Node), edit.name) if kind.record is Node else f"there is no {edit.kind} {key}"
        raise _error_of(edit, "name", edit.name, why)
    return obj


def _patch(obj: KubeObject, edit: PatchObject) -> KubeObject:
    def refused(*problems: str) -> EditError:
        return EditError(mistakes=[EditMistake(edit, "patch", edit.name, problem) for problem in problems])

    try:
        content = json_patch(msgspec.json.decode(msgspec.json.encode(obj)), list(edit.patch))
    except ApiError as error:
        causes = [cause["message"] for cause in error.details.get("causes", ())]
        raise refused(*(causes or [error.message])) from None
    record, mistakes = convert(content, type(obj))
    if record is None:
        raise refused(*map(str, mistakes))
    if (record.name, record.namespace, record.metadata.uid) != (obj.name, obj.namespace, obj.metadata.uid):
        raise refused("name, namespace and uid must stay")
    return record


# -- workloads --------------------------------------------------------------------------------------------------------


def _scale(edit: ScaleWorkload, cluster: EditableCluster) -> Changes:
    workload = _scaled_workload(edit, cluster)
    pods = [pod for pod in cluster.all(Pod) if _is_owned(pod, workload) and not pod.is_finished]
    if len(pods) < edit.replicas and not workload.spec.template.spec.containers:
        raise _error_of(edit, "", edit.title, "there is no pod template of which more could be made")
    leaving = _in_order_of_leaving(pods)[: max(0, len(pods) - edit.replicas)]
    if isinstance(workload, StatefulSet):
        start = workload.spec.ordinals.start if workload.spec.ordinals is not None else 0
        leaving = [pod for pod in pods if _ordinal(pod) >= start + edit.replicas]
    for pod in leaving:
        yield Change(pod, None)
    yield Change(workload, replace(workload, spec=replace(workload.spec, replicas=edit.replicas)))


def _scaled_workload(edit: ScaleWorkload, cluster: EditableCluster) -> PodWorkload:
    """The workload whose number is changed: of a Deployment it is its current ReplicaSet, if it has one."""
    workloads = list(cluster.all(edit.workload))
    key = f"{edit.namespace}/{edit.name}"
    workload = next((obj for obj in workloads if obj.key == key), None)
    if workload is None:
        unknown = unknown_of_kind(edit.workload, key, [obj.key for obj in workloads])
        raise _error_of(edit, "workload", edit.title, unknown)
    replica_sets = [obj for obj in cluster.all(ReplicaSet) if _is_owned(obj, workload)]
    return max(replica_sets, key=_revision_of) if replica_sets else workload


def _revision_of(replica_set: ReplicaSet) -> tuple[int, int]:
    revision = replica_set.metadata.annotations.get(_REVISION, "")
    return int(revision) if revision.isdigit() else 0, replica_set.spec.replicas or 0


def _is_owned(obj: KubeObject, by: PodWorkload) -> bool:
    return _owner(obj) == (type(by).__name__, by.namespace, by.name)


def _in_order_of_leaving(pods: list[Pod]) -> list[Pod]:
    """As a ReplicaSet deletes pods: pending ones first, then those with most siblings on their node, the newest."""
    beside = Counter(pod.spec.node_name for pod in pods)
    newest_first = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    return sorted(newest_first, key=lambda pod: (bool(pod.spec.node_name), -beside[pod.spec.node_name]))


def _ordinal(pod: Pod) -> int:
    number = pod.name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _apply(edit: ApplyObjects, cluster: EditableCluster) -> Changes:
    """An object that is replaced goes first, so that the new one comes last, as all that is new."""
    replaced = {(_kind(obj), obj.key) for obj in edit.objects}
    owners: set[tuple[str, str, str] | None] = {
        (type(obj).__name__, obj.namespace, obj.name) for obj in edit.objects if isinstance(obj, PodWorkload)
    }
    owners |= {("ReplicaSet", obj.namespace, obj.name) for obj in cluster.all(ReplicaSet) if _owner(obj) in owners}
    for obj in cluster.all(KubeObject):
        if (_kind(obj), obj.key) in replaced or _owner(obj) in owners:
            yield Change(obj, None)
    for obj in edit.objects:
        yield Change(None, obj)


def _owner(obj: KubeObject) -> tuple[str, str, str] | None:
    owner = obj.metadata.controller
    return (owner.kind, obj.namespace, owner.name) if owner is not None else None
