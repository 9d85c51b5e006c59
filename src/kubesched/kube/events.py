"""Events for people, written on the side: repeats become series, the queue is bounded, nothing here slows others."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from kubesched.api.kinds import EVENTS
from kubesched.kube.client import STRATEGIC_MERGE_PATCH
from kubesched.kube.errors import ApiStatusError, KubeError
from kubesched.kube.event_record import (
    Event,
    EventSeries,
    EventType,
    ObjectReference,
    micro_time,
    new_event,
    shortened,
)
from kubesched.kube.observer import QueueObserver

CAPACITY = 20_000
"""Events that may wait to be written, about a kilobyte each. client-go drops what is beyond 1,000; here pods are bound
faster than an API server writes events, and those of a burst of 10,000 pods should all be written a little later."""
# client-go's figures:
MOST_TRIES = 12
RETRY_PAUSE = 10.0
SERIES_END = 6 * 60.0  # seconds without a repeat
REFRESH = 30 * 60.0  # seconds between writes of a series that goes on

TEND_EVERY = 60.0
"""Seconds between two looks for series that ended: what is remembered for a repeat is most of what a recorder holds."""

WRITERS = 16
MOST_REMEMBERED = 10_000  # events that a repeat could join: the last ones, because most events never repeat

_encoder = msgspec.json.Encoder()
log = logging.getLogger(__name__)

Key = tuple[ObjectReference | str | None, ...]


class EventSink(Protocol):
    """What is needed of a client."""

    async def post(self, path: str, body: bytes) -> bytes: ...

    async def patch(self, path: str, body: bytes, *, content_type: str) -> bytes: ...


@dataclass(slots=True)
class _Remembered:
    """An event that was written, and its repeats since."""

    event: Event
    last_seen: float
    count: int = 1
    written_count: int = 0
    written_at: float = 0.0
    is_queued: bool = False
    queued_at: float = 0.0

    @property
    def is_behind(self) -> bool:
        """There were repeats that have not been written yet."""
        return self.count > self.written_count


class EventRecorder:
    """`record` never waits and never fails; `run` writes. What the queue has no room for is dropped and counted."""

    def __init__(
        self,
        sink: EventSink,
        controller: str,
        *,
        instance: str = "",
        observer: QueueObserver | None = None,
        capacity: int = CAPACITY,
        writers: int = WRITERS,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`controller` is the name of the scheduler that reports."""
        self.dropped = 0
        self.failed = 0
        """Events that the server did not take."""
        self._sink = sink
        self._observer = observer or QueueObserver()
        self._controller = controller
        self._instance = instance or f"{controller}-{socket.gethostname()}"
        self._capacity = capacity
        self._writers = writers
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._chance = chance
        self._queue: asyncio.Queue[_Remembered] = asyncio.Queue()
        self._known: dict[Key, _Remembered] = {}
        self._is_closing = False

    def record(
        self,
        regarding: ObjectReference,
        *,
        related: ObjectReference | None = None,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        controller: str = "",
    ) -> None:
        """Write an event. Repeats within six minutes are counted on the first event."""
        controller = controller or self._controller
        note = shortened(note)  # also what is remembered: a note may quote what is odd about an object, at any length
        # The note is part of what makes two events the same, the resourceVersion of the object is not: upstream has it
        # the other way round, to nearly the same effect, because a new message comes with a new status of the pod.
        key = (
            regarding.uid or regarding.name,
            regarding.namespace,
            regarding.kind,
            related and related.uid,
            type,
            reason,
            action,
            note,
            controller,
        )
        known, now = self._known.get(key), self._clock()
        if known is not None and now - known.last_seen < SERIES_END:
            known.count += 1
            known.last_seen = now
            self._known[key] = self._known.pop(key)  # to the end: the first are forgotten first
            if known.count == 2:
                self._enqueue(known)
            return
        if self._queue.qsize() >= self._capacity:
            self.dropped += 1
            return
        instance = self._instance if controller == self._controller else f"{controller}-{socket.gethostname()}"
        event = new_event(
            regarding,
            related=related,
            type=type,
            reason=reason,
            action=action,
            note=note,
            controller=controller,
            instance=instance,
            nanoseconds=self._wall_clock(),
        )
        remembered = _Remembered(event, last_seen=now)
        self._known[key] = remembered
        self._enqueue(remembered)
        if len(self._known) > MOST_REMEMBERED:
            self._forget(next(iter(self._known)))

    async def run(self) -> None:
        """Write until cancelled. Call `flush` after stopping it."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._writers):
                group.create_task(self._write_all())
            group.create_task(self._tend_series())

    async def flush(self, seconds: float) -> None:
        """Write what is queued and the last counts of all series, for as long as that time allows."""
        self._is_closing = True
        for series in self._known.values():
            if series.is_behind:
                self._enqueue(series)
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                for _ in range(self._writers):
                    group.create_task(self._write_rest())
        except TimeoutError:
            log.warning("%d events could not be written in time", self._queue.qsize())
            self.dropped += self._queue.qsize()
            self._queue = asyncio.Queue()

    def _enqueue(self, remembered: _Remembered) -> None:
        if remembered.is_queued:
            return
        if self._queue.qsize() >= self._capacity and not self._is_closing:
            self.dropped += 1
            return
        remembered.is_queued = True
        remembered.queued_at = self._clock()
        self._queue.put_nowait(remembered)
        self._observer.added(self._queue.qsize())

    async def _write_all(self) -> None:
        """One of the writers, for ever."""
        while True:
            await self._take(await self._queue.get())

    async def _write_rest(self) -> None:
        while not self._queue.empty():
            await self._take(self._queue.get_nowait())

    async def _take(self, remembered: _Remembered) -> None:
        remembered.is_queued = False
        taken_at = self._clock()
        self._observer.taken(self._queue.qsize(), taken_at - remembered.queued_at)
        await self._write(remembered)
        self._observer.done(self._clock() - taken_at)

    async def _write(self, remembered: _Remembered) -> None:
        try:
            for attempt in range(MOST_TRIES):
                if attempt:
                    if self._is_closing:
                        break
                    self._observer.retried()
                    await self._sleep(RETRY_PAUSE * (1 + 0.25 * self._chance()))
                if await self._is_over_with(remembered):
                    return
        except asyncio.CancelledError:
            remembered.is_queued = True
            self._queue.put_nowait(remembered)  # for `flush`; written twice, it is still one event
            raise
        self.failed += 1
        log.error("Unable to write event (retry limit exceeded!): %s", remembered.event.metadata.name)

    async def _is_over_with(self, remembered: _Remembered) -> bool:
        """Try once. False if it is worth another try."""
        count = remembered.count
        try:
            await self._write_once(remembered, count)
        except ApiStatusError as error:
            if error.reason == "AlreadyExists":  # an earlier try came through after all
                remembered.written_count = max(1, remembered.written_count)
                return remembered.written_count >= count
            log.error("Server rejected event (will not retry!): %s", error)
            self.failed += 1
            return True
        except KubeError as error:
            log.error("Unable to write event (may retry after sleeping): %s", error)
            return False
        remembered.written_count = count
        remembered.written_at = self._clock()
        return True

    async def _write_once(self, remembered: _Remembered, count: int) -> None:
        event = remembered.event
        path = EVENTS.path_of(namespace=event.metadata.namespace)
        if count > 1:
            seen = self._wall_clock() / 1e9 - (self._clock() - remembered.last_seen)
            series = EventSeries(count, micro_time(seen))
            if remembered.written_count:
                patch = _encoder.encode({"series": series})
                try:
                    await self._sink.patch(f"{path}/{event.metadata.name}", patch, content_type=STRATEGIC_MERGE_PATCH)
                    return
                except ApiStatusError as error:
                    if error.code != 404:  # events live an hour or so: then it is created anew
                        raise
            event = msgspec.structs.replace(event, series=series)
        await self._sink.post(path, _encoder.encode(event))

    async def _tend_series(self) -> None:
        """End series that had no repeat for a while; write down how far the others are."""
        while True:
            await self._sleep(TEND_EVERY)
            now = self._clock()
            for key, remembered in list(self._known.items()):
                if now - remembered.last_seen >= SERIES_END:
                    self._forget(key)
                elif remembered.is_behind and now - remembered.written_at >= REFRESH:
                    self._enqueue(remembered)

    def _forget(self, key: Key) -> None:
        remembered = self._known.pop(key)
        if remembered.is_behind:
            self._enqueue(remembered)
