"""Errors and connections are freed with their last use.

A traceback holds the frames that it went through: requests, answers, what came of a watch. Garbage is collected seldom,
so an error that holds itself holds all of that for minutes, and where servers come and go there are many errors.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.kube.scripted_server import Script, answering, chunked, hanging_up, sending, serving, silent, talking_to

from kubesched.kube.client import Client
from kubesched.kube.errors import KubeError
from kubesched.kube.http_connection import AnswerStream, HttpConnection


async def request(client: Client) -> None:
    await client.post("/x", b"{}", retries=0)


async def hurried_request(client: Client) -> None:
    await client.post("/x", b"{}", timeout=0.01)


async def watch(client: Client) -> None:
    stream = await client.watch("/x", silence=60)
    while await stream.lines():
        pass


FAILURES: dict[str, tuple[Script, Callable[[Client], Awaitable[None]]]] = {
    "refused request": (answering(409), request),
    "request whose connection is lost": (hanging_up, request),
    "request with a broken answer": (sending(b"rubbish\r\n\r\n"), request),
    "request without an answer in time": (silent, hurried_request),
    "refused watch": (answering(410), watch),
    "watch whose connection is lost before its answer": (hanging_up, watch),
    "watch that breaks off": (chunked(b"a line\n", end=False, then_hang_up=True), watch),
}


def with_causes(error: BaseException | None) -> list[weakref.ref[BaseException]]:
    return [] if error is None else [weakref.ref(error), *with_causes(error.__cause__)]


@pytest.mark.parametrize("failure", FAILURES)
def test_error_is_freed_with_its_last_use(failure: str) -> None:
    script, use = FAILURES[failure]

    async def main() -> None:
        async with serving(script) as server, talking_to(server) as client:
            try:
                await use(client)
            except KubeError as error:
                errors = with_causes(error)
            await asyncio.sleep(0.01)
            assert [error() for error in errors] == [None] * len(errors)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_connection_of_a_watch_is_freed_when_it_ends() -> None:
    async def main() -> None:
        async with serving(chunked(b"a line\n")) as server, talking_to(server) as client:
            await watch(client)
        await asyncio.sleep(0.01)
        assert [each for each in gc.get_objects() if isinstance(each, AnswerStream | HttpConnection)] == []

    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
