"""Leases over HTTP: compare-and-swap by resourceVersion, and nothing of others' fields is lost."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.builders import Json
from tests.unit.kube.scripted_server import answering, serving, talking_to

from kubesched.kube.errors import ApiStatusError, UnreadableAnswerError
from kubesched.kube.lease import LeaseLock, LeaseRecord, new_identity

LEASE: Json = {
    "metadata": {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": "5", "labels": {"a": "b"}},
    "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 3, "acquireTime": None},
}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def test_lease_is_read_and_written_back_with_its_version() -> None:
    async def main() -> None:
        newer = {**LEASE, "metadata": {**LEASE["metadata"], "resourceVersion": "6"}}
        scripts = [answering(200, encoded(LEASE)), answering(200, encoded(newer)), answering(409)]
        async with serving(*scripts) as server, talking_to(server) as client:
            lock = LeaseLock(client, namespace="kube-system", name="kube-scheduler")
            assert await lock.read(5) == LeaseRecord(
                holder_identity="other", lease_duration_seconds=15, lease_transitions=3
            )
            ours = LeaseRecord(holder_identity="me", lease_duration_seconds=15, renew_time="t", lease_transitions=4)
            await lock.update(ours, 5)
            with pytest.raises(ApiStatusError):
                await lock.update(ours, 5)
            path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
            assert [(request.method, request.path) for request in server.requests] == [
                ("GET", path), ("PUT", path), ("PUT", path)
            ]  # fmt: skip
            first, second = (json.loads(request.body) for request in server.requests[1:])
            assert first["metadata"] == LEASE["metadata"]
            assert first["spec"]["holderIdentity"] == "me"
            assert second["metadata"]["resourceVersion"] == "6"

    asyncio.run(main())


def test_missing_lease_is_none_and_can_be_created() -> None:
    async def main() -> None:
        async with serving(answering(404), answering(201, encoded(LEASE))) as server, talking_to(server) as client:
            lock = LeaseLock(client, namespace="kube-system", name="kube-scheduler")
            assert await lock.read(5) is None
            await lock.create(LeaseRecord(holder_identity="me"), 5)
            body = json.loads(server.requests[1].body)
            assert (body["kind"], body["metadata"]["name"]) == ("Lease", "kube-scheduler")
            assert body["spec"]["holderIdentity"] == "me"

    asyncio.run(main())


def test_lease_of_another_shape_is_an_error_in_words() -> None:
    async def main() -> None:
        async with serving(answering(200, b'{"spec": {"holderIdentity": 5}}')) as server, talking_to(server) as client:
            with pytest.raises(UnreadableAnswerError, match="lease a/b: "):
                await LeaseLock(client, namespace="a", name="b").read(5)

    asyncio.run(main())


def test_identities_differ() -> None:
    assert new_identity() != new_identity()
