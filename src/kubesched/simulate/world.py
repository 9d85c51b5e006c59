"""The API server of a simulation: takes the scheduler's writes, and delivers changes to it, as a watch would."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.custom import CustomObject, read_custom
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.kinds import KINDS, resource_named
from kubesched.api.merge_patch import apply_merge_patch
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.framework.client import CONFLICT, NOT_FOUND, Awaited, ClientError, ClusterClient, Json
from kubesched.simulate.claims import DeviceClaims, SimulatedVolumes

K = TypeVar("K", bound=KubeObject)

START = datetime(2000, 1, 1, tzinfo=UTC)
"""When virtual time begins. Before it are the start times of pods that run already, only if those say so."""


class World(ClusterClient):
    """All objects, as an API server would hold them. What kubelets and controllers do about a write is done at once."""

    def __init__(self, objects: Iterable[KubeObject], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._unseen: deque[Change[KubeObject]] = deque()
        self._stamped = (-1.0, "")
        self.pods: dict[str, Pod] = {}
        self._others: dict[tuple[str, str], KubeObject] = {}
        """By kind and key: all but pods, and what storage and devices have controllers for."""
        self.changes = 0
        """Counts what may make a difference to pods that wait: pods that came to or left a node, volumes, claims."""
        self.on_bound: Callable[[Pod], None] = lambda pod: None
        self.on_evicted: Callable[[Pod], Pod | None] = lambda pod: None
        all_objects = list(objects)
        # An API server lists by name, pods after what they stand on; the order decides between equals.
        for obj in sorted(all_objects, key=lambda obj: (isinstance(obj, Pod), obj.namespace, obj.name)):
            if isinstance(obj, Pod):
                if obj.is_finished:
                    continue
                self.pods[obj.key] = obj
            elif not isinstance(obj, PersistentVolume | PersistentVolumeClaim | ResourceClaim):
                self._others[_kind_of(obj), obj.key] = obj
            self._unseen.append(Change(new=obj))
        self._claims = DeviceClaims(all_objects, self._notify)
        self._volumes = SimulatedVolumes(all_objects, self._notify)
        self._volumes.settle()

    def deliver(self, handle: Callable[[Change[KubeObject]], None]) -> None:
        """Hand on all changes that were not handed on yet, in their order."""
        while self._unseen:
            handle(self._unseen.popleft())

    def create_pod(self, pod: Pod) -> None:
        """A new pod, to be scheduled. It says already that it starts now, as most do: those stay as they are."""
        self._volumes.pod_created(pod)
        pod = self._claims.pod_created(pod)
        pod = replace(pod, status=replace(pod.status, start_time=self._stamp()))
        self.pods[pod.key] = pod
        self._unseen.append(Change(new=pod))

    def remove(self, pod: Pod) -> None:
        """The pod has finished, or was deleted: to the scheduler that is the same."""
        stored = self.pods.pop(pod.key)
        self._notify(stored, None)
        self._volumes.pod_gone(stored)
        self._claims.pod_gone(stored)

    def all(self, kind: type[K]) -> list[K]:
        """All objects of a kind; of those that storage and devices have controllers for, none."""
        objects: Iterable[KubeObject] = self.pods.values() if kind is Pod else self._others.values()
        return [obj for obj in objects if isinstance(obj, kind)]

    def everything(self) -> tuple[KubeObject, ...]:
        """All objects as they are now."""
        return (*self._others.values(), *self._volumes.objects(), *self._claims.objects(), *self.pods.values())

    def put(self, obj: KubeObject) -> None:
        """Store an object, new or changed."""
        kind = _kind_of(obj)
        self._volumes.learn(obj)
        self._put(kind, self._others.get((kind, obj.key)), obj)

    def take_away(self, obj: KubeObject) -> None:
        """Delete an object that is no pod."""
        self._notify(self._others.pop((_kind_of(obj), obj.key)), None)

    # -- what plugins read and write ----------------------------------------------------------------------------------

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return _plain(self._find(kind, name, namespace))

    async def create(self, kind: str, obj: Json) -> Json:
        record = _record(kind, obj)
        if isinstance(record, ResourceClaim):
            return _plain(self._claims.create(record))
        return _plain(self._put(kind, None, record))

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        meta = obj["metadata"]
        stored = self._find(kind, meta["name"], meta.get("namespace", ""))
        if meta.get("resourceVersion", "") != stored.metadata.resource_version:
            raise ClientError(CONFLICT, f"the {kind} {stored.key} has been modified")
        before = _plain(stored)
        new = {**before, "status": obj.get("status")} if subresource else {**obj, "status": before.get("status")}
        return _plain(self._put(kind, stored, _record(kind, {name: part for name, part in new.items() if part})))

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        stored = self._find(kind, name, namespace)
        meta, stored_meta = patch.get("metadata") or {}, stored.metadata
        if meta.get("uid", stored_meta.uid) != stored_meta.uid:
            raise ClientError(CONFLICT, f"the {kind} {stored.key} has another uid")
        if meta.get("resourceVersion", stored_meta.resource_version) != stored_meta.resource_version:
            raise ClientError(CONFLICT, f"the {kind} {stored.key} has been modified")
        return _plain(self._put(kind, stored, _record(kind, apply_merge_patch(_plain(stored), patch))))

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        stored = self._find(kind, name, namespace)
        if uid and stored.metadata.uid != uid:
            raise ClientError(CONFLICT, f"the {kind} {stored.key} has another uid")
        match stored:
            case Pod():
                self.remove(stored)
            case ResourceClaim():
                self._claims.delete(stored)
            case PersistentVolume() | PersistentVolumeClaim():
                self._volumes.delete(stored)
            case _:
                self.take_away(stored)

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return True

    def _find(self, kind: str, name: str, namespace: str) -> KubeObject:
        key = f"{namespace}/{name}" if namespace else name
        stored: KubeObject | None
        match kind:
            case "Pod":
                stored = self.pods.get(key)
            case "ResourceClaim":
                stored = self._claims.find(key)
            case "PersistentVolume" | "PersistentVolumeClaim":
                stored = self._volumes.find(kind, key)
            case _:
                stored = self._others.get((kind if kind in KINDS else _resource_name(kind), key))
        if stored is None:
            raise ClientError(NOT_FOUND, f'{kind} "{name}" not found')
        return stored

    def _put(self, kind: str, old: KubeObject | None, new: KubeObject) -> KubeObject:
        match new:
            case Pod():
                self.pods[new.key] = new
                self._unseen.append(Change(old, new))
            case ResourceClaim():
                return self._claims.store(new)
            case PersistentVolume():
                self._volumes.volume_changed(new)
            case PersistentVolumeClaim():
                self._volumes.claim_changed(new)
            case _:
                self._others[_kind_of(new), new.key] = new
                self._notify(old, new)
        return new

    # -- what the scheduler writes ------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        stored = self._stored(pod)
        if stored.spec.node_name:
            raise ClientError(CONFLICT, f'pod {pod.name} is already assigned to node "{stored.spec.node_name}"')
        status, started = stored.status, self._stamp()
        if status.start_time != started or status.nominated_node_name:
            status = replace(status, start_time=started, nominated_node_name="")
        bound = replace(stored, spec=replace(stored.spec, node_name=node_name), status=status)
        self.pods[pod.key] = bound
        self._notify(stored, bound)
        self.on_bound(bound)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        stored = self._stored(pod)
        status = stored.status
        if condition is not None:
            others = tuple(other for other in status.conditions if other.type != condition.type)
            status = replace(status, conditions=(*others, condition))
        if nominated_node_name is not None:
            status = replace(status, nominated_node_name=nominated_node_name)
        patched = self.pods[pod.key] = replace(stored, status=status)
        self._unseen.append(Change(stored, patched))

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        stored = self._stored(pod)
        self.remove(stored)
        self.on_evicted(stored)

    def _stamp(self) -> str:
        now = self._clock()
        if now != self._stamped[0]:
            self._stamped = (now, (START + timedelta(seconds=now)).isoformat())
        return self._stamped[1]

    def _stored(self, pod: Pod) -> Pod:
        stored = self.pods.get(pod.key)
        if stored is None or stored.uid != pod.uid:
            raise ClientError(NOT_FOUND, f'pods "{pod.name}" not found')
        return stored

    def _notify(self, old: KubeObject | None, new: KubeObject | None) -> None:
        self.changes += 1
        self._unseen.append(Change(old, new))


def _kind_of(obj: KubeObject) -> str:
    return obj.resource if isinstance(obj, CustomObject) else type(obj).__name__


def _plain(obj: KubeObject) -> Json:
    return obj.content if isinstance(obj, CustomObject) else msgspec.to_builtins(obj)


def _record(kind: str, obj: Json) -> KubeObject:
    return msgspec.convert(obj, KINDS[kind].record) if kind in KINDS else read_custom(_resource_name(kind), obj)


def _resource_name(kind: str) -> str:
    """What objects that have no record are kept under: `plural.version.group`."""
    resource = resource_named(kind)
    if resource is None:
        raise ClientError(NOT_FOUND, f"{kind}: neither a kind that Kubernetes has, nor plural.version.group")
    return f"{resource.plural}.{resource.version}.{resource.group}"
