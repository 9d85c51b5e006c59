"""A watcher that breaks off and resumes wherever it likes ends up with what a list shows."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubesched.api import kinds
from kubesched_sandbox.api import Api, ListSelector, Stamps, selection
from kubesched_sandbox.http.answers import Shapes
from kubesched_sandbox.http.content import Accepted
from kubesched_sandbox.http.faults import Faults
from kubesched_sandbox.http.watches import Watcher, Watches
from kubesched_sandbox.store import ExpiredError, Store

_NAMES = st.sampled_from("abcd")
_LABELS = st.sampled_from(["x", "y"])


class Follower:
    """A client that keeps a copy of what it was told."""

    def __init__(self, api: Api, watches: Watches, wanted: ListSelector) -> None:
        self._api, self._watches, self._wanted = api, watches, wanted
        self.known: dict[str, dict[str, Any]] = {}
        self._watcher: Watcher | None = None
        self.relist()

    def relist(self) -> None:
        self.disconnect()
        records = self._api.records(kinds.CONFIG_MAPS, "default", self._wanted)
        self.known = {record.object["metadata"]["name"]: record.object for record in records}
        self.revision = self._api.store.revision
        self.connect()

    def connect(self) -> None:
        if self._watcher is not None:
            return
        shapes = Shapes(self._api, kinds.CONFIG_MAPS, Accepted(), "Metadata")
        watcher = Watcher(kinds.CONFIG_MAPS, "default", self._wanted, shapes)
        try:
            self._watches.add(watcher, self.revision)
        except ExpiredError:
            self.relist()
        else:
            self._watcher = watcher

    def disconnect(self) -> None:
        if self._watcher is not None:
            self._watches.remove(self._watcher)
            self._watcher = None

    def read(self, most: int) -> None:
        """Take in some of what is waiting."""
        if self._watcher is None:
            return
        lines, self._watcher.unsent = self._watcher.unsent[:most], self._watcher.unsent[most:]
        for line in lines:
            self._apply(msgspec.json.decode(line))

    def bookmark(self) -> None:
        if self._watcher is not None and not self._watcher.unsent:
            told = msgspec.json.decode(self._watcher.bookmark(self._api.store.durable_revision))
            self.revision = int(told["object"]["metadata"]["resourceVersion"])

    def _apply(self, event: dict[str, Any]) -> None:
        metadata = event["object"]["metadata"]
        assert int(metadata["resourceVersion"]) > self.revision
        self.revision = int(metadata["resourceVersion"])
        name = metadata["name"]
        match event["type"]:
            case "ADDED":
                assert name not in self.known
                self.known[name] = event["object"]
            case "MODIFIED":
                assert name in self.known
                self.known[name] = event["object"]
            case "DELETED":
                del self.known[name]


class Watching(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.api = Api(Store(history=12), Stamps(lambda: 1_700_000_000))
        for namespace in ("default", "other"):
            self.api.create(kinds.NAMESPACES, "", {"metadata": {"name": namespace}})
        self.followers = self.runner.run(self._start())

    async def _start(self) -> list[Follower]:
        watches = Watches(self.api, Faults())
        labelled = selection(kinds.CONFIG_MAPS, "color=x")
        return [Follower(self.api, watches, wanted) for wanted in (ListSelector(), labelled)]

    def teardown(self) -> None:
        self.runner.close()

    @rule(name=_NAMES, color=_LABELS, namespace=st.sampled_from(["default", "default", "other"]))
    def write(self, name: str, color: str, namespace: str) -> None:
        new = {"metadata": {"name": name, "labels": {"color": color}}, "data": {"at": str(self.api.store.revision)}}
        if self.api.find(kinds.CONFIG_MAPS, namespace, name) is None:
            self.api.create(kinds.CONFIG_MAPS, namespace, new)
        else:
            self.api.update(kinds.CONFIG_MAPS, namespace, name, new)

    @rule(name=_NAMES)
    def delete(self, name: str) -> None:
        if self.api.find(kinds.CONFIG_MAPS, "default", name) is not None:
            self.api.delete(kinds.CONFIG_MAPS, "default", name)

    @rule(which=st.integers(0, 1), most=st.integers(1, 3))
    def read_some(self, which: int, most: int) -> None:
        self.followers[which].read(most)

    @rule(which=st.integers(0, 1))
    def break_off(self, which: int) -> None:
        self.followers[which].disconnect()

    @rule(which=st.integers(0, 1))
    def resume(self, which: int) -> None:
        self.followers[which].connect()

    @rule(which=st.integers(0, 1))
    def bookmark(self, which: int) -> None:
        self.followers[which].bookmark()

    @rule()
    def compact(self) -> None:
        self.api.store.compact()

    @invariant()
    def a_follower_that_catches_up_knows_what_a_list_shows(self) -> None:
        for follower, labels in zip(self.followers, (None, "color=x")):
            if follower._watcher is not None and not follower._watcher.unsent:
                listed = self.api.select(kinds.CONFIG_MAPS, "default", labels=labels)
                assert [follower.known[name] for name in sorted(follower.known)] == listed


TestWatching = Watching.TestCase
TestWatching.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
