"""What an upgrade changes, in a real browser: by cause with its reference, workload by workload, and settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.browser.test_page import AXE, violations
from tests.chromium import MISSING, WebDriver, console_errors, look
from tests.shown_page import page_of, page_of_sandbox

from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod
from kubesched.ui.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[PageServer]:
    """A pod and two of a workload that would preempt, of which v1.37 says where and how many."""
    urgent = make_pod("urgent-0").owned_by("StatefulSet", "urgent").requests(cpu="3").priority(10)
    objects: tuple[NodeBuilder | PodBuilder, ...] = (
        make_node("node-1").capacity(cpu="4"),
        make_pod("victim").requests(cpu="4").on("node-1"),
        make_pod("alone").requests(cpu="2").priority(10),
        urgent,
        make_pod("urgent-1").owned_by("StatefulSet", "urgent").requests(cpu="3").priority(10),
    )
    with in_background(page_of([each.build() for each in objects])) as (server, _):
        yield server


def opened(driver: WebDriver, server: PageServer, address: str = "#/upgrade") -> Page:
    page = Page(driver, server)
    page.go(address)
    return page


def test_changes_are_grouped_by_what_causes_them_and_told_by_workload(driver: WebDriver, cluster: PageServer) -> None:
    page = opened(driver, cluster)
    page.shows("3 pending pods, 1 placed: something changes for 3.")
    page.shows("A pod that makes room says where", ".upgrade-cause h2")
    assert page.js("document.querySelector('.upgrade-cause a').href").endswith("/kubernetes/pull/140180")
    page.shows("default/urgent", ".upgrade-cause")
    page.shows("other message", ".upgrade-cause")
    page.shows("found a potential placement", ".upgrade-cause")
    assert not page.js("document.querySelector('.upgrade-cause details').open")
    page.click(".upgrade-cause summary")
    page.shows("default/urgent-1", ".upgrade-cause details")


def test_settings_that_change_are_told(driver: WebDriver, cluster: PageServer) -> None:
    page = opened(driver, cluster)
    page.shows("Fields of the configuration")
    page.shows("multiPoint.enabled, order", ".settings")
    page.shows("StorageCapacityScoring", ".settings:last-of-type")
    page.shows("Nothing in the cluster has changed.", ".note")


def test_address_names_the_releases_and_another_choice_asks_again(driver: WebDriver, cluster: PageServer) -> None:
    page = opened(driver, cluster, "#/upgrade/1.37/1.36")
    page.shows("something changes for 3.")
    assert page.js("document.querySelector('#from').value") == "1.37"
    page.js(
        "(document.querySelector('#to').value = '1.37',"
        " document.querySelector('#to').dispatchEvent(new Event('change')))"
    )
    page.wait("location.hash === '#/upgrade/1.37/1.37'")
    page.shows("expected another release than before, which is 1.37")
    assert page.js("document.querySelector('#from').value") == "1.37"
    assert len(console_errors(driver)) == 1, "the browser says that the question was refused"


def test_releases_are_compared_on_a_sandbox_at_work(driver: WebDriver) -> None:
    with in_background(page_of_sandbox(nodes=3)) as ((server, _), _):
        page = opened(driver, server)
        page.shows("0 pending pods, 0 placed: no pod is treated otherwise.")
        page.shows("Feature gates")


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_view_is_not_wider_than_the_window(driver: WebDriver, cluster: PageServer, width: int) -> None:
    look(driver, width, 800)
    page = opened(driver, cluster)
    page.shows("Feature gates")
    assert page.overflow() <= 0


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core here (npm install --prefix tests/browser)")
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_view_is_accessible(driver: WebDriver, cluster: PageServer, theme: str) -> None:
    look(driver, theme=theme)
    page = opened(driver, cluster)
    page.shows("Feature gates")
    assert violations(driver) == []
