"""The parts of an attempt that is traced: its stopwatch keeps when they began and ended, calls for it among them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

from opentelemetry.trace import Span

from kubesched.api.pod import Pod
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.client import WrappedClient
from kubesched.framework.status import Code, Status
from kubesched.framework.stopwatch import Stopwatch

T = TypeVar("T")

NOTABLE = 0.0001
"""Seconds from which on a plugin has a span of its own."""


class AttemptPart(NamedTuple):
    """A phase, a plugin or a call, which becomes a span. Moments are those of the stopwatch."""

    started: float
    ended: float
    name: str
    attributes: dict[str, str]
    error: str = ""
    is_call: bool = False
    """To the API server or to an extender: nothing is part of it."""


class TracedStopwatch(Stopwatch):
    """Measures all that a detailed stopwatch does, and keeps when it was."""

    __slots__ = ("_began_ns", "parts", "span")

    def __init__(self, clock: Callable[[], float], span: Span, began_ns: int) -> None:
        """`began_ns` is the time of day, in nanoseconds, at which the attempt began."""
        super().__init__(clock, is_detailed=True)
        self.span = span
        self.parts: list[AttemptPart] = []
        self._began_ns = began_ns

    def nanoseconds(self, moment: float) -> int:
        """The time of day at a moment of the stopwatch."""
        return self._began_ns + int((moment - self.started) * 1e9)

    def restart(self) -> None:
        """The calls stay: extenders are asked before an attempt is decided anew."""
        super().restart()
        self.parts = [part for part in self.parts if part.is_call]

    def lap(self, point: str, status: Status | None = None) -> None:
        super().lap(point, status)
        _, code, seconds = self.laps[-1]
        error = status.message if status is not None and status.code is Code.ERROR else ""
        self.parts.append(AttemptPart(self._since - seconds, self._since, point, {"kubesched.status": code}, error))

    def _note(self, plugin: str, point: str, answer: object, before: float) -> None:
        super()._note(plugin, point, answer, before)
        *_, code, seconds = self.plugin_laps[-1]
        if seconds >= NOTABLE:
            attributes = {"kubesched.plugin": plugin, "kubesched.status": code}
            self.parts.append(AttemptPart(before, before + seconds, f"{point}/{plugin}", attributes))

    async def timed_call(self, name: str, attributes: dict[str, str], call: Coroutine[Any, Any, T]) -> T:
        """The answer to a call, measured."""
        before, error = self._clock(), ""
        try:
            return await call
        except BaseException as failure:  # a task that is cancelled among them
            error = str(failure) or type(failure).__name__
            raise
        finally:
            self.parts.append(AttemptPart(before, self._clock(), name, attributes, error, is_call=True))


CURRENT = ContextVar[TracedStopwatch | None]("kubesched-traced-attempt", default=None)
"""The stopwatch of the attempt that the running task works for, if that is traced."""


class TracedClient(WrappedClient):
    """A client whose calls are parts of the attempt that the running task works for."""

    async def _call(self, verb: str, obj: str, call: Coroutine[Any, Any, T], body: Any = None) -> T:
        if (watch := CURRENT.get()) is not None:
            call = watch.timed_call(f"{verb} {obj.partition(' ')[0]}", {"kubesched.object": obj}, call)
        return await call


def trace_extender(extender: HTTPExtender, under_way: Mapping[str, TracedStopwatch]) -> None:
    """From now on, what it is asked is part of the attempt at the pod in question, if one is `under_way` at its key."""

    async def ask(verb: str, method: Callable[[Pod, Any], Coroutine[Any, Any, T]], pod: Pod, about: Any) -> T:
        watch, call = under_way.get(pod.key), method(pod, about)
        CURRENT.set(watch)  # this task asks about this pod alone
        if watch is not None:
            call = watch.timed_call(f"{verb} Extender", {"kubesched.extender": extender.name}, call)
        return await call

    for verb in ("filter", "prioritize", "process_preemption", "bind"):
        setattr(extender, verb, partial(ask, verb, getattr(extender, verb)))
