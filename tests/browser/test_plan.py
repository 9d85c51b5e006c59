"""A plan in a real browser: it is found, shown with its bound, and its waves are played."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import MISSING, WebDriver, console_errors
from tests.shown_page import page_of

from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod
from kubesched.ui.server import PageServer

pytest.importorskip("highspy", reason="plans need HiGHS")
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[PageServer]:
    objects: tuple[NodeBuilder | PodBuilder, ...] = (
        *(make_node(f"node-{i}").zone("ab"[i % 2]).capacity(cpu="4") for i in range(3)),
        make_pod("p").requests(cpu="1").owned_by("ReplicaSet", "r").on("node-0"),
        make_pod("q").requests(cpu="2").owned_by("ReplicaSet", "r").on("node-1"),
    )
    with in_background(page_of([each.build() for each in objects])) as (server, _):
        yield server


def ask(page: Page, nodes: int) -> None:
    page.js("(document.querySelector('.plan').open = true)")
    page.js("(document.getElementById('plan-nodes').value = arguments[0])", nodes)
    page.click(".plan button")


def test_plan_is_found_and_played(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if")
    page.wait("document.querySelector('.plan')")
    ask(page, nodes=2)
    page.shows("2 nodes freed, 1 move in 1 wave", ".plan")
    page.shows("no plan does better than 1", ".plan")
    page.click(".plan .play")
    page.shows("Wave 1 of 1", ".plan output")
    assert console_errors(driver) == []


def test_what_cannot_be_is_said(driver: WebDriver, cluster: PageServer) -> None:
    page = Page(driver, cluster)
    page.go("#/what-if")
    page.wait("document.querySelector('.plan')")
    ask(page, nodes=9)
    page.shows("there are only 3 such nodes", ".plan")
    assert len(console_errors(driver)) == 1, "the browser says that the question was refused"
