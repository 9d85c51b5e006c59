"""How the page gets at what it shows: on the event loop where it is served, or in the thread of a scheduler at work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from kubesched.ui.views import Views

_SAMPLE_SECONDS = 1.0

T = TypeVar("T")


class Shown(Protocol):
    """Views, which are to be touched only where the cluster lives: so questions are handed over."""

    async def ask(self, question: Callable[[Views], T]) -> T:
        """The answer to a question, asked between two things that happen to the cluster."""

    def looking(self) -> AbstractContextManager[None]:
        """As long as it lasts somebody looks, and what happens is measured."""


class Here:
    """A cluster that lives on this event loop."""

    def __init__(self, views: Callable[[], Views]) -> None:
        """`views` are those of the moment: of a recording, others after a step back."""
        self._views = views

    async def ask(self, question: Callable[[Views], T]) -> T:
        return question(self._views())

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        log = self._views().observed.log
        if log is None:
            yield
            return
        log.viewers += 1
        try:
            yield
        finally:
            log.viewers -= 1


async def keep_sampling(shown: Shown) -> None:
    """Note every second who is where in the queue, for ever."""
    while True:
        await shown.ask(lambda views: views.queue.sample())
        await asyncio.sleep(_SAMPLE_SECONDS)
