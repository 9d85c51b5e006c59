"""The browser, and a small cluster to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.background_loop import in_background
from tests.chromium import WebDriver, browser, console_errors, look
from tests.shown_page import page_of

from kubesched.testing import make_node, make_pod
from kubesched.ui.server import PageServer


@pytest.fixture(scope="module")
def chromium() -> Iterator[WebDriver]:
    with browser() as driver:
        yield driver


@pytest.fixture
def driver(chromium: WebDriver) -> Iterator[WebDriver]:
    """The browser, whose console has nothing to complain of at the end of any test."""
    look(chromium)
    console_errors(chromium)
    yield chromium
    assert console_errors(chromium) == []
    chromium.get("about:blank")


@pytest.fixture(scope="module")
def small() -> Iterator[PageServer]:
    """Three nodes, a pod that fits on one of them, one that fits nowhere, one that would preempt."""
    objects = (
        make_node("node-1").zone("a").label({"disk": "ssd"}).capacity(cpu="4"),
        make_node("node-2").zone("a").label({"disk": "hdd"}).capacity(cpu="8"),
        make_node("node-3").zone("b").taint("dedicated", "gpu").cordoned(),
        make_pod("runs").requests(cpu="1").priority(1).on("node-1"),
        make_pod("fits").requests(cpu="2"),
        make_pod("large").requests(cpu="20"),
        make_pod("urgent").requests(cpu="8").priority(10),
        make_pod("keeps").owned_by("StatefulSet", "store").requests(cpu="4").priority(1).on("node-2"),
    )
    with in_background(page_of([each.build() for each in objects])) as (server, _):
        yield server
