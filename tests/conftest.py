"""Marks by folder, so that `make check` can leave out what is slow, and properties that are the same every time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.pop("COLUMNS", None)  # pages are as wide as they are in a pipe, wherever the tests run

HERE = Path(__file__).parent
MARKS_BY_FOLDER = {
    "integration": ("live", "slow"),
    "sandbox": ("kubectl", "slow"),
    "browser": ("browser", "slow"),
    "parity": ("recordings", "slow"),
    "control_plane": ("control_plane", "slow"),
}

# A busy machine must not fail a property, and neither must an example that nobody has tried before: `make explore` is
# for finding those.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED, max_examples=500)
settings.load_profile("repeatable")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line about what could not be tried here, or nobody would miss it."""
    skipped = sum(
        report.nodeid.startswith("tests/control_plane/") for report in terminalreporter.stats.get("skipped", [])
    )
    if skipped:
        terminalreporter.write_line(
            f"{skipped} tests on a real control plane were skipped: CONTRIBUTING.md says what they need"
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            for mark in MARKS_BY_FOLDER.get(item.path.relative_to(HERE).parts[0], ()):
                item.add_marker(mark)
