"""The web page in Chromium, with 5,000 nodes and 50,000 pods: first picture, panning, edits, and news of decisions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import WebDriver, browser, look, until
from tests.platform_cluster import platform
from tests.shown_page import large_cluster, page_of, page_of_sandbox

from kubesched.api.kinds import PODS
from kubesched_sandbox.box import Sandbox
from kubesched_sandbox.chronicle import Entry

NODES, RUNNING = 5_000, 50_000
EDITS = 20
DECISIONS = 12

_PAN = """
const done = arguments[0], canvas = document.querySelector('.map canvas'), box = canvas.getBoundingClientRect();
const at = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
  pointerId: 1, clientX: box.left + x, clientY: box.top + y, bubbles: true, buttons: 1 }));
canvas.setPointerCapture = () => {};
for (let i = 0; i < 4; i++) document.querySelector('.map-buttons button').click();
at('pointerdown', 400, 300);
let frames = 0, began = 0;
const step = (now) => {
  began ||= now;
  frames++;
  const angle = (now - began) / 400;
  at('pointermove', 400 + 180 * Math.cos(angle), 300 + 180 * Math.sin(angle));
  if (now - began < 4000) requestAnimationFrame(step);
  else { at('pointerup', 400, 300); done(frames / ((now - began) / 1000)); }
};
requestAnimationFrame(step);
"""

_EDIT = """
const done = arguments[1], field = document.querySelector('[data-field=cpu]');
const shown = document.querySelector('.verdict-parts'), began = performance.now();
new MutationObserver((_, o) => { o.disconnect(); requestAnimationFrame(() => done(performance.now() - began)); })
  .observe(shown, {childList: true});
field.value = arguments[0];
field.dispatchEvent(new Event('input'));
"""

_FIRST_PICTURE = """\
(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  return new Set(new Uint32Array(d.buffer)).size > 20 })(document.querySelector('.map canvas'))
"""


class Figures(NamedTuple):
    """Medians, of one run."""

    first_picture_seconds: float
    """From opening the address, in a browser that runs already, until the map is drawn."""
    frames_per_second: float
    """While the map is dragged in circles, zoomed in."""
    edit_ms: float
    """From a keystroke until the verdict is drawn, the pause of the page before it asks included."""
    loaded_kb: float
    heap_mb: float


def measured() -> Figures:
    """The page of a cluster that stands still."""
    with in_background(page_of(large_cluster(NODES, RUNNING))) as (server, _), browser() as driver:
        look(driver)
        driver.get("about:blank")
        began = time.monotonic()
        page = Page(driver, server)
        until(lambda: page.js(_FIRST_PICTURE), what="the first picture")
        first = time.monotonic() - began
        loaded = (
            page.js("performance.getEntriesByType('resource').reduce((sum, e) => sum + e.encodedBodySize, 0)") / 1e3
        )
        frames = float(driver.execute_async_script(_PAN))
        page.go("#/pods/default/wants-much-1")
        page.shows("fits nowhere", ".headline")
        edits = [float(driver.execute_async_script(_EDIT, str(1 + i % 30))) for i in range(EDITS)]
        return Figures(first, frames, statistics.median(edits), loaded, heap_mb(driver))


def exact_headroom_seconds() -> float:
    """From opening the overview of a platform of so many nodes until it says how many more pods fit, and no `at least`:
    workloads of all kinds, spread over zones, kept apart by node, with claims for devices."""
    with in_background(page_of(platform(NODES))) as (server, _), browser() as driver:
        look(driver)
        driver.get("about:blank")
        began = time.monotonic()
        page = Page(driver, server)
        until(lambda: page.js(_EXACT), what="exact headroom")
        return time.monotonic() - began


_EXACT = """\
(rooms => rooms.length > 0 && !rooms.some((each) => each.textContent.includes('≥')))(
  [...document.querySelectorAll('.rooms-list b')])
"""


def decision_seen_ms() -> float:
    """From the end of an attempt until the page shows it, in a sandbox."""
    with in_background(page_of_sandbox(nodes=50)) as ((server, box), loop), browser() as driver:
        look(driver)
        page = Page(driver, server)
        with _noting_ends(box) as ended:
            delays: list[float] = []
            for i in range(DECISIONS):
                driver.execute_script(_WATCH_FOR, f"default/seen-{i}")
                loop.call_soon_threadsafe(box.api.create, PODS, "default", small_pod(f"seen-{i}"))
                seen = float(page.wait("window.seenAt"))
                delays.append(seen - ended[f"default/seen-{i}"])
        return statistics.median(delays)


_WATCH_FOR = """
window.seenAt = 0;
const key = arguments[0], list = document.querySelector('.decisions');
new MutationObserver((_, o) => { if (list.textContent.includes(key)) { o.disconnect(); window.seenAt = Date.now(); } })
  .observe(list, {childList: true});
"""


@contextmanager
def _noting_ends(box: Sandbox) -> Iterator[dict[str, float]]:
    """When attempts ended, in milliseconds since 1970, by pod."""
    ended: dict[str, float] = {}
    before = box.chronicle.on_entry

    def note(entry: Entry) -> None:
        ended.setdefault(entry.pod, time.time() * 1e3)

    box.chronicle.on_entry = note
    try:
        yield ended
    finally:
        box.chronicle.on_entry = before


def small_pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "10m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def heap_mb(driver: WebDriver) -> float:
    """What the scripts of the page hold."""
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return float(driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]) / 1e6
