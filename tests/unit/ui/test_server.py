"""The server of the page: who is let in, what every answer carries, and that nothing can be changed through it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar
from tests.device_builders import device, make_class, make_slice
from tests.shown_page import TOKEN, page_of
from yarl import URL

from kubesched.http.access import ExposedError
from kubesched.testing import make_node, make_pod
from kubesched.ui import views as page_views
from kubesched.ui.model import headroom as headroom_model
from kubesched.ui.server import PageServer

HOSTILE = "<img src=x onerror=alert(1)>"
OBJECTS = (
    make_node("a").label({"note": HOSTILE[:12]}).build(),
    make_pod("p").requests(cpu="9").build(),
)
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def asked(question: Callable[[ClientSession, str], Awaitable[Any]]) -> Any:
    """The answer to a question to a page that runs."""

    async def run() -> Any:
        async with page_of(OBJECTS) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
            return await question(client, f"http://127.0.0.1:{server.port}")

    return asyncio.run(run())


def got(
    path: str, headers: dict[str, str] | None = None, method: str = "GET", **more: Any
) -> tuple[ClientResponse, str]:
    async def question(client: ClientSession, root: str) -> tuple[ClientResponse, str]:
        async with client.request(method, root + path, headers=headers, allow_redirects=False, **more) as response:
            return response, await response.text()

    found: tuple[ClientResponse, str] = asked(question)
    return found


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/about", "/api/map", "/api/stream", "/nowhere"])
def test_nothing_is_shown_without_the_token(path: str) -> None:
    response, text = got(path)
    assert response.status == 403
    assert "address that kubesched printed" in text
    assert got(path, {"Authorization": "Bearer wrong"})[0].status == 403
    assert got(f"{path}?token=wrong")[0].status == 403


def test_token_of_the_address_becomes_a_cookie_that_scripts_and_other_sites_cannot_use() -> None:
    async def question(client: ClientSession, root: str) -> tuple[str, int, str]:
        async with client.get(f"{root}/?token={TOKEN}", allow_redirects=False) as first:
            assert (first.status, first.headers["Location"]) == (303, "/")
            cookie = first.headers["Set-Cookie"]
        async with client.get(f"{root}/") as second:
            return cookie, second.status, await second.text()

    cookie, status, page = asked(question)
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert status == 200
    assert TOKEN not in page


def test_name_that_somebody_pointed_here_is_not_this_server() -> None:
    assert got("/api/about", {**BEARER, "Host": "evil.example"})[0].status == 403
    assert got("/api/about", {**BEARER, "Host": "127.0.0.1.evil.example"})[0].status == 403
    assert got("/api/about", BEARER)[0].status == 200


def test_pages_of_other_sites_are_not_answered() -> None:
    assert got("/api/about", {**BEARER, "Origin": "http://evil.example"})[0].status == 403
    assert got("/api/about", {**BEARER, "Origin": "null"})[0].status == 403
    assert got("/api/about", {**BEARER, "Sec-Fetch-Site": "cross-site"})[0].status == 403
    assert got("/api/about", {**BEARER, "Sec-Fetch-Site": "same-origin"})[0].status == 200


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/about", "/api/pods/no/such", "/nowhere"])
def test_every_answer_forbids_scripts_and_styles_from_elsewhere(path: str) -> None:
    response, _ = got(path, BEARER)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in response.headers


def test_files_of_the_package_are_served_and_no_others() -> None:
    assert got("/map/map.js", BEARER)[0].content_type == "text/javascript"
    for path in ("/types.d.ts", "/..%2fserver.py", "/map/", "/static/main.js", "/map/..%2f..%2fserver.py"):
        assert got(path, BEARER)[0].status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/api/about", "/api/map", "/api/pods/default/p", "/api/nodes/a"])
def test_nothing_can_be_changed(path: str, method: str) -> None:
    assert got(path, BEARER, method)[0].status == 405


def test_what_does_not_exist_is_said_to_be_gone() -> None:
    response, text = got("/api/pods/default/nobody", BEARER)
    assert response.status == 404
    assert "There is no pod default/nobody" in json.loads(text)["errors"][0]
    assert got("/api/nodes/nowhere", BEARER)[0].status == 404


@pytest.mark.parametrize(
    "path", ["/api/slices?rows=1,x", "/api/nodes/a?offset=-1", "/api/nodes/a?offset=9999999999999"]
)
def test_numbers_that_are_none_are_refused(path: str) -> None:
    assert got(path, BEARER)[0].status == 400


def tried(body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    response, text = got("/api/try", {**BEARER, "Content-Type": "application/json", **headers}, "POST", data=data)
    return response.status, json.loads(text)


def test_edited_pod_is_answered_with_a_verdict_or_with_its_mistakes() -> None:
    small = "spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}"
    status, answer = tried({"manifest": small, "pod": "default/p"})
    assert (status, answer["verdict"]["node"]) == (200, "a")
    status, answer = tried({"manifest": "spec: {containers: 3}", "pod": "default/p"})
    assert status == 200
    assert any("containers" in line for line in answer["mistakes"])
    assert "verdict" not in answer


def test_form_of_another_site_cannot_try_anything() -> None:
    assert tried({"manifest": ""}, **{"Content-Type": "text/plain"})[0] == 415


def test_bodies_that_are_no_question_are_refused() -> None:
    assert tried(b"{")[0] == 400
    assert tried({"manifest": 3})[0] == 400
    assert tried({"manifest": "x" * (300 << 10)})[0] == 413


def test_stream_tells_what_there_is_and_ends_with_the_server() -> None:
    async def run() -> dict[str, Any]:
        async with ClientSession(headers=BEARER) as client:
            async with page_of(OBJECTS) as server:
                response = await client.get(URL(f"http://127.0.0.1:{server.port}/api/stream?decision=0"))
                line = await response.content.readline()
            assert await response.content.read() in (b"\n", b"")
            return dict(json.loads(line.removeprefix(b"data: ")))

    news = asyncio.run(run())
    assert news["queue"]["unschedulable"] == 1


def test_page_is_not_served_where_others_could_read_along() -> None:
    from tests.unit.ui.observing import still

    with pytest.raises(ExposedError):
        PageServer(still(make_node("a")).observed, host="0.0.0.0")


def test_headroom_that_takes_long_is_counted_to_the_end_behind_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are allocated by search: the first answer is the least that is known, a later one is all."""
    monkeypatch.setattr(headroom_model, "_SECONDS", -1.0)
    monkeypatch.setattr(page_views, "LONGEST", 0.0)
    slices = [make_slice(name, *(device(f"g{i}") for i in range(4))) for name in ("a", "b")]
    pod = make_pod("p").requests({"example.com/gpu": 1}).on("a")
    gpus = make_class("gpu", resource="example.com/gpu")
    objects = (make_node("a").build(), make_node("b").build(), gpus, *slices, pod.build())

    async def run() -> tuple[tuple[int, bool], tuple[int, bool]]:
        async with page_of(objects) as server, ClientSession(headers=BEARER) as client:

            async def room() -> tuple[int, bool]:
                async with client.get(f"http://127.0.0.1:{server.port}/api/headroom") as response:
                    (found,) = (await response.json())["rooms"]
                    return found["more"], found["atLeast"]

            first = later = await room()
            async with asyncio.timeout(30):
                while later[1]:
                    later = await room()
            return first, later

    assert asyncio.run(run()) == ((1, True), (8, False))
