"""The objects that a reflector's handler knows: every event becomes the changes that keep them consistent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Generic, TypeVar

from kubesched.api.change import Change
from kubesched.kube.decoding import Codec, Identity

T = TypeVar("T")

MOST_TOMBSTONES = 4096  # deletions remembered; only events that are reordered need them, so the last ones will do


class KnownObjects(Generic[T]):
    """Objects by key. Duplicates and events older than what is known change nothing.

    An object with another uid under the same name is another object: the first is deleted, then the second added.
    A deletion is reported with the object that was last reported, so that a handler can take back what it did.
    """

    def __init__(self, codec: Codec[T]) -> None:
        self._codec = codec
        self._objects: dict[str, T] = {}
        self._tombstones: dict[str, int] = {}  # by key, the version at which something of that name was deleted
        self.unreadable: set[str] = set()
        """Objects whose newest version could not be read. The handler knows an older one of them, or none."""

    @property
    def objects(self) -> Mapping[str, T]:
        return self._objects

    def put(self, obj: T, identity: Identity) -> Sequence[Change[T]]:
        """The object exists in this version: what that changes."""
        key, uid, version = identity
        if self.unreadable:
            self.unreadable.discard(key)
        known = self._objects.get(key)
        if known is None:
            known_uid, newest = uid, self._tombstones.get(key, 0)
        else:
            _, known_uid, newest = self._codec.identity(known)
        if version and version <= newest:
            return ()
        self._objects[key] = obj
        return (Change(known, obj),) if uid == known_uid else (Change(old=known), Change(new=obj))

    def delete(self, identity: Identity) -> Sequence[Change[T]]:
        """The object was deleted, or no longer matches the selectors."""
        key, uid, version = identity
        self.unreadable.discard(key)
        known = self._objects.get(key)
        if known is not None:
            _, known_uid, known_version = self._codec.identity(known)
            is_older = version < known_version if uid == known_uid else version <= known_version
            if version and is_older:
                return ()
            del self._objects[key]
        self._remember_deletion(key, version)
        return () if known is None else (Change(old=known),)

    def replace(self, truth: Mapping[str, T], unreadable: Set[str] = frozenset()) -> Iterator[Change[T]]:
        """All objects of a list: what it lacks is deleted, even if the server forgot its past and counts anew.

        Objects that cannot be read exist all the same: what was known of them stays. Take all changes: each is made
        only when it is taken.
        """
        self._tombstones.clear()
        self.unreadable = set(unreadable)
        for key in [key for key in self._objects if key not in truth and key not in unreadable]:
            yield Change(old=self._objects.pop(key))
        for key, obj in truth.items():
            known = self._objects.get(key)
            if known is not None:
                before, after = self._codec.identity(known), self._codec.identity(obj)
                if before == after and after.version:
                    continue
                if before.uid != after.uid:
                    yield Change(old=self._objects.pop(key))
                    known = None
            self._objects[key] = obj
            yield Change(known, obj)

    def _remember_deletion(self, key: str, version: int) -> None:
        self._tombstones[key] = max(version, self._tombstones.pop(key, 0))
        if len(self._tombstones) > MOST_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]
