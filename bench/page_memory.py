"""What the web page takes of a browser's memory while pods come and go for minutes, view after view."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import WebDriver, browser, look
from tests.shown_page import page_of_sandbox

from bench.pages import heap_mb, small_pod
from kubesched.api.kinds import PODS

MINUTES = 10.0
NODES, ALIVE = 200, 500
PER_SECOND = 20
"""Pods that come, and pods that go."""
VIEWS = ("#/", "#/pending", "#/queue", "#/pods/default/churn-1")
"""The last is of a pod that is soon gone."""
_VIEW_SECONDS = 15.0


class PageMemory(NamedTuple):
    """In megabytes."""

    after_a_minute: float
    """All that the page's process has in memory."""
    at_the_end: float
    heap: float
    """What its scripts hold, at the end."""


def measured(minutes: float = MINUTES) -> PageMemory:
    with in_background(page_of_sandbox(nodes=NODES)) as ((server, box), loop), browser() as driver:
        look(driver)
        page = Page(driver, server)
        began, made, first = time.monotonic(), 0, 0.0
        while (passed := time.monotonic() - began) < minutes * 60:
            while made < passed * PER_SECOND:
                made += 1
                loop.call_soon_threadsafe(box.api.create, PODS, "default", small_pod(f"churn-{made}"))
                if made > ALIVE:
                    loop.call_soon_threadsafe(box.api.delete, PODS, "default", f"churn-{made - ALIVE}")
            page.js("location.hash = arguments[0]", VIEWS[int(passed / _VIEW_SECONDS) % len(VIEWS)])
            if passed > 60 and not first:
                first = _resident_mb(driver)
            time.sleep(0.5)
        return PageMemory(first, _resident_mb(driver), heap_mb(driver))


def _resident_mb(driver: WebDriver) -> float:
    """Of the process that shows the page, the largest of the browser's renderers."""
    parents, renderers = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if "--type=renderer" in (folder / "cmdline").read_text():
                renderers.append(int(folder.name))
    ours = driver.service.process.pid
    return max(_resident_of(each) for each in renderers if ours in _ancestors(each, parents))


def _ancestors(process: int, parents: dict[int, int]) -> Iterator[int]:
    while (process := parents.get(process, 0)) > 0:
        yield process


def _resident_of(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS"))
