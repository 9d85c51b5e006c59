"""The client that turns reads and writes of the scheduler and its plugins into requests to the API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import msgspec

from kubesched.api.kinds import PODS, Resource, resource_named
from kubesched.api.pod import Pod, PodCondition
from kubesched.daemon.doubt import ask_until_certain, is_patched, is_replaced, leaves_doubt
from kubesched.framework.client import (
    NOT_FOUND,
    UNREACHABLE,
    Awaited,
    ClientError,
    ClusterClient,
    Json,
    binding,
    pod_status_patch,
)
from kubesched.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Answered, Client
from kubesched.kube.connection_pool import MOST_CONNECTIONS
from kubesched.kube.errors import ApiStatusError, KubeError, UnreadableAnswerError
from kubesched.kube.event_record import reference, to_the_second
from kubesched.kube.events import EventRecorder, EventSink
from kubesched.scheduler.handle import ObjectWaiter

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class _Uid(msgspec.Struct):
    uid: str = ""


class _NodeName(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _PodLocation(msgspec.Struct):
    """The fields of a pod that are read in doubt: all others may be of a shape that is not known here."""

    metadata: _Uid
    spec: _NodeName


_decode_pod_location = msgspec.json.Decoder(_PodLocation).decode


def _pod_location(body: bytes) -> _PodLocation:
    try:
        return _decode_pod_location(body)
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"a pod cannot be read: {error}") from None


class ClientObserver:
    """Observes calls to the API server, for metrics; this one does nothing."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        """`clock` has seconds, for durations only."""
        self.now = clock

    def writing(self, call: str, by: int) -> None:
        """`by` more calls (`pod_binding`, `pod_status_patch`) are under way; -1 when one ends."""

    def wrote(self, call: str, result: str, seconds: float) -> None:
        """A call that was counted by `writing` has ended with `success` or `error`."""


class LiveClient(ClusterClient):
    """A `ClusterClient` on a live cluster."""

    def __init__(
        self, client: Client, events: EventRecorder, waiter: ObjectWaiter, *, observer: ClientObserver | None = None
    ) -> None:
        self._client = client
        self._events = events
        self._waiter = waiter
        self._observer = observer or ClientObserver()
        self._on_contradiction: Callable[[Pod], None] = lambda pod: None

    def attach(self, on_contradiction: Callable[[Pod], None]) -> None:
        """Call `on_contradiction` with each pod that, by the answer to its binding, is gone or bound already."""
        self._on_contradiction = on_contradiction

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return await self._json(self._client.get(_resource(kind).path_of(namespace=namespace, name=name)))

    async def create(self, kind: str, obj: Json) -> Json:
        path = _resource(kind).path_of(namespace=obj["metadata"].get("namespace", ""))
        return await self._json(self._client.post(path, _encode(obj)))

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        meta = obj["metadata"]
        where = _resource(kind).path_of(namespace=meta.get("namespace", ""), name=meta["name"])
        writing = self._client.put(f"{where}/{subresource}".rstrip("/"), _encode(obj))
        return await self._unless_done(writing, where, lambda stored: is_replaced(obj, stored, subresource))

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        resource = _in_version(_resource(kind), patch.get("apiVersion", ""))
        where = resource.path_of(namespace=namespace, name=name)
        path = resource.path_of(namespace=namespace, name=name, subresource=subresource)
        writing = self._client.patch(path, _encode(patch), content_type=MERGE_PATCH)
        return await self._unless_done(writing, where, lambda stored: is_patched(patch, stored))

    async def _unless_done(self, writing: Awaitable[bytes], where: str, is_done: Callable[[Json], bool]) -> Json:
        """The object as it was written. In doubt the object is read: ClientError only if the write is not done."""
        try:
            return _decode_object(await writing)
        except KubeError as error:
            refusal = _as_client_error(error)
            if leaves_doubt(error):
                stored = refusal.found = await self._json(ask_until_certain(lambda: self._client.get(where)))
                if is_done(stored):
                    return stored
            raise refusal from error

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        await self._json(self._client.delete(_resource(kind).path_of(namespace=namespace, name=name), _deletion(uid)))

    def bind(self, pod: Pod, node_name: str) -> Coroutine[Any, Any, None]:
        """After a refusal, or without an answer, the pod may be bound all the same: then it is read."""
        path = PODS.path_of(namespace=pod.namespace, name=pod.name, subresource="binding")
        answer = self._client.post(path, _encode(binding(pod, node_name)))
        return self._measure("pod_binding", answer, lambda error: self._is_bound_after_all(pod, node_name, error))

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> Coroutine[Any, Any, None]:
        patch = _encode(pod_status_patch(pod, condition, nominated_node_name, _now()))
        path = PODS.path_of(namespace=pod.namespace, name=pod.name, subresource="status")
        return self._measure("pod_status_patch", self._client.patch(path, patch, content_type=STRATEGIC_MERGE_PATCH))

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        await self.patch_pod_status(pod, condition=condition, nominated_node_name=None)
        try:
            await self._client.delete(PODS.path_of(namespace=pod.namespace, name=pod.name), _deletion(pod.uid))
        except KubeError as error:
            raise _as_client_error(error) from error

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return await self._waiter.wait(pod, is_met, objects=objects, within=within)

    async def _json(self, answer: Awaitable[bytes]) -> Json:
        try:
            return _decode_object(await answer)
        except KubeError as error:
            raise _as_client_error(error) from error

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._events.record(
            reference(pod, "v1", "Pod"),
            related=None if related is None else reference(related, "v1", "Pod"),
            type="Warning" if type == "Warning" else "Normal",
            reason=reason,
            action=action,
            note=note,
            # A victim's event comes from the scheduler of the preemptor.
            controller=(related or pod).spec.scheduler_name,
        )

    async def _is_bound_after_all(self, pod: Pod, node_name: str, error: KubeError) -> bool:
        """Whether the pod is where it should be, though the answer to its binding was an error."""
        contradicts = isinstance(error, ApiStatusError) and error.code == 404
        if leaves_doubt(error):
            node_now = await self._node_now(pod)
            if node_now in ("", node_name):
                return node_now == node_name
            contradicts = True
        if contradicts:
            self._on_contradiction(pod)
        return False

    async def _node_now(self, pod: Pod) -> str | None:
        """The node of the pod with this uid now, empty if it is not bound; None if the pod is gone."""
        path = PODS.path_of(namespace=pod.namespace, name=pod.name)

        async def ask() -> _PodLocation:
            return _pod_location(await self._client.get(path))

        try:
            location = await ask_until_certain(ask)
        except ApiStatusError:
            return None
        return location.spec.node_name if location.metadata.uid == pod.uid else None

    async def _measure(
        self,
        call: str,
        answer: Awaitable[object],
        is_done_after_all: Callable[[KubeError], Awaitable[bool]] | None = None,
    ) -> None:
        """Make the call, and measure it. What `is_done_after_all` asks after an error is not measured."""
        observer = self._observer
        started, result = observer.now(), "error"
        observer.writing(call, 1)
        try:
            try:
                await answer
                result = "success"
            finally:
                observer.writing(call, -1)
                observer.wrote(call, result, observer.now() - started)
        except KubeError as error:
            if is_done_after_all is None or not await is_done_after_all(error):
                raise _as_client_error(error) from error


def _resource(kind: str) -> Resource:
    resource = resource_named(kind)
    if resource is None:
        raise ClientError(NOT_FOUND, f"{kind}: neither a kind that Kubernetes has, nor plural.version.group")
    return resource


def _in_version(resource: Resource, api_version: str) -> Resource:
    """The resource in the version of `api_version`, if that is not empty."""
    version = api_version.rpartition("/")[2]
    return msgspec.structs.replace(resource, version=version) if version else resource


def _deletion(uid: str) -> bytes:
    """The options for deleting the object with this uid, if one is given."""
    return _encode({"apiVersion": "v1", "kind": "DeleteOptions", **({"preconditions": {"uid": uid}} if uid else {})})


def _as_client_error(error: KubeError) -> ClientError:
    return ClientError(error.reason if isinstance(error, ApiStatusError) else UNREACHABLE, str(error))


def _now() -> str:
    return f"{to_the_second(int(time.time()))}Z"


LONGEST_WAIT = 1.0
"""Seconds that one event waits at most, so that some are written even if the API server can never keep up."""
_LOOK_EVERY = 0.05


class YieldingSink(EventSink):
    """Writes events to another sink, and in a burst of bindings and evictions after those."""

    def __init__(self, sink: EventSink, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Until `attach`, there are no other writes."""
        self._sink = sink
        self._under_way: Callable[[], int] = lambda: 0
        self._sleep = sleep

    def attach(self, under_way: Callable[[], int]) -> None:
        """`under_way` has the number of other writes. If it exceeds the number of connections, events wait."""
        self._under_way = under_way

    def post(self, path: str, body: bytes) -> Answered:
        return self._write(lambda: self._sink.post(path, body))

    def patch(self, path: str, body: bytes, *, content_type: str) -> Answered:
        return self._write(lambda: self._sink.patch(path, body, content_type=content_type))

    def _write(self, write: Callable[[], Answered]) -> Answered:
        return self._later(write) if self._is_crowded() else write()

    def _is_crowded(self) -> bool:
        return self._under_way() > MOST_CONNECTIONS

    async def _later(self, write: Callable[[], Answered]) -> bytes:
        waited = 0.0
        while waited < LONGEST_WAIT and self._is_crowded():
            await self._sleep(_LOOK_EVERY)
            waited += _LOOK_EVERY
        return await write()
