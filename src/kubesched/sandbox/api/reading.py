"""Reading the API: objects and lists of them, and hearing of every change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from kubesched.api.api_error import not_found
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, Object, Resource
from kubesched.sandbox.api.catalog import Catalog, table_of
from kubesched.sandbox.api.selecting import ALL, Selection, selection
from kubesched.sandbox.api.stamps import Stamps
from kubesched.sandbox.store import Change, Record, Store


class Event(msgspec.Struct, frozen=True, gc=False):
    """What happened to one object. A deletion carries the last state, at the revision of the deletion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: Resource
    object: Object
    old: Object | None
    revision: int


class Reading:
    """What is stored, as the resources show it."""

    def __init__(self, store: Store, stamps: Stamps | None = None) -> None:
        self.store = store
        self.stamps = stamps or Stamps()
        self.catalog = Catalog()
        for record in store.table(table_of(CUSTOM_RESOURCE_DEFINITIONS)).ordered():
            self.catalog.define(record.object)

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        record = self.record(resource, namespace, name)
        return None if record is None else self._shown(resource, record.object)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        obj = self.find(resource, namespace, name)
        if obj is None:
            raise not_found(resource, name)
        return obj

    def select(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        """The objects of one namespace, or of all, in the order of their names."""
        wanted = selection(resource, labels, fields)
        return [self._shown(resource, record.object) for record in self.records(resource, namespace, wanted)]

    def record(self, resource: Resource, namespace: str, name: str) -> Record | None:
        return self.store.table(table_of(resource)).get(namespace, name)

    def records(self, resource: Resource, namespace: str | None = None, wanted: Selection = ALL) -> list[Record]:
        """What `select` finds, as it is stored."""
        table = self.store.table(table_of(resource))
        if wanted.is_everything:
            return list(table.ordered(namespace))
        space = wanted.namespace if namespace is None else namespace
        if wanted.name is not None and (space is not None or not resource.namespaced):
            record = table.get(space or "", wanted.name)
            return [record] if record is not None and wanted.matches(record.object) else []
        return [record for record in table.ordered(space) if wanted.matches(record.object)]

    def subscribe(
        self, resources: Iterable[Resource], on_event: Callable[[Event], None], *, replay: bool = True
    ) -> Callable[[], None]:
        """Hear of every change of these resources at once, and first of what is there. Returns how to stop."""
        by_table: dict[str, list[Resource]] = {}
        for resource in resources:
            by_table.setdefault(table_of(resource), []).append(resource)
        since = self.store.revision

        def tell(change: Change) -> None:
            if change.revision > since and change.table in by_table:
                for resource in by_table[change.table]:
                    on_event(self.event(resource, change))

        stop = self.store.listen(tell)
        if replay:
            for resource in [resource for listed in by_table.values() for resource in listed]:
                for record in self.records(resource):
                    on_event(Event("ADDED", resource, self._shown(resource, record.object), None, record.revision))
        return stop

    def event(self, resource: Resource, change: Change) -> Event:
        """A change of the store as one of a resource."""
        old = None if change.old is None else self._shown(resource, change.old.object)
        return Event(change.type, resource, self._shown(resource, change.record.object), old, change.revision)

    def _shown(self, resource: Resource, obj: Object) -> Object:
        view = self.catalog.view(resource)
        return obj if view is None else view.shown(obj)
