"""Time travel: a recording replayed up to any moment, and the page of the cluster as it was then."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from kubesched.framework.registry import Registry
from kubesched.scheduler.replay import Replay, ReplayError
from kubesched.ui.sources import observe_scheduler
from kubesched.ui.views import PageViews

_BINS = 240
_SAMPLES = 800
_AT_A_TIME = 100
"""Entries that are replayed before others get their turn on the event loop."""


class _Moment(msgspec.Struct):
    t: float = 0.0
    what: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording at a glance, and the moment that is shown."""

    begin: float
    end: float
    now: float
    decisions: tuple[int, ...]
    """How many there were in each part of the time, parts of equal length."""
    differences: int
    """How often, until now, this version went another way than the recording."""


class TimeTravel:
    """One recording and one moment of it, which all pages that are open share.

    Forward, the replay goes on; backward, it begins anew, since what a scheduler knows has no way back.
    """

    def __init__(self, lines: Sequence[str], title: str, plugins: Registry) -> None:
        """ReplayError if it is no recording."""
        self._lines = lines
        self._title = title
        self._plugins = plugins
        self._lock = asyncio.Lock()
        times = list(_times(lines[1:]))
        self.begin, self.end = (times[0].t, max(moment.t for moment in times)) if times else (0.0, 0.0)
        self._bins = self._per_bin(moment.t for moment in times if moment.what == "decide")
        self.now = self.begin
        self._every = max((self.end - self.begin) / _SAMPLES, 1e-3)
        self._start()

    def timeline(self) -> Timeline:
        return Timeline(self.begin, self.end, self.now, self._bins, len(self._replay.differences))

    async def go(self, moment: float) -> Timeline:
        """To a moment, everything included that happened at it. ReplayError if the recording cannot be read on."""
        moment = min(max(moment, self.begin), self.end)
        async with self._lock:
            if moment < self.now:
                if self.views.service is not None:
                    self.views.service.close()
                self._start()
            steps = 0
            while self._next is not None and self._next <= moment:
                self._step()
                steps += 1
                if steps % _AT_A_TIME == 0:
                    await asyncio.sleep(0)
            self._pass_until(moment)
            return self.timeline()

    def _start(self) -> None:
        """Before the first entry, with a scheduler that knows nothing."""
        self.now = self.begin
        self._sampled = self.begin
        self._replay = Replay(self._lines, self._plugins)
        observed = observe_scheduler(
            self._replay.scheduler,
            self._replay.configuration,
            kind="recording",
            title=self._title,
            clock=lambda: self.now,
            plugins=self._plugins,
            measures=False,
        )
        self.views = PageViews(observed)
        self._steps = self._replay.steps()
        self._next = next(self._steps, None)

    def _step(self) -> None:
        assert self._next is not None
        self._pass_until(self._next)
        self._next = next(self._steps, None)

    def _pass_until(self, moment: float) -> None:
        """Samples of the queue are taken on the way, as with an open page."""
        while self._sampled <= moment:
            self.now = max(self.now, self._sampled)
            self.views.queue.sample()
            self._sampled += self._every
        self.now = max(self.now, moment)

    def _per_bin(self, times: Iterable[float]) -> tuple[int, ...]:
        """How many of the times are in each part of the recording."""
        width = (self.end - self.begin) / _BINS or 1.0
        counts = Counter(min(int((time - self.begin) / width), _BINS - 1) for time in times)
        return tuple(counts[i] for i in range(_BINS))


def _times(lines: Sequence[str]) -> Iterator[_Moment]:
    for number, line in enumerate(lines, start=2):
        try:
            yield msgspec.json.decode(line, type=_Moment)
        except msgspec.DecodeError as error:
            raise ReplayError(f"line {number}: {error}") from error
