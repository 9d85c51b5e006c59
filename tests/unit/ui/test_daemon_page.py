"""The page of a daemon over HTTPS: who is let in by which credentials, and where a token goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from tests.unit.daemon.secure_server import Answer, Api, Ask, serve
from tests.unit.scheduler.world import World

from kubesched import config
from kubesched.daemon.completion import Completed
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.options import Options
from kubesched.daemon.page import ObservedReplica
from kubesched.testing import make_node
from kubesched.ui.daemon_page import DaemonPage

API = Api(users={"good": {"username": "eve"}, "other": {"username": "bob"}}, allowed=frozenset({"eve"}))


@dataclass
class Replica:
    scheduler: Any
    shadow: None = None


async def at_once(function: Callable[[], Any]) -> Any:
    return function()


def page(leads: bool = True) -> DaemonPage:
    world = World(make_node("a"))
    settings = Completed(Options(), config.default(), FeatureGates())
    return DaemonPage(ObservedReplica(cast(Any, Replica(world.scheduler)), settings, at_once, lambda: leads))


def asked(*questions: Callable[[Ask], Awaitable[Answer]]) -> list[Answer]:
    answers: list[Answer] = []

    async def talk(ask: Ask) -> None:
        answers.extend([await question(ask) for question in questions])

    serve(talk, api=API, page=page())
    return answers


def got(path: str, **headers: str) -> Answer:
    (answer,) = asked(lambda ask: ask(path, **headers))
    return answer


def cookie(token: str) -> dict[str, str]:
    return {"Host": "localhost:7", "Cookie": f"__Host-kubesched-ui-7={token}"}


def test_files_are_open_and_all_about_the_cluster_is_guarded() -> None:
    assert got("/ui/").status == 200
    assert got("/ui/views/shadow.js").status == 200
    assert got("/ui/api/about").status == 403
    assert got("/ui/api/about", Authorization="Bearer wrong").status == 401
    assert got("/ui/api/about", Authorization="Bearer other").status == 403
    assert got("/ui/api/about", Authorization="Bearer good").status == 200
    assert got("/elsewhere").status == 403


def test_token_of_the_cookie_counts_as_one_of_the_header() -> None:
    assert got("/ui/api/about", **cookie("good")).status == 200
    assert got("/ui/api/about", **cookie("other")).status == 403
    assert got("/ui/api/about", **cookie("wrong")).status == 401


def test_page_opens_with_a_token_that_has_expired_to_ask_for_another() -> None:
    assert got("/ui/", **cookie("wrong")).status == 200
    assert got("/ui/main.js", **cookie("wrong")).status == 200


def test_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use() -> None:
    headers = {"Host": "localhost:7", "Content_Type": "application/json"}
    (answer,) = asked(lambda ask: ask("/ui/sign-in", method="POST", data='{"token": " good "}', **headers))
    assert answer.status == 204
    made = answer.headers["Set-Cookie"]
    assert made.startswith("__Host-kubesched-ui-7=good;")
    for part in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
        assert part in made


def test_token_that_no_browser_would_keep_is_refused_and_so_is_a_form() -> None:
    (long, form) = asked(
        lambda ask: ask(
            "/ui/sign-in", method="POST", data=f'{{"token": "{"x" * 5000}"}}', Content_Type="application/json"
        ),
        lambda ask: ask("/ui/sign-in", method="POST", data="token=x", Content_Type="text/plain"),
    )
    assert (long.status, form.status) == (400, 415)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "10.0.0.7:10260", "[::1]:1"])
def test_addresses_of_this_server_are_its_own(host: str) -> None:
    assert got("/ui/api/about", Authorization="Bearer good", Host=host).status == 200


def test_names_that_others_pointed_here_and_pages_of_others_are_refused() -> None:
    good = {"Authorization": "Bearer good"}
    assert got("/ui/api/about", **good, Host="evil.example").status == 403
    assert got("/ui/", Host="evil.example").status == 403
    assert got("/ui/api/about", **good, Origin="https://evil.example").status == 403
    assert got("/ui/api/about", **good, Sec_Fetch_Site="cross-site").status == 403


def test_every_answer_forbids_scripts_from_elsewhere() -> None:
    for path in ("/ui/", "/ui/api/about", "/nowhere"):
        assert "default-src 'none'" in got(path).headers["Content-Security-Policy"]


def test_questions_that_take_long_are_left_to_others() -> None:
    answer = got("/ui/api/help/pending", Authorization="Bearer good")
    assert answer.status == 404
    assert "kubesched ui" in answer.json()["errors"][0]


def test_page_is_where_the_address_leads() -> None:
    (answer,) = asked(lambda ask: ask("/"))
    assert "<title>kubesched</title>" in answer.text
