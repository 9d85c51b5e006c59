from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from bench.peer.pods import PodWatch
from tests.virtual_time import run

from kubesched.kube.errors import UnreachableError


class FakeStream:
    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._batches = [[msgspec.json.encode(event) for event in events]]

    async def lines(self) -> list[bytes]:
        if self._batches:
            return self._batches.pop()
        await asyncio.Event().wait()
        return []

    def close(self) -> None:
        pass


class FakeApi:
    """A list, then watches; an empty one is cut at once."""

    def __init__(self, lists: list[list[dict[str, Any]]], *watches: list[dict[str, Any]]) -> None:
        self._lists, self._watches = lists, list(watches)

    async def read(self, path: str) -> bytes:
        return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": self._lists.pop(0)})

    async def watch(self, path: str) -> FakeStream:
        events = self._watches.pop(0)
        if not events:
            raise UnreachableError("cut")
        return FakeStream(events)


def pod(name: str, node: str = "", *, tried: bool = False, **labels: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "PodScheduled"}]} if tried else {}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def watched(api: FakeApi) -> PodWatch:
    """What is known when all that the API has to say was said."""
    watch = PodWatch(api)  # type: ignore[arg-type]

    async def until_quiet() -> None:
        watching = asyncio.create_task(watch.run())
        await asyncio.sleep(1)
        watching.cancel()

    run(until_quiet())
    return watch


def test_pods_that_are_bound_or_were_tried_are_counted_by_label() -> None:
    events = [
        event("MODIFIED", pod("a", "node-1", color="red")),
        event("ADDED", pod("b", tried=True, color="red")),
        event("ADDED", pod("c")),
    ]
    watch = watched(FakeApi([[pod("a", color="red")]], events))
    assert (watch.count_bound("default"), watch.count_tried("default")) == (1, 2)
    assert (watch.count_bound("default", {"color": "red"}), watch.count_tried("default", {"color": "blue"})) == (1, 0)
    assert watch.names("default", {"color": "red"}) == ["a", "b"]
    assert watch.count_bound("elsewhere") == 0


def test_pod_that_was_bound_and_deleted_still_counts_as_bound_since_then() -> None:
    events = [
        event("MODIFIED", pod("a", "node-1")),
        event("DELETED", pod("a", "node-1")),
        event("ADDED", pod("a", "node-2")),
    ]
    watch = watched(FakeApi([[pod("a")]], events))
    assert len(watch.bound(["default"], {}, since=0)) == 2
    assert watch.count_bound("default") == 1


def test_watch_that_is_cut_begins_anew_with_a_list() -> None:
    watch = watched(FakeApi([[pod("a"), pod("gone")], [pod("a", "node-1")]], [], [event("ADDED", pod("b", "node-1"))]))
    assert watch.cuts == 1
    assert watch.names("default", {}) == ["a", "b"]
    assert watch.count_bound("default") == 2
