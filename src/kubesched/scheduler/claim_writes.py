"""A claim is read, changed and written back, and again if somebody else was faster: on any API that has claims."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from kubesched.api.device_claims import FINALIZER, ResourceClaim
from kubesched.api.pod import Pod
from kubesched.plugins.dynamic_resources.writes import (
    ClaimWrite,
    CreateClaim,
    DeleteClaim,
    TellExtendedClaim,
    changed,
    with_finalizer,
)
from kubesched.scheduler.writer import WriteError

Json = dict[str, Any]

_TRIES = 5


class ClaimApi(Protocol):
    """What writing claims needs of an API. All methods raise WriteError."""

    async def read_claim(self, namespace: str, name: str) -> Json: ...

    async def create_claim(self, namespace: str, claim: Json) -> Json: ...

    async def replace_claim(self, claim: Json, *, subresource: str) -> Json:
        """Conflict if it is not what was read last."""

    async def delete_claim(self, namespace: str, name: str, uid: str) -> None: ...

    async def tell_pod(self, pod: Pod, status: Json) -> None:
        """Merge this into the pod's status."""


async def write_claim(api: ClaimApi, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
    """As ClusterWriter.write_claim promises."""
    match write:
        case CreateClaim():
            made = await api.create_claim(write.claim.namespace, msgspec.to_builtins(write.claim))
            return msgspec.convert(made, ResourceClaim)
        case TellExtendedClaim():
            mappings = msgspec.to_builtins(write.mappings)
            told = {"resourceClaimName": write.claim.name, "requestMappings": mappings}
            await api.tell_pod(pod, {"extendedResourceClaimStatus": told})
            return None
    for attempt in range(1, _TRIES + 1):
        try:
            if isinstance(write, DeleteClaim):
                await _delete(api, write.claim)
                return None
            stored = await api.read_claim(write.claim.namespace, write.claim.name)
            kept = with_finalizer(write, stored)
            if kept is not None:
                stored = await api.replace_claim(kept, subresource="")
            return msgspec.convert(await api.replace_claim(changed(write, stored), subresource="status"), ResourceClaim)
        except WriteError as problem:
            if problem.reason != "Conflict" or attempt == _TRIES:
                raise
    raise AssertionError("unreachable")


async def _delete(api: ClaimApi, claim: ResourceClaim) -> None:
    """First the finalizer goes, then the claim. One that is gone already is what was wanted."""
    try:
        stored = await api.read_claim(claim.namespace, claim.name)
        if claim.metadata.uid and stored["metadata"].get("uid") != claim.metadata.uid:
            return
        finalizers = stored["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            left = [each for each in finalizers if each != FINALIZER]
            await api.replace_claim({**stored, "metadata": {**stored["metadata"], "finalizers": left}}, subresource="")
        await api.delete_claim(claim.namespace, claim.name, claim.metadata.uid)
    except WriteError as problem:
        if problem.reason != "NotFound":
            raise
