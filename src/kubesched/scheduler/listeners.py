"""The listeners of a scheduler as one, which tells each only of what it listens to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubesched.scheduler.listener import SchedulerListener

_HOOKS = [name for name in vars(SchedulerListener) if not name.startswith("_")]
_STANDS_FOR = {"held_back": ("pre_enqueued", "moved")}
"""Batched hooks, and the per-pod hooks that they fall back to."""


class Listeners(SchedulerListener):
    """What it is told, it tells its listeners, in the order in which they came.

    A dozen hooks are called for every pod, and every listener overrides a few: so each hook has a list of its own.
    """

    def __init__(self, listeners: Iterable[SchedulerListener] = ()) -> None:
        self._all = list(listeners)
        self._find_hearers()

    def append(self, *listeners: SchedulerListener) -> None:
        self._all += listeners
        self._find_hearers()

    def remove(self, listener: SchedulerListener) -> None:
        self._all.remove(listener)
        self._find_hearers()

    def __iter__(self) -> Iterator[SchedulerListener]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _find_hearers(self) -> None:
        for hook in _HOOKS:
            setattr(self, hook, _all_of([getattr(each, hook) for each in self._all if _hears(each, hook)]))


def _hears(listener: SchedulerListener, hook: str) -> bool:
    names = (hook, *_STANDS_FOR.get(hook, ()))
    return any(getattr(type(listener), name) is not getattr(SchedulerListener, name) for name in names)


def _all_of(hearers: list[Callable[..., None]]) -> Callable[..., None]:
    """All of these, one after another."""
    if len(hearers) == 1:
        return hearers[0]

    def tell(*what: Any) -> None:
        for hear in hearers:
            hear(*what)

    return tell
