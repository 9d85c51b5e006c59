"""How long the extension points of an attempt took. An attempt without a stopwatch, as in simulations, pays nothing."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any, TypeVar

from kubesched.framework.status import Code, Status

T = TypeVar("T")

Lap = tuple[str, str, float]
"""An extension point: its name, the name of the status it ended with, and how many seconds it took."""

PluginLap = tuple[str, str, str, float]
"""One plugin, by its name, in an extension point: otherwise as `Lap`."""

_SUCCESS = str(Code.SUCCESS)


class Stopwatch:
    """Runs along with one attempt. `clock` gives seconds."""

    __slots__ = ("_clock", "_since", "is_detailed", "laps", "plugin_laps", "started")

    def __init__(self, clock: Callable[[], float], *, is_detailed: bool = False) -> None:
        """Only a detailed one measures plugins one by one."""
        self._clock = clock
        self.is_detailed = is_detailed
        self.laps: list[Lap] = []
        self.plugin_laps: list[PluginLap] = []
        self.started = self._since = clock()

    def elapsed(self) -> float:
        """Seconds since the attempt began."""
        return self._clock() - self.started

    def start(self) -> None:
        """The time since the last lap belongs to no extension point."""
        self._since = self._clock()

    def restart(self) -> None:
        """The attempt is decided anew: the laps so far do not count. `started` stays."""
        self.laps.clear()
        self.plugin_laps.clear()
        self.start()

    def lap(self, point: str, status: Status | None = None) -> None:
        """An extension point has ended."""
        now = self._clock()
        self.laps.append((point, _SUCCESS if status is None else str(status.code), now - self._since))
        self._since = now

    def timed(self, plugin: str, point: str, method: Callable[..., T], *args: Any) -> T:
        """The answer of one plugin, measured."""
        before = self._clock()
        answer = method(*args)
        self._note(plugin, point, answer, before)
        return answer

    async def timed_wait(self, plugin: str, point: str, method: Callable[..., Any], *args: Any) -> Any:
        """The answer of one plugin that may wait, measured."""
        before = self._clock()
        answer = method(*args)
        if isawaitable(answer):
            answer = await answer
        self._note(plugin, point, answer, before)
        return answer

    def _note(self, plugin: str, point: str, answer: object, before: float) -> None:
        parts = answer if isinstance(answer, tuple) else (answer,)
        status = next((str(part.code) for part in parts if isinstance(part, Status)), _SUCCESS)
        self.plugin_laps.append((plugin, point, status, self._clock() - before))
