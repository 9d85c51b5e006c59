"""Kinds whose version depends on the API server: the newest that is served is read, and none at all is no error."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import msgspec
from tests import virtual_time

from kubesched.api.change import Change
from kubesched.api.kinds import POD_GROUPS_BY_VERSION
from kubesched.api.pod_groups import PodGroup
from kubesched.kube.client import Client
from kubesched.kube.discovered import ASK_AGAIN, DiscoveredSource, VersionedCodec
from kubesched.kube.errors import ApiStatusError
from kubesched.kube.reflector import Reflector

T = TypeVar("T")
GANG = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}


class Stream:
    """A watch that stays open until it is closed."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def lines(self) -> list[bytes]:
        await self._over.wait()
        return []

    def close(self) -> None:
        self._over.set()


class Server:
    """An API server that serves some versions of PodGroup, in lists that do not repeat the version in each item."""

    def __init__(self, *versions: str) -> None:
        self.versions = set(versions)
        self.asked: list[str] = []

    async def get(self, path: str, **more: Any) -> bytes:
        self.asked.append(path)
        version = path.split("/")[3].partition("?")[0]
        if version not in self.versions:
            raise ApiStatusError(404)
        if path.endswith(version):
            return msgspec.json.encode({"resources": [{"name": "podgroups"}, {"name": "podgroups/status"}]})
        api_version = f"scheduling.k8s.io/{version}"
        return msgspec.json.encode(
            {"apiVersion": api_version, "kind": "PodGroupList", "metadata": {"resourceVersion": "7"}, "items": [GANG]}
        )

    async def watch(self, path: str, **more: Any) -> Stream:
        self.asked.append(path)
        if "sendInitialEvents" in path:
            raise ApiStatusError(400)
        return Stream()


def run(work: Coroutine[Any, Any, T]) -> T:
    return virtual_time.run(work)


async def reflected(server: Server, until: float, change: Any = None) -> list[Change[PodGroup]]:
    seen: list[Change[PodGroup]] = []
    source = DiscoveredSource(cast("Client", server), POD_GROUPS_BY_VERSION)
    reflector = Reflector("PodGroup", source, VersionedCodec(PodGroup), seen.append)
    task = asyncio.create_task(reflector.run())
    await reflector.wait_synced()
    if change is not None:
        change()
    await asyncio.sleep(until)
    task.cancel()
    return seen


def test_the_newest_version_that_is_served_is_read_and_the_objects_say_which_it_is() -> None:
    [change] = run(reflected(Server("v1beta1", "v1alpha2"), 1))
    assert change.obj.api_version == "scheduling.k8s.io/v1beta1"
    [change] = run(reflected(Server("v1alpha2"), 1))
    assert change.obj.api_version == "scheduling.k8s.io/v1alpha2"
    assert change.obj.is_alpha
    assert change.obj.min_count == 3


def test_server_that_has_no_such_kind_has_no_such_objects_and_is_asked_again() -> None:
    server = Server()
    assert run(reflected(server, 1)) == []
    server = Server()
    seen = run(reflected(server, 2 * ASK_AGAIN + 60, lambda: server.versions.add("v1beta1")))
    assert [change.obj.name for change in seen] == ["g"]
