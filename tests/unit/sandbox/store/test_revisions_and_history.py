from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched_sandbox.store import ExpiredError, SqliteStore, StorageError, Store, StoredChange


def thing(name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, **fields}


def names(store: Store, table: str = "things", namespace: str | None = None) -> list[str]:
    return [record.object["metadata"]["name"] for record in store.table(table).ordered(namespace)]


def test_every_write_has_a_revision_of_its_own() -> None:
    store = Store()
    first, second = store.put("things", thing("a")), store.put("others", thing("a"))
    removed = store.remove("things", "", "a")
    assert first.revision < second.revision < removed.revision == store.revision
    assert first.object["metadata"]["resourceVersion"] == str(first.revision)


def test_bytes_of_a_record_are_its_object() -> None:
    record = Store().put("things", thing("a", spec={"x": [1, None, "é"]}))
    assert msgspec.json.decode(record.encoded) == record.object


def test_what_was_put_is_not_changed() -> None:
    given = thing("a")
    Store().put("things", given)
    assert given == thing("a")


def test_records_come_in_the_order_of_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "1"), ("a", "2"), ("a", "1"), ("b", "0")):
        store.put("things", thing(name, namespace))
    assert names(store) == ["1", "2", "0", "1"]
    store.remove("things", "a", "2")
    store.put("things", thing("3", "a"))
    assert names(store, namespace="a") == ["1", "3"]
    assert names(store, namespace="nowhere") == []


def test_changes_after_a_revision_are_those_of_one_table() -> None:
    store = Store()
    start = store.put("things", thing("a")).revision
    store.put("others", thing("b"))
    store.put("things", thing("a", n=1))
    store.remove("things", "", "a")
    changes = store.table("things").changes_after(start)
    assert [change.type for change in changes] == ["MODIFIED", "DELETED"]
    assert changes[1].old is changes[0].record
    assert store.table("things").changes_after(store.revision) == []


def test_history_is_bounded_by_count() -> None:
    store = Store(history=3)
    first = store.put("things", thing("a")).revision
    for n in range(5):
        store.put("things", thing("a", n=n))
    assert len(store.table("things").changes_after(first + 2)) == 3
    with pytest.raises(ExpiredError, match=r"too old resource version: 2 \(4\)"):
        store.table("things").changes_after(first)


def test_history_is_bounded_by_age() -> None:
    now = 0.0
    store = Store(clock=lambda: now, history_seconds=10)
    first = store.put("things", thing("a")).revision
    store.put("things", thing("b"))
    now = 11.0
    last = store.put("things", thing("c")).revision
    assert len(store.table("things").changes_after(last - 1)) == 1
    with pytest.raises(ExpiredError):
        store.table("things").changes_after(first)


def test_compaction_holds_for_tables_that_do_not_exist_yet() -> None:
    store = Store()
    start = store.revision
    store.put("things", thing("a"))
    store.compact()
    with pytest.raises(ExpiredError):
        store.table("others").changes_after(start)
    assert store.table("others").changes_after(store.revision) == []


def test_state_as_of_a_revision_is_the_state_that_was() -> None:
    store = Store()
    store.put("things", thing("a", n=1))
    store.put("things", thing("b", n=1))
    then, before = store.revision, [record.object for record in store.table("things").ordered()]
    store.put("things", thing("a", n=2))
    store.remove("things", "", "b")
    store.put("things", thing("c"))
    assert [record.object for record in store.table("things").as_of(then)] == before


def test_a_listener_that_writes_does_not_disturb_the_order() -> None:
    store, heard = Store(), list[int]()

    def answer(change: StoredChange) -> None:
        if change.table == "things":
            store.put("answers", thing("x"))

    store.listen(answer)
    store.listen(lambda change: heard.append(change.revision))
    store.put("things", thing("a"))
    store.put("things", thing("b"))
    assert heard == sorted(heard)
    assert len(heard) == 4


def test_a_listener_can_be_stopped() -> None:
    store, heard = Store(), list[StoredChange]()
    stop = store.listen(heard.append)
    store.put("things", thing("a"))
    stop()
    stop()
    store.put("things", thing("b"))
    assert len(heard) == 1


