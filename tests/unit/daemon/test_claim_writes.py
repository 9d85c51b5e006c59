"""Claims as requests: how many it takes, and that nothing of others is overwritten."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
from tests.device_builders import make_claim
from tests.unit.kube.scripted_server import Script, ScriptedServer, answering, serving, talking_to

from kubesched.api.device_claims import (
    AllocatedDevice,
    AllocationResult,
    ConsumerReference,
    DeviceAllocation,
    ResourceClaim,
)
from kubesched.daemon.live_client import LiveClient
from kubesched.kube.events import EventRecorder
from kubesched.plugins.dynamic_resources.writes import ReserveClaim, write_claim
from kubesched.scheduler.handle import ObjectWaiter

DEVICES = AllocationResult(devices=DeviceAllocation(results=(AllocatedDevice("r", "gpu.example.com", "pool", "d"),)))
CLAIM = make_claim("c")
OURS, THEIRS, ANOTHERS = (ConsumerReference(resource="pods", name=name, uid=f"uid-of-{name}") for name in "pqr")
CONFLICT = answering(409, b'{"kind":"Status","code":409,"reason":"Conflict","message":"the object has been modified"}')


def allocated(version: str, *consumers: ConsumerReference, **more: Any) -> dict[str, Any]:
    claim: dict[str, Any] = msgspec.to_builtins(CLAIM)
    claim["metadata"] |= {"resourceVersion": version}
    allocation = msgspec.to_builtins(DEVICES) | more
    return claim | {"status": {"allocation": allocation, "reservedFor": msgspec.to_builtins(consumers)}}


def answered(claim: dict[str, Any]) -> Script:
    return answering(200, json.dumps(claim).encode())


def reserved(known: dict[str, Any], *scripts: Script, now: str = "") -> tuple[ResourceClaim | None, ScriptedServer]:
    """The claim is reserved for one more pod, if the server follows these scripts."""

    async def main() -> tuple[ResourceClaim | None, ScriptedServer]:
        async with serving(*scripts) as server, talking_to(server) as client:
            live = LiveClient(client, EventRecorder(client, "test"), ObjectWaiter())
            write = ReserveClaim(CLAIM, OURS, None, now)
            return await write_claim(live, write, msgspec.convert(known, ResourceClaim)), server

    return asyncio.run(main())


def test_one_more_consumer_of_an_allocated_claim_is_one_patch_of_the_version_that_is_known() -> None:
    written, server = reserved(allocated("7", THEIRS), answered(allocated("8", THEIRS, OURS)))
    assert written is not None
    assert written.metadata.resource_version == "8"
    [request] = server.requests
    assert request.method == "PATCH"
    assert request.path.endswith("/resourceclaims/c/status")
    assert json.loads(request.body) == {
        "metadata": {"uid": CLAIM.metadata.uid, "resourceVersion": "7"},
        "status": {"reservedFor": msgspec.to_builtins([THEIRS, OURS])},
    }


def test_when_the_devices_were_allocated_is_said_once() -> None:
    at = "2026-01-01T00:00:00Z"
    _, server = reserved(allocated("7"), answered(allocated("8", OURS)), now=at)
    assert json.loads(server.requests[0].body)["status"]["allocation"] == {"allocationTimestamp": at}
    _, server = reserved(
        allocated("7", allocationTimestamp=at), answered(allocated("8", OURS)), now="2026-02-02T00:00:00Z"
    )
    assert "allocation" not in json.loads(server.requests[0].body)["status"]


def test_after_a_conflict_the_claim_is_read_and_the_consumers_that_came_meanwhile_stay() -> None:
    now = allocated("9", THEIRS, ANOTHERS)
    done = allocated("10", THEIRS, ANOTHERS, OURS)
    written, server = reserved(allocated("7", THEIRS), CONFLICT, answered(now), answered(done))
    assert written is not None
    assert [request.method for request in server.requests] == ["PATCH", "GET", "PATCH"]
    sent = json.loads(server.requests[-1].body)
    assert sent["metadata"]["resourceVersion"] == "9"
    assert sent["status"]["reservedFor"] == msgspec.to_builtins([THEIRS, ANOTHERS, OURS])
