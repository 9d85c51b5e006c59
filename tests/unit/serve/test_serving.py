"""The service as a server: who may ask, how much, when it is ready, and how it describes itself."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.json_schema import mistakes
from tests.unit.kube.certificates import Authority, KeyPair, authority
from tests.unit.serve.asking import POD, Json, Service, run, served

from kubesched.api.errors import UserError
from kubesched.ask.answers import PARTS
from kubesched.ask.sources.following import Behind, ClusterAge, NotReadyError
from kubesched.http.access import BearerToken, ExposedError
from kubesched.http.listen import tls_context


class Told:
    """A cluster of which it is told how it is followed."""

    def __init__(self, *, waiting: tuple[str, ...] = (), behind: tuple[Behind, ...] = ()) -> None:
        self._waiting = waiting
        self._behind = behind

    def age(self) -> ClusterAge:
        if self._waiting:
            raise NotReadyError(*self._waiting)
        return ClusterAge("here", "watch", 3.5, self._behind)


def test_who_has_no_token_gets_no_answer() -> None:
    async def test(service: Service) -> None:
        async with aiohttp.ClientSession(service.server.url) as stranger:
            for path in ("/openapi.json", "/nothing"):
                assert (await stranger.get(path)).status == 401
            for header in ("", "Bearer", "Bearer x", f"Basic {'x'}"):
                answer = await stranger.post("/v1alpha1/fit", data=b"{}", headers={"Authorization": header})
                assert answer.status == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert (await stranger.get("/healthz")).status == 200
            assert (await stranger.get("/readyz")).status == 200

    run(test)


def test_web_pages_of_others_get_no_answer() -> None:
    async def test(service: Service) -> None:
        answer = await service.session.post("/v1alpha1/fit", data=b"{}", headers={"Origin": "http://evil.example"})
        assert answer.status == 403

    run(test)


def test_nothing_can_be_written() -> None:
    async def test(service: Service) -> None:
        for method in ("PUT", "PATCH", "DELETE", "GET"):
            answer = await service.session.request(method, "/v1alpha1/fit")
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert (await service.session.post("/v1alpha1/bind", data=b"{}")).status == 404

    run(test)


def test_questions_that_are_too_large_are_refused() -> None:
    async def test(service: Service) -> None:
        assert await service.errors("fit", b" " * 2000, 413)

    run(test, largest_body=1000)


def test_question_that_does_not_arrive_is_given_up() -> None:
    async def test(service: Service) -> None:
        never = asyncio.Event()

        async def slow() -> Any:
            yield b"{"
            await never.wait()

        answer = await service.session.post("/v1alpha1/fit", data=slow())
        assert answer.status == 408

    run(test, timeout=0.05)


def test_questions_beyond_the_limit_are_refused_while_others_are_under_way() -> None:
    async def test(service: Service) -> None:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> Any:
            yield b'{"pods": ['
            arrived.set()
            await go_on.wait()
            yield b'{"spec": {"containers": [{"name": "c"}]}}]}'

        async with asyncio.TaskGroup() as group:
            first = group.create_task(service.session.post("/v1alpha1/fit", data=slow()))
            await arrived.wait()
            refused = await service.session.post("/v1alpha1/fit", data=b"{}")
            while refused.status != 429:  # the first has been sent, and may be on its way
                refused = await service.session.post("/v1alpha1/fit", data=b"{}")
            assert refused.headers["Retry-After"] == "1"
            go_on.set()
        assert (await first).status == 200
        assert (await service.post("fit", {"pods": [POD]}))["fits"]

    run(test, most_at_once=1)


def test_service_that_is_not_ready_says_what_it_waits_for() -> None:
    async def test(service: Service) -> None:
        assert await service.errors("fit", {"pods": [POD]}, 503) == ["waiting for Pod: listing"]
        assert (await service.session.get("/readyz")).status == 503
        assert (await service.session.get("/healthz")).status == 200

    run(test, followed=Told(waiting=("waiting for Pod: listing",)))


def test_answers_say_how_old_they_are() -> None:
    async def test(service: Service) -> None:
        found = await service.post("fit", {"pods": [POD]})
        assert found["cluster"] == {
            "origin": "here",
            "source": "watch",
            "ageSeconds": 3.5,
            "behind": [{"kind": "Node", "seconds": 3.5, "why": "connection refused"}],
            "unreadable": [],
        }

    run(test, followed=Told(behind=(Behind("Node", 3.5, "connection refused"),)))


QUESTIONS: dict[str, Json] = {
    "fit": {"pods": [POD]},
    "explain": {"pod": POD},
    "capacity": {"pod": POD},
    "what-if": {"drain": ["a1"]},
    "compare-releases": {},
    "plan": {"goal": "queue"},
}


def test_description_has_every_question_and_its_answer() -> None:
    async def test(service: Service) -> None:
        described = await (await service.session.get("/openapi.json")).json()
        schemas = described["components"]["schemas"]
        posts = {path: each["post"] for path, each in described["paths"].items() if "post" in each}
        assert set(posts) == {f"/v1alpha1/{name}" for name in QUESTIONS}
        for path, post in posts.items():
            name = path.rpartition("/")[2]
            asked = await service.post(name, QUESTIONS[name])
            name = post["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert name == asked["kind"]
            assert name in {*PARTS, "Plan"}
            assert mistakes(asked, schemas[name]) == []
        assert set(_refs(described)) == {f"#/components/schemas/{name}" for name in schemas}

    run(test)


def _refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        mapped = list(value.get("mapping", {}).values())
        return [*own, *mapped, *(ref for each in value.values() for ref in _refs(each))]
    return [ref for each in value for ref in _refs(each)] if isinstance(value, list) else []


# -- where it listens, and with which protection ----------------------------------------------------------------------


def test_other_addresses_need_tls() -> None:
    async def start(host: str, tls: ssl.SSLContext | None = None) -> None:
        async with served(host=host, tls=tls):
            pass

    with pytest.raises(ExposedError, match="TLS missing"):
        asyncio.run(start("0.0.0.0"))
    asyncio.run(start("0.0.0.0", ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)))
    asyncio.run(start("127.0.0.1"))


def test_token_of_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = BearerToken(str(file))
    assert token.admits("Bearer first")
    file.write_text("a second one\n")
    assert token.admits("bearer a second one")
    assert not token.admits("Bearer first")


@pytest.mark.parametrize("content", ["", " \n", None])
def test_file_without_a_token_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match="--token-file"):
        BearerToken(str(file))


def test_client_certificates_are_enough_and_others_are_not(tmp_path: Path) -> None:
    ours, theirs = authority(), Authority("other-ca")
    pair = ours.issue("localhost", hosts=("127.0.0.1",))
    for name, data in (("ca.crt", ours.certificate), ("tls.crt", pair.certificate), ("tls.key", pair.key)):
        (tmp_path / name).write_bytes(data)
    tls = tls_context(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"), str(tmp_path / "ca.crt"))

    def presenting(pair: KeyPair | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        if pair is not None:
            for name, data in (("client.crt", pair.certificate), ("client.key", pair.key)):
                (tmp_path / name).write_bytes(data)
            context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
        return context

    async def main() -> None:
        async with served(token=None, tls=tls) as service:
            url = f"{service.server.url}/openapi.json"
            async with aiohttp.ClientSession() as session:
                assert (await session.get(url, ssl=presenting(ours.issue("bot")))).status == 200
                assert (await session.get(url, ssl=presenting(None))).status == 401
                with pytest.raises(aiohttp.ClientError):
                    await session.get(url, ssl=presenting(theirs.issue("eve")))

    asyncio.run(main())


def test_options_about_tls_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give both, or none"):
        tls_context("tls.crt", "", "")
    with pytest.raises(UserError, match="needs --tls-cert-file"):
        tls_context("", "", "ca.crt")
    with pytest.raises(UserError, match="No such file"):
        tls_context(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"), "")
