"""What must be written to the API about claims, as data; what each write makes of a claim as it is there; the write.

`write_claim` adds the finalizer, if it is needed, then patches the status to what `apply_write` says; on a conflict,
again. What a record does not have of the claim is not in the patch, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from kubesched.api.device_claims import FINALIZER, AllocationResult, ConsumerReference, ResourceClaim
from kubesched.api.merge_patch import apply_merge_patch, patch_between
from kubesched.framework.client import ClientError, ClusterClient, Json

_KIND = "ResourceClaim"
_TRIES = 5


class ClaimGoneAnotherWayError(Exception):
    """The claim is not any longer what the decision was made for: no use in trying again."""


@dataclass(frozen=True)
class ReserveClaim:
    """The consumer may use the devices of the claim; with an allocation, those are written as well.

    A finalizer is added in a write of its own before the status, so that the claim stays while it is allocated.
    """

    claim: ResourceClaim
    consumer: ConsumerReference
    allocation: AllocationResult | None
    now: str
    """When the devices are allocated, if the claim does not say so yet; empty where time does not matter."""
    is_shared: bool = False
    """Whether another pod that shares the claim may have written the same allocation already."""
    beside: Collection[ConsumerReference] = ()
    """Further consumers that wait for this claim: those there are when it is written are written, too."""


@dataclass(frozen=True)
class UnreserveClaim:
    """A pod or a group does not use the claim after all; its devices stay allocated."""

    claim: ResourceClaim
    uid: str


@dataclass(frozen=True)
class DeallocateClaim:
    """The devices of a claim that no pod uses are free again."""

    claim: ResourceClaim


@dataclass(frozen=True)
class DeleteClaim:
    """A claim for a pod's extended resources is not needed: first the finalizer goes, then the claim."""

    claim: ResourceClaim


ClaimChange = ReserveClaim | UnreserveClaim | DeallocateClaim
ClaimWrite = ClaimChange | DeleteClaim


def finalizer_patch(write: ClaimChange, stored: Json) -> Json | None:
    """What must be added to the claim before its status is written; None if nothing. Only if it is still as it was."""
    _check(write, stored)
    meta = stored["metadata"]
    finalizers = meta.get("finalizers") or []
    if not isinstance(write, ReserveClaim) or write.allocation is None or FINALIZER in finalizers:
        return None
    return {"metadata": {**_as_it_was(stored), "finalizers": [*finalizers, FINALIZER]}}


def _as_it_was(stored: Json) -> Json:
    """What makes the API server refuse a patch if the claim is another by now."""
    return {name: stored["metadata"][name] for name in ("uid", "resourceVersion") if stored["metadata"].get(name)}


def apply_write(write: ClaimChange, stored: Json) -> Json:
    """The claim, as JSON, with its new status. Raises ClaimGoneAnotherWayError."""
    _check(write, stored)
    status = dict(stored.get("status") or {})
    reserved = status.get("reservedFor") or []
    match write:
        case ReserveClaim():
            if write.allocation is not None and not (write.is_shared and status.get("allocation")):
                status["allocation"] = msgspec.to_builtins(write.allocation)
            if write.now:
                status["allocation"] = {"allocationTimestamp": write.now, **status["allocation"]}
            consumers = {consumer.uid: consumer for consumer in (write.consumer, *write.beside)}
            for reference in reserved:  # whoever had the turn before may have done it
                consumers.pop(reference.get("uid"), None)
            if consumers:
                status["reservedFor"] = [*reserved, *map(msgspec.to_builtins, consumers.values())]
        case UnreserveClaim():
            status["reservedFor"] = [reference for reference in reserved if reference.get("uid") != write.uid]
        case DeallocateClaim():
            for field in ("allocation", "reservedFor", "devices"):
                status.pop(field, None)
    return {**stored, "status": status}


def apply_to_claim(write: ClaimChange, claim: ResourceClaim) -> ResourceClaim:
    """The same for a claim at hand, where there is no API to go through."""
    plain = msgspec.to_builtins(claim)
    return msgspec.convert(
        apply_write(write, apply_merge_patch(plain, finalizer_patch(write, plain) or {})), ResourceClaim
    )


