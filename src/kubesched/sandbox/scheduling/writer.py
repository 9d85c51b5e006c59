"""What the scheduler writes, as calls to the API that is in the same process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from kubesched.api.api_error import ApiError
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, RESOURCE_CLAIMS, Object
from kubesched.api.pod import Pod, PodCondition
from kubesched.plugins.dynamic_resources.writes import ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.sandbox.api import Api, PatchKind
from kubesched.sandbox.scheduling.recorder import EventRecorder
from kubesched.scheduler import wire
from kubesched.scheduler.claim_writes import write_claim
from kubesched.scheduler.volume_wait import volumes_bound
from kubesched.scheduler.writer import WriteError
from kubesched.state.objects import ObjectStore

_MANAGER = "kube-scheduler"


class ApiWriter:
    """A `ClusterWriter` on the sandbox's own API."""

    def __init__(self, api: Api, *, recorder: EventRecorder, volume_timeouts: Mapping[str, float]) -> None:
        self._api = api
        self._recorder = recorder
        self._volume_timeouts = volume_timeouts
        self.objects = ObjectStore()
        """What the scheduler has seen: to be given as soon as there is a scheduler."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        with _told_as_write_errors():
            self._api.bind(pod.namespace, pod.name, wire.binding(pod, node_name))

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        with _told_as_write_errors():
            self._patch_status(pod, condition, nominated_node_name)

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        with _told_as_write_errors():
            self._patch_status(pod, condition, None)
            self._api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        with _told_as_write_errors():
            for volume in writes.volumes:
                self._api.patch(PERSISTENT_VOLUMES, "", volume.name, wire.volume_patch(volume), manager=_MANAGER)
            for claim in writes.claims:
                patch = wire.claim_patch(claim)
                self._api.patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, patch, manager=_MANAGER)
        is_wanted = lambda: self._api.find(PODS, pod.namespace, pod.name) is not None  # noqa: E731
        await volumes_bound(pod, writes, self.objects, timeouts=self._volume_timeouts, is_wanted=is_wanted)

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        return await write_claim(self, pod, write)

    # -- claims, as `write_claim` needs them --------------------------------------------------------------------------

    async def read_claim(self, namespace: str, name: str) -> Object:
        with _told_as_write_errors():
            return self._api.get(RESOURCE_CLAIMS, namespace, name)

    async def create_claim(self, namespace: str, claim: Object) -> Object:
        with _told_as_write_errors():
            return self._api.create(RESOURCE_CLAIMS, namespace, claim, manager=_MANAGER)

    async def replace_claim(self, claim: Object, *, subresource: str) -> Object:
        meta = claim["metadata"]
        with _told_as_write_errors():
            return self._api.update(
                RESOURCE_CLAIMS, meta["namespace"], meta["name"], claim, subresource=subresource, manager=_MANAGER
            )

    async def delete_claim(self, namespace: str, name: str, uid: str) -> None:
        with _told_as_write_errors():
            self._api.delete(RESOURCE_CLAIMS, namespace, name, uid=uid or None)

    async def tell_pod(self, pod: Pod, status: Object) -> None:
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        with _told_as_write_errors():
            self._api.patch(PODS, pod.namespace, pod.name, patch, subresource="status", manager=_MANAGER)

    # -- events -------------------------------------------------------------------------------------------------------

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._recorder.record(pod, related=related, type=type, reason=reason, action=action, note=note)

    def _patch_status(self, pod: Pod, condition: PodCondition | None, nominated: str | None) -> None:
        patch = wire.status_patch(pod, condition, nominated, self._api.stamps.now())
        self._api.patch(
            PODS,
            pod.namespace,
            pod.name,
            patch,
            kind=PatchKind.STRATEGIC,
            subresource="status",
            manager=_MANAGER,
        )


@contextlib.contextmanager
def _told_as_write_errors() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise WriteError(error.reason, error.message) from error
