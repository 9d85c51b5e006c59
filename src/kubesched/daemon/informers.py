"""A reflector for every kind that the scheduler looks at, and word of when all of them have caught up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubesched.api.custom import CustomObject, read_custom
from kubesched.api.kinds import WATCHED, Kind, Resource
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.extenders.originals import Originals
from kubesched.kube.client import Client
from kubesched.kube.decoding import Codec, DictCodec, Identity, Page, Raw, RecordCodec, Sent, SentCodec
from kubesched.kube.listing import UNFINISHED, ApiSource
from kubesched.kube.reflector import Handler, Reflector


class Informers:
    """All reflectors of one scheduler. They are told to run once, and end when their task is cancelled."""

    def __init__(
        self,
        client: Client,
        handler: Handler[Any],
        *,
        custom: Iterable[str] = (),
        originals: Originals | None = None,
        wake: Callable[[], None],
    ) -> None:
        """`handler` hears of every change, and `wake` is called after it did.

        `custom` are resources that only plugins know, such as `racks.v1.example.com`. `originals` gets objects whole.
        """
        woken = _Waking(handler, wake)
        self.reflectors: dict[str, Reflector[Any]] = {}
        for kind in WATCHED:
            name = kind.resource.kind
            codec: Codec[Any] = RecordCodec(kind.record)
            told: Handler[Any] = woken
            if originals is not None and originals.wants_any(kind.record):
                codec = SentCodec(kind.record, kind.resource.api_version, originals.wants)
                told = _Keeping(originals, woken)
            self.reflectors[name] = Reflector(name, _source(client, kind), codec, told)
        for name in custom:
            source = ApiSource(client, _resource(name))
            self.reflectors[name] = Reflector(name, source, CustomCodec(name), woken)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, reflector in self.reflectors.items():
                tasks.create_task(reflector.run(), name=f"reflector {name}")

    async def wait_synced(self) -> None:
        """Until the handler has seen all first lists."""
        for reflector in self.reflectors.values():
            await reflector.wait_synced()

    async def catch_up(self) -> None:
        """Until the handler has seen the cluster as it is now, or a little later. Ends the pauses of who had failed."""
        await self._relist(self.reflectors.values())

    async def read_anew(self) -> tuple[dict[str, Node], dict[str, Pod]]:
        """The nodes and the pods as the API server has them now. The handler has heard of all of them."""
        nodes, pods = self.reflectors["Node"], self.reflectors["Pod"]
        await self._relist((nodes, pods))
        return _records(nodes.objects), _records(pods.objects)

    def missed(self) -> Counter[str]:
        """Changes by kind that a watch should have told of, and that only a later list showed."""
        return Counter({name: reflector.missed for name, reflector in self.reflectors.items()})

    @property
    def have_synced(self) -> bool:
        return not self.not_synced()

    def not_synced(self) -> list[str]:
        return [name for name, reflector in self.reflectors.items() if not reflector.has_synced]

    async def _relist(self, reflectors: Iterable[Reflector[Any]]) -> None:
        await asyncio.gather(*(reflector.relist() for reflector in reflectors))


def _records(objects: Mapping[str, Any]) -> dict[str, Any]:
    return {key: obj.record if isinstance(obj, Sent) else obj for key, obj in objects.items()}


def _source(client: Client, kind: Kind) -> ApiSource:
    return ApiSource(client, kind.resource, field_selector=UNFINISHED if kind.record is Pod else "")


def _resource(custom: str) -> Resource:
    plural, version, group = custom.split(".", 2)
    return Resource(group, version, plural, kind="")


class CustomCodec:
    """Objects of a custom resource, read whole."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._plain = DictCodec()

    def decode(self, raw: Raw) -> CustomObject:
        return read_custom(self._resource, self._plain.decode(raw))

    def page(self, body: bytes) -> Page[CustomObject]:
        page = self._plain.page(body)
        objects = [read_custom(self._resource, content) for content in page.objects]
        return Page(objects, page.resource_version, page.more)

    def identity(self, obj: CustomObject) -> Identity:
        return self._plain.identity(obj.content)


class _Waking:
    """Tells the handler, then wakes the scheduling loop."""

    def __init__(self, handler: Handler[Any], wake: Callable[[], None]) -> None:
        self._handler = handler
        self._wake = wake

    def added(self, obj: KubeObject) -> None:
        self._handler.added(obj)
        self._wake()

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self._handler.updated(old, new)
        self._wake()

    def deleted(self, obj: KubeObject) -> None:
        self._handler.deleted(obj)
        self._wake()


class _Keeping:
    """Keeps originals, then tells the handler of their records. Those that it has done with are forgotten."""

    def __init__(self, originals: Originals, handler: Handler[Any]) -> None:
        self._originals = originals
        self._handler = handler

    def added(self, obj: Sent[Any]) -> None:
        self._keep(obj)
        self._handler.added(obj.record)

    def updated(self, old: Sent[Any], new: Sent[Any]) -> None:
        self._keep(new)
        self._handler.updated(old.record, new.record)
        self._originals.forget(old.record, new.record)

    def deleted(self, obj: Sent[Any]) -> None:
        self._handler.deleted(obj.record)
        self._originals.forget(obj.record)

    def _keep(self, obj: Sent[Any]) -> None:
        if obj.original is not None:
            self._originals.keep(obj.record, obj.original)
