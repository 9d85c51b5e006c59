"""What if in a real browser: nodes are drained, lost and added by clicking them, and the answer can be sent on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import MISSING, WebDriver, console_errors, until
from tests.shown_page import page_of

from kubesched.testing import make_node, make_pod
from kubesched.ui import endpoints
from kubesched.ui.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

CHOOSE = (
    "(([id, value]) => { const e = document.getElementById(id); e.value = value;"
    "e.dispatchEvent(new Event('change')); return true })([arguments[0], arguments[1]])"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[PageServer]:
    objects = (
        make_node("node-1").zone("a").capacity(cpu="4"),
        make_node("node-2").zone("b").capacity(cpu="4"),
        make_pod("small").requests(cpu="1").on("node-1"),
        make_pod("large").requests(cpu="3").on("node-1"),
        make_pod("night").owned_by("Job", "night").on("node-1"),
        make_pod("there").requests(cpu="3").on("node-2"),
        make_pod("waits").requests(cpu="4"),
    )
    with in_background(page_of([each.build() for each in objects])) as (server, _):
        yield server


def open_first_node(page: Page) -> None:
    """With the keyboard, which goes the same way as a click."""
    page.wait("document.querySelectorAll('.map canvas').length === 2")
    page.wait("document.querySelector('.map canvas').width > 100")
    page.press("ArrowRight", ".map canvas")
    page.press("Enter", ".map canvas")


def test_node_is_drained_by_choosing_it(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if")
    open_first_node(page)
    page.shows("drain node-1", ".chips")
    page.shows("Insufficient cpu", ".by-workload")
    page.js("document.querySelector('.moves').open = true")
    page.shows("node-2", ".moves")
    page.wait("location.hash.includes('drain=node-1')")
    page.click(".chip")
    page.wait("!location.hash.includes('drain')")


def test_click_with_the_mouse_drains_too(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if")
    page.wait("document.querySelector('.map canvas').width > 100")
    until(lambda: page.colours() > 3, what="the map")
    page.pointer("mousePressed", 40, 60)
    page.pointer("mouseReleased", 40, 60)
    page.shows("drain node-1", ".chips")


def test_link_has_the_whole_question(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if?add=1:node-1")
    page.shows("add 1 like node-1", ".chips")
    page.wait("document.querySelector('.moves') !== null")
    page.js("document.querySelector('.moves').open = true")
    page.shows("node-1-new-1", ".moves")


def test_zone_is_lost(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if")
    page.js(CHOOSE, "mode", "lose")
    page.js(CHOOSE, "zone", "a")
    page.shows("fail all of zone a", ".chips")
    page.shows("a\t1\t3 → 0")  # a node that fails is still an object, without its pods
    page.shows("1 not ready", ".map-key")
    page.shows("interrupted, and lose their work: default/night", ".difference")


def test_node_is_deleted(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if?gone=node-1")
    page.shows("delete node-1", ".chips")
    page.shows("1 → 0")


def test_weights_are_moved_by_slider(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if")
    page.js(
        "(e => { e.value = 9; e.dispatchEvent(new Event('change')); return true })"
        "(document.querySelector('[data-plugin=NodeResourcesFit]'))"
    )
    page.shows("NodeResourcesFit weighs 9", ".chips")
    page.wait("location.hash.includes('weight=9%3ANodeResourcesFit') && location.hash.includes('anew')")
    page.shows("How full it gets")


def test_answer_can_be_downloaded(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if?drain=node-1")
    page.shows("Insufficient cpu", ".by-workload")
    page.driver.execute_script(
        "HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.href] }"
    )
    page.click(".download")
    page.wait("window.saved && window.saved[0] === 'what-if.html' && window.saved[1].startsWith('blob:')")


def test_what_is_wrong_is_said(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if?drain=nobody")
    page.shows("--drain nobody")
    console_errors(driver)  # the browser itself logs the answer 400


def test_zone_that_is_chosen_is_marked_on_the_map(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if?drain=topology.kubernetes.io/zone%3Da")
    page.shows("drain all of zone a", ".chips")
    pink = "#ff5fae"
    assert until(lambda: page.has_colour(pink), what="the mark of a chosen node")
    page.click(".chip")
    until(lambda: not page.has_colour(pink), what="no mark")


def test_answer_that_takes_long_has_a_clock_and_is_given_up_on_request_or_by_leaving(
    driver: WebDriver, cluster: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = list[str]()

    async def never(*_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("stopped")

    monkeypatch.setattr(endpoints, "compare_now", never)
    page = Page(driver, cluster)
    page.go("#/upgrade")
    page.shows("Each pod is being decided upon under both releases. 1 s so far.")
    page.click(".working button")
    page.shows("Given up.")
    until(lambda: len(stopped) == 1, what="the end of the work")
    page.go("#/upgrade/1.36/1.37")
    page.shows("s so far")
    page.go("#/pods")
    until(lambda: len(stopped) == 2, what="the end of the work that nobody waits for")
