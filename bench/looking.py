"""What it costs a scheduler at work that somebody looks at its page: CPU per bound pod, with a page and without."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from bench.processes import ApiServer, SchedulerProcess, free_port, wait_for

NODES, RUNNING, PODS = 5_000, 10_000, 10_000
LONGEST_RUN = 300.0
_PENDING_EVERY, _HEADROOM_EVERY = 1.5, 6.0
"""Seconds between two questions of the overview."""


def cpu_us_per_pod(*, serves: bool, looks: bool) -> float:
    """From the creation of many pods until all are bound and all events are written.

    `serves` is whether there is a page at all, `looks` whether somebody has it open.
    """
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=NODES)
        server.ask("running", count=RUNNING, nodes=NODES)
        port = free_port()
        page = ("--ui-port", str(port), "--authorization-always-allow-paths", "/healthz,/ui/*") if serves else ()
        with SchedulerProcess(server.url, Path(directory), flags=("--leader-elect=false", *page)) as scheduler:
            scheduler.wait_until_ready()
            with _overview(port) if looks else contextlib.nullcontext():
                before = scheduler.cpu_seconds()
                server.ask("pods", kind="basic", count=PODS, per_second=0)

                def is_done() -> bool:
                    if not scheduler.is_alive:
                        raise RuntimeError("the scheduler ended before all pods were bound")
                    return bool(server.ask("tell")["events"] == PODS)

                wait_for(is_done, LONGEST_RUN, f"{PODS} pods and events")
                return (scheduler.cpu_seconds() - before) * 1e6 / PODS


@contextlib.contextmanager
def _overview(port: int) -> Iterator[None]:
    """Somebody who has the overview open, in a thread: it asks for what the page asks for, as often."""
    opened, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_look(f"https://127.0.0.1:{port}/ui/", opened, ended)))
    thread.start()
    try:
        if not opened.wait(60):
            raise TimeoutError("the page did not open")
        yield
    finally:
        ended.set()
        thread.join(30)


async def _look(root: str, opened: threading.Event, ended: threading.Event) -> None:
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(root, connector=connector, raise_for_status=True) as client:
        about = await _got(client, "api/about")
        shown = await _got(client, f"api/map?group={about['groupBy']}")
        version = ",".join(map(str, shown["version"]))
        asking = [
            asyncio.create_task(_ask_often(client, "api/pending", _PENDING_EVERY)),
            asyncio.create_task(_ask_often(client, "api/headroom", _HEADROOM_EVERY)),
        ]
        patience = aiohttp.ClientTimeout(total=None)
        async with client.get(f"api/stream?version={version}&decision=0", timeout=patience) as stream:
            opened.set()
            decisions = 0
            while not ended.is_set():
                line = await stream.content.readline()
                if line.startswith(b"data:"):
                    decisions += len(json.loads(line[5:]).get("decisions", ()))
        for task in asking:
            task.cancel()
    if not decisions:
        raise RuntimeError("nobody saw a decision")


async def _ask_often(client: aiohttp.ClientSession, path: str, seconds: float) -> None:
    while True:
        await _got(client, path)
        await asyncio.sleep(seconds)


async def _got(client: aiohttp.ClientSession, path: str) -> Any:
    async with client.get(path) as response:
        return await response.json()
