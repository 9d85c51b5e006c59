"""Claims and volumes as the scheduler has decided them to be, until the watch has something newer to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kubesched.api.meta import KubeObject
from kubesched.state.objects import ObjectStore

K = TypeVar("K", bound=KubeObject)


class Assumed(Generic[K]):
    """Objects of one kind with assumed changes laid over them. The store itself stays what the watch said."""

    def __init__(self, kind: type[K], objects: ObjectStore, on_change: Callable[[str], object] | None = None) -> None:
        self._kind = kind
        self._objects = objects
        self._assumed: dict[str, K] = {}
        self._seen = 0
        self._on_change = on_change
        """Called with the name of an object when something is assumed of it, or no longer is."""

    def get(self, name: str, namespace: str = "") -> K | None:
        """The object as assumed, or else as last seen; None if it does not exist."""
        stored = self._objects.get(self._kind, name, namespace)
        return None if stored is None else self.current(stored)

    def current(self, stored: K) -> K:
        """What is assumed of an object from the store, unless the store has a newer version of it."""
        self.expire()
        return self._assumed.get(stored.key, stored)

    def assume(self, obj: K) -> None:
        self._assumed[obj.key] = obj
        self._notify(obj)

    def restore(self, obj: K) -> None:
        """Take an assumption back, if it is still the one that was made."""
        if self._assumed.get(obj.key) is obj:
            del self._assumed[obj.key]
            self._notify(obj)

    def expire(self) -> None:
        """Drop what the watch has overtaken."""
        version = self._objects.version(self._kind)
        if version == self._seen:
            return
        self._seen = version
        for key, assumed in list(self._assumed.items()):
            stored = self._objects.get(self._kind, assumed.name, assumed.namespace)
            if stored is None or stored.metadata.resource_version != assumed.metadata.resource_version:
                del self._assumed[key]
                self._notify(assumed)

    def _notify(self, obj: K) -> None:
        if self._on_change is not None:
            self._on_change(obj.name)
