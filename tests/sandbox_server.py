"""A sandbox API server for tests: in the loop of the test, or in a thread of its own for clients that block."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from tests.background_loop import in_background

from kubesched.api.api_error import ApiError
from kubesched.api.release import V1_36, Release
from kubesched_sandbox.api import Api, Stamps, bootstrap
from kubesched_sandbox.http import Server
from kubesched_sandbox.store import Store


def fresh_api(store: Store | None = None, *, clock: Any = None, seed: int = 1, release: Release = V1_36) -> Api:
    """A cluster with nothing in it but what every cluster has."""
    stamps = Stamps(rng=random.Random(seed)) if clock is None else Stamps(clock, random.Random(seed))
    api = Api(store or Store(), stamps, release)
    bootstrap(api)
    return api


@contextlib.contextmanager
def refused(code: int, reason: str) -> Iterator[pytest.ExceptionInfo[ApiError]]:
    """The block must end with an ApiError of this code and reason; its value is there afterwards."""
    with pytest.raises(ApiError) as caught:
        yield caught
    assert (caught.value.code, caught.value.reason) == (code, reason), caught.value.message


@contextlib.asynccontextmanager
async def serving(api: Api | None = None, **options: Any) -> AsyncIterator[Server]:
    """A server on a free port of loopback, in the running loop. Options are those of Server."""
    server = Server(api or fresh_api(), **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def client(server: Server, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of that server; paths are enough as addresses."""
    async with aiohttp.ClientSession(server.url, **options) as session:
        yield session


@contextlib.contextmanager
def serving_in_thread(api: Api | None = None, **options: Any) -> Iterator[Server]:
    """The same, in a thread of its own. Nothing of the Api may be touched from outside while it runs."""
    with in_background(serving(api, **options)) as (server, _):
        yield server
