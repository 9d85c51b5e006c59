"""The client that makes the load: requests to the API server without a scheduler's limits."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from kubesched.api.kinds import BUILT_IN, NAMESPACES, Resource
from kubesched.kube.client import MERGE_PATCH, Client, Throttle, WatchStream
from kubesched.kube.credentials import FixedAuthorization, bearer
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import ApiStatusError
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport

_SILENCE = 3600.0
_TIMEOUT = 120.0


class Access(msgspec.Struct, frozen=True):
    """Where a server is and how to get in."""

    url: str
    token: str
    authority: Path | None
    """None: the server's certificate is not verified."""


def fetch(access: Access, path: str, timeout: float = 10.0) -> bytes:
    """One answer, from any thread. Raises OSError."""
    context = ssl.create_default_context(cafile=str(access.authority)) if access.authority else _believing()
    request = urllib.request.Request(access.url + path, headers={"Authorization": bearer(access.token)})
    with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
        body: bytes = answer.read()
        return body


def _believing() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def is_ready(access: Access) -> bool:
    try:
        fetch(access, "/readyz", timeout=2)
    except OSError:
        return False
    return True


def resource_of(obj: dict[str, Any]) -> Resource:
    return BUILT_IN[obj["apiVersion"], obj["kind"]]


class Api:
    """Objects as they are in templates, made and changed without limits of one's own."""

    def __init__(self, access: Access) -> None:
        dialer = Dialer(access.url, ServerTrust(ca_file=str(access.authority)))
        self._transport = Transport(dialer, FixedAuthorization(bearer(access.token)), clock=time.monotonic)
        self._client = Client(self._transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)

    async def close(self) -> None:
        await self._transport.close()

    async def create(self, obj: dict[str, Any], namespace: str = "") -> str:
        """The name it got."""
        path = resource_of(obj).path_of(namespace=namespace)
        answer = await self._client.post(path, msgspec.json.encode(obj), timeout=_TIMEOUT)
        return msgspec.json.decode(answer, type=_Named).metadata.name

    async def update(self, obj: dict[str, Any], namespace: str = "", subresource: str = "") -> None:
        name = obj["metadata"]["name"]
        path = resource_of(obj).path_of(namespace=namespace, name=name, subresource=subresource)
        await self._client.put(path, msgspec.json.encode(obj), timeout=_TIMEOUT)

    async def write(self, path: str, obj: dict[str, Any]) -> None:
        await self._client.post(path, msgspec.json.encode(obj), timeout=_TIMEOUT)

    async def patch_status(self, resource: Resource, namespace: str, name: str, status: dict[str, Any]) -> None:
        path = resource.path_of(namespace=namespace, name=name, subresource="status")
        await self._client.patch(path, msgspec.json.encode({"status": status}), content_type=MERGE_PATCH)

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Deleted, if it was still there."""
        try:
            await self._client.delete(resource.path_of(namespace=namespace, name=name), timeout=_TIMEOUT)
        except ApiStatusError as error:
            if error.code != 404:
                raise

    async def delete_all(self, resource: Resource, namespace: str, selector: str = "", *, at_once: bool) -> None:
        path = resource.path_of(namespace=namespace) + (f"?labelSelector={selector}" if selector else "")
        await self._client.delete(path, b'{"gracePeriodSeconds":0}' if at_once else b"", timeout=10 * _TIMEOUT)

    async def list(self, resource: Resource, namespace: str = "") -> list[dict[str, Any]]:
        answer = await self._client.get(resource.path_of(namespace=namespace), timeout=_TIMEOUT)
        items: list[dict[str, Any]] = msgspec.json.decode(answer)["items"]
        return items

    async def read(self, path: str) -> bytes:
        return await self._client.get(path, timeout=_TIMEOUT)

    async def watch(self, path: str) -> WatchStream:
        return await self._client.watch(path, silence=_SILENCE)

    async def ensure_namespace(self, name: str, template: dict[str, Any] | None = None) -> None:
        obj = template or {"apiVersion": "v1", "kind": "Namespace"}
        try:
            await self.create(obj | {"metadata": {**obj.get("metadata", {}), "name": name}})
        except ApiStatusError as error:
            if error.code != 409:
                raise

    async def has_namespaces(self) -> bool:
        return bool(await self.list(NAMESPACES))


class _Metadata(msgspec.Struct):
    name: str


class _Named(msgspec.Struct):
    metadata: _Metadata
