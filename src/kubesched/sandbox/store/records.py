"""What a store holds: records of objects, the changes that led there, and tables of both."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
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
        return history[bisect_right(history, revision, key=_revision_of) :]

    def as_of(self, revision: int) -> list[StoredObject]:
        """The records as they were at a revision, in the order of their keys."""
        state = {_key_of(record): record for record in self.ordered()}
        for change in reversed(self.changes_after(revision)):
            key = _key_of(change.record)
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


def _key_of(record: StoredObject) -> Key:
    return key_of(record.object)


def _revision_of(change: StoredChange) -> int:
    return change.revision
