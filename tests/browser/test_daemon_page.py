"""The page of a daemon in a real browser: signing in, decisions as they are made, shadow mode; and a live cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.background_loop import in_background
from tests.browser.page import Page
from tests.browser.test_page import AXE, violations
from tests.chromium import MISSING, WebDriver, console_errors, look
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster
from tests.shown_page import followed_page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

SECRET = "the-token-of-the-cluster"


class Watched:
    """A cluster, and a daemon with a page on it."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.cluster = LiveCluster(directory, tls=True, token=SECRET)
        self.cluster.add_node("ssd-1", labels={"disk": "ssd", "topology.kubernetes.io/zone": "a"})
        self.cluster.add_node("hdd-1", labels={"disk": "hdd", "topology.kubernetes.io/zone": "b"})
        file = str(self.cluster.kubeconfig())
        reviews = ("--authentication-kubeconfig", file, "--authorization-kubeconfig", file)
        self.daemon = Daemon(directory, file, *reviews, *flags, token=SECRET, with_page=True)
        self.url = f"https://127.0.0.1:{self.daemon.ui_port}/ui/"

    def close(self) -> None:
        self.daemon.close()
        self.cluster.close()

    def signed_in(self, driver: WebDriver) -> Page:
        page = Page(driver, self.url)
        if page.js("document.querySelector('#token') !== null"):
            page.type_into("#token", SECRET)
            page.click(".sign-in button")
        page.ready()
        console_errors(driver)  # the browser itself logs that the first question was refused
        return page


@pytest.fixture(scope="module")
def scheduling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    watched = Watched(tmp_path_factory.mktemp("scheduling"))
    try:
        watched.daemon.wait_scheduling()
        yield watched
    finally:
        watched.close()


