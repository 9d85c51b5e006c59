"""The store in memory: tables of objects with their history. A write is one step, and listeners get all in order."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Literal

import msgspec

from kubesched.api.kinds import Object

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]
"""Namespace (empty for objects of the cluster) and name."""


class StoredObject(msgspec.Struct, frozen=True, gc=False):
    """One state of one object. The bytes are made once, and shared by every list and watch."""

    object: Object
    revision: int
    encoded: bytes


class StoredChange(msgspec.Struct, frozen=True, gc=False):
    """One step of the history. A deletion carries the last state, at the revision of the deletion."""

    type: ChangeType
    table: str
    record: StoredObject
    old: StoredObject | None
    at: float

    @property
    def revision(self) -> int:
        return self.record.revision


class ExpiredError(Exception):
    """The history no longer reaches back that far."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")


class Table:
    """All objects of one kind, and the history of their changes as far back as it is kept."""

    __slots__ = ("_names", "_spaces", "floor", "history", "namespaces")

    def __init__(self, floor: int) -> None:
        self.namespaces: dict[str, dict[str, StoredObject]] = {}
        self.history: deque[StoredChange] = deque()
        self.floor = floor
        """Changes after this revision are all in the history."""
        self._names: dict[str, list[str]] = {}
        self._spaces: list[str] | None = None

    def get(self, namespace: str, name: str) -> StoredObject | None:
        records = self.namespaces.get(namespace)
        return None if records is None else records.get(name)

    def __len__(self) -> int:
        return sum(map(len, self.namespaces.values()))

    def ordered(self, namespace: str | None = None) -> Iterator[StoredObject]:
        """The records of one namespace, or of all, in the order of their keys."""
        if namespace is not None:
            records = self.namespaces.get(namespace)
            return iter(()) if records is None else map(records.__getitem__, self._sorted_names(namespace))
        return (
            self.namespaces[space][name] for space in self._sorted_namespaces() for name in self._sorted_names(space)
        )

    def put(self, namespace: str, name: str, record: StoredObject) -> None:
        records = self.namespaces.get(namespace)
        if records is None:
            records = self.namespaces[namespace] = {}
            self._spaces = None
        if name not in records:
            self._names.pop(namespace, None)
        records[name] = record

    def remove(self, namespace: str, name: str) -> None:
        records = self.namespaces[namespace]
        del records[name]
        self._names.pop(namespace, None)
        if not records:
            del self.namespaces[namespace]
            self._spaces = None

    def changes_after(self, revision: int) -> list[StoredChange]:
        """Every change after a revision, oldest first; `ExpiredError` when some of them were dropped."""
        if revision < self.floor:
            raise ExpiredError(revision, self.floor)
        if not self.history or self.history[-1].revision <= revision:
            return []
        history = list(self.history)
        return history[bisect_right(history, revision, key=attrgetter("revision")) :]

    def as_of(self, revision: int) -> list[StoredObject]:
        """The records as they were at a revision, in the order of their keys."""
        state = {key_of(record.object): record for record in self.ordered()}
        for change in reversed(self.changes_after(revision)):
            key = key_of(change.record.object)
            if change.old is None:
                state.pop(key, None)
            else:
                state[key] = change.old
        return [state[key] for key in sorted(state)]

    def compact(self, *, keep: int, newer_than: float) -> None:
        """Forget changes beyond a number, and those made before a time."""
        history = self.history
        while history and (len(history) > keep or history[0].at < newer_than):
            self.floor = history.popleft().revision

    def _sorted_names(self, namespace: str) -> list[str]:
        names = self._names.get(namespace)
        if names is None:
            names = self._names[namespace] = sorted(self.namespaces[namespace])
        return names

    def _sorted_namespaces(self) -> list[str]:
        if self._spaces is None:
            self._spaces = sorted(self.namespaces)
        return self._spaces


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


Listener = Callable[[StoredChange], None]

HISTORY_KEPT = 10_000
"""Changes kept per table."""
HISTORY_SECONDS = 300.0
"""How long a change is kept, as etcd is compacted by default."""

_encode = msgspec.json.Encoder().encode


class Store:
    """Objects by table, namespace and name, under one revision that only grows.

    Two kinds of listeners: one gets a change at once (controllers in this process), the other when the change is
    durable (watches of clients), which here is the same moment.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        history: int = HISTORY_KEPT,
        history_seconds: float = HISTORY_SECONDS,
    ) -> None:
        self.revision = 1
        self._clock = clock
        self._history, self._history_seconds = history, history_seconds
        self._tables: dict[str, Table] = {}
        self._floor = 0
        self._listeners: list[Listener] = []
        self._durable_listeners: list[Listener] = []
        self._undelivered: deque[StoredChange] = deque()
        self._telling = False

    @property
    def durable_revision(self) -> int:
        return self.revision

    async def durable(self, revision: int) -> None:
        """Return once everything up to the revision would survive a crash."""

    async def close(self) -> None:
        """Nothing is held open here."""

    def table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = Table(self._floor)
        return table

    def put(self, table: str, obj: Object) -> StoredObject:
        """Store the next state of an object; its resourceVersion is set here."""
        namespace, name = key_of(obj)
        rows = self.table(table)
        old = rows.get(namespace, name)
        record = self._next_record(obj)
        rows.put(namespace, name, record)
        self._record("ADDED" if old is None else "MODIFIED", table, record, old)
        return record

    def remove(self, table: str, namespace: str, name: str) -> StoredObject:
        """Take an object out. The record returned is its last state at the revision of the removal."""
        rows = self.table(table)
        old = rows.get(namespace, name)
        if old is None:
            raise KeyError((table, namespace, name))
        record = self._next_record(old.object)
        rows.remove(namespace, name)
        self._record("DELETED", table, record, old)
        return record

    def listen(self, listener: Listener, *, durable: bool = False) -> Callable[[], None]:
        """Call the listener with every change from now on, in order. The function returned ends it."""
        listeners = self._durable_listeners if durable else self._listeners
        listeners.append(listener)

        def stop() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return stop

    def compact(self, *, keep: int = 0) -> None:
        """Forget the history but for the newest changes of each table, whatever their age."""
        for table in self._tables.values():
            table.compact(keep=keep, newer_than=float("-inf"))
        if keep == 0:
            self._floor = self.revision
            for table in self._tables.values():
                table.floor = self.revision

    def _next_record(self, obj: Object) -> StoredObject:
        self.revision = revision = self.revision + 1
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
        return StoredObject(stamped, revision, _encode(stamped))

    def _record(self, kind: ChangeType, table: str, record: StoredObject, old: StoredObject | None) -> None:
        now = self._clock()
        change = StoredChange(kind, table, record, old, now)
        rows = self._tables[table]
        rows.history.append(change)
        rows.compact(keep=self._history, newer_than=now - self._history_seconds)
        self._persist(change)
        self._undelivered.append(change)
        if self._telling:
            return
        # A listener may write in turn; all listeners learn of that after the change at hand.
        self._telling = True
        try:
            while self._undelivered:
                self._notify(self._undelivered.popleft())
        finally:
            self._telling = False

    def _notify(self, change: StoredChange) -> None:
        for listener in tuple(self._listeners):
            listener(change)
        self._became_durable(change)

    def _became_durable(self, change: StoredChange) -> None:
        for listener in tuple(self._durable_listeners):
            listener(change)

    def _persist(self, change: StoredChange) -> None:
        """Nothing to do in memory."""