def test_sqlite_finds_again_what_was_written(tmp_path: Path) -> None:
    async def write() -> int:
        store = SqliteStore(tmp_path)
        store.attach(asyncio.get_running_loop())
        for n in range(20):
            store.put("things", thing(f"t{n}", "ns", n=n))
        store.remove("things", "ns", "t3")
        await store.close()
        return store.revision

    async def read(revision: int) -> None:
        store = SqliteStore(tmp_path)
        assert store.revision == revision
        assert len(names(store)) == 19
        record = store.table("things").get("ns", "t7")
        assert record is not None
        assert record.object["n"] == 7
        assert record.object["metadata"]["resourceVersion"] == str(record.revision)
        await store.close()

    asyncio.run(read(asyncio.run(write())))


def test_revisions_go_on_after_a_restart_even_when_the_last_write_was_a_removal(tmp_path: Path) -> None:
    async def session() -> tuple[int, int]:
        store = SqliteStore(tmp_path)
        before = store.revision
        store.put("things", thing("a"))
        store.remove("things", "", "a")
        await store.close()
        return before, store.revision

    first, second = asyncio.run(session()), asyncio.run(session())
    assert second[0] == first[1]


def test_a_watch_from_before_a_restart_cannot_be_resumed(tmp_path: Path) -> None:
    async def write() -> int:
        store = SqliteStore(tmp_path)
        revision = store.put("things", thing("a")).revision
        store.put("things", thing("b"))
        await store.close()
        return revision

    async def resume(revision: int) -> None:
        store = SqliteStore(tmp_path)
        with pytest.raises(ExpiredError):
            store.table("things").changes_after(revision)
        with pytest.raises(ExpiredError):
            store.table("never seen").changes_after(revision)
        assert store.table("things").changes_after(store.revision) == []
        await store.close()

    asyncio.run(resume(asyncio.run(write())))


def test_listeners_for_durable_changes_hear_of_them_only_after_the_commit(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path)
        store.attach(asyncio.get_running_loop())
        at_once: list[int] = []
        durable: list[int] = []
        store.listen(lambda change: at_once.append(change.revision))
        store.listen(lambda change: durable.append(change.revision), durable=True)
        for n in range(5):
            store.put("things", thing(f"t{n}"))
        assert len(at_once) == 5
        assert durable == []
        await store.durable(at_once[2])
        assert durable[:3] == at_once[:3]
        assert store.durable_revision >= at_once[2]
        await store.durable(at_once[4])
        await store.durable(at_once[0])
        assert durable == at_once
        await store.close()

    asyncio.run(main())


def test_writes_that_come_during_a_commit_share_the_next_one(tmp_path: Path) -> None:
    class Counting(SqliteStore):
        commits = 0

        def _write(self, batch: Any) -> None:
            self.commits += 1
            super()._write(batch)

    async def main() -> int:
        store = Counting(tmp_path)
        store.attach(asyncio.get_running_loop())
        store.put("things", thing("first"))
        await asyncio.sleep(0)
        for n in range(100):
            store.put("things", thing(f"t{n}"))
        await store.durable(store.revision)
        await store.close()
        return store.commits

    assert asyncio.run(main()) == 2


def test_nothing_is_acknowledged_after_a_failed_commit(tmp_path: Path) -> None:
    class Broken(SqliteStore):
        def _write(self, batch: Any) -> None:
            raise OSError("no space left on device")

    async def main() -> None:
        store = Broken(tmp_path)
        store.attach(asyncio.get_running_loop())
        store.put("things", thing("a"))
        with pytest.raises(StorageError, match="no space left"):
            await store.durable(store.revision)
        with pytest.raises(StorageError):
            store.put("things", thing("b"))
        with pytest.raises(StorageError):
            await store.close()

    asyncio.run(main())


def test_a_directory_belongs_to_one_process(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path)
        with pytest.raises(StorageError, match="in use by another process"):
            SqliteStore(tmp_path)
        await store.close()
        await SqliteStore(tmp_path).close()

    asyncio.run(main())


def test_a_file_that_is_no_database_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "kubesched.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match="cannot be opened: file is not a database"):
        SqliteStore(tmp_path)
