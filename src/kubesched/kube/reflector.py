"""Keeps a handler informed of all objects of one resource: a list, then a watch, and again whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from typing import Generic, TypeVar

from kubesched.api.change import Change
from kubesched.kube.decoding import (
    Codec,
    Identity,
    UnreadableObject,
    bookmark,
    identity_in,
    version_number,
    watch_event,
)
from kubesched.kube.errors import ApiStatusError, KubeError, UnreachableError
from kubesched.kube.known_objects import KnownObjects
from kubesched.kube.listing import EventStream, ObjectSource, list_in_pages
from kubesched.kube.timing import REAL_TIME, Timing

T = TypeVar("T")

BATCH = 100  # callbacks between two chances for others to run
WATCH_SECONDS = (300, 600)  # a watch is asked to end after some time between these, so that load spreads over servers
_HEALTHY = 1.0  # a watch that lived for so many seconds, or got anywhere, is resumed without a pause

_INTERNAL_ERROR = 500

log = logging.getLogger(__name__)


Handler = Callable[[Change[T]], None]
"""Called with every change, in order. The calls come in batches; between two, other tasks run."""
OnUnreadable = Callable[[str, UnreadableObject], None]
"""Called with the reflector's name and an object that could not be read: it is skipped, all else goes on."""


def log_unreadable(name: str, obj: UnreadableObject) -> None:
    log.error("%s: %s cannot be read and is skipped: %s", name, obj.identity.key or "an object", obj.why)


class NoStreamedListsError(KubeError):
    """The server does not know how to send a list as a stream."""


