"""Writes Events on the side: repeats become series, the queue is bounded, no binding waits for an Event."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import msgspec

from kubesched.api.kinds import EVENTS
from kubesched.kube.client import STRATEGIC_MERGE_PATCH, Answered
from kubesched.kube.errors import ApiStatusError, KubeError
from kubesched.kube.event_record import (
    EventRecord,
    EventReference,
    EventSeries,
    EventType,
    micro_time,
    new_event,
    shortened,
)
from kubesched.kube.observer import QueueObserver
from kubesched.kube.timing import REAL_TIME, Timing

CAPACITY = 20_000
"""Events that may wait to be written, about a kilobyte each. client-go drops what is beyond 1,000; here pods are bound
faster than an API server writes events, and those of a burst of 10,000 pods should all be written a little later."""
# client-go's figures:
MOST_TRIES = 12
RETRY_PAUSE = 10.0
SERIES_END = 6 * 60.0  # seconds without a repeat
REFRESH = 30 * 60.0  # seconds between writes of a series that goes on

TEND_EVERY = 60.0
"""Seconds between two looks for series that ended: entries that wait for a repeat are most of a recorder's memory."""

WRITERS = 16
MOST_REMEMBERED = 10_000  # events that a repeat could join: the last ones, because most events never repeat

_encoder = msgspec.json.Encoder()
log = logging.getLogger(__name__)

Key = tuple[EventReference | str | None, ...]


class EventSink(Protocol):
    """The methods of a client that the recorder calls."""

    def post(self, path: str, body: bytes) -> Answered: ...

    def patch(self, path: str, body: bytes, *, content_type: str) -> Answered: ...


@dataclass(slots=True)
class _Entry:
    """An event that was recorded, and its repeats since."""

    event: EventRecord
    last_seen: float
    count: int = 1
    written_count: int = 0
    written_at: float = 0.0
    is_queued: bool = False
    queued_at: float = 0.0

    @property
    def is_behind(self) -> bool:
        """Whether there were repeats that have not been written yet."""
        return self.count > self.written_count


