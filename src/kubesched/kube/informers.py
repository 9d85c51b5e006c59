"""The informers: a reflector for every kind that the scheduler looks at, and whether all of them have synced."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kubesched.api.change import Change
from kubesched.api.custom import CustomObject, read_custom
from kubesched.api.kinds import WATCHED, Kind, Resource
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.kube.client import Client
from kubesched.kube.decoding import Codec, DictCodec, Identity, Raw, WithOriginal, WithOriginalCodec
from kubesched.kube.discovered import codec_of, source_of
from kubesched.kube.listing import ApiSource, ObjectSource
from kubesched.kube.originals import Originals
from kubesched.kube.reflector import Handler, OnUnreadable, Reflector, log_unreadable


class Informers:
    """All reflectors of one scheduler. They run in one task, and end when it is cancelled."""

    def __init__(
        self,
        client: Client,
        handle: Handler[KubeObject],
        *,
        kinds: Iterable[Kind] = WATCHED,
        custom: Iterable[str] = (),
        originals: Originals | None = None,
        on_unreadable: OnUnreadable = log_unreadable,
    ) -> None:
        """`handle` is called with every change of these kinds, `on_unreadable` with every object that cannot be read.

        `custom` are resources that only plugins know, such as `racks.v1.example.com`. `originals` gets objects as JSON.
        """
        self._handle = handle
        self.reflectors: dict[str, Reflector[Any]] = {}

        def reflect(name: str, source: ObjectSource, codec: Codec[Any], handle: Handler[Any]) -> None:
            self.reflectors[name] = Reflector(name, source, codec, handle, on_unreadable=on_unreadable)

        for kind in kinds:
            name, source = kind.resource.kind, source_of(client, kind.resource)
            if originals is not None and originals.wants_any(kind.record):
                codec = WithOriginalCodec(kind.record, kind.resource.api_version, originals.wants)
                handle_whole = partial(self._handle_whole, originals)
                reflect(name, source, codec, handle_whole)
            else:
                reflect(name, source, codec_of(kind.resource, kind.record), handle)
        for name in custom:
            reflect(name, ApiSource(client, _resource(name)), CustomCodec(name), handle)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, reflector in self.reflectors.items():
                tasks.create_task(reflector.run(), name=f"reflector {name}")

    async def wait_synced(self) -> None:
        """Until the handler has seen all first lists."""
        for reflector in self.reflectors.values():
            await reflector.wait_synced()

    def catch_up(self) -> asyncio.Future[Any]:
        """Done when the handler has seen the cluster as it is now, or a little later. Pauses after errors end at once.

        Asked before `run`, it costs nothing: the first lists are new enough.
        """
        return _relist(self.reflectors.values())

    async def read_anew(self) -> tuple[dict[str, Node], dict[str, Pod]]:
        """The nodes and the pods as the API server has them now. The handler knows all of them.

        Whatever else could not be read is looked at again, too.
        """
        nodes, pods = self.reflectors["Node"], self.reflectors["Pod"]
        others = (
            reflector
            for reflector in self.reflectors.values()
            if reflector.unreadable and reflector not in (nodes, pods)
        )
        await _relist((nodes, pods, *others))
        return _records(nodes.objects), _records(pods.objects)

    def missed(self) -> Counter[str]:
        """Changes by kind that a watch should have shown, and that only a later list showed."""
        return Counter({name: reflector.missed for name, reflector in self.reflectors.items()})

    @property
    def unreadable(self) -> int:
        """How many objects have a newest version that could not be read."""
        return sum(len(reflector.unreadable) for reflector in self.reflectors.values())

    @property
    def have_synced(self) -> bool:
        return not self.not_synced()

    def not_synced(self) -> list[str]:
        return [name for name, reflector in self.reflectors.items() if not reflector.has_synced]

    def _handle_whole(self, originals: Originals, change: Change[WithOriginal[Any]]) -> None:
        """Keep the original before its record is handled, and forget that of the version which is past then."""
        old = None if change.old is None else change.old.record
        new = None if change.new is None else change.new.record
        if change.new is not None and change.new.original is not None:
            originals.keep(change.new.record, change.new.original)
        self._handle(Change(old, new))
        if old is not None:
            originals.forget(old, new)


def _relist(reflectors: Iterable[Reflector[Any]]) -> asyncio.Future[Any]:
    return asyncio.gather(*(reflector.relist() for reflector in reflectors))


def _records(objects: Mapping[str, Any]) -> dict[str, Any]:
    return {key: obj.record if isinstance(obj, WithOriginal) else obj for key, obj in objects.items()}


def _resource(custom: str) -> Resource:
    plural, version, group = custom.split(".", 2)
    return Resource(group, version, plural, kind="")


class CustomCodec(Codec[CustomObject]):
    """Objects of a custom resource, read whole."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._plain = DictCodec()

    def decode(self, raw: Raw) -> CustomObject:
        return self.decode_item(raw, {})

    def decode_item(self, raw: Raw, header: dict[str, str]) -> CustomObject:
        return read_custom(self._resource, self._plain.decode_item(raw, header))

    def identity(self, obj: CustomObject) -> Identity:
        return self._plain.identity(obj.content)
