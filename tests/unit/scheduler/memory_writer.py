"""A cluster in memory: what the scheduler under test writes to, and the watch that tells it what became of it.

Every write waits once before it happens and once after, so a test may let anything happen in between (see `Running`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import ExtendedResourceClaimStatus, Pod, PodCondition
from kubesched.plugins.dynamic_resources.writes import (
    ClaimWrite,
    CreateClaim,
    DeleteClaim,
    TellExtendedClaim,
    applied,
)
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.writer import WriteError


@dataclass(frozen=True)
class Refusal:
    """How a write fails: with this reason, before it is done or, worse, after."""

    reason: str
    after_commit: bool = False


class MemoryCluster:
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

    def delete(self, obj: KubeObject) -> None:
        self.unseen.append(Change(old=self.objects.pop(_path_of(obj))))

    def terminate(self, pod: Pod) -> None:
        self.put(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))

    # -- what the watch says ------------------------------------------------------------------------------------------

    def tell(self, scheduler: Scheduler, most: int | None = None) -> None:
        """Up to so many events, all of them by default, in the order in which they happened."""
        while self.unseen and (most is None or most > 0):
            most = None if most is None else most - 1
            scheduler.handle(self.unseen.popleft())

    # -- what the scheduler writes ------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        await _a_moment()
        refusal = self.bind_refusals.popleft() if self.bind_refusals else None
        if refusal is not None and not refusal.after_commit:
            raise WriteError(refusal.reason, "refused")
        stored = self._stored(pod)
        if stored.spec.node_name or stored.is_terminating:
            raise WriteError("Conflict", "it has a node already, or is being deleted")
        self.bindings.append((pod.uid, node_name))
        self.put(replace(stored, spec=replace(stored.spec, node_name=node_name)))
        await _a_moment()
        if refusal is not None:
            raise WriteError(refusal.reason, "refused, though it was done")

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
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
            raise WriteError(refusal.reason, "refused")
        stored = self._stored(pod)
        self.evicted.append(pod.name)
        if self.graceful:
            stored = replace(stored, status=replace(stored.status, conditions=(*stored.status.conditions, condition)))
            self.terminate(stored)
        else:
            self.delete(stored)
        await _a_moment()
        if refusal is not None:
            raise WriteError(refusal.reason, "refused, though it was done")

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        raise AssertionError("no pod of these tests has volumes")

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        await _a_moment()
        refusal = self.claim_refusals.popleft() if self.claim_refusals else None
        if refusal is not None and not refusal.after_commit:
            raise WriteError(refusal.reason, "refused")
        written = self._written(pod, write)
        await _a_moment()
        if refusal is not None:
            raise WriteError(refusal.reason, "refused, though it was done")
        return written

    def _written(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        match write:
            case CreateClaim(claim):
                name = f"{claim.metadata.generate_name}{self._version}"
                made = replace(claim, metadata=replace(claim.metadata, name=name, uid=f"uid of {name}"))
                self.put(made)
                return self.claim(made.key)
            case TellExtendedClaim(claim, mappings):
                told = ExtendedResourceClaimStatus(resource_claim_name=claim.name, request_mappings=mappings)
                stored = self._stored(pod)
                self.put(replace(stored, status=replace(stored.status, extended_resource_claim_status=told)))
                return None
        known = self.claim(write.claim.key)
        if known is None:
            raise WriteError("NotFound", f'resourceclaims "{write.claim.name}" not found')
        if isinstance(write, DeleteClaim):
            self.delete(known)
            return None
        self.put(applied(write, known))
        return self.claim(known.key)

    def claim(self, key: str) -> ResourceClaim | None:
        found = self.objects.get(_path(ResourceClaim, key))
        assert found is None or isinstance(found, ResourceClaim)
        return found

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self.notes.append(f"{reason} {pod.name}")

    def _stored(self, pod: Pod) -> Pod:
        stored = self.objects.get(_path(Pod, pod.key))
        if not isinstance(stored, Pod):
            raise WriteError("NotFound", f'pods "{pod.name}" not found')
        if stored.uid != pod.uid:
            raise WriteError("Conflict", f"Precondition failed: UID in precondition: {pod.uid}")
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


def _path(kind: type[Pod] | type[Node] | type[KubeObject], key: str) -> str:
    return f"{kind.__name__} {key}"
