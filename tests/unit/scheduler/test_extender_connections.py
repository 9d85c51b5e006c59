"""The way to an extender: connections that are kept, proxies, redirects, credentials in the address."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.scheduler.extender_server import (
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
from tests.unit.scheduler.odd_servers import HangingUp, Impatient, Tunnels

from kubesched.extenders.http_extender import HTTPExtender
from kubesched.extenders.posting import MOST_REQUESTS, PostError, Server
from kubesched.framework.extender import ExtenderError, Filtered

NODES = (A.build(), B.build())


def extender(server: ExtenderServer, **more: object) -> HTTPExtender:
    return HTTPExtender(settings(filtering(server, **more)).extenders[0])


def ask(asked: HTTPExtender) -> Filtered:
    return asked.filter(POD, NODES)


# -- connections are kept ---------------------------------------------------------------------------------------------


def test_one_connection_serves_call_after_call(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b")
    asked = extender(server)
    for _ in range(5):
        assert ask(asked).passed == {"b"}
    assert (len(server.asked), server.connections) == (5, 1)


def test_server_that_keeps_no_connection_is_served_with_one_for_each_call(server: ExtenderServer) -> None:
    server.speak_http_1_0()
    server.answers["filter"] = passing("b")
    asked = extender(server)
    assert [ask(asked).passed for _ in range(2)] == [{"b"}] * 2
    assert server.connections == 2


def test_connection_that_the_server_closed_while_idle_costs_nothing(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b")
    asked = extender(server)
    ask(asked)
    server.hang_up()
    assert ask(asked).passed == {"b"}
    assert (len(server.asked), server.connections) == (2, 2)


def test_connection_is_kept_after_an_error_that_is_told_politely(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"Error": "not now"}
    asked = extender(server)
    for _ in range(2):
        with pytest.raises(ExtenderError, match="not now"):
            ask(asked)
    assert server.connections == 1


def test_connection_is_not_kept_after_a_call_that_ran_out_of_time(server: ExtenderServer) -> None:
    server.answers["filter"] = server.never
    asked = extender(server, httpTimeout="300ms")
    with pytest.raises(ExtenderError, match="no answer within 300ms"):
        ask(asked)
    server.answers["filter"] = passing("a")
    assert ask(asked).passed == {"a"}
    assert server.connections == 2


def test_name_that_cannot_be_looked_up_in_time_ends_the_call_in_time(
    server: ExtenderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **more: server.released.wait(30) and [])
    with pytest.raises(ExtenderError, match="no answer within 50ms"):
        ask(extender(server, urlPrefix="http://extender.test", httpTimeout="50ms"))
    server.released.set()


def test_threads_that_ask_at_once_get_their_own_answers(server: ExtenderServer) -> None:
    server.answers["echo"] = lambda question: question
    echo = Server(server.url, timeout=5)
    questions = [str(number).encode() for number in range(200)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda question: echo.post("echo", question), questions)) == questions
    assert server.connections <= 4


@pytest.fixture
def hanging_up() -> Iterator[HangingUp]:
    server = HangingUp()
    yield server
    server.stop()


def test_question_is_asked_again_if_the_server_gives_up_the_kept_connection(hanging_up: HangingUp) -> None:
    server = Server(hanging_up.url, timeout=5)
    assert server.post("filter", b"{}") == b"{}"
    assert server.post("filter", b"{}") == b"{}"
    del server
    assert hanging_up.calls == 3


def test_order_that_may_have_been_read_is_not_given_again(hanging_up: HangingUp) -> None:
    server = Server(hanging_up.url, timeout=5)
    assert server.post("bind", b"{}", repeatable=False) == b"{}"
    with pytest.raises(PostError, match="closed connection without response"):
        server.post("bind", b"{}", repeatable=False)
    del server
    assert hanging_up.calls == 2


def test_answer_to_a_question_that_was_not_read_to_its_end_is_heard() -> None:
    impatient = Impatient()
    with pytest.raises(PostError, match=r"failed filter with extender at URL http://.*/filter, code 413"):
        Server(impatient.url, timeout=5).post("filter", b" " * 20_000_000)
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


def test_request_in_the_clear_is_handed_to_the_proxy(server: ExtenderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.replace("http://", "http://me:secret@"))
    server.answers["filter"] = passing("b")
    asked = extender(server, urlPrefix="http://extender.test:8080/scheduler/")
    assert [ask(asked).passed for _ in range(2)] == [{"b"}] * 2
    assert server.requests[0].line == "POST http://extender.test:8080/scheduler/filter"
    assert server.requests[0].headers["Host"] == "extender.test:8080"
    assert server.requests[0].headers["Proxy-Authorization"] == "Basic bWU6c2VjcmV0"
    assert server.connections == 1


@pytest.mark.parametrize(("name", "value"), [("NO_PROXY", "127.0.0.0/8"), ("no_proxy", "*"), ("UNRELATED", "")])
def test_what_is_near_is_reached_without_a_proxy(
    server: ExtenderServer, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv(name, value)
    server.answers["filter"] = passing("b")
    assert ask(extender(server)).passed == {"b"}


def test_proxy_that_is_none_is_refused_at_once(server: ExtenderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "ftp://proxy.test")
    with pytest.raises(ValueError, match=r"HTTP_PROXY: expected a proxy such as"):
        extender(server, urlPrefix="http://extender.test")


@pytest.fixture
def tunnels(server: ExtenderServer) -> Iterator[Tunnels]:
    tunnels = Tunnels(server.port)
    yield tunnels
    tunnels.stop()


def test_socks_proxy_leads_to_the_extender(
    server: ExtenderServer, tunnels: Tunnels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"socks5://127.0.0.1:{tunnels.port}")
    server.answers["filter"] = passing("b")
    asked = extender(server, urlPrefix="http://extender.test/scheduler")
    assert ask(asked).passed == {"b"}
    del asked
    assert tunnels.asked == [b"\x05\x01\x00\x03\x0dextender.test\x00\x50"]
    assert server.requests[0].line == "POST /scheduler/filter"


def test_proxy_that_refuses_ends_the_attempt(
    server: ExtenderServer, tunnels: Tunnels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{tunnels.port}")
    tunnels.refuses = True
    decision = decide(POD, A, by=[filtering(server, urlPrefix="https://extender.test/scheduler")])
    assert_ends_with_error(decision, f'proxy 127.0.0.1:{tunnels.port}: it answered "HTTP/1.1 403 Forbidden"')
    assert tunnels.asked[0].startswith(b"CONNECT extender.test:443 HTTP/1.1\r\n")
