"""Requests over real sockets: answers in any shape, errors with types, retries only where they are safe."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from tests.unit.kube.scripted_server import (
    Exchange,
    answering,
    chunked,
    hanging_up,
    sending,
    serving,
    silent,
    talking_to,
)
from tests.virtual_time import run

from kubesched.config.configuration import ClientConnection
from kubesched.kube.authentication import clients_for
from kubesched.kube.client import MERGE_PATCH
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.errors import AnswerTimeoutError, ApiStatusError, UnreachableError
from kubesched.kube.observer import Observer


@dataclass
class Notes(Observer):
    """An observer that remembers."""

    answers: list[tuple[str, str]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)
    sizes: list[tuple[int, int | None]] = field(default_factory=list)

    def answered(self, verb: str, host: str, code: str, waited: float | None = None) -> None:
        self.answers.append((verb, code))
        if waited is not None:
            self.waits.append(waited)

    def finished(self, verb: str, host: str, seconds: float, sent: int, received: int | None) -> None:
        self.sizes.append((sent, received))

    def retried(self, verb: str, host: str, code: str) -> None:
        self.retries.append(code)

    def plugin_called(self, exit_code: int, status: str) -> None:
        raise AssertionError("there is no plugin")


@dataclass
class Naps:
    """Sleep that takes no time."""

    taken: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def test_requests_share_a_connection_and_say_who_we_are() -> None:
    async def main() -> None:
        async with serving(answering(200, b'{"a":1}')) as server, talking_to(server) as client:
            assert await client.get("/one") == b'{"a":1}'
            assert await client.post("/two", b"[]") == b'{"a":1}'
            await client.patch("/three", b"{}", content_type=MERGE_PATCH)
            await client.delete("/four")
            assert server.paths == ["/one", "/two", "/three", "/four"]
            assert server.connections == 1
            one, two, three, _ = server.requests
            assert one.headers["user-agent"].startswith("kubesched/")
            assert "content-length" not in one.headers
            assert (two.method, two.body, two.headers["content-type"]) == ("POST", b"[]", "application/json")
            assert three.headers["content-type"] == "application/merge-patch+json"

    run(main())


def test_answers_in_odd_pieces_are_put_together() -> None:
    async def main() -> None:
        scripts = [
            chunked(b"a", b"bc" * 50_000, b"d"),
            sending(b"H", b"TTP/1.1 200 OK\r", b"\nContent-Le", b"ngth: 4\r\n\r\nab", b"cd"),
            sending(b"HTTP/1.1 200 OK\r\n\r\nuntil the end", then_hang_up=True),
            answering(200, b"again"),
        ]
        async with serving(*scripts) as server, talking_to(server) as client:
            assert await client.get("/") == b"a" + b"bc" * 50_000 + b"d"
            assert await client.get("/") == b"abcd"
            assert await client.get("/") == b"until the end"
            assert await client.get("/") == b"again"
            assert server.connections == 2

    run(main())


def test_error_has_code_reason_message_and_details() -> None:
    status = {
        "kind": "Status",
        "status": "Failure",
        "code": 409,
        "reason": "Conflict",
        "message": "the pod is already assigned to node",
        "details": {"name": "p", "kind": "pods", "causes": [{"reason": "X", "message": "y", "field": "z"}]},
    }

    async def main() -> ApiStatusError:
        async with serving(answering(409, json.dumps(status).encode())) as server, talking_to(server) as client:
            with pytest.raises(ApiStatusError) as caught:
                await client.post("/binding", b"{}")
            return caught.value

    error = run(main())
    assert (error.code, error.reason, error.details.name) == (409, "Conflict", "p")
    assert str(error) == "the pod is already assigned to node"
    assert error.details.causes[0].field == "z"


def test_error_page_of_a_proxy_is_an_error_with_a_reason() -> None:
    async def main() -> ApiStatusError:
        page = b"<html>\n<h1>Bad   Gateway</h1>" + b"x" * 10_000
        async with serving(answering(503, page)) as server, talking_to(server) as client:
            with pytest.raises(ApiStatusError) as caught:
                await client.post("/binding", b"{}")
            return caught.value

    error = run(main())
    assert (error.code, error.reason) == (503, "ServiceUnavailable")
    assert "<html> <h1>Bad Gateway" in str(error)
    assert len(str(error)) < 300


@pytest.mark.parametrize("code", [429, 500, 503])
def test_retry_after_is_heeded_even_for_writes(code: int) -> None:
    async def main() -> None:
        notes, naps = Notes(), Naps()
        scripts = [answering(code, Retry_After="7"), answering(code, Retry_After="1"), answering(201, b"done")]
        async with serving(*scripts) as server, talking_to(server, observer=notes, sleep=naps) as client:
            assert await client.post("/x", b"{}") == b"done"
        assert naps.taken == [7.0, 1.0]
        assert notes.answers == [("POST", str(code)), ("POST", str(code)), ("POST", "201")]
        assert notes.retries == [str(code), "201"]
        assert notes.sizes == [(2, 4)], "one request, however often it was tried"

    run(main())


@pytest.mark.parametrize("seconds", ["61", "99999999999999999999", "9" * 400])
def test_retry_after_has_a_limit(seconds: str) -> None:
    async def main() -> None:
        naps = Naps()
        scripts = [answering(429, Retry_After=seconds), answering(200)]
        async with serving(*scripts) as server, talking_to(server, sleep=naps) as client:
            await client.get("/x")
        assert naps.taken == [60.0]

    run(main())


def test_retries_end() -> None:
    async def main() -> None:
        naps = Naps()
        async with serving(answering(429, Retry_After="2")) as server, talking_to(server, sleep=naps) as client:
            with pytest.raises(ApiStatusError) as caught:
                await client.get("/x", retries=3)
            assert caught.value.retry_after == 2.0
            assert len(server.requests) == 4
            assert naps.taken == [2.0, 2.0, 2.0]

    run(main())


def test_error_without_retry_after_is_not_tried_again() -> None:
    async def main() -> None:
        async with serving(answering(503)) as server, talking_to(server) as client:
            with pytest.raises(ApiStatusError):
                await client.get("/x")
            assert len(server.requests) == 1

    run(main())


def test_reading_is_tried_again_when_the_server_hangs_up() -> None:
    async def main() -> None:
        notes, naps = Notes(), Naps()
        scripts = [hanging_up, sending(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", then_hang_up=True)]
        async with (
            serving(*scripts, answering(200, b"whole")) as server,
            talking_to(server, observer=notes, sleep=naps) as client,
        ):
            assert await client.get("/x") == b"whole"
        assert naps.taken == [1.0]
        assert [code for _, code in notes.answers] == ["<error>", "<error>", "200"]

    run(main())


def test_write_without_an_answer_is_not_tried_again_and_may_have_been_done() -> None:
    async def main() -> None:
        async with serving(hanging_up, answering(201)) as server, talking_to(server) as client:
            with pytest.raises(UnreachableError, match=r"POST 127.0.0.1:\d+/binding: .* before an answer") as caught:
                await client.post("/binding?a=b", b"{}")
            assert caught.value.maybe_done
            assert len(server.requests) == 1

    run(main())


def test_connection_refused_is_said_in_one_line_and_nothing_was_done() -> None:
    async def main() -> None:
        async with serving(silent) as server:
            pass
        async with talking_to(server) as client:
            with pytest.raises(
                UnreachableError, match=r"POST .*: dial tcp 127.0.0.1:\d+: connect: connection refused$"
            ) as e:
                await client.post("/x", b"{}")
            assert not e.value.maybe_done

    run(main())


def test_answer_must_come_in_time() -> None:
    async def main() -> None:
        async with serving(silent, answering(200)) as server, talking_to(server) as client:
            with pytest.raises(AnswerTimeoutError, match=r"no answer within 0.05 s"):
                await client.post("/x", b"{}", timeout=0.05)
            assert await client.get("/x") == b"{}"

    run(main())


def test_dripping_answer_must_end_in_time() -> None:
    async def drip(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            await exchange.send(b"x")
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with serving(drip) as server, talking_to(server) as client:
            with pytest.raises(AnswerTimeoutError):
                await client.post("/x", b"{}", timeout=0.1)

    run(main())


def test_answer_before_the_end_of_a_large_request_is_taken() -> None:
    """The server refuses without reading on, as for a body that is too large."""

    async def main() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            await ended.wait()
            writer.close()

        ended = asyncio.Event()
        listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with serving(silent) as server:
            server.port = listening.sockets[0].getsockname()[1]
            async with talking_to(server) as client:
                with pytest.raises(ApiStatusError) as caught:
                    await client.post("/x", b"x" * 50_000_000)
                assert caught.value.code == 413
        ended.set()
        listening.close()

    run(main())


def test_cancelled_request_leaves_no_answer_behind_for_the_next() -> None:
    async def main() -> None:
        came = asyncio.Event()

        async def late(exchange: Exchange) -> None:
            came.set()
            await asyncio.sleep(0.05)
            await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")

        async with serving(late, answering(200, b"mine")) as server, talking_to(server, connections=1) as client:
            task = asyncio.create_task(client.get("/first"))
            await came.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await client.get("/second") == b"mine"

    run(main())


def test_unasked_bytes_on_an_idle_connection_end_it() -> None:
    async def main() -> None:
        answered, said = asyncio.Event(), asyncio.Event()

        async def chatty(exchange: Exchange) -> None:
            await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await answered.wait()
            await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            said.set()

        async with serving(chatty, answering(200, b"good")) as server, talking_to(server) as client:
            assert await client.get("/") == b"ok"
            answered.set()
            await said.wait()
            await asyncio.sleep(0.05)  # for the bytes to arrive
            assert await client.get("/") == b"good"
            assert server.connections == 2

    run(main())


def test_no_more_connections_than_allowed() -> None:
    async def main() -> None:
        async def slow(exchange: Exchange) -> None:
            await asyncio.sleep(0.005)
            await answering(200)(exchange)

        async with serving(slow) as server, talking_to(server, connections=3) as client:
            await asyncio.gather(*(client.get(f"/{n}") for n in range(12)))
            assert server.connections == 3

    run(main())


def test_waiting_for_the_rate_limit_is_seen() -> None:
    async def main() -> None:
        notes, naps = Notes(), Naps()
        async with (
            serving(answering(200)) as server,
            talking_to(server, qps=1, burst=2, throttle_clock=lambda: 0.0, observer=notes, sleep=naps) as client,
        ):
            for _ in range(4):
                await client.get("/")
        assert notes.waits == [0.0, 0.0, 1.0, 2.0]
        assert naps.taken == [1.0, 2.0]

    run(main())


def test_watch_is_counted_but_knows_no_limits_and_has_no_duration() -> None:
    async def main() -> None:
        notes, naps = Notes(), Naps()
        async with (
            serving(chunked(b"{}\n")) as server,
            talking_to(server, qps=1, burst=1, throttle_clock=lambda: 0.0, observer=notes, sleep=naps) as client,
        ):
            for _ in range(3):
                (await client.watch("/watch", silence=5)).close()
        assert notes.answers == [("GET", "200")] * 3
        assert (notes.waits, notes.sizes, naps.taken) == ([], [], [])

    run(main())


def test_watch_gives_lines_as_they_come_and_ends() -> None:
    async def main() -> None:
        long = b"x" * 3_000_000
        async with (
            serving(chunked(b'{"a"', b":1}\n\n{}\n", long, long + b"\nlast\n")) as server,
            talking_to(server) as client,
        ):
            with closing(await client.watch("/watch", silence=5)) as watch:
                lines: list[bytes] = []
                while more := await watch.lines():
                    lines += more
            assert lines == [b'{"a":1}', b"{}", long + long, b"last"]

    run(main())


def test_watch_that_breaks_off_says_so_after_its_lines() -> None:
    async def main() -> None:
        async with (
            serving(chunked(b"one\n", end=False, then_hang_up=True)) as server,
            talking_to(server) as client,
        ):
            with closing(await client.watch("/watch", silence=5)) as watch:
                assert await watch.lines() == [b"one"]
                with pytest.raises(UnreachableError, match="in the middle"):
                    await watch.lines()

    run(main())


def test_silent_watch_is_given_up() -> None:
    async def main() -> None:
        async def half_open(exchange: Exchange) -> None:
            await chunked(b"one\n", end=False)(exchange)
            await silent(exchange)

        async with serving(half_open) as server, talking_to(server) as client:
            with closing(await client.watch("/watch", silence=0.05)) as watch:
                assert await watch.lines() == [b"one"]
                with pytest.raises(AnswerTimeoutError, match=r"nothing was sent for 0\.05 s"):
                    await asyncio.wait_for(watch.lines(), 60)

    run(main())


def test_refused_watch_is_a_typed_error() -> None:
    async def main() -> None:
        gone = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 1 (5)"}'
        async with serving(answering(410, gone)) as server, talking_to(server) as client:
            with pytest.raises(ApiStatusError, match="too old") as caught:
                await client.watch("/watch", silence=5)
            assert caught.value.is_expired

    run(main())


@pytest.mark.parametrize(("megabytes", "all_of_it"), [(20, True), (80, False)])
def test_watch_is_taken_off_the_wire_before_it_is_read_until_that_is_too_much(megabytes: int, all_of_it: bool) -> None:
    lines_sent = 10 * megabytes

    async def main() -> None:
        sent = 0

        async def flood(exchange: Exchange) -> None:
            nonlocal sent
            await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(lines_sent):
                await exchange.send(b"%x\r\n%s\r\n" % (100_001, b"y" * 100_000 + b"\n"))
                sent += 1
            await exchange.send(b"0\r\n\r\n")

        async with serving(flood) as server, talking_to(server) as client:
            with closing(await client.watch("/watch", silence=5)) as watch:
                before = -1
                while sent != before:  # until it stands still
                    before = sent
                    await asyncio.sleep(0.05)
                assert (sent == lines_sent) is all_of_it
                count = 0
                while lines := await watch.lines():
                    count += len(lines)
                assert count == lines_sent

    run(main())


def test_client_works_on_uvloop() -> None:
    import uvloop

    async def main() -> None:
        async with serving(chunked(b"a", b"b")) as server, talking_to(server) as client:
            started = time.monotonic()
            assert await client.get("/") == b"ab"
            with closing(await client.watch("/", silence=5)) as watch:
                assert await watch.lines() == []
            assert time.monotonic() - started < 5

    uvloop.run(main())


def test_reading_too_slowly_answered_is_not_tried_again() -> None:
    async def main() -> None:
        async with serving(silent) as server, talking_to(server) as client:
            with pytest.raises(AnswerTimeoutError):
                await client.get("/x", timeout=0.05)
            assert len(server.requests) == 1

    run(main())


def test_clients_of_a_scheduler_share_no_limits_and_leases_have_connections_of_their_own() -> None:
    async def main() -> None:
        async with serving(answering(200)) as server:
            settings = ConnectionSettings(server=f"http://127.0.0.1:{server.port}")
            notes = Notes()
            clients = clients_for(
                settings, ClientConnection(qps=1.0, burst=1), {}, observer=notes, observer_of_leases=notes
            )
            await clients.scheduler.get("/a")
            await clients.events.get("/b")
            await clients.leases.get("/c")
            await clients.leases.get("/c")
            await clients.transport.close()
            await clients.transport_of_leases.close()
            assert server.connections == 2
            assert notes.waits == [0.0, 0.0, 0.0, 0.0]
            agents = [request.headers["user-agent"].rpartition(")/")[2] for request in server.requests]
            assert agents == ["scheduler", "events", "leader-election", "leader-election"]

    run(main())


def test_whoever_lost_the_lease_may_ask_but_not_write() -> None:
    async def main() -> None:
        async with serving(answering(200)) as server, talking_to(server) as client:
            client.may_write = lambda: False
            await client.get("/x")
            for write in (client.post("/x", b"{}"), client.put("/x", b"{}"), client.delete("/x")):
                with pytest.raises(UnreachableError, match="the lease is lost") as refused:
                    await write
                assert not refused.value.maybe_done
            assert [request.method for request in server.requests] == ["GET"]

    run(main())
