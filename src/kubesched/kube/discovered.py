"""Discovery: the version of the API server, and which version of a resource it serves, if any."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kubesched.api.kinds import PODS, VERSIONS_BY_SERVER, Resource
from kubesched.kube.client import RETRIES, TIMEOUT, Client
from kubesched.kube.decoding import K, ListPage, RecordCodec, raw_list_of
from kubesched.kube.errors import ApiStatusError, UnreadableAnswerError
from kubesched.kube.listing import UNFINISHED, ApiSource, EventStream, ObjectSource

ASK_AGAIN = 30.0
"""Seconds after which a server that serves none of the versions is asked again: it may have been restarted."""
_NOTHING = b'{"items":[],"metadata":{"resourceVersion":"0"}}'


def source_of(client: Client, resource: Resource) -> ObjectSource:
    """The objects of a resource, without finished pods, in the version that the server has."""
    if resource in VERSIONS_BY_SERVER:
        return DiscoveredSource(client, VERSIONS_BY_SERVER[resource])
    return ApiSource(client, resource, field_selector=UNFINISHED if resource is PODS else "")


def codec_of(resource: Resource, record: type[K]) -> RecordCodec[K]:
    """The codec for the objects of `source_of`."""
    return VersionedCodec(record) if resource in VERSIONS_BY_SERVER else RecordCodec(record)


class _Served(msgspec.Struct):
    name: str = ""


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


async def server_version(client: Client, *, timeout: float = TIMEOUT, retries: int = RETRIES) -> str:
    """The version of the server, such as `v1.36.4`; empty if it does not say. Raises KubeError."""
    try:
        body = await client.get("/version", timeout=timeout, retries=retries)
        return msgspec.json.decode(body, type=_Version).git_version
    except msgspec.DecodeError:
        return ""
    except ApiStatusError as error:
        if error.code in (403, 404):
            return ""
        raise


class _ResourceList(msgspec.Struct):
    resources: tuple[_Served, ...] = ()


class DiscoveredSource:
    """The first of some versions that the server serves. Without any there are no objects, which is no error."""

    def __init__(self, client: Client, versions: Sequence[Resource]) -> None:
        self._client = client
        self._versions = versions
        self._source: ApiSource | None = None

    async def page(self, *, resource_version: str, limit: int, more: str) -> bytes:
        if not more:
            self._source = await self._discover()
        if self._source is None:
            return _NOTHING
        return await self._source.page(resource_version=resource_version, limit=limit, more=more)

    async def watch(self, *, resource_version: str, seconds: int, initial_events: bool) -> EventStream:
        if initial_events:
            self._source = await self._discover()
            if self._source is None:
                raise ApiStatusError(405, message="there is nothing to be streamed")
        if self._source is None:
            if await self._discover() is None:
                return _Silence()
            raise ApiStatusError(410, message="it is served by now")
        try:
            return await self._source.watch(
                resource_version=resource_version, seconds=seconds, initial_events=initial_events
            )
        except ApiStatusError as error:
            if error.code == 404:  # a server of another release has taken over
                raise ApiStatusError(410, message=error.message) from error
            raise

    async def _discover(self) -> ApiSource | None:
        for resource in self._versions:
            try:
                body = await self._client.get(f"/apis/{resource.api_version}")
            except ApiStatusError as error:
                if error.code == 404:
                    continue
                raise
            if any(served.name == resource.plural for served in _resources(body)):
                return ApiSource(self._client, resource)
        return None


class _Silence:
    """A watch in which nothing happens for a while."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def lines(self) -> list[bytes]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN):
                await self._over.wait()
        return []

    def close(self) -> None:
        self._over.set()


class VersionedCodec(RecordCodec[K]):
    """Records with the API version in which they were read, which the items of a list do not have."""

    def page(self, body: bytes) -> ListPage[K]:
        page = super().page(body)
        version = raw_list_of(body).api_version
        return page._replace(objects=[replace(obj, api_version=obj.api_version or version) for obj in page.objects])


def _resources(body: bytes) -> tuple[_Served, ...]:
    try:
        return msgspec.json.decode(body, type=_ResourceList).resources
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"a list of resources cannot be read: {error}") from None
