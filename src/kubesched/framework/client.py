"""What a plugin may use besides the cluster state: a client of the API, and the scheduler that runs it.

Every plugin finds both in its context. Live the client speaks HTTP, in a simulation it is the simulated cluster; a
recording wraps it and notes its calls. Where there is no cluster, as in an explanation, all calls fail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition

Json = dict[str, Any]
S = TypeVar("S")
T = TypeVar("T")

Awaited = type[KubeObject] | tuple[type[KubeObject], str]
"""What a wait watches: the object of this kind and key (`namespace/name`, or the name), or all objects of a kind."""

CONFLICT = "Conflict"
NOT_FOUND = "NotFound"
TIMEOUT = "Timeout"
UNREACHABLE = "Unreachable"
"""Not a reason of the API: no answer came back at all."""


class ClientError(Exception):
    """A call that did not go through. `reason` is that of the API: Conflict, NotFound, InternalError, ..."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.found: Json | None = None
        """The object, if it was read to see what became of a write: it need not be read again."""

    @property
    def is_conflict(self) -> bool:
        """Whether the object has changed since it was read."""
        return self.reason == CONFLICT

    @property
    def is_not_found(self) -> bool:
        return self.reason == NOT_FOUND

    @property
    def is_passing(self) -> bool:
        """Whether the API server may succeed in a moment."""
        return self.reason in ("InternalError", "ServiceUnavailable")


class ClusterClient:
    """The API of the cluster. Every call may wait, and raises ClientError if it fails; in this class all fail.

    Objects are JSON. A kind is named as in objects (`PersistentVolume`), a custom resource as `racks.v1.example.com`.
    """

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        raise _without_cluster()

    async def create(self, kind: str, obj: Json) -> Json:
        """The object as the API server made it; with `generateName` it has its name."""
        raise _without_cluster()

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        """The object as it is now. Conflict if `obj` has an older resourceVersion than the stored one.

        An error says that nothing was written: a client that cannot tell reads the object until it can.
        """
        raise _without_cluster()

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        """A JSON merge patch. With `metadata.uid` or `metadata.resourceVersion` in it, only of that very object.

        With `apiVersion` in it, in that version: some kinds have several, and not every server serves all.
        """
        raise _without_cluster()

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete an object; with `uid`, only if it has this uid."""
        raise _without_cluster()

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod, with this uid and no other, to the node."""
        raise _without_cluster()

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write a condition and a nomination: None leaves each alone, an empty name clears the nomination."""
        raise _without_cluster()

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        """Write the condition into the pod's status, then delete the pod."""
        raise _without_cluster()

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        """Wait for what controllers do about a pod that is to be bound: whether `is_met` within so many seconds.

        The client calls `is_met` at once, and whenever the watch shows the pod, or one of the objects that `objects`
        named when it was last not met. What it raises ends the wait. A simulation, where controllers act at once, does
        not call it.
        """
        raise _without_cluster()

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        """Record an Event. Never fails, never waits."""


def _without_cluster() -> ClientError:
    return ClientError(UNREACHABLE, "there is no cluster here that a plugin could read from or write to")


