"""One object that cannot be read does not keep a reflector from all others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.builders import Json
from tests.unit.kube.memory_server import EXPIRED, MemoryServer, MemoryStream

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.kube.decoding import DictCodec, RecordCodec
from kubesched.kube.listing import EventStream, ObjectSource
from kubesched.kube.reflector import Reflector
from kubesched.kube.timing import Timing


class TestObjectsThatCannotBeRead:
    """They are skipped: what is known of them stays, and everything else goes on."""

    @staticmethod
    def pod(name: str, version: int, **fields: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}, **fields}

    @staticmethod
    def reading(*steps: Any) -> tuple[list[str], list[str], Reflector[Pod]]:
        """A list and events, or a second list: what was handled, what was skipped."""
        handled: list[str] = []
        skipped: list[str] = []

        class Scripted(ObjectSource):
            async def page(self, *, resource_version: str, limit: int, more: str) -> bytes:
                items = lists.pop(0) if lists else await asyncio.Event().wait()
                return json.dumps({"metadata": {"resourceVersion": "5"}, "items": items}).encode()

            async def watch(self, *, resource_version: str, seconds: int, initial_events: bool) -> EventStream:
                if not events:
                    await asyncio.Event().wait()
                stream = MemoryStream(MemoryServer())
                stream.send(*(json.dumps({"type": type_, "object": obj}).encode() for type_, obj in events))
                stream.end(EXPIRED if lists else None)
                events.clear()
                return stream

        lists = [step for step in steps if isinstance(step, list)]
        events = [step for step in steps if isinstance(step, tuple)]

        async def read() -> Reflector[Pod]:
            reflector: Reflector[Pod] = Reflector(
                "Pod",
                Scripted(),
                RecordCodec(Pod),
                lambda change: handled.append(f"{change.verb} {change.obj.name}"),
                on_unreadable=lambda name, found: skipped.append(found.identity.key),
                streamed_lists=False,
                timing=Timing(sleep=lambda _: asyncio.sleep(0)),
            )
            running = asyncio.create_task(reflector.run())
            for _ in range(500):
                await asyncio.sleep(0)
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return reflector

        return handled, skipped, asyncio.run(read())

    def test_others_of_a_list_are_read(self) -> None:
        handled, skipped, reflector = self.reading([self.pod("bad", 2, spec=5), self.pod("good", 3)])
        assert (handled, skipped) == (["added good"], ["ns/bad"])
        assert reflector.unreadable == {"ns/bad"}
        assert reflector.has_synced

    def test_other_events_are_read_and_the_watch_goes_on(self) -> None:
        events = ("ADDED", self.pod("bad", 6, spec=5)), ("ADDED", self.pod("good", 7)), ("MODIFIED", self.pod("bad", 8))
        handled, skipped, reflector = self.reading([], *events)
        assert (handled, skipped) == (["added good", "added bad"], ["ns/bad"])
        assert not reflector.unreadable
        assert reflector.resource_version == "8"

    def test_what_was_known_stays_though_a_list_has_it_unreadable(self) -> None:
        first, then = [self.pod("p", 2)], [self.pod("p", 6, spec=5)]
        handled, skipped, _ = self.reading(first, ("MODIFIED", self.pod("p", 6, spec=5)), then)
        assert (handled, skipped) == (["added p"], ["ns/p", "ns/p"])

    def test_deletion_needs_nothing_but_the_name(self) -> None:
        handled, skipped, _ = self.reading([self.pod("p", 2)], ("DELETED", self.pod("p", 6, spec=5)))
        assert (handled, skipped) == (["added p", "deleted p"], [])

    def test_who_waits_for_a_list_hears_what_broke(self) -> None:
        """A process that ends must say why; a cancelled wait says nothing."""

        def broken(change: Change[Json]) -> None:
            raise RuntimeError("oops")

        async def relist() -> None:
            reflector = Reflector("pods", server, DictCodec(), broken)
            running = asyncio.create_task(reflector.run())
            with pytest.raises(RuntimeError, match="oops"):
                await reflector.relist()
            with pytest.raises(RuntimeError, match="oops"):
                await running

        server = MemoryServer()
        server.put("p")
        asyncio.run(relist())
