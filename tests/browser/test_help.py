"""What would help, in a real browser: for one pod, and for all that wait."""

from __future__ import annotations

import pytest
from tests.browser.page import Page
from tests.chromium import MISSING, WebDriver

from kubesched.ui.server import PageServer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


def test_pod_that_fits_nowhere_is_told_what_would_help(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pods/default/large")
    page.click(".help .ask")
    page.shows("4 instead of 20", ".help")
    page.shows("costs: The pod must be created anew.", ".help .harm")
    page.shows("touches: Pod default/large", ".help .harm")
    page.shows("Nothing in the cluster has changed", ".help")
    page.click(".help summary")
    page.shows("patch Pod default/large", ".help pre")


def test_pod_that_has_a_place_is_not_offered_help(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pods/default/fits")
    page.shows("fits", ".headline .verdict")
    assert page.js("document.querySelector('.help')") is None


def test_all_that_wait_are_told_what_would_help_them(driver: WebDriver, small: PageServer) -> None:
    page = Page(driver, small)
    page.go("#/pending")
    page.shows("Insufficient cpu")
    page.click(".help .ask")
    page.shows("2 pods of default: Insufficient cpu", ".help-group")  # as `kubesched explain` heads it
    page.shows("1 more node of pool node would place 1 of them.", ".help-group")
    page.shows("1 pod would be placed as things are", ".help")
