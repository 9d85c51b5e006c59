"""The way to an extender: connections that are kept, proxies, redirects, credentials in the address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest
import uvloop
from tests.unit.extenders.extender_server import (
    POD,
    A,
    B,
    ExtenderServer,
    Redirect,
    assert_ends_with_error,
    decide,
    filtering,
    passing,
    settings,
)
from tests.unit.extenders.odd_servers import HangingUp, Impatient, Tunnels

from kubesched.extenders.client import MOST_REQUESTS, ExtenderClient, PostError
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.extender import ExtenderError, ExtenderSettingsError

NODES = (A.build(), B.build())


class Asked:
    """One extender, asked again and again on the same event loop."""

    def __init__(self, runner: asyncio.Runner, extender: HTTPExtender) -> None:
        self._runner = runner
        self._extender = extender

    def ask(self) -> frozenset[str]:
        return self._runner.run(self._extender.filter(POD, NODES)).passed

    def hang_up(self) -> None:
        self._runner.run(self._extender.close())


Connect = Callable[..., Asked]


@pytest.fixture
def connect() -> Iterator[Connect]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the daemon has it
        connected: list[Asked] = []

        def connect(server: ExtenderServer, **more: object) -> Asked:
            connected.append(Asked(runner, HTTPExtender(settings(filtering(server, **more)).extenders[0])))
            return connected[-1]

        yield connect
        for asked in connected:
            asked.hang_up()


def posted(client: ExtenderClient, *posts: tuple[str, bytes], repeatable: bool = True) -> list[bytes]:
    """What comes back, one after another."""

    async def post() -> list[bytes]:
        try:
            return [await client.post(verb, body, repeatable=repeatable) for verb, body in posts]
        finally:
            await client.close()

    return uvloop.run(post())


# -- connections are kept ---------------------------------------------------------------------------------------------


def test_one_connection_serves_call_after_call(connect: Connect, server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b")
    asked = connect(server)
    for _ in range(5):
        assert asked.ask() == {"b"}
    assert (len(server.asked), server.connections) == (5, 1)


def test_server_that_keeps_no_connection_is_served_with_one_for_each_call(
    connect: Connect, server: ExtenderServer
) -> None:
    server.speak_http_1_0()
    server.answers["filter"] = passing("b")
    asked = connect(server)
    assert [asked.ask() for _ in range(2)] == [{"b"}] * 2
    assert server.connections == 2


def test_connection_that_the_server_closed_while_idle_costs_nothing(connect: Connect, server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b")
    asked = connect(server)
    asked.ask()
    server.hang_up()
    assert asked.ask() == {"b"}
    assert (len(server.asked), server.connections) == (2, 2)


def test_connection_is_kept_after_an_error_that_is_told_politely(connect: Connect, server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"Error": "not now"}
    asked = connect(server)
    for _ in range(2):
        with pytest.raises(ExtenderError, match="not now"):
            asked.ask()
    assert server.connections == 1


def test_connection_is_not_kept_after_a_call_that_ran_out_of_time(connect: Connect, server: ExtenderServer) -> None:
    server.answers["filter"] = server.never
    asked = connect(server, httpTimeout="300ms")
    with pytest.raises(ExtenderError, match="no answer within 300ms"):
        asked.ask()
    server.answers["filter"] = passing("a")
    assert asked.ask() == {"a"}
    assert server.connections == 2


def test_name_that_cannot_be_looked_up_in_time_ends_the_call_in_time(
    server: ExtenderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **more: server.released.wait(30) and [])

    async def ask() -> None:
        client = ExtenderClient("http://extender.test", timeout=0.05)
        with pytest.raises(PostError, match="no answer within 50ms"):
            await client.post("filter", b"{}")
        server.released.set()
        await client.close()

    asyncio.run(ask())


def test_questions_at_the_same_time_get_their_own_answers(server: ExtenderServer) -> None:
    server.answers["echo"] = lambda question: question
    echo = ExtenderClient(server.url, timeout=5)
    questions = [str(number).encode() for number in range(50)]

    async def ask() -> list[bytes]:
        try:
            return list(await asyncio.gather(*(echo.post("echo", question) for question in questions)))
        finally:
            await echo.close()

    assert uvloop.run(ask()) == questions


@pytest.fixture
def hanging_up() -> Iterator[HangingUp]:
    server = HangingUp()
    yield server
    server.stop()


def test_question_is_asked_again_if_the_server_gives_up_the_kept_connection(hanging_up: HangingUp) -> None:
    client = ExtenderClient(hanging_up.url, timeout=5)
    assert posted(client, ("filter", b"{}"), ("filter", b"{}")) == [b"{}", b"{}"]
    assert hanging_up.calls == 3


def test_order_that_may_have_been_read_is_not_given_again(hanging_up: HangingUp) -> None:
    client = ExtenderClient(hanging_up.url, timeout=5)
    with pytest.raises(PostError, match="Server disconnected"):
        posted(client, ("bind", b"{}"), ("bind", b"{}"), repeatable=False)
    assert hanging_up.calls == 2


def test_answer_to_a_question_that_was_not_read_to_its_end_counts() -> None:
    impatient = Impatient()
    with pytest.raises(PostError, match=r"failed filter with extender at URL http://.*/filter, code 413"):
        posted(ExtenderClient(impatient.url, timeout=5), ("filter", b" " * 20_000_000))
    impatient.stop()


# -- credentials ------------------------------------------------------------------------------------------------------


def with_credentials(server: ExtenderServer) -> str:
    return server.url.replace("http://", "http://me:pass%20word@")


def test_credentials_in_the_address_become_basic_authorization(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b")
    assert decide(POD, A, B, by=[filtering(server, urlPrefix=with_credentials(server))]).node == "b"
    assert server.requests[0].headers["Authorization"] == "Basic bWU6cGFzcyB3b3Jk"
    assert "@" not in server.requests[0].headers["Host"]


@pytest.mark.parametrize("answer", [500, b"<html>", passing("stranger"), passing()])
def test_password_is_shown_nowhere(server: ExtenderServer, answer: bytes | int) -> None:
    server.answers["filter"] = answer
    message = decide(POD, A, B, by=[filtering(server, urlPrefix=with_credentials(server))]).message
    assert "me:xxxxx@127.0.0.1" in message
    assert "word" not in message


# -- redirects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [307, 308])
def test_question_is_posted_again_where_a_redirect_leads(server: ExtenderServer, status: int) -> None:
    server.answers["filter"] = Redirect(status, "/scheduler/moved?to=here")
    server.answers["moved"] = passing("b")
    assert decide(POD, A, B, by=[filtering(server)]).node == "b"
    assert server.requests[1].line == "POST /scheduler/moved?to=here"
    assert server.asked[0][1] == server.asked[1][1]
    assert server.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303])
def test_answer_is_fetched_where_an_older_redirect_leads(server: ExtenderServer, status: int) -> None:
    server.answers["filter"] = Redirect(status, "moved")
    server.answers["moved"] = passing("b")
    assert decide(POD, A, B, by=[filtering(server)]).node == "b"
    assert server.requests[1].line == "GET /scheduler/moved"
    assert server.requests[1].headers["Content-Length"] is None


def test_redirects_in_a_circle_end(server: ExtenderServer) -> None:
    server.answers["filter"] = Redirect(307, "filter")
    assert_ends_with_error(decide(POD, A, by=[filtering(server)]), "stopped after 10 redirects")
    assert len(server.asked) == MOST_REQUESTS


def test_redirect_to_nowhere_is_a_status_like_others(server: ExtenderServer) -> None:
    server.answers["filter"] = Redirect(307, "")
    assert_ends_with_error(decide(POD, A, by=[filtering(server)]), "code 307")


def test_redirect_to_what_is_not_http_ends_the_attempt(server: ExtenderServer) -> None:
    server.answers["filter"] = Redirect(307, "file:///etc/passwd")
    assert_ends_with_error(decide(POD, A, by=[filtering(server)]), "file:///etc/passwd")


def test_credentials_go_with_a_redirect_only_on_the_same_server(server: ExtenderServer) -> None:
    other = ExtenderServer()
    other.start()
    try:
        server.answers["filter"] = Redirect(307, "here")
        server.answers["here"] = Redirect(307, f"{other.url}/there")
        other.answers["there"] = passing("b")
        assert decide(POD, A, B, by=[filtering(server, urlPrefix=with_credentials(server))]).node == "b"
        assert server.requests[1].headers["Authorization"] is not None
        assert other.requests[0].headers["Authorization"] is None
    finally:
        other.stop()


# -- proxies ----------------------------------------------------------------------------------------------------------


def test_request_in_the_clear_is_handed_to_the_proxy(
    connect: Connect, server: ExtenderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.replace("http://", "http://me:secret@"))
    server.answers["filter"] = passing("b")
    asked = connect(server, urlPrefix="http://extender.test:8080/scheduler/")
    assert [asked.ask() for _ in range(2)] == [{"b"}] * 2
    assert server.requests[0].line == "POST http://extender.test:8080/scheduler/filter"
    assert server.requests[0].headers["Host"] == "extender.test:8080"
    assert server.requests[0].headers["Proxy-Authorization"] == "Basic bWU6c2VjcmV0"
    assert server.connections == 1


@pytest.mark.parametrize(("name", "value"), [("NO_PROXY", "127.0.0.0/8"), ("no_proxy", "*"), ("UNRELATED", "")])
def test_what_is_near_is_reached_without_a_proxy(
    connect: Connect, server: ExtenderServer, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv(name, value)
    server.answers["filter"] = passing("b")
    assert connect(server).ask() == {"b"}


def test_proxy_that_is_none_is_refused_at_once(
    connect: Connect, server: ExtenderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "ftp://proxy.test")
    with pytest.raises(ExtenderSettingsError, match=r"HTTP_PROXY: expected a proxy such as"):
        connect(server, urlPrefix="http://extender.test")


def test_socks_proxy_is_refused_at_once(
    connect: Connect, server: ExtenderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://proxy.test")
    with pytest.raises(ExtenderSettingsError, match=r"HTTP_PROXY: expected an HTTP proxy: a SOCKS proxy cannot"):
        connect(server, urlPrefix="http://extender.test")


@pytest.fixture
def tunnels(server: ExtenderServer) -> Iterator[Tunnels]:
    tunnels = Tunnels(server.port)
    yield tunnels
    tunnels.stop()


def test_proxy_that_refuses_ends_the_attempt(
    server: ExtenderServer, tunnels: Tunnels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{tunnels.port}")
    tunnels.refuses = True
    decision = decide(POD, A, by=[filtering(server, urlPrefix="https://extender.test/scheduler")])
    assert_ends_with_error(decision, "the proxy answered 403 Forbidden")
    assert tunnels.asked[0].startswith(b"CONNECT extender.test:443 HTTP/1.1\r\n")
