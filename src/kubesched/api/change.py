"""One change of one object, from the watch to the cache: what the object was, and what it is now."""

from __future__ import annotations

from typing import Generic, Literal, NamedTuple, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Change(NamedTuple, Generic[T_co]):
    """`new` was added if there is no `old`, `old` was deleted if there is no `new`; else `old` became `new`."""

    old: T_co | None = None
    new: T_co | None = None

    @property
    def obj(self) -> T_co:
        """The object as it is; as it last was, if it is gone."""
        obj = self.old if self.new is None else self.new
        assert obj is not None
        return obj

    @property
    def verb(self) -> Literal["added", "updated", "deleted"]:
        """What happened to the object."""
        if self.old is None:
            return "added"
        return "deleted" if self.new is None else "updated"