class EventRecorder:
    """`record` never waits and never fails; `run` writes. Events beyond the capacity are dropped and counted."""

    def __init__(
        self,
        sink: EventSink,
        controller: str,
        *,
        instance: str = "",
        observer: QueueObserver | None = None,
        capacity: int = CAPACITY,
        writers: int = WRITERS,
        timing: Timing = REAL_TIME,
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
        self._clock = timing.clock
        self._wall_clock = timing.wall_clock
        self._sleep = timing.sleep
        self._chance = timing.chance
        self._queue: deque[_Entry] = deque()
        self._idle: list[asyncio.Future[None]] = []
        """Writers that wait for more. The last to wait is the first to go on: its memory is still in the caches."""
        self._entries: dict[Key, _Entry] = {}
        self._is_closing = False

    def record(
        self,
        regarding: EventReference,
        *,
        related: EventReference | None = None,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        controller: str = "",
    ) -> None:
        """Write an event. Repeats within six minutes are counted on the first event."""
        controller = controller or self._controller
        note = shortened(note)  # also in the key: a note may quote any part of an object, at any length
        # Events are repeats if their notes are equal, whatever the resourceVersion of the object. client-go compares
        # the resourceVersion and not the note, to nearly the same effect: a new note comes with a new status.
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
        entry, now = self._entries.get(key), self._clock()
        if entry is not None and now - entry.last_seen < SERIES_END:
            entry.count += 1
            entry.last_seen = now
            self._entries[key] = self._entries.pop(key)  # to the end: the first are forgotten first
            if entry.count == 2:
                self._enqueue(entry)
            return
        if len(self._queue) >= self._capacity:
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
        entry = _Entry(event, last_seen=now)
        self._entries[key] = entry
        self._enqueue(entry)
        if len(self._entries) > MOST_REMEMBERED:
            self._forget(next(iter(self._entries)))

    async def run(self) -> None:
        """Write until cancelled. Call `flush` after stopping it."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._writers):
                group.create_task(self._write_all())
            group.create_task(self._tend_series())

    async def flush(self, seconds: float) -> None:
        """Write what is queued and the last counts of all series, for as long as that time allows."""
        self._is_closing = True
        for entry in self._entries.values():
            if entry.is_behind:
                self._enqueue(entry)
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                for _ in range(self._writers):
                    group.create_task(self._write_rest())
        except TimeoutError:
            log.warning("%d events could not be written in time", len(self._queue))
            self.dropped += len(self._queue)
            self._queue.clear()

    def _enqueue(self, entry: _Entry) -> None:
        if entry.is_queued:
            return
        if len(self._queue) >= self._capacity and not self._is_closing:
            self.dropped += 1
            return
        entry.is_queued = True
        entry.queued_at = self._clock()
        self._queue.append(entry)
        while self._idle:
            if not (waiting := self._idle.pop()).done():
                waiting.set_result(None)
                break
        self._observer.added(len(self._queue))

    async def _write_all(self) -> None:
        """One of the writers, for ever."""
        while True:
            while not self._queue:
                self._idle.append(waiting := asyncio.get_running_loop().create_future())
                await waiting
            await self._write(self._queue.popleft())

    async def _write_rest(self) -> None:
        while self._queue:
            await self._write(self._queue.popleft())

    async def _write(self, entry: _Entry) -> None:
        """Write an entry that was just taken from the queue."""
        entry.is_queued = False
        taken_at = self._clock()
        self._observer.taken(len(self._queue), taken_at - entry.queued_at)
        try:
            tries = 1
            while not await self._try_once(entry):
                if tries == MOST_TRIES or self._is_closing:
                    self.failed += 1
                    log.error("Unable to write event (retry limit exceeded!): %s", entry.event.metadata.name)
                    break
                tries += 1
                self._observer.retried()
                await self._sleep(RETRY_PAUSE * (1 + 0.25 * self._chance()))
        except asyncio.CancelledError:
            entry.is_queued = True
            self._queue.append(entry)  # for `flush`; written twice, it is still one event
            raise
        self._observer.done(self._clock() - taken_at)

    async def _try_once(self, entry: _Entry) -> bool:
        """Whether no further try is needed: the event is written, or the server rejected it."""
        count = entry.count
        try:
            await (self._create(entry.event) if count == 1 else self._write_series(entry, count))
        except ApiStatusError as error:
            if error.reason == "AlreadyExists":  # an earlier try came through after all
                entry.written_count = max(1, entry.written_count)
                return entry.written_count >= count
            log.error("Server rejected event (will not retry!): %s", error)
            self.failed += 1
            return True
        except KubeError as error:
            log.error("Unable to write event (may retry after sleeping): %s", error)
            return False
        entry.written_count = count
        entry.written_at = self._clock()
        return True

    def _create(self, event: EventRecord) -> Answered:
        return self._sink.post(EVENTS.path_of(namespace=event.metadata.namespace), _encoder.encode(event))

    async def _write_series(self, entry: _Entry, count: int) -> None:
        meta = entry.event.metadata
        seen = self._wall_clock() / 1e9 - (self._clock() - entry.last_seen)
        series = EventSeries(count, micro_time(seen))
        if entry.written_count:
            path, patch = EVENTS.path_of(namespace=meta.namespace), _encoder.encode({"series": series})
            try:
                await self._sink.patch(f"{path}/{meta.name}", patch, content_type=STRATEGIC_MERGE_PATCH)
                return
            except ApiStatusError as error:
                if error.code != 404:  # events live an hour or so: then it is created anew
                    raise
        await self._create(msgspec.structs.replace(entry.event, series=series))

    async def _tend_series(self) -> None:
        """End series that had no repeat for a while; write the counts of the others."""
        while True:
            await self._sleep(TEND_EVERY)
            now = self._clock()
            for key, entry in list(self._entries.items()):
                if now - entry.last_seen >= SERIES_END:
                    self._forget(key)
                elif entry.is_behind and now - entry.written_at >= REFRESH:
                    self._enqueue(entry)

    def _forget(self, key: Key) -> None:
        entry = self._entries.pop(key)
        if entry.is_behind:
            self._enqueue(entry)
