from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
from tests.sandbox_server import client, fresh_api, serving
from tests.unit.sandbox.http.asking import CONFIG_MAPS, Asking, config

from kubesched.api import kinds
from kubesched_sandbox.store import SqliteStore


class Halting(SqliteStore):
    """A store whose commits wait for a word."""

    go = threading.Event()

    def _write(self, batch: Any) -> None:
        self.go.wait(10)
        super()._write(batch)


def test_nothing_is_answered_or_told_before_it_is_on_disk(tmp_path: Path) -> None:
    async def main() -> None:
        Halting.go.set()
        store = Halting(tmp_path)
        async with serving(fresh_api(store)) as server, client(server) as session:
            ask = Asking(server, session)
            watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion={store.revision}", 1))
            await ask.until_watchers(1)
            Halting.go.clear()
            before = store.revision
            write = asyncio.create_task(ask("POST", CONFIG_MAPS, config("a")))
            while store.revision == before:
                await asyncio.sleep(0.002)
            read = asyncio.create_task(ask("GET", f"{CONFIG_MAPS}/a"))
            done, _ = await asyncio.wait([watch, write, read], timeout=0.1)
            assert not done
            Halting.go.set()
            assert (await write).status == 201
            assert (await read).status == 200
            assert (await watch)[0]["type"] == "ADDED"
        await store.close()

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_restarted_server_has_its_objects_and_sends_old_watches_back_to_a_list(tmp_path: Path) -> None:
    async def first_life() -> tuple[int, int]:
        store = SqliteStore(tmp_path)
        async with serving(fresh_api(store)) as server, client(server) as session:
            ask = Asking(server, session)
            old = int((await ask("GET", CONFIG_MAPS)).json["metadata"]["resourceVersion"])
            for name in ("a", "b"):
                assert (await ask("POST", CONFIG_MAPS, config(name))).status == 201
            await ask("DELETE", f"{CONFIG_MAPS}/a")
            last = int((await ask("GET", CONFIG_MAPS)).json["metadata"]["resourceVersion"])
        await store.close()
        return old, last

    async def second_life(old: int, last: int) -> None:
        store = SqliteStore(tmp_path)
        api = fresh_api(store)
        assert [obj["metadata"]["name"] for obj in api.select(kinds.CONFIG_MAPS, "default")] == ["b"]
        async with serving(api) as server, client(server) as session:
            ask = Asking(server, session)
            expired = msgspec.json.decode((await ask("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={old}")).raw)
            assert (expired["type"], expired["object"]["code"]) == ("ERROR", 410)
            watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion={last}", 1))
            made = await ask("POST", CONFIG_MAPS, config("c"))
            assert int(made.json["metadata"]["resourceVersion"]) > last
            assert (await watch)[0]["object"]["metadata"]["name"] == "c"
        await store.close()

    asyncio.run(second_life(*asyncio.run(first_life())))