class WrappedClient(ClusterClient):
    """A client that passes its calls on to another one, each by way of `_call`."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return await self._call("get", _object_text(kind, name, namespace), self._client.get(kind, name, namespace))

    async def create(self, kind: str, obj: Json) -> Json:
        return await self._call("create", _text_of(kind, obj), self._client.create(kind, obj), body=obj)

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        call = self._client.replace(kind, obj, subresource=subresource)
        return await self._call("replace", _text_of(kind, obj, subresource), call, body=obj)

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        call = self._client.patch(kind, name, patch, namespace=namespace, subresource=subresource)
        return await self._call("patch", _object_text(kind, name, namespace, subresource), call, body=patch)

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        call = self._client.delete(kind, name, namespace=namespace, uid=uid)
        await self._call("delete", _object_text(kind, name, namespace), call)

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self._call("bind", f"Pod {pod.key}", self._client.bind(pod, node_name), body=node_name)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        call = self._client.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)
        await self._call("patch_pod_status", f"Pod {pod.key}", call)

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        await self._call("evict", f"Pod {pod.key}", self._client.evict(pod, condition))

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        call = self._client.wait(pod, is_met, objects=objects, within=within)
        return await self._call("wait", f"Pod {pod.key}", call)

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._client.record_event(pod, related=related, type=type, reason=reason, action=action, note=note)

    async def _call(self, verb: str, obj: str, call: Coroutine[Any, Any, T], body: Any = None) -> T:
        """Make a call about an object, named as in `ResourceClaim default/gpu status`; `body` is what it writes."""
        return await call


def _object_text(kind: str, name: str, namespace: str = "", subresource: str = "") -> str:
    return f"{kind} {namespace}/{name} {subresource}".rstrip() if namespace else f"{kind} {name} {subresource}".rstrip()


def _text_of(kind: str, obj: Json, subresource: str = "") -> str:
    """The name in an object; its `generateName` if it has no name yet."""
    meta = obj["metadata"]
    return _object_text(kind, meta.get("name") or meta.get("generateName", ""), meta.get("namespace", ""), subresource)


class SchedulerMode(StrEnum):
    """How closely a scheduler keeps to the steps of kube-scheduler. Its decisions are the same in both modes."""

    PARITY = "parity"
    """Every attempt and every write that kube-scheduler makes, as recordings of it have them."""
    BATCHED = "batched"
    """A pod equal to one that just failed is not tried, and a status or Event that says nothing new is not written."""


class Handle:
    """The scheduler that runs a plugin. This class stands for none, as in an explanation: it does nothing."""

    mode = SchedulerMode.PARITY

    def activate(self, pod: Pod) -> None:
        """Try a waiting pod at once."""

    def open_gate(self, pod: Pod, plugin: str) -> bool:
        """Events may wake the pod, which the plugin's PreEnqueue holds back no more. Whether it waits for one."""
        return False

    def stop_binding(self, pod: Pod, reason: str) -> bool:
        """Cancel the PreBind plugins of a pod, whose attempt then fails; False if they had ended already."""
        return False

    async def to_the_end(self, work: Awaitable[T]) -> T:
        """Finish work even if `stop_binding` cancels the PreBind plugin that waits for it."""
        return await work

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """A lock for work with the same key, so that it is done one after another."""
        return nullcontext()

    async def for_each(self, items: Sequence[S], write: Callable[[S], Awaitable[None]]) -> None:
        """Call `write` for each item, several at once where that takes time. A failure ends it, and is raised."""
        for item in items:
            await write(item)

    async def pause(self, seconds: float) -> None:
        """Wait before a write is sent again; in virtual time, not at all."""

    def count(self, metric: str, *labels: str) -> None:
        """Add one to a counter of `/metrics`."""

    def measure(self, metric: str, seconds: float, *labels: str) -> None:
        """Observe a duration in a histogram of `/metrics`."""


# -- bodies of writes --------------------------------------------------------------------------------------------------


def binding(pod: Pod, node_name: str) -> Json:
    """The Binding of this very pod: the API server refuses it for a new pod of the same name, by its uid."""
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"kind": "Node", "name": node_name}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def pod_status_patch(pod: Pod, condition: PodCondition | None, nominated_node_name: str | None, now: str) -> Json:
    """A strategic merge patch of a pod's status. `now` becomes the condition's transition time if its status changes.

    None leaves the nomination alone, an empty name clears it.
    """
    status: Json = {}
    if condition is not None:
        earlier = next((known for known in pod.status.conditions if known.type == condition.type), None)
        fields = {field: value for field, value in msgspec.structs.asdict(condition).items() if value}
        if earlier is None or earlier.status != condition.status:
            fields["lastTransitionTime"] = now
        if pod.metadata.generation:  # of the spec that was scheduled
            fields["observedGeneration"] = pod.metadata.generation
        status["conditions"] = [fields]
    if nominated_node_name is not None:
        status["nominatedNodeName"] = nominated_node_name or None
    return {"metadata": {"uid": pod.uid}, "status": status}
