"""Marks by folder, so that `make check` can leave out what is slow, and properties that are the same every time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
MARKS_BY_FOLDER = {
    "integration": ("live", "slow"),
    "sandbox": ("kubectl", "slow"),
    "browser": ("browser", "slow"),
    "parity": ("recordings", "slow"),
}

# A busy machine must not fail a property, and neither must an example that nobody has tried before: `make explore` is
# for finding those.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", UNHURRIED, derandomize=True)
settings.register_profile("explore", UNHURRIED, max_examples=500)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            for mark in MARKS_BY_FOLDER.get(item.path.relative_to(HERE).parts[0], ()):
                item.add_marker(mark)
