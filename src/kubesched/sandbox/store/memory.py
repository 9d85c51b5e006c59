"""The store in memory: a write is one step, and listeners get every step in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import msgspec

from kubesched.api.kinds import Object
from kubesched.sandbox.store.records import ChangeType, StoredChange, StoredObject, Table, key_of

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
