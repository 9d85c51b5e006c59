"""Where objects live: one revision counter, tables of records, and a history that watches resume from.

Kept in memory, and with a data directory in SQLite too: what was acknowledged survives the end of the process.
"""

from __future__ import annotations

from kubesched_sandbox.store.memory import ExpiredError, Store, StoredChange, StoredObject, Table
from kubesched_sandbox.store.sqlite import SqliteStore, StorageError

__all__ = ["ExpiredError", "SqliteStore", "StorageError", "Store", "StoredChange", "StoredObject", "Table"]
