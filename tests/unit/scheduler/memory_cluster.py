"""A cluster in memory: what the scheduler under test writes to, and the watch that tells it what became of it.

Every write waits once before it happens and once after, so a test may let anything happen in between (see `Running`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.parity.fake_api import merged

from kubesched.api.change import Change
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.client import CONFLICT, NOT_FOUND, Awaited, ClientError, ClusterClient, Json
from kubesched.scheduler.handle import ObjectWaiter, has_event_loop
from kubesched.scheduler.scheduler import Scheduler


@dataclass(frozen=True)
class Refusal:
    """How a write fails: with this reason, before it is done or, worse, after."""

    reason: str
    after_commit: bool = False


class MemoryCluster(ClusterClient):
    """The truth about nodes and pods. The scheduler hears of it when `tell` is called, and not before."""

    def __init__(self) -> None:
        self.objects: dict[str, KubeObject] = {}
        self.unseen: deque[Change[KubeObject]] = deque()
        self.bindings: list[tuple[str, str]] = []
        """The uid and the node of every binding that was made."""
        self.evicted: list[str] = []
        self.notes: list[str] = []
        self.bind_refusals: deque[Refusal] = deque()
        self.evict_refusals: deque[Refusal] = deque()
        self.claim_refusals: deque[Refusal | None] = deque()
        """For writes of claims, one after another; those that go through are None."""
        self.graceful = False
        """Whether an evicted pod stays for a while, terminating."""
        self._version = 0
        self._waiter = ObjectWaiter()

    @property
    def pods(self) -> dict[str, Pod]:
        return {obj.key: obj for obj in self.objects.values() if isinstance(obj, Pod)}

    def pod(self, name: str) -> Pod:
        found = self.objects[_path(Pod, f"default/{name}")]
        assert isinstance(found, Pod)
        return found

    # -- what others do -----------------------------------------------------------------------------------------------

    def put(self, obj: KubeObject) -> None:
        """Create an object, or replace it."""
        self._version += 1
        obj = replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))
        path = _path_of(obj)
        self.unseen.append(Change(self.objects.get(path), obj))
        self.objects[path] = obj

    def remove(self, obj: KubeObject) -> None:
        self.unseen.append(Change(old=self.objects.pop(_path_of(obj))))

    def terminate(self, pod: Pod) -> None:
        self.put(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))

    # -- what the watch says ------------------------------------------------------------------------------------------

    def tell(self, scheduler: Scheduler, most: int | None = None) -> None:
        """Up to so many events, all of them by default, in the order in which they happened."""
        while self.unseen and (most is None or most > 0):
            most = None if most is None else most - 1
            change = self.unseen.popleft()
            scheduler.handle(change)
            self._waiter.handled(change, (), 0.0)

    # -- what the scheduler writes ------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        await _a_moment()
        refusal = self.bind_refusals.popleft() if self.bind_refusals else None
        if refusal is not None and not refusal.after_commit:
            raise ClientError(refusal.reason, "refused")
        stored = self._stored(pod)
        if stored.spec.node_name or stored.is_terminating:
            raise ClientError("Conflict", "it has a node already, or is being deleted")
        self.bindings.append((pod.uid, node_name))
        self.put(replace(stored, spec=replace(stored.spec, node_name=node_name)))
        await _a_moment()
        if refusal is not None:
            raise ClientError(refusal.reason, "refused, though it was done")

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        await _a_moment()
        stored = self._stored(pod)
        status = stored.status
        if condition is not None:
            others = tuple(known for known in status.conditions if known.type != condition.type)
            status = replace(status, conditions=(*others, condition))
        if nominated_node_name is not None:
            status = replace(status, nominated_node_name=nominated_node_name)
        if status != stored.status:
            self.put(replace(stored, status=status))
        await _a_moment()

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        await _a_moment()
        refusal = self.evict_refusals.popleft() if self.evict_refusals else None
        if refusal is not None and not refusal.after_commit:
            raise ClientError(refusal.reason, "refused")
        stored = self._stored(pod)
        self.evicted.append(pod.name)
        if self.graceful:
            stored = replace(stored, status=replace(stored.status, conditions=(*stored.status.conditions, condition)))
            self.terminate(stored)
        else:
            self.remove(stored)
        await _a_moment()
        if refusal is not None:
            raise ClientError(refusal.reason, "refused, though it was done")

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        await _a_moment()
        return _plain(self._found(kind, name, namespace))

    async def create(self, kind: str, obj: Json) -> Json:
        meta = obj["metadata"]
        name = meta.get("name") or f"{meta['generateName']}{self._version}"
        made = {**obj, "metadata": {**meta, "name": name, "uid": f"uid of {name}"}}
        return await self._written(kind, made, is_refusable=kind == "ResourceClaim")

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        is_refusable = kind == "ResourceClaim" and subresource == "status"
        version = obj["metadata"].get("resourceVersion", "")
        return await self._written(kind, obj, is_refusable=is_refusable, version=version)

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        await _a_moment()
        stored = _plain(self._found(kind, name, namespace))
        for precondition in ("uid", "resourceVersion"):
            if (patch.get("metadata") or {}).get(precondition, now := stored["metadata"].get(precondition)) != now:
                raise ClientError(CONFLICT, f"its {precondition} is {now}")
        self._refuse(is_refusable=kind == "ResourceClaim" and subresource == "status")
        return await self._put_and_answer(msgspec.convert(merged(stored, patch), KINDS[kind].record))

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        await _a_moment()
        self._refuse(is_refusable=kind == "ResourceClaim")
        self.remove(self._found(kind, name, namespace))
        await _a_moment()

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        if not has_event_loop():  # the test lets happen what it wants between two writes
            return True
        return await self._waiter.wait(pod, is_met, objects=objects, within=within)

    async def _written(self, kind: str, obj: Json, *, is_refusable: bool, version: str | None = None) -> Json:
        """With a version, only if that is the one that is there."""
        await _a_moment()
        record = msgspec.convert(obj, KINDS[kind].record)
        if version is not None:
            found = self._found(kind, record.metadata.name, record.metadata.namespace)
            if found.metadata.resource_version != version:
                raise ClientError(CONFLICT, "it has been modified")
        self._refuse(is_refusable=is_refusable)
        return await self._put_and_answer(record)

    async def _put_and_answer(self, record: KubeObject) -> Json:
        self.put(record)
        written = self.objects[_path_of(record)]
        await _a_moment()
        return _plain(written)

    def _refuse(self, *, is_refusable: bool) -> None:
        refusal = self.claim_refusals.popleft() if is_refusable and self.claim_refusals else None
        if refusal is not None:
            raise ClientError(refusal.reason, "refused")

    def _found(self, kind: str, name: str, namespace: str) -> KubeObject:
        found = self.objects.get(_path(KINDS[kind].record, f"{namespace}/{name}" if namespace else name))
        if found is None:
            raise ClientError(NOT_FOUND, f'{kind} "{name}" not found')
        return found

    def claim(self, key: str) -> ResourceClaim | None:
        found = self.objects.get(_path(ResourceClaim, key))
        assert found is None or isinstance(found, ResourceClaim)
        return found

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self.notes.append(f"{reason} {pod.name}")

    def _stored(self, pod: Pod) -> Pod:
        stored = self.objects.get(_path(Pod, pod.key))
        if not isinstance(stored, Pod):
            raise ClientError("NotFound", f'pods "{pod.name}" not found')
        if stored.uid != pod.uid:
            raise ClientError("Conflict", f"Precondition failed: UID in precondition: {pod.uid}")
        return stored


class Running:
    """A coroutine that goes on only when told to, from one wait to the next."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self.is_over = False

    def go_on(self) -> None:
        try:
            self._coroutine.send(None)
        except StopIteration:
            self.is_over = True

    def to_the_end(self) -> None:
        while not self.is_over:
            self.go_on()

    def abandon(self) -> None:
        """Nobody will go on with it."""
        self._coroutine.close()


class _Moment:
    def __await__(self) -> Generator[None]:
        yield


async def _a_moment() -> None:
    await _Moment()


def _path_of(obj: KubeObject) -> str:
    return _path(type(obj), obj.key)


def _plain(obj: KubeObject) -> Json:
    return msgspec.to_builtins(obj)  # type: ignore[no-any-return]


def _path(kind: type[KubeObject], key: str) -> str:
    return f"{kind.__name__} {key}"