class Reflector(Generic[T]):
    """Run it as a task and cancel it to stop.

      ┌── list (streamed, or in pages) ◄── version forgotten (410), or from the future
      ▼                                        ▲
    watch ──► ended, broken, silent ──► watch from where it was
    """

    def __init__(
        self,
        name: str,
        source: ObjectSource,
        codec: Codec[T],
        handle: Handler[T],
        *,
        on_unreadable: OnUnreadable = log_unreadable,
        streamed_lists: bool = True,
        timing: Timing = REAL_TIME,
    ) -> None:
        clock = timing.clock
        self.name = name
        self.lists = 0
        self.watches = 0
        self.missed = 0
        """Changes that a list showed though the watch had been past them without showing them."""
        self.lost_at: float | None = clock()
        """Since when, by the clock, there is no watch that shows what happens; None while there is one."""
        self.trouble = ""
        """Why not, as far as it is known."""
        self._source = source
        self._codec = codec
        self._handle = handle
        self._on_unreadable = on_unreadable
        self._streamed_lists = streamed_lists
        self._clock = clock
        self._sleep = timing.sleep
        self._chance = timing.chance
        self._backoff = RelistBackoff(clock=clock, random=timing.chance)
        self._known = KnownObjects(codec)
        self._version = ""
        self._version_number = 0
        self._version_is_lost = False
        self._needs_list = True
        self._stream: EventStream | None = None
        self._watching_since: float | None = None
        self._watching_from = 0
        self._synced = asyncio.Event()
        self._asked_to_relist: list[asyncio.Future[None]] = []
        self._relist_wanted = asyncio.Event()

    @property
    def has_synced(self) -> bool:
        """The handler has seen the whole first list."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    @property
    def objects(self) -> Mapping[str, T]:
        """The objects that the handler knows, by key."""
        return self._known.objects

    @property
    def unreadable(self) -> Set[str]:
        """Keys of objects whose newest version could not be read."""
        return self._known.unreadable

    @property
    def resource_version(self) -> str:
        """The version up to which the handler knows all changes."""
        return self._version

    def relist(self) -> asyncio.Future[None]:
        """Read everything anew from the server's newest state; done when the handler knows it.

        A new leader does so before its first decision, which must not rest on an old view. Asked before `run` has begun
        its first list, that one will do.
        """
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked_to_relist.append(asked)
        self._relist_wanted.set()
        if self._stream is not None:
            self._stream.close()
        return asked

    async def run(self) -> None:
        """For ever. Errors of the server and of the network are logged and outlived; others are mistakes and raised."""
        try:
            while True:
                if not await self._try_list_and_watch():
                    await self._pause(self._backoff.pause())
        except Exception as error:  # who waits for a list must hear of it, or would only know of its own end
            for asked in self._asked_to_relist:
                if not asked.done():
                    asked.set_exception(error)
            raise
        finally:
            for asked in self._asked_to_relist:
                asked.cancel()

    async def _pause(self, seconds: float) -> None:
        """A pause, which a call of `relist` ends at once."""
        resting, called = asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._relist_wanted.wait())
        try:
            await asyncio.wait((resting, called), return_when=asyncio.FIRST_COMPLETED)
        finally:
            resting.cancel()
            called.cancel()

    async def _try_list_and_watch(self) -> bool:
        """List and watch for a while. False if it went so badly that a pause is in order."""
        self._watching_since = None
        try:
            await self._list_and_watch()
        except KubeError as error:
            if self._asked_to_relist and not self._needs_list:
                return True  # `relist` has closed the watch
            return self._note(error)
        return bool(self._asked_to_relist) or self._was_healthy()

    def _was_healthy(self) -> bool:
        """There was a watch that brought something new, or lasted for a while.

        Servers under load cut watches, and then every pause is one in which no pod is seen. The time that a list took
        does not count: lists that fail cost most.
        """
        if self._watching_since is None:
            return False
        return self._version_number > self._watching_from or self._clock() - self._watching_since >= _HEALTHY

    async def _list_and_watch(self) -> None:
        """List if need be, then watch until the watch ends."""
        stream: EventStream | None = None
        asked = self._asked_to_relist
        if self._needs_list or asked:
            self._asked_to_relist = []
            self._relist_wanted.clear()
            try:
                stream = await self._list(newest=self._version_is_lost or bool(asked))
            except BaseException:
                self._asked_to_relist += asked
                raise
            for future in asked:
                if not future.done():
                    future.set_result(None)
        if stream is None:
            stream = await self._source.watch(
                resource_version=self._version, seconds=self._watch_seconds(), initial_events=False
            )
        self.watches += 1
        self._watching_since, self._watching_from = self._clock(), self._version_number
        self._stream = stream
        self.lost_at, self.trouble = None, ""
        try:
            with closing(stream):
                while not self._asked_to_relist and (lines := await stream.lines()):
                    await self._deliver_events(lines)
        finally:
            self._stream = None
            self.lost_at = self._clock()

    def _note(self, error: KubeError) -> bool:
        """Decide how to go on after an error: with a list or with a watch, at once or after a pause."""
        self.trouble = str(error)
        if isinstance(error, ApiStatusError) and (error.is_expired or error.is_from_the_future):
            # A list of that version may still be had from a server that is ahead; only if not, ask for the newest.
            self._version_is_lost = self._needs_list or error.is_from_the_future
            self._needs_list = True
            log.info("%s: watch closed, listing again: %s", self.name, error)
        elif isinstance(error, NoStreamedListsError):
            self._streamed_lists = False
            log.info("%s: lists in pages: %s", self.name, error)
            return True
        elif isinstance(error, UnreachableError) and self._was_healthy():
            log.info("%s: watch closed: %s", self.name, error)
        else:
            log.warning("%s: failed to list or watch: %s", self.name, error)
        return self._was_healthy()

    def _watch_seconds(self) -> int:
        shortest, longest = WATCH_SECONDS
        return int(shortest + (longest - shortest) * self._chance())

    # Lists

    async def _list(self, *, newest: bool) -> EventStream | None:
        """Read everything; a streamed list goes on as a watch, which is returned."""
        self._needs_list = True
        self.lists += 1
        if self._streamed_lists:
            try:
                return await self._list_as_stream("" if newest else self._version)
            except ApiStatusError as error:
                if error.code != _INTERNAL_ERROR:
                    raise
                # So says an API server whose etcd is too old to stream lists; its pages are as good.
                log.info("%s: lists in pages this time: %s", self.name, error)
        await self._list_in_pages("" if newest else self._version or "0")
        return None

    async def _list_in_pages(self, version: str) -> None:
        page = await list_in_pages(self._source, self._codec, version=version)
        for obj in page.unreadable:
            self._on_unreadable(self.name, obj)
        by_key = {self._codec.identity(obj).key: obj for obj in page.objects}
        await self._replace(by_key, {obj.identity.key for obj in page.unreadable}, page.resource_version)

    async def _list_as_stream(self, version: str) -> EventStream:
        try:
            stream = await self._source.watch(
                resource_version=version, seconds=self._watch_seconds(), initial_events=True
            )
        except ApiStatusError as error:
            if error.code in (400, 405, 422):
                raise NoStreamedListsError(str(error)) from error
            raise
        fresh = KnownObjects(self._codec)
        try:
            while lines := await stream.lines():
                for number, line in enumerate(lines, start=1):
                    changes = self._changes(line, fresh)
                    if changes is None:
                        reached, is_end = bookmark(watch_event(line).object)
                        if not is_end:
                            raise NoStreamedListsError("the server sent a bookmark that does not end the list")
                        await self._replace(fresh.objects, fresh.unreadable, reached)
                        await self._deliver_events(lines[number:])
                        return stream
            raise UnreachableError("the watch ended before the list did")
        except BaseException:
            stream.close()
            raise

    async def _replace(self, objects: Mapping[str, T], unreadable: Set[str], version: str) -> None:
        await self._deliver(self._count_missed(self._known.replace(objects, unreadable)))
        self._version = version
        self._version_number = version_number(version)
        self._version_is_lost = False
        self._needs_list = False
        self._synced.set()

    def _count_missed(self, changes: Iterable[Change[T]]) -> Iterator[Change[T]]:
        """Pass the changes on, and count those that the watch missed; deletions have no version to tell it by."""
        reached = self._version_number
        for change in changes:
            if reached and change.new is not None and 0 < self._codec.identity(change.new).version <= reached:
                self.missed += 1
            yield change

    # Events

    async def _deliver_events(self, lines: list[bytes]) -> None:
        for start in range(0, len(lines), BATCH):
            if start:
                await self._sleep(0)
            for line in lines[start : start + BATCH]:
                changes = self._changes(line, self._known)
                if changes is None:
                    self._reach(version_number(bookmark(watch_event(line).object)[0]))
                    continue
                for change in changes:
                    self._handle(change)

    def _changes(self, line: bytes, known: KnownObjects[T]) -> Sequence[Change[T]] | None:
        """The changes of known objects by a line of a watch; None if it is a bookmark."""
        event = self._codec.event(line)
        if event is None:
            return self._changes_step_by_step(line, known)
        obj, identity = event.object, self._codec.identity(event.object)
        if known is self._known:
            self._reach(identity.version)
        return known.delete(identity) if event.type == "DELETED" else known.put(obj, identity)

    def _changes_step_by_step(self, line: bytes, known: KnownObjects[T]) -> Sequence[Change[T]] | None:
        event = watch_event(line)
        if event.type == "BOOKMARK":
            return None
        if event.type == "ERROR":
            raise ApiStatusError.of_event(event.object)
        obj, identity = self._read(event.type, event.object, known)
        if known is self._known:
            self._reach(identity.version)
        if event.type == "DELETED":
            return known.delete(identity)
        if event.type not in ("ADDED", "MODIFIED"):
            log.error("%s: unknown watch event %s", self.name, event.type)
            return ()
        return () if obj is None else known.put(obj, identity)

    def _read(self, type_: str, raw: bytes, known: KnownObjects[T]) -> tuple[T | None, Identity]:
        """The object of an event. If that cannot be read, what is known of it stays; to delete it, its name will do."""
        try:
            obj = self._codec.decode(raw)
            return obj, self._codec.identity(obj)
        except Exception as error:  # whatever is odd about one object is no reason to lose the others
            identity = identity_in(raw)
            if type_ != "DELETED":
                known.unreadable.add(identity.key)
                self._on_unreadable(self.name, UnreadableObject(identity, error))
            return None, identity

    def _reach(self, version: int) -> None:
        """Events may come in another order than they happened: never go back."""
        if version > self._version_number:
            self._version_number = version
            self._version = str(version)

    async def _deliver(self, changes: Iterable[Change[T]]) -> None:
        for count, change in enumerate(changes, start=1):
            self._handle(change)
            if not count % BATCH:
                await self._sleep(0)


class RelistBackoff:
    """client-go's for reflectors: 0.8 s, doubling to 30 s, up to twice that by chance, forgotten after 2 minutes."""

    FIRST, LONGEST, FORGOTTEN_AFTER = 0.8, 30.0, 120.0

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._clock = clock
        self._random = random
        self._next = self.FIRST
        self._last_at = float("-inf")

    def pause(self) -> float:
        """The seconds to wait now."""
        now = self._clock()
        if now - self._last_at > self.FORGOTTEN_AFTER:
            self._next = self.FIRST
        self._last_at = now
        pause, self._next = self._next, min(2 * self._next, self.LONGEST)
        return pause * (1 + self._random())
