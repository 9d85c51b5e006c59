"""The store in SQLite: tables are read into memory once, changes are written in a thread and committed in groups.

While one commit runs in a thread, the changes that come meanwhile gather and go into the next one, so the price of a
sync to disk is shared by everything that waited for it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

import msgspec

from kubesched.api.errors import UserError
from kubesched_sandbox.store.memory import HISTORY_KEPT, HISTORY_SECONDS, Store, StoredChange, StoredObject, key_of

DATABASE = "kubesched.db"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL);
INSERT OR IGNORE INTO revision VALUES (1, 1);
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?"


class StorageError(UserError):
    """The data directory cannot be used. After a commit that failed, memory is ahead of it: nothing is acknowledged."""


class SqliteStore(Store):
    """A store whose acknowledged writes survive the process.

    Before a loop is attached (while the server starts) each write is committed at once.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        history: int = HISTORY_KEPT,
        history_seconds: float = HISTORY_SECONDS,
    ) -> None:
        super().__init__(clock=clock, history=history, history_seconds=history_seconds)
        self._database = _open(directory)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="sandbox-store")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gathering: list[StoredChange] = []
        self._committing: list[StoredChange] | None = None
        self._planned = False
        self._failure: StorageError | None = None
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._waited = count()
        self._load()
        self._durable = self.revision

    @property
    def durable_revision(self) -> int:
        return self._durable

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on commits run in a thread, and listeners learn in this loop what became durable."""
        self._loop = loop

    async def durable(self, revision: int) -> None:
        if self._failure is not None:
            raise self._failure
        if revision <= self._durable:
            return
        waiter = asyncio.get_running_loop().create_future()
        heappush(self._waiters, (revision, next(self._waited), waiter))
        await waiter

    async def close(self) -> None:
        """Commit what is still gathering, then let go of the file."""
        try:
            await self.durable(self.revision)
        finally:
            self._executor.shutdown(wait=True)
            self._database.close()

    def _load(self) -> None:
        rows = self._database.execute("SELECT kind, namespace, name, revision, data FROM objects")
        decode = msgspec.json.decode
        (self.revision,) = self._database.execute("SELECT value FROM revision").fetchone()
        # Nothing is known of the time before: a watch that asks for it starts over with a list.
        self._floor = self.revision
        for kind, namespace, name, revision, data in rows:
            self.table(kind).put(namespace, name, StoredObject(decode(data), revision, data))

    def _notify(self, change: StoredChange) -> None:
        for listener in tuple(self._listeners):
            listener(change)

    def _persist(self, change: StoredChange) -> None:
        if self._failure is not None:
            raise self._failure
        self._gathering.append(change)
        if self._loop is None:
            self._commit_next()
        elif self._committing is None and not self._planned:
            # Not before the present step is over, so that all its writes are in one commit.
            self._planned = True
            self._loop.call_soon(self._commit_next)

    def _commit_next(self) -> None:
        self._planned = False
        batch, self._gathering = self._gathering, []
        self._committing = batch
        if self._loop is None:
            self._write(batch)
            self._committed(None)
        else:
            self._executor.submit(self._write, batch).add_done_callback(self._report)

    def _report(self, done: Future[None]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._committed, done.exception())

    def _committed(self, failure: BaseException | None) -> None:
        batch, self._committing = self._committing, None
        assert batch is not None
        if failure is not None:
            self._fail(failure)
            return
        self._durable = batch[-1].revision
        for change in batch:
            self._became_durable(change)
        while self._waiters and self._waiters[0][0] <= self._durable:
            _, _, waiter = heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)
        if self._gathering:
            self._commit_next()

    def _fail(self, failure: BaseException) -> None:
        self._failure = StorageError(f"the data directory could not be written: {failure}")
        for _, _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._failure)
        self._waiters.clear()

    def _write(self, batch: Sequence[StoredChange]) -> None:
        newest = {(change.table, *key_of(change.record.object)): change for change in batch}
        put = [
            (*key, change.revision, change.record.encoded) for key, change in newest.items() if change.type != "DELETED"
        ]
        removed = [key for key, change in newest.items() if change.type == "DELETED"]
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany(_PUT, put)
            database.executemany(_REMOVE, removed)
            database.execute("UPDATE revision SET value = ?", (batch[-1].revision,))
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise


def _open(directory: Path) -> sqlite3.Connection:
    """The database of a directory, for this process alone: two servers on one directory would undo each other."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = sqlite3.connect(directory / DATABASE, timeout=0.1, check_same_thread=False, isolation_level=None)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(_SCHEMA)
    except sqlite3.DatabaseError as error:
        database.close()
        why = "it is in use by another process" if "locked" in str(error) else str(error)
        raise StorageError(f"the data directory {directory} cannot be opened: {why}") from error
    return database
