"""Workloads, lists, the map and its legend in a real browser, at the sizes of a phone and of a large screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import MISSING, WebDriver, look, until
from tests.shown_page import page_of

from kubesched.api.pod import Container, Pod, ResourceRequirements
from kubesched.testing import PodBuilder, make_node, make_pod
from kubesched.ui.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

CHANGE = (
    "(([selector, value]) => { const e = document.querySelector(selector); e.value = value;"
    "e.dispatchEvent(new Event('change')); return true })([arguments[0], arguments[1]])"
)
LONG = "recommendation-service-canary-for-the-personalization-of-offers"


@pytest.fixture(scope="module")
def cluster() -> Iterator[PageServer]:
    """Two nodes with long names, a Deployment of which one pod waits, and a pod that wants a GPU."""
    nodes = [make_node(f"ip-10-0-5-{i}.eu-west-1.compute.internal").zone("ab"[i]).capacity(cpu="4") for i in range(2)]
    pods = [*(web(i).on(f"ip-10-0-5-{i}.eu-west-1.compute.internal") for i in range(2)), web(2)]
    with in_background(
        page_of([*(node.build() for node in nodes), *(pod.build() for pod in pods), _with_limits()])
    ) as (server, _):
        yield server


def _with_limits() -> Pod:
    requests: dict[str, str | int | float] = {"nvidia.com/gpu": 1, "cpu": "1"}
    resources = ResourceRequirements(requests=requests, limits={"nvidia.com/gpu": 1, "cpu": "2"})
    pod = make_pod("train").build()
    return replace(pod, spec=replace(pod.spec, containers=(Container(name="main", resources=resources),)))


def web(number: int) -> PodBuilder:
    pod = make_pod(f"{LONG[:40]}-7d9f8c-{number}", namespace="shop").label({"pod-template-hash": "7d9f8c"})
    return pod.owned_by("ReplicaSet", f"{LONG}-7d9f8c").requests(cpu="3")


def test_workload_is_found_by_search_and_says_why_its_next_pod_waits(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.press("/")
    page.type_into(".search input", "recomm")
    page.shows("Deployment", "#found")
    names = page.js("[...document.querySelectorAll('#found [role=option]')].map(e => e.innerText)")
    assert "waiting" in names[1]  # of the pods, the one that waits is first
    page.press("Enter", ".search input")
    page.shows(f"shop/{LONG}", "h1")
    page.shows("1 pod waiting: Insufficient cpu")
    page.shows("fits nowhere", ".headline")
    assert page.js("document.querySelector('.search input').value") == ""  # the old text is gone
    page.type_into("[data-field=cpu]", "1")
    page.shows("goes to", ".headline")


def test_list_is_filtered_by_namespace_and_the_address_remembers(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/pods")
    page.shows("default/train", ".list")
    page.js(CHANGE, "[aria-label=Namespace]", "shop")
    page.wait("!document.querySelector('.list').innerText.includes('train')")
    page.wait("location.hash.includes('namespace=shop')")
    page.click(".list th:nth-child(4) button")
    page.wait("document.querySelector('.list th:nth-child(4)').getAttribute('aria-sort') === 'ascending'")


def test_gpus_of_a_pod_with_limits_can_be_tried(driver: WebDriver, cluster: PageServer) -> None:
    """The form changed the request alone: "must be equal to nvidia.com/gpu limit of 1", for every valid pod."""
    page = Page(driver, cluster)
    page.go("#/pods/default/train")
    page.shows("Insufficient nvidia.com/gpu")
    page.type_into("[data-field='nvidia.com/gpu']", "0")
    page.shows("goes to", ".headline")
    page.type_into("[data-field=cpu]", "3")  # more than its limit, which is raised with it
    page.wait("document.querySelector('[data-field=\"cpu limit\"]').value === '3'")
    page.shows("fits nowhere", ".headline")


def test_verdict_that_is_not_of_what_was_typed_is_faint(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/pods/default/train")
    page.type_into("[data-field=cpu]", "much")
    page.wait("document.querySelector('.verdict-parts.stale') !== null")
    page.type_into("[data-field=cpu]", "1")
    page.wait("document.querySelector('.verdict-parts.stale') === null")


@pytest.mark.parametrize("width", [390, 1440, 2560])
def test_map_of_two_nodes_fills_its_place(driver: WebDriver, cluster: PageServer, width: int) -> None:
    """Two nodes took a sixth of the width, and the rest was white."""
    look(driver, width, 900)
    page = Page(driver, cluster)
    until(lambda: page.colours() > 3, what="the map")
    covered = page.js(
        "(c => { const at = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, n = c.width * c.height;"
        "const back = at.slice(0, 3).join(); let other = 0;"
        "for (let i = 0; i < n; i++) if (at.slice(4 * i, 4 * i + 3).join() !== back) other++;"
        "return other / n })(document.querySelector('.map canvas'))"
    )
    assert covered > 0.75


def test_colour_of_a_workload_is_named_and_stays(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.shows(LONG, ".legend-pods")
    colour = "document.querySelector('.legend-pods .mark.pods').style.getPropertyValue('--dot')"
    before = page.js(colour)
    driver.refresh()
    page.shows(LONG, ".legend-pods")
    assert page.js(colour) == before


@pytest.mark.parametrize("width", [390, 1440])
def test_no_name_is_cut(driver: WebDriver, cluster: PageServer, width: int) -> None:
    look(driver, width, 900)
    page = Page(driver, cluster)
    for address, there in (
        ("#/overview", f"shop/{LONG}"),
        ("#/pods/default/train", "ip-10-0-5-1.eu-west-1.compute.internal"),
        (f"#/workloads/shop/Deployment/{LONG}", f"shop/{LONG}"),
    ):
        page.go(address)
        page.shows(there)
        cut = "[...document.querySelectorAll('main a, main .name')].filter(e => e.scrollWidth > e.clientWidth + 1)"
        assert page.js(f"{cut}.filter(e => getComputedStyle(e).overflow !== 'visible').map(e => e.innerText)") == []


def test_a_pod_without_an_owner_is_named_among_the_causes(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.shows("default/train", ".causes")


def test_rows_of_a_phone_are_records_and_nothing_is_cut(driver: WebDriver, cluster: PageServer) -> None:
    """A row of the preemptions was 880 px tall, and the table of a node lost its last column."""
    look(driver, 390, 844)
    page = Page(driver, cluster)
    for address in ("#/pods", "#/nodes", "#/workloads", "#/nodes/ip-10-0-5-0.eu-west-1.compute.internal"):
        page.go(address)
        page.wait("document.querySelector('main td') !== null")
        rows = "[...document.querySelectorAll('main tr')].filter(e => e.offsetParent)"
        assert page.js(f"Math.max(...{rows}.map(e => e.offsetHeight))") < 160, address
        cut = "[...document.querySelectorAll('main td')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        assert page.js(f"{cut}.length") == 0, address