def _check(write: ClaimChange, stored: Json) -> None:
    """Whether the claim is still what the decision was about."""
    name, meta = write.claim.key, stored["metadata"]
    is_another = bool(write.claim.metadata.uid) and meta.get("uid", "") != write.claim.metadata.uid
    if is_another or (isinstance(write, ReserveClaim) and meta.get("deletionTimestamp")):
        raise ClaimGoneAnotherWayError(f"claim {name} got deleted in the meantime")
    if isinstance(write, DeallocateClaim):
        uids = {consumer.uid for consumer in write.claim.status.reserved_for}
        if any(reference.get("uid") not in uids for reference in (stored.get("status") or {}).get("reservedFor") or ()):
            raise ClaimGoneAnotherWayError(f"claim {name} got reserved for another pod in the meantime")
    if not isinstance(write, ReserveClaim):
        return
    is_allocated = (stored.get("status") or {}).get("allocation") is not None
    if is_allocated and write.allocation is not None and not _is_the_same(write, stored):
        raise ClaimGoneAnotherWayError(f"claim {name} got allocated elsewhere in the meantime")
    if not is_allocated and write.allocation is None:
        raise ClaimGoneAnotherWayError(f"claim {name} got deallocated elsewhere in the meantime")


def _is_the_same(write: ReserveClaim, stored: Json) -> bool:
    """Whether the claim has just the devices that it was to get, for another pod that shares it."""
    assert write.allocation is not None
    allocation = msgspec.convert(stored["status"]["allocation"], AllocationResult)
    return write.is_shared and allocation.devices == write.allocation.devices


async def write_claim(
    client: ClusterClient, write: ClaimWrite, known: ResourceClaim | None = None
) -> ResourceClaim | None:
    """One change of a claim: the claim as it is now; None if it is gone.

    `known` is the claim as it was last seen or written, if that is at hand: it saves a question. Conflicts are tried
    again; a claim that has gone another way meanwhile raises ClaimGoneAnotherWayError.
    """
    stored: Json | None = None if known is None else msgspec.to_builtins(known)
    for attempt in range(1, _TRIES + 1):
        try:
            if isinstance(write, DeleteClaim):
                await _delete(client, write.claim)
                return None
            return await _change(client, write, stored)
        except ClientError as error:
            if not error.is_conflict or attempt == _TRIES:
                raise
            stored = error.found
    raise AssertionError("unreachable")


async def _change(client: ClusterClient, write: ClaimChange, stored: Json | None) -> ResourceClaim:
    """`stored` is the claim as it is known, if it is: the API server refuses to change one that is another by now."""
    name, namespace = write.claim.name, write.claim.namespace
    if stored is None:
        stored = await client.get(_KIND, name, namespace)
    if (patch := finalizer_patch(write, stored)) is not None:
        stored = await client.patch(_KIND, name, patch, namespace=namespace)
    if status := patch_between(stored.get("status") or {}, apply_write(write, stored)["status"]):
        patch = {"metadata": _as_it_was(stored), "status": status}
        stored = await client.patch(_KIND, name, patch, namespace=namespace, subresource="status")
    return msgspec.convert(stored, ResourceClaim)


async def _delete(client: ClusterClient, claim: ResourceClaim) -> None:
    """First the finalizer goes, then the claim. One that is gone already is what was wanted."""
    try:
        stored = await client.get(_KIND, claim.name, claim.namespace)
        if claim.metadata.uid and stored["metadata"].get("uid") != claim.metadata.uid:
            return
        finalizers = stored["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            others = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
            await client.replace(_KIND, {**stored, "metadata": {**stored["metadata"], "finalizers": others}})
        await client.delete(_KIND, claim.name, namespace=claim.namespace, uid=claim.metadata.uid)
    except ClientError as error:
        if not error.is_not_found:
            raise
