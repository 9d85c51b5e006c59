"""A Lease object as a lock: its holder, since when, and how long it lasts after the last renewal."""

from __future__ import annotations

import socket
import uuid
from typing import Any, Protocol

import msgspec

from kubesched.api.kinds import LEASES
from kubesched.kube.client import Client
from kubesched.kube.errors import ApiStatusError, UnreadableAnswerError
from kubesched.kube.event_record import EventReference


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The spec of a Lease."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lock(Protocol):
    """Keeps the record of the leader. All methods raise KubeError, and must end within `timeout` seconds."""

    @property
    def name(self) -> str: ...

    async def read(self, timeout: float) -> LeaseRecord | None:
        """The record, or None if there is no lease yet."""

    async def create(self, record: LeaseRecord, timeout: float) -> None: ...

    async def update(self, record: LeaseRecord, timeout: float) -> None:
        """Replace what was last read or written, unless another client has done so since."""

    def distrust(self) -> None:
        """The server does not answer: the next request goes out on a new connection, perhaps to another server."""


def new_identity() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaseLock:
    """A Lease of the API server."""

    def __init__(self, client: Client, *, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._path = LEASES.path_of(namespace=namespace)
        self._lease_name = name
        self._lease: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return f"{self._namespace}/{self._lease_name}"

    @property
    def reference(self) -> EventReference:
        """The lease as it was last read or written, for events about it."""
        meta = self._lease.get("metadata") or {}
        uid, version = str(meta.get("uid", "")), str(meta.get("resourceVersion", ""))
        return EventReference(LEASES.api_version, "Lease", self._namespace, self._lease_name, uid, version)

    async def read(self, timeout: float) -> LeaseRecord | None:
        try:
            self._keep(await self._client.get(f"{self._path}/{self._lease_name}", timeout=timeout, retries=0))
        except ApiStatusError as error:
            if error.code == 404:
                return None
            raise
        spec = {field: value for field, value in (self._lease.get("spec") or {}).items() if value is not None}
        try:
            return msgspec.convert(spec, LeaseRecord)
        except msgspec.ValidationError as error:
            raise UnreadableAnswerError(f"lease {self.name}: {error}") from None

    async def create(self, record: LeaseRecord, timeout: float) -> None:
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"name": self._lease_name, "namespace": self._namespace},
            "spec": record,
        }
        self._keep(await self._client.post(self._path, msgspec.json.encode(lease), timeout=timeout, retries=0))

    async def update(self, record: LeaseRecord, timeout: float) -> None:
        # Labels, owners and the resourceVersion go back as they came: the last makes it a compare-and-swap.
        lease = {**self._lease, "apiVersion": LEASES.api_version, "kind": "Lease", "spec": record}
        path = f"{self._path}/{self._lease_name}"
        self._keep(await self._client.put(path, msgspec.json.encode(lease), timeout=timeout, retries=0))

    def distrust(self) -> None:
        self._client.distrust()

    def _keep(self, body: bytes) -> None:
        try:
            self._lease = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UnreadableAnswerError(f"lease {self.name}: {error}") from None
