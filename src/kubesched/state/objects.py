"""Everything that is not a node or a pod, by kind and name: namespaces, services, owners, claims, volumes, budgets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from kubesched.api.meta import KubeObject
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.state.changes import ChangeLog

K = TypeVar("K", bound=KubeObject)

_NO_OBJECTS: dict[str, KubeObject] = {}
_STATUS_IGNORED = frozenset((Service, ReplicationController, ReplicaSet, StatefulSet))
"""Services and workloads. Their status changes with every pod that starts: `version` ignores that."""


class ObjectStore:
    """Objects as last seen. `version(kind)` changes whenever an object of the kind does, `changes(kind)` says which."""

    def __init__(self) -> None:
        self._objects: dict[type[KubeObject], dict[str, KubeObject]] = {}
        self._in_namespace: dict[tuple[type[KubeObject], str], dict[str, KubeObject]] = {}
        self._changes: dict[type[KubeObject], ChangeLog[str]] = {}
        self.version_of_all = 0

    def put(self, obj: KubeObject) -> None:
        kind, key = type(obj), obj.key
        objects = self._objects.setdefault(kind, {})
        known = objects.get(key)
        objects[key] = self._in_namespace.setdefault((kind, obj.namespace), {})[obj.name] = obj
        if known is None or kind not in _STATUS_IGNORED or not obj.only_version_differs(known):
            self._changed(kind, key)

    def remove(self, obj: KubeObject) -> None:
        kind = type(obj)
        if self._objects.get(kind, {}).pop(obj.key, None) is not None:
            self._in_namespace[kind, obj.namespace].pop(obj.name, None)
            self._changed(kind, obj.key)

    def arrange(self, kind: type[KubeObject], keys: Iterable[str]) -> None:
        """Put the objects of a kind in this order, which they had before some of them left and came back."""
        objects = self._objects[kind]
        self._objects[kind] = arranged = {key: objects[key] for key in keys}
        for namespace in {obj.namespace for obj in arranged.values()}:
            self._in_namespace[kind, namespace] = {}
        for obj in arranged.values():
            self._in_namespace[kind, obj.namespace][obj.name] = obj

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """The object of this kind and name, if it is known."""
        key = f"{namespace}/{name}" if namespace else name
        return self._objects.get(kind, {}).get(key)  # type: ignore[return-value]

    def __iter__(self) -> Iterator[KubeObject]:
        """All objects of all kinds."""
        return (obj for objects in self._objects.values() for obj in objects.values())

    def all(self, kind: type[K]) -> Collection[K]:
        """All objects of a kind, in order of arrival."""
        return self._objects.get(kind, _NO_OBJECTS).values()  # type: ignore[return-value]

    def in_namespace(self, kind: type[K], namespace: str) -> Collection[K]:
        """All objects of a kind in a namespace, in order of arrival."""
        return self._in_namespace.get((kind, namespace), _NO_OBJECTS).values()  # type: ignore[return-value]

    def version(self, kind: type[KubeObject]) -> int:
        changes = self._changes.get(kind)
        return changes.position if changes is not None else 0

    def _changed(self, kind: type[KubeObject], key: str) -> None:
        self.version_of_all += 1
        self.changes(kind).record(key)

    def changes(self, kind: type[KubeObject]) -> ChangeLog[str]:
        """The keys of objects of a kind that came, changed or went."""
        changes = self._changes.get(kind)
        if changes is None:
            changes = self._changes[kind] = ChangeLog()
        return changes
