"""What the scheduler writes, as requests to the API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, RESOURCE_CLAIMS
from kubesched.api.pod import Pod, PodCondition
from kubesched.daemon.doubt import certain, leaves_doubt
from kubesched.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from kubesched.kube.errors import ApiStatusError, KubeError
from kubesched.kube.event_record import reference
from kubesched.kube.events import EventRecorder
from kubesched.plugins.dynamic_resources.writes import ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler import wire
from kubesched.scheduler.claim_writes import write_claim
from kubesched.scheduler.volume_wait import volumes_bound
from kubesched.scheduler.wire import Body
from kubesched.scheduler.writer import WriteError
from kubesched.state.objects import ObjectStore

_encode = msgspec.json.Encoder().encode
_decode_pod = msgspec.json.Decoder(Pod).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class WriterObserver(Protocol):
    """Told about calls to the API server, for metrics."""

    def now(self) -> float:
        """Seconds, for durations only."""

    def writing(self, call: str, by: int) -> None:
        """One more call (`pod_binding`, `pod_status_patch`) is under way, or one less."""

    def wrote(self, call: str, result: str, seconds: float) -> None:
        """Such a call ended with `success` or `error`."""

    def created_claim(self, status: str) -> None:
        """A ResourceClaim was created for a pod with extended resources: `success` or `failure`."""


class LiveWriter:
    """A `ClusterWriter` on a live cluster."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        *,
        volume_timeouts: Mapping[str, float],
        observer: WriterObserver | None = None,
    ) -> None:
        self._client = client
        self._events = events
        self._volume_timeouts = volume_timeouts
        self._observer = observer
        self.objects = ObjectStore()
        """What the scheduler has seen: to be given as soon as there is a scheduler."""
        self.pods: dict[str, Pod] = {}
        """The pods the scheduler has seen, likewise."""
        self.on_contradiction: Callable[[Pod], None] = lambda pod: None
        """Told of pods that are gone or bound already by what the API server says to their binding."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """A refusal, or no answer, need not mean that the pod is not bound: then the pod itself is asked."""
        path = PODS.path_of(namespace=pod.namespace, name=pod.name, subresource="binding")
        try:
            await self._measured("pod_binding", lambda: self._client.post(path, _encode(wire.binding(pod, node_name))))
        except KubeError as error:
            if not await self._is_bound_after_all(pod, node_name, error):
                raise _as_write_error(error) from error

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        patch = _encode(wire.status_patch(pod, condition, nominated_node_name, _now()))
        path = PODS.path_of(namespace=pod.namespace, name=pod.name, subresource="status")
        call = lambda: self._client.patch(path, patch, content_type=STRATEGIC_MERGE_PATCH)  # noqa: E731
        try:
            await self._measured("pod_status_patch", call)
        except KubeError as error:
            raise _as_write_error(error) from error

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        await self.patch_status(pod, condition=condition, nominated_node_name=None)
        try:
            await self._client.delete(PODS.path_of(namespace=pod.namespace, name=pod.name), _encode(wire.deletion(pod)))
        except KubeError as error:
            raise _as_write_error(error) from error

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        try:
            for volume in writes.volumes:
                path = PERSISTENT_VOLUMES.path_of(name=volume.name)
                await self._client.patch(path, _encode(wire.volume_patch(volume)), content_type=MERGE_PATCH)
            for claim in writes.claims:
                path = PERSISTENT_VOLUME_CLAIMS.path_of(namespace=claim.namespace, name=claim.name)
                await self._client.patch(path, _encode(wire.claim_patch(claim)), content_type=MERGE_PATCH)
        except KubeError as error:
            raise _as_write_error(error) from error
        is_wanted = lambda: pod.key in self.pods  # noqa: E731
        await volumes_bound(pod, writes, self.objects, timeouts=self._volume_timeouts, is_wanted=is_wanted)

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        return await write_claim(self, pod, write)

    # -- claims, as `write_claim` needs them --------------------------------------------------------------------------

    async def read_claim(self, namespace: str, name: str) -> Body:
        return await self._json(self._client.get(RESOURCE_CLAIMS.path_of(namespace=namespace, name=name)))

    async def create_claim(self, namespace: str, claim: Body) -> Body:
        status = "failure"
        try:
            made = await self._json(self._client.post(RESOURCE_CLAIMS.path_of(namespace=namespace), _encode(claim)))
            status = "success"
        finally:
            if self._observer is not None:
                self._observer.created_claim(status)
        return made

    async def replace_claim(self, claim: Body, *, subresource: str) -> Body:
        meta = claim["metadata"]
        where = RESOURCE_CLAIMS.path_of(namespace=meta["namespace"], name=meta["name"])
        try:
            return _decode_object(await self._client.put(f"{where}/{subresource}".rstrip("/"), _encode(claim)))
        except KubeError as error:
            if leaves_doubt(error):
                stored = await self._json(certain(lambda: self._client.get(where)))
                if wire.says_the_same(claim, stored):
                    return stored
            raise _as_write_error(error) from error

    async def delete_claim(self, namespace: str, name: str, uid: str) -> None:
        options = _encode({"preconditions": {"uid": uid}} if uid else {})
        await self._json(self._client.delete(RESOURCE_CLAIMS.path_of(namespace=namespace, name=name), options))

    async def tell_pod(self, pod: Pod, status: Body) -> None:
        path = PODS.path_of(namespace=pod.namespace, name=pod.name, subresource="status")
        patch = _encode({"metadata": {"uid": pod.uid}, "status": status})
        await self._json(self._client.patch(path, patch, content_type=STRATEGIC_MERGE_PATCH))

    async def _json(self, answer: Awaitable[bytes]) -> Body:
        try:
            return _decode_object(await answer)
        except KubeError as error:
            raise _as_write_error(error) from error

    # -- events -------------------------------------------------------------------------------------------------------

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._events.record(
            reference(pod, "v1", "Pod"),
            related=None if related is None else reference(related, "v1", "Pod"),
            type="Warning" if type == "Warning" else "Normal",
            reason=reason,
            action=action,
            note=note,
            # Whoever does something to a pod for another one is the scheduler of that other one.
            controller=(related or pod).spec.scheduler_name,
        )

    async def _is_bound_after_all(self, pod: Pod, node_name: str, error: KubeError) -> bool:
        """Whether the pod is where it should be, though the answer to its binding was an error."""
        contradicts = isinstance(error, ApiStatusError) and error.code == 404
        if leaves_doubt(error):
            found = await self._looked_up(pod)
            if found is not None and found.spec.node_name in ("", node_name):
                return found.spec.node_name == node_name
            contradicts = True
        if contradicts:
            self.on_contradiction(pod)
        return False

    async def _looked_up(self, pod: Pod) -> Pod | None:
        """The very same pod as it is now; None if it is gone. Often the watch has told already."""
        seen = self.pods.get(pod.key)
        if seen is None or not seen.spec.node_name:
            path = PODS.path_of(namespace=pod.namespace, name=pod.name)
            try:
                seen = _decode_pod(await certain(lambda: self._client.get(path)))
            except (KubeError, msgspec.MsgspecError):
                return None
        return seen if seen.uid == pod.uid else None

    async def _measured(self, call: str, made: Callable[[], Awaitable[object]]) -> None:
        observer = self._observer
        if observer is None:
            await made()
            return
        started, result = observer.now(), "error"
        observer.writing(call, 1)
        try:
            await made()
            result = "success"
        finally:
            observer.writing(call, -1)
            observer.wrote(call, result, observer.now() - started)


def _as_write_error(error: KubeError) -> WriteError:
    return WriteError(error.reason if isinstance(error, ApiStatusError) else "Unreachable", str(error))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
