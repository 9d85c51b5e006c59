"""Whatever is in any field of any watched kind, as bytes of a watch: the scheduler lives, and knows all else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soak.odd_objects import ODD, Path, example, paths, spoilt
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.kinds import WATCHED, Kind
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.cache_debugger import queue_dump, state_dump
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.kube.decoding import RecordCodec
from kubesched.kube.errors import UnreachableError
from kubesched.kube.events import EventRecorder
from kubesched.kube.listing import EventStream
from kubesched.kube.reflector import Reflector
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.testing import make_node, make_pod

_TRIED = 2
"""Odd values for each field of each kind; over the fields all of them get their turn."""


class NoSink:
    """Events are recorded, and written nowhere."""

    async def post(self, path: str, body: bytes) -> bytes:
        raise UnreachableError("nobody is there")

    async def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        raise UnreachableError("nobody is there")


class Lines(EventStream):
    """A watch that brings these lines, and nothing after them until it is closed."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines)
        self._closed = asyncio.Event()
        self.is_read = asyncio.Event()

    async def lines(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        if not lines:
            self.is_read.set()
            await self._closed.wait()
        return lines

    def close(self) -> None:
        self._closed.set()


class Server:
    """Lists nothing at first and one object in the end, and has one watch in between."""

    def __init__(self, obj: dict[str, Any], events: Iterable[bytes]) -> None:
        last = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "999999"}}
        self._lists: list[dict[str, Any]] = [
            {"metadata": {"resourceVersion": "1"}},
            {"metadata": {"resourceVersion": "1000000"}, "items": [last]},
        ]
        self.stream = Lines(events)

    async def page(self, *, resource_version: str, limit: int, more: str) -> bytes:
        return _encoded(self._lists.pop(0))

    async def watch(self, *, resource_version: str, seconds: int, initial_events: bool) -> EventStream:
        return self.stream


class Fed:
    """A scheduler that decides about pods while it is fed."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0), config.default(), MemoryCluster(), in_tree()
        )
        self.handling = ObjectHandling(self.scheduler.handle, self.registry, EventRecorder(NoSink(), "test"))
        for obj in (
            make_node("n1"),
            make_pod("innocent").requests(cpu="1").on("n1"),
            make_pod("big").requests(cpu="1000"),
        ):
            self.handling(Change(new=obj.build()))
        attempt = self.scheduler.pop()  # so that a pod waits which events may help
        assert attempt is not None
        self.scheduler.decide(attempt)

    async def follow(self, kind: Kind, obj: dict[str, Any], events: Iterable[bytes]) -> None:
        """See the events, and in the end a list that has the object as it should be."""
        server = Server(obj, events)
        reflector: Reflector[KubeObject] = Reflector(
            kind.resource.kind,
            server,
            RecordCodec(kind.record),
            self.handling,
            on_unreadable=self.handling.unreadable,
            streamed_lists=False,
        )
        running = asyncio.create_task(reflector.run())
        await asyncio.wait((running, asyncio.create_task(server.stream.is_read.wait())), return_when="FIRST_COMPLETED")
        if running.done():
            running.result()
        await reflector.relist()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert not reflector.unreadable

    def knows(self) -> dict[str, Any]:
        kinds = [kind.record for kind in WATCHED if kind.record not in (Pod, Node)]
        objects = [str(obj) for kind in kinds for obj in self.scheduler.state.objects.all(kind)]
        queue = {place: sorted(str(pod) for pod in pods) for place, pods in queue_dump(self.scheduler).items()}
        return {"nodes": state_dump(self.scheduler), "queue": queue, "objects": objects, "pods": self.scheduler.pods}


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def watched(objects: Iterable[Any]) -> list[bytes]:
    """Lines of a watch, each newer than the last as far as the object lets itself be numbered."""
    lines = []
    for version, obj in enumerate(objects, start=2):
        numbered = obj
        meta = obj.get("metadata")
        if isinstance(meta, dict) and meta.get("resourceVersion") == "1":
            numbered = {**obj, "metadata": {**meta, "resourceVersion": str(version)}}
        lines.append(_encoded({"type": "MODIFIED", "object": numbered}))
    return lines


def check(kind: Kind, obj: dict[str, Any], events: list[bytes]) -> Fed:
    """The scheduler outlives the events, and knows in the end what one knows that never saw them."""
    fed, fresh = Fed(), Fed()
    asyncio.run(fed.follow(kind, obj, events))
    asyncio.run(fresh.follow(kind, obj, []))
    assert not fed.handling.skipped
    assert fed.knows() == fresh.knows()
    return fed


def forms(kind: Kind) -> list[dict[str, Any]]:
    """Pods are two kinds of things: those that wait, and those that have a node."""
    whole = example(kind)
    if kind.record is not Pod:
        return [whole]
    return [whole, {**whole, "spec": {**whole["spec"], "nodeName": "", "schedulingGates": []}}]


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.resource.kind)
def test_odd_values_in_every_field_of_every_kind_end_nothing(kind: Kind) -> None:
    for obj in forms(kind):
        turn = 0
        spoilt_ones = []
        for path in paths(obj):
            for _ in range(_TRIED):
                spoilt_ones.append(spoilt(obj, path, ODD[turn % len(ODD)]))
                turn += 1
        check(kind, obj, watched(spoilt_ones))


@st.composite
def stories(draw: st.DrawFn) -> tuple[Kind, dict[str, Any], list[bytes]]:
    """Several fields spoilt at once, events of any type, and lines that are cut or nested deeply."""
    kind = draw(st.sampled_from(WATCHED))
    obj = draw(st.sampled_from(forms(kind)))
    places: list[Path] = list(paths(obj))
    events = []
    for version in range(2, 2 + draw(st.integers(1, 6))):
        changed = obj
        for path in draw(st.lists(st.sampled_from(places), max_size=3)):
            changed = spoilt(changed, path, draw(st.sampled_from(ODD)))
        meta = changed.get("metadata")
        if isinstance(meta, dict) and draw(st.booleans()):
            changed = {**changed, "metadata": {**meta, "resourceVersion": str(version)}}
        events.append(_encoded({"type": draw(st.sampled_from(("ADDED", "MODIFIED", "DELETED"))), "object": changed}))
    return kind, obj, events


@settings(max_examples=40)
@given(stories())
def test_odd_values_in_several_fields_end_nothing(story: tuple[Kind, dict[str, Any], list[bytes]]) -> None:
    check(*story)


@pytest.mark.parametrize("depth", [900, 5000, 100_000])
def test_object_that_is_nested_deeply_is_read_without_its_depths(depth: int) -> None:
    """Who may create a claim may write this into it."""
    (kind,) = (each for each in WATCHED if each.resource.kind == "ResourceClaim")
    claim = example(kind)
    text = _encoded({"type": "ADDED", "object": spoilt(claim, ("spec", "devices", "config"), [{"opaque": "DEEP"}])})
    deep = text.replace(b'"DEEP"', b'{"parameters":' + b'{"\\"[":[' * depth + b"1" + b"]}" * depth + b"}")
    fed = check(kind, claim, [deep])
    assert b"kubesched_handler_errors_total{" not in fed.registry.exposed()
