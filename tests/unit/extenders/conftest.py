from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.extenders.extender_server import ExtenderServer


@pytest.fixture
def server() -> Iterator[ExtenderServer]:
    server = ExtenderServer()
    server.start()
    yield server
    server.stop()
