"""A process that is killed while it writes: what it acknowledged is there, and nothing is half there."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

from kubesched_sandbox.store import SqliteStore

WRITER = """
import asyncio, sys
from pathlib import Path
from kubesched_sandbox.store import SqliteStore

async def write(store, worker):
    for n in range(1_000_000):
        name = f"{sys.argv[2]}-{worker}-{n}"
        record = store.put("things", {"metadata": {"name": name}, "twice": name, "filler": "x" * 500})
        store.put("counts", {"metadata": {"name": f"worker-{worker}"}, "last": name})
        if n % 5 == 4:
            store.remove("things", "", f"{sys.argv[2]}-{worker}-{n - 2}")
        revision = store.revision
        await store.durable(revision)
        print(revision, name, f"{sys.argv[2]}-{worker}-{n - 2}" if n % 5 == 4 else "-", flush=True)

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    store.attach(asyncio.get_running_loop())
    await asyncio.gather(*(write(store, worker) for worker in range(4)))

asyncio.run(main())
"""


def test_acknowledged_writes_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: set[str] = set()
    removed: set[str] = set()
    revision = 0
    for life in range(6):
        lines = _killed_writer(tmp_path, f"life{life}", lines=chance.randrange(5, 200))
        for number, name, gone in lines:
            revision = max(revision, int(number))
            acknowledged.add(name)
            removed.add(gone)
        # Of those that are going to be removed nobody knows: the removal may be done and not acknowledged.
        kept = {name for name in acknowledged if int(name.rpartition("-")[2]) % 5 != 2}
        asyncio.run(_check(tmp_path, kept, removed, revision))
    assert len(acknowledged) > 20


def _killed_writer(directory: Path, life: str, *, lines: int) -> list[list[str]]:
    """What a process printed that was killed after so many lines."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), life], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert writer.stdout is not None
    first = [writer.stdout.readline() for _ in range(lines)]
    writer.kill()
    printed = "".join(first) + writer.stdout.read()
    writer.stdout.close()
    writer.wait()
    # The last line may be cut off where the process was.
    return [line.split() for line in printed.splitlines(keepends=True) if line.endswith("\n")]


async def _check(directory: Path, expected: set[str], removed: set[str], revision: int) -> None:
    store = SqliteStore(directory)
    records = {record.object["metadata"]["name"]: record for record in store.table("things").ordered()}
    assert expected <= records.keys()
    assert not removed & records.keys()
    assert store.revision >= revision
    for name, record in records.items():
        assert record.object["twice"] == name
        assert record.object["metadata"]["resourceVersion"] == str(record.revision)
        assert record.revision <= store.revision
    # The writes of one step are in one commit: never one without the other.
    for record in store.table("counts").ordered():
        assert record.object["last"] in records
    await store.close()
