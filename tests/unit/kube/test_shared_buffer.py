"""Connections that read into one buffer: each has its own answer, whatever the others read in between."""

from __future__ import annotations

import asyncio

from tests.virtual_time import run

from kubesched.kube.http_connection import HttpConnection

SIZE = 64
ONE, OTHER = b"a" * 10 * SIZE, b"b" * 10 * SIZE


class Line(asyncio.Transport):
    """Takes all that is written, and is always open."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


def connected(buffer: bytearray) -> HttpConnection:
    connection = HttpConnection(asyncio.get_running_loop(), lambda _: None, buffer)
    connection.connection_made(Line())
    return connection


def receive(connection: HttpConnection, data: bytes) -> None:
    """As an event loop does it."""
    while data:
        buffer = connection.get_buffer(-1)
        piece, data = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(piece)] = piece
        connection.buffer_updated(len(piece))


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def both_answers() -> list[bytes]:
    """What two connections get, of which one is answered while the other has half of its answer."""
    buffer = bytearray(SIZE)
    first, second = connected(buffer), connected(buffer)
    asked = [each.request(b"GET / HTTP/1.1\r\n\r\n") for each in (first, second)]
    one, other = answer(ONE), answer(OTHER)
    receive(first, one[: 5 * SIZE])
    receive(second, other)
    receive(first, one[5 * SIZE :])
    return [said.body for said in await asyncio.gather(*asked)]


def test_answers_longer_than_the_buffer_that_connections_share_come_whole() -> None:
    assert run(both_answers()) == [ONE, OTHER]
