"""Time travel in a real browser: the slider, playing, and addresses that name a moment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.chromium import MISSING, WebDriver
from tests.shown_page import page_of_recording, short_recording

from kubesched.ui.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

SLIDE = (
    "(e => { e.value = arguments[0]; e.dispatchEvent(new Event('input'));"
    "e.dispatchEvent(new Event('change')); return true })(document.querySelector('#travel input'))"
)


@pytest.fixture(scope="module")
def recording() -> Iterator[PageServer]:
    with in_background(page_of_recording(short_recording())) as (server, _):
        yield server


def test_slider_shows_any_moment_forward_and_back(driver: WebDriver, recording: PageServer) -> None:
    page = Page(driver, recording)
    page.wait("!document.querySelector('#travel').hidden")
    page.js(SLIDE, 10_000)
    page.shows("default/late → node-1", ".decisions")
    page.wait("location.hash.includes('at=')")
    page.js(SLIDE, 100)
    page.shows("default/web → node-1", ".decisions")
    page.wait("!document.querySelector('.decisions').innerText.includes('late')")
    page.shows("Insufficient cpu", ".causes")


def test_address_names_the_moment(driver: WebDriver, recording: PageServer) -> None:
    page = Page(driver, recording)
    page.js(SLIDE, 10_000)
    page.wait("location.hash.includes('at=')")
    driver.refresh()
    page.shows("default/late → node-1", ".decisions")


def test_recording_plays(driver: WebDriver, recording: PageServer) -> None:
    page = Page(driver, recording)
    page.js(SLIDE, 0)
    page.wait("document.querySelector('#travel .moment').innerText.startsWith('0.0 s')")
    page.js("(e => { e.value = '600'; return true })(document.querySelector('#travel select'))")
    page.click("#travel .play")
    page.shows("default/late → node-1", ".decisions")
    page.shows("Play", "#travel .play")  # it stops at the end


def test_nodes_are_grouped_by_zone_and_decisions_age_though_the_page_opened_at_the_beginning(driver: WebDriver) -> None:
    """There is no node at 0 s: zones could not be chosen until the page was loaded again."""
    with in_background(page_of_recording(short_recording())) as (server, _):
        page = Page(driver, server)
        page.wait("!document.querySelector('#travel').hidden")
        page.js(SLIDE, 10_000)
        page.wait("document.getElementById('group')?.value === 'topology.kubernetes.io/zone'")
        page.shows("60 s ago", ".decisions")