@pytest.fixture(scope="module")
def shadowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Two pods on which both agree, two that go to the wrong disk, and one to where it does not fit."""
    watched = Watched(tmp_path_factory.mktemp("shadow"), "--shadow")
    cluster = watched.cluster
    try:
        for name, selector in (("a", "ssd"), ("b", "hdd"), ("c", "ssd"), ("d", "ssd")):
            cluster.add_pod(name, nodeSelector={"disk": selector})
        cluster.add_pod("large", cpu="30")
        cluster.add_pod("free", cpu="1")
        cluster.add_node("tiny-1", cpu="1")
        watched.daemon.wait_for_log("Watching, and binding nothing")
        bindings = {"a": "ssd-1", "b": "hdd-1", "c": "hdd-1", "d": "hdd-1", "large": "tiny-1"}
        for name, node in bindings.items():
            cluster.bind(name, node)
        yield watched
    finally:
        watched.close()


# -- a scheduler at work --------------------------------------------------------------------------------------------


def test_whoever_has_no_token_is_asked_for_one_and_told_where_to_get_it(driver: WebDriver, scheduling: Watched) -> None:
    driver.delete_all_cookies()
    page = Page(driver, scheduling.url)
    page.shows("You are nobody yet", "#refusal")
    assert "kubectl create token" in page.js("document.querySelector('.sign-in pre').textContent")
    page.type_into("#token", "made-up")
    page.click(".sign-in button")
    page.shows("not valid", "#refusal")
    page.type_into("#token", SECRET)
    page.click(".sign-in button")
    page.ready()
    assert SECRET not in page.js("document.cookie")
    assert all("401" in line or "403" in line for line in console_errors(driver))


def test_whoever_signs_out_is_nobody_again(driver: WebDriver, scheduling: Watched) -> None:
    page = scheduling.signed_in(driver)
    page.click(".sign-out")
    page.shows("You are nobody yet", "#refusal")
    assert scheduling.signed_in(driver).js("document.querySelector('.sign-out') !== null")


def test_decisions_of_the_daemon_appear_as_they_are_made(driver: WebDriver, scheduling: Watched) -> None:
    page = scheduling.signed_in(driver)
    page.shows("2 nodes", ".legend-line")
    scheduling.cluster.add_pod("quick", nodeSelector={"disk": "ssd"})
    scheduling.cluster.add_pod("giant", cpu="100")
    page.shows("default/quick → ssd-1", ".decisions")
    page.shows("Insufficient cpu", ".causes")
    page.go("#/queue")
    page.shows("half within")
    page.shows("Slowest plugins and extenders")
    page.go("#/pods/default/giant")
    page.shows("fits nowhere", ".headline")
    page.type_into("[data-field=cpu]", "1")
    page.shows("goes to", ".headline")


def test_page_of_a_scheduler_at_work_offers_nothing_that_takes_long(driver: WebDriver, scheduling: Watched) -> None:
    page = scheduling.signed_in(driver)
    assert page.js("[...document.querySelectorAll('nav a')].map(a => a.textContent).join()").startswith("Overview")
    assert page.js("document.querySelector('[data-tab=what-if]')") is None
    page.go("#/pending")
    assert page.js("document.querySelector('.help:not([hidden])')") is None


# -- shadow mode ----------------------------------------------------------------------------------------------------


def test_agreement_and_differences_are_shown_by_cause_with_both_sides(driver: WebDriver, shadowing: Watched) -> None:
    page = shadowing.signed_in(driver)
    page.go("#/shadow")
    page.shows("40.0 %", ".agreement")
    assert page.text(".judgements li").split("\n")[:2] == ["2", "same node"]
    page.shows("NodeAffinity", ".cause-list")
    page.driver.execute_script(
        "[...document.querySelectorAll('.cause-list a')].find(a => a.textContent.includes('NodeAffinity')).click()"
    )
    page.wait("location.hash.length > '#/shadow/'.length")
    page.wait("document.querySelectorAll('.difference').length === 2")
    page.shows("They chose hdd-1", ".difference")
    page.shows("Here it would be ssd-1", ".difference")
    page.shows("didn't match Pod's node affinity", ".difference .side")
    driver.back()
    page.wait("document.querySelectorAll('.difference').length === 3")
    page.shows("Here it would wait")


def test_difference_in_scores_shows_what_each_plugin_gives(driver: WebDriver, shadowing: Watched) -> None:
    page = shadowing.signed_in(driver)
    page.go("#/shadow")
    page.shows("NodeAffinity", ".cause-list")
    shadowing.cluster.bind("free", "hdd-1")
    page.shows("default/free", ".differences")
    page.shows("prefers another node", ".cause-list")
    page.wait("document.querySelectorAll('.difference .scored .stack').length >= 2")


def test_bindings_of_the_scheduler_in_charge_are_the_decisions(driver: WebDriver, shadowing: Watched) -> None:
    page = shadowing.signed_in(driver)
    shadowing.cluster.add_pod("watched", cpu="1m")
    page.shows("1", "[data-tab=pending] .badge")
    shadowing.cluster.bind("watched", "ssd-1")
    page.shows("default/watched → ssd-1", ".decisions")
    page.go("#/queue")
    page.shows("Another scheduler decides here")


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_views_of_a_daemon_are_not_wider_than_the_window(driver: WebDriver, shadowing: Watched, width: int) -> None:
    look(driver, width, 800)
    page = shadowing.signed_in(driver)
    for address in ("#/shadow", "#/queue", "#/overview"):
        page.go(address)
        assert page.overflow() <= 0, address


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core here (npm install --prefix tests/browser)")
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_views_of_a_daemon_are_accessible(driver: WebDriver, shadowing: Watched, theme: str) -> None:
    look(driver, theme=theme)
    driver.delete_all_cookies()
    Page(driver, shadowing.url)
    assert violations(driver) == [], "sign-in"
    page = shadowing.signed_in(driver)
    for address in ("#/shadow", "#/queue"):
        page.go(address)
        assert violations(driver) == [], address


# -- kubesched ui on a live cluster ---------------------------------------------------------------------------------


def test_live_cluster_is_seen_as_it_changes(driver: WebDriver, scheduling: Watched) -> None:
    cluster = scheduling.cluster
    with in_background(followed_page(cluster.kubeconfig())) as (server, _):
        page = Page(driver, server)
        page.shows("2 nodes", ".legend-line")
        cluster.add_pod("followed", nodeSelector={"disk": "hdd"})
        page.shows("default/followed → hdd-1", ".decisions")
        cluster.add_node("new-1", labels={"topology.kubernetes.io/zone": "c"})
        page.shows("3 nodes", ".legend-line")
        cluster.add_pod("huge", cpu="300")
        page.shows("Insufficient cpu", ".causes")
        page.go("#/pods/default/huge")
        page.shows("0/3 nodes are available", ".decisions")  # what the scheduler in charge said
