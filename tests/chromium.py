"""A real browser, for tests, screenshots and benchmarks: Debian's Chromium, driven by selenium."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

try:
    from selenium import webdriver
except ImportError:  # pragma: no cover
    MISSING = "selenium is not installed (pip install -e '.[dev]')"
else:
    MISSING = "" if CHROMIUM and DRIVER else "no chromium here (Debian packages: chromium, chromium-driver)"

WebDriver = Any
"""What selenium drives; its own types do not know the console."""
T = TypeVar("T")

_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@contextlib.contextmanager
def browser() -> Iterator[WebDriver]:
    """A browser with a profile of its own, whose console can be read."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    options.accept_insecure_certs = True  # daemons have certificates of their own making
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in (*_QUIET, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        try:
            driver.set_script_timeout(60)
            yield driver
        finally:
            driver.quit()


def look(driver: WebDriver, width: int = 1280, height: int = 800, theme: str = "dark") -> None:
    """Give the window a size and the system a theme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def until(found: Callable[[], T], *, seconds: float = 30.0, what: str = "") -> T:
    """The first answer that is not false. Pages draw when they come to it, so tests wait for what they look at."""
    deadline = time.monotonic() + seconds
    while True:
        answer = found()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what or found}")
        time.sleep(0.05)


def console_errors(driver: WebDriver) -> list[str]:
    """What the console has complained of since it was last asked."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
