"""The web page in a real browser: each view and what one can do there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import MISSING, WebDriver, console_errors, look, until
from tests.shown_page import large_cluster, page_of, page_of_sandbox

from kubesched.api.kinds import PODS
from kubesched.api.pod import PodStatus
from kubesched.testing import make_node, make_pod
from kubesched.ui.server import PageServer
from kubesched_sandbox.api import Api
from kubesched_sandbox.box import Sandbox

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
EVERY_VIEW = (
    "#/overview",
    "#/pending",
    "#/queue",
    "#/what-if?drain=node-1",
    "#/pods/default/fits",
    "#/pods/default/urgent",
    "#/nodes/node-1",
    "#/nodes",
    "#/pods",
    "#/workloads",
    "#/workloads/default/StatefulSet/store",
)
HOSTILE = '<img src=x onerror="window.pwned=1"><b>bold</b>'


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[PageServer, Sandbox]]:
    with in_background(page_of_sandbox("shop")) as (served, _):
        yield served


@pytest.fixture(scope="module")
def box() -> Iterator[tuple[PageServer, Sandbox, Any]]:
    with in_background(page_of_sandbox(nodes=3, gpus=2)) as (served, loop):
        yield *served, loop


# -- the story ------------------------------------------------------------------------------------------------------


def test_story_plays_in_the_overview(driver: WebDriver, shop: tuple[PageServer, Sandbox]) -> None:
    page = Page(driver, shop[0])
    page.wait("document.querySelector('#saying').textContent !== ''")
    page.shows("bound", ".decisions")
    page.shows("shop/web", ".rooms")
    assert page.js("document.querySelector('.rooms a').hash") == "#/workloads/shop/Deployment/web"
    page.shows("9 nodes", ".legend-line")
    until(lambda: page.colours() > 5, what="a map with pods on it")
    page.shows("were unschedulable", ".decisions")  # a zone is cordoned, and what waits for it says so


def test_decision_and_its_reason_appear_as_they_are_made(
    driver: WebDriver, box: tuple[PageServer, Sandbox, Any]
) -> None:
    server, sandbox, loop = box
    page = Page(driver, server)
    create(sandbox.api, loop, "quick", "100m")
    create(sandbox.api, loop, "giant", "100")
    page.shows("default/quick → node-", ".decisions")
    page.shows("Insufficient cpu", ".causes")
    page.shows("1", "[data-tab=pending] .badge")


def create(api: Api, loop: Any, name: str, cpu: str) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    loop.call_soon_threadsafe(api.create, PODS, "default", pod)


def test_queue_view_has_a_chart_and_latencies(driver: WebDriver, box: tuple[PageServer, Sandbox, Any]) -> None:
    server, sandbox, loop = box
    page = Page(driver, server)
    page.go("#/queue")
    create(sandbox.api, loop, "timed", "100m")
    page.shows("half within")
    page.wait("document.querySelectorAll('.chart polyline').length >= 6")
    page.shows("No pod had to make room")


def test_devices_of_a_node_are_shown_one_by_one(driver: WebDriver, box: tuple[PageServer, Sandbox, Any]) -> None:
    page = Page(driver, box[0])
    page.go("#/nodes/node-1")
    page.wait("document.querySelectorAll('.devices li').length === 2")
    page.shows("free", ".devices")


def test_page_says_when_the_server_is_gone(driver: WebDriver) -> None:
    with in_background(page_of([make_node("a").build()])) as (server, _):
        page = Page(driver, server)
    page.wait("!document.querySelector('#banner').hidden")
    page.shows("connection to kubesched is lost", "#banner")
    driver.get("about:blank")
    refused = console_errors(driver)  # the browser itself logs that connections end and are refused
    assert all("net::ERR_" in line for line in refused)


# -- the map --------------------------------------------------------------------------------------------------------


def test_hovering_names_a_node_and_a_click_opens_it(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.wait("document.querySelector('.map canvas').width > 300")
    until(lambda: page.colours() > 3, what="the map")
    page.pointer("mouseMoved", 60, 80)
    page.shows("node-1", ".tip")
    page.shows("25 %", ".tip")
    page.pointer("mousePressed", 60, 80)
    page.pointer("mouseReleased", 60, 80)
    page.wait("location.hash === '#/nodes/node-1'")
    page.shows("default/runs")
    driver.back()
    page.wait("document.querySelector('.map canvas') !== null")


def test_arrows_walk_through_the_map_and_enter_opens(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.wait("document.querySelector('.map canvas').width > 300")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        page.press(key, ".map canvas")
    page.shows("node-3", ".tip")
    page.shows("cordoned", ".tip")
    page.press("Enter", ".map canvas")
    page.wait("location.hash === '#/nodes/node-3'")


def test_map_can_be_grouped_and_coloured_and_the_address_remembers(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    choose = (
        "(([id, value]) => { const e = document.getElementById(id); e.value = value;"
        "e.dispatchEvent(new Event('change')); return true })([arguments[0], arguments[1]])"
    )
    page.js(choose, "group", "disk")
    page.js(choose, "colour", "memory")
    page.wait("location.hash.includes('group=disk') && location.hash.includes('colour=memory')")
    driver.refresh()
    page.wait("document.getElementById('group')?.value === 'disk'")
    assert page.js("document.getElementById('colour').value") == "memory"


# -- pods -----------------------------------------------------------------------------------------------------------


def test_pod_that_fits_shows_funnel_scores_and_winner(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pods/default/fits")
    page.shows("fits", ".headline .verdict")
    page.shows("NodeUnschedulable", ".funnel")
    assert "node-" in page.text(".scores .winner")
    assert page.js("document.querySelectorAll('.scores .stack').length") == 2


def test_pod_that_would_preempt_names_its_victims(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pods/default/urgent")
    page.shows("default/keeps", ".preemption")


def test_verdict_changes_while_one_types(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pods/default/large")
    page.shows("fits nowhere", ".headline")
    page.shows("16 cpu", ".misses")
    page.type_into("[data-field=cpu]", "3")
    page.shows("goes to node-", ".headline")
    page.shows("nothing in the cluster has changed", ".said")
    page.type_into("[data-field=cpu]", "three")
    page.shows("cpu", ".said.bad")
    page.click(".try .reset")
    page.shows("fits nowhere", ".headline")


def test_same_as_yaml(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pods/default/large")
    page.click(".modes button:nth-child(2)")
    page.wait("document.querySelector('.try textarea').value.includes('cpu:')")
    page.driver.execute_script(
        "const e = document.querySelector('.try textarea'); e.value = e.value.replace(/cpu:.*/, 'cpu: \"2\"');"
        "e.dispatchEvent(new Event('input'))"
    )
    page.shows("goes to node-", ".headline")


def test_pending_is_by_cause_and_leads_to_pods(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pending")
    page.shows("Insufficient cpu")
    page.driver.execute_script(
        "[...document.querySelectorAll('.card h2 a')].find(a => a.textContent === 'Insufficient cpu').click()"
    )
    page.shows("default/large", "table")
    page.click("table a")
    page.wait("location.hash.startsWith('#/pods/default/')")


def test_node_says_who_would_fit(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/nodes/node-2")
    page.shows("default/fits")
    page.shows("yes")
    page.shows("Insufficient cpu")


# -- the frame ------------------------------------------------------------------------------------------------------


def test_slash_searches_and_enter_opens(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.press("/")
    assert page.js("document.activeElement.type") == "search"
    page.type_into(".search input", "larg")
    page.wait("document.querySelector('#found [aria-selected=true]') !== null")
    page.press("Enter", ".search input")
    page.wait("location.hash === '#/pods/default/large'")


def test_what_is_not_there_is_said(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.driver.execute_script("location.hash = '#/pods/default/nobody'")
    page.shows("There is no pod default/nobody")
    page.driver.execute_script("location.hash = '#/nonsense'")
    page.shows("There is no view called nonsense")
    console_errors(driver)  # the browser itself logs the answer 404


def test_theme_is_that_of_the_system_until_one_chooses(driver: WebDriver, small: PageServer) -> None:
    look(driver, theme="light")
    page = Page(driver, small)
    assert page.js("document.documentElement.dataset.theme") == "light"
    page.click("button.theme")
    assert page.js("document.documentElement.dataset.theme") == "dark"
    page.js("localStorage.clear()")


def test_empty_cluster_says_what_to_do(driver: WebDriver) -> None:
    with in_background(page_of([])) as (server, _):
        Page(driver, server).shows("There are no nodes.")


def test_hostile_names_are_text(driver: WebDriver) -> None:
    node = make_node(HOSTILE).label({HOSTILE: HOSTILE}).taint(HOSTILE)
    pods = (
        make_pod(HOSTILE, namespace=HOSTILE.replace("/", "")).requests(cpu="9"),
        make_pod("there", namespace="default").label({"a": HOSTILE}).on(HOSTILE),
    )
    with in_background(page_of([node.build(), *(pod.build() for pod in pods)])) as (server, _):
        page = Page(driver, server)
        page.shows("untolerated taint", ".causes")
        page.go("#/nodes/" + page.js("encodeURIComponent(arguments[0])", HOSTILE))
        page.shows("onerror", "h1")
        page.go("#/pending")
        page.shows("onerror")
        page.press("/")
        page.type_into(".search input", "onerror")
        page.wait("document.querySelector('#found [aria-selected=true]') !== null")
        assert "<b>bold</b>" in page.text("#found")
        assert page.js("document.querySelectorAll('main img, main b b, #found img').length") == 0
        assert page.js("window.pwned") is None


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_no_view_is_wider_than_its_window(driver: WebDriver, small: PageServer, width: int) -> None:
    look(driver, width, 800)
    page = Page(driver, small)
    for address in EVERY_VIEW:
        page.go(address)
        assert page.overflow() <= 0, address


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core here (npm install --prefix tests/browser)")
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_views_are_accessible(driver: WebDriver, small: PageServer, theme: str) -> None:
    look(driver, theme=theme)
    page = Page(driver, small)
    for address in EVERY_VIEW:
        page.go(address)
        assert violations(driver) == [], address


def violations(driver: WebDriver) -> list[str]:
    """What axe has against the page as it is shown."""
    driver.execute_script(AXE.read_text())
    found: list[str] = driver.execute_async_script(
        "const done = arguments[0]; axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
        ".then(r => done(r.violations.map(v => v.id + ': '"
        " + v.nodes.map(n => n.target + ' ' + n.failureSummary).join(' | '))))"
    )
    return found


# -- 5,000 nodes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large() -> Iterator[PageServer]:
    with in_background(page_of(large_cluster(5_000, 50_000))) as (server, _):
        yield server


def test_large_cluster_is_drawn_panned_and_zoomed(driver: WebDriver, large: PageServer) -> None:
    page = Page(driver, large)
    until(lambda: page.colours() > 30, what="a map of many shares")
    page.shows("5,000 nodes", ".legend-line")
    for _ in range(9):
        page.click(".map-buttons button")
    page.wait("performance.getEntriesByType('resource').some(e => e.name.includes('/api/slices'))")
    until(lambda: page.colours() > 5, what="the nodes that are near")
    page.pointer("mousePressed", 400, 300)
    page.pointer("mouseMoved", 200, 200)
    page.pointer("mouseReleased", 200, 200)
    assert page.js("location.hash") in ("", "#/overview")


def test_large_cluster_is_never_loaded_whole(driver: WebDriver, large: PageServer) -> None:
    page = Page(driver, large)
    page.shows("Insufficient cpu", ".causes")
    page.go("#/pending")
    page.go("#/pods/default/wants-much-1")
    page.shows("fits nowhere", ".headline")
    page.type_into("[data-field=cpu]", "4")
    page.shows("goes to node-", ".headline")
    loaded = page.js("performance.getEntriesByType('resource').reduce((sum, e) => sum + e.encodedBodySize, 0)")
    assert loaded < 1_000_000


def test_node_that_promises_more_than_it_has_shows_its_pods(driver: WebDriver) -> None:
    giant = make_pod("giant").requests(cpu="6").on("node-1").build()
    running = msgspec.structs.replace(giant, status=PodStatus(phase="Running"))
    with in_background(page_of([make_node("node-1").capacity(cpu="4").build(), running])) as (server, _):
        page = Page(driver, server)
        page.shows("giant", ".legend-pods")
        red, green, blue = page.js(
            "getComputedStyle(document.querySelector('.mark.pods')).backgroundColor.match(/\\d+/g).map(Number)"
        )
        until(lambda: page.has_colour(f"#{red:02x}{green:02x}{blue:02x}"), what="a slice for the pod")


def test_type_is_larger_where_there_is_room_for_it(driver: WebDriver, small: PageServer) -> None:
    sizes = []
    for width in (1440, 2560):
        look(driver, width, 1440)
        page = Page(driver, small)
        sizes.append(page.js("parseFloat(getComputedStyle(document.body).fontSize)"))
        assert page.overflow() == 0
    assert sizes == [13, 16]


@pytest.mark.parametrize("width", [2560, 1440, 1100, 800, 390])
def test_what_a_search_finds_is_within_the_window(driver: WebDriver, small: PageServer, width: int) -> None:
    look(driver, width, 900)
    page = Page(driver, small)
    page.type_into(".search input", "node")
    page.shows("node-1", "#found")
    left, right = page.js(
        "(box => [box.left, box.right - innerWidth])(document.querySelector('#found').getBoundingClientRect())"
    )
    assert left >= 0
    assert right <= 0
