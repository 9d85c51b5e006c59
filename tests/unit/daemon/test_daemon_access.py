from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from tests.unit.daemon.authority import Authority, trusting
from tests.unit.daemon.secure_server import Api, Ask, Clock, serve

from kubesched.daemon.checks import OptionsError


def test_anybody_else_is_refused_in_the_words_of_the_api_server() -> None:
    async def talk(ask: Ask) -> None:
        answer = await ask("/metrics")
        assert answer.status == 403
        assert answer.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
            "reason": "Forbidden",
            "details": {},
            "code": 403,
        }
        assert (await ask("/no/such/path")).status == 403

    serve(talk)


def test_token_is_reviewed_and_its_user_asked_about() -> None:
    api = Api({"t0k3n": {"username": "prometheus", "groups": ["monitors"]}}, frozenset({"prometheus"}))

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics", Authorization="Bearer t0k3n")).status == 200
        token, access = api.asked
        assert token["spec"] == {"token": "t0k3n"}
        assert access["spec"] == {
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            "user": "prometheus",
            "groups": ["monitors", "system:authenticated"],
        }

    serve(talk, api=api)


def test_token_that_nobody_knows_is_unauthorized_even_for_open_paths() -> None:
    async def talk(ask: Ask) -> None:
        answer = await ask("/healthz", Authorization="Bearer nonsense")
        assert answer.status == 401
        assert answer.json()["message"] == "Unauthorized"
        assert answer.json()["reason"] == "Unauthorized"

    serve(talk, api=Api())


def test_user_who_may_not_is_told_why() -> None:
    api = Api({"t": {"username": "<eve>"}})

    async def talk(ask: Ask) -> None:
        answer = await ask("/metrics", Authorization="Bearer t")
        assert answer.status == 403
        assert answer.json()["message"] == 'forbidden: User "&lt;eve&gt;" cannot get path "/metrics": no rule'

    serve(talk, api=api)


def test_administrators_need_not_be_asked_about() -> None:
    api = Api({"t": {"username": "root", "groups": ["system:masters"]}})

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics", Authorization="Bearer t")).status == 200
        assert len(api.asked) == 1

    serve(talk, api=api)


def test_answers_are_kept_for_their_time_and_no_longer() -> None:
    api = Api({"t": {"username": "prometheus"}}, frozenset({"prometheus"}))
    clock = Clock()

    async def talk(ask: Ask) -> None:
        for now, questions in ((0.0, 2), (9.9, 2), (10.1, 4)):
            clock.now = now
            assert (await ask("/metrics", Authorization="Bearer t")).status == 200
            assert len(api.asked) == questions

    serve(talk, api=api, clock=clock)


def test_requests_at_the_same_time_share_one_question() -> None:
    api = Api({"t": {"username": "prometheus"}}, frozenset({"prometheus"}))

    async def talk(ask: Ask) -> None:
        answers = await asyncio.gather(*(ask("/metrics", Authorization="Bearer t") for _ in range(5)))
        assert {answer.status for answer in answers} == {200}
        assert len(api.asked) == 2

    serve(talk, api=api)


def test_api_server_that_cannot_be_asked_lets_nobody_in_and_is_asked_again() -> None:
    api = Api({"t": {"username": "prometheus"}}, frozenset({"prometheus"}))

    async def talk(ask: Ask) -> None:
        api.broken = True
        assert (await ask("/metrics", Authorization="Bearer t")).status == 401
        answer = await ask("/metrics?<b>")
        assert (answer.status, answer.text) == (
            500,
            'Internal Server Error: "/metrics?%3Cb%3E": connection refused\n',
        )
        api.broken = False
        assert (await ask("/metrics", Authorization="Bearer t")).status == 200

    serve(talk, api=api)


def test_client_certificate_of_the_clusters_authority_names_its_user(tmp_path: Path) -> None:
    authority = Authority("cluster")
    api = Api(allowed=frozenset({"alice"}), config_map={"client-ca-file": authority.pem.decode()})

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics")).status == 200
        assert api.asked[0]["spec"]["groups"] == ["ops", "system:authenticated"]

    serve(talk, api=api, client=trusting(client=authority.client("alice", "ops"), directory=tmp_path))


def test_client_authority_may_come_from_a_file(tmp_path: Path) -> None:
    authority = Authority("mine")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    api = Api(allowed=frozenset({"alice"}))

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics")).status == 200

    pair = authority.client("alice")
    serve(talk, api=api, client=trusting(client=pair, directory=tmp_path), client_ca_file=str(tmp_path / "ca.crt"))


def test_certificate_of_a_stranger_does_not_get_through(tmp_path: Path) -> None:
    api = Api(config_map={"client-ca-file": Authority("cluster").pem.decode()})

    async def talk(ask: Ask) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask("/healthz")

    serve(talk, api=api, client=trusting(client=Authority("stranger").client("alice"), directory=tmp_path))


PROXY_SETTINGS = {
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def test_front_proxy_says_who_the_user_is(tmp_path: Path) -> None:
    proxies = Authority("proxies")
    settings = {**PROXY_SETTINGS, "requestheader-client-ca-file": proxies.pem.decode()}
    api = Api(allowed=frozenset({"bob"}), config_map=settings)

    async def talk(ask: Ask) -> None:
        answer = await ask("/metrics", X_Remote_User="bob", X_Remote_Group="ops", X_Remote_Extra_Team="a")
        assert answer.status == 200
        spec = api.asked[0]["spec"]
        assert (spec["user"], spec["groups"], spec["extra"]) == (
            "bob",
            ["ops", "system:authenticated"],
            {"team": ["a"]},
        )

    serve(talk, api=api, client=trusting(client=proxies.client("front-proxy"), directory=tmp_path))


@pytest.mark.parametrize("name", ["somebody-else", "bob"])
def test_only_allowed_proxies_are_believed(tmp_path: Path, name: str) -> None:
    proxies = Authority("proxies")
    settings = {**PROXY_SETTINGS, "requestheader-client-ca-file": proxies.pem.decode()}

    async def talk(ask: Ask) -> None:
        answer = await ask("/metrics", X_Remote_User="bob")
        assert answer.status == 403
        assert "system:anonymous" in answer.text

    api = Api(allowed=frozenset({"bob"}), config_map=settings)
    serve(talk, api=api, client=trusting(client=proxies.client(name), directory=tmp_path))


def test_clients_are_no_proxies(tmp_path: Path) -> None:
    clients, proxies = Authority("clients"), Authority("proxies")
    settings = {
        **PROXY_SETTINGS,
        "requestheader-client-ca-file": proxies.pem.decode(),
        "client-ca-file": clients.pem.decode(),
    }

    async def talk(ask: Ask) -> None:
        answer = await ask("/metrics", X_Remote_User="root", X_Remote_Group="system:masters")
        assert answer.json()["message"] == 'forbidden: User "front-proxy" cannot get path "/metrics": no rule'

    serve(talk, api=Api(config_map=settings), client=trusting(client=clients.client("front-proxy"), directory=tmp_path))


def test_headers_without_a_proxys_certificate_mean_nothing() -> None:
    async def talk(ask: Ask) -> None:
        assert "system:anonymous" in (await ask("/metrics", X_Remote_User="root")).text

    serve(talk, api=Api(config_map=PROXY_SETTINGS))


def test_lookup_that_fails_is_tolerated_unless_it_must_not_be() -> None:
    async def talk(ask: Ask) -> None:
        assert (await ask("/healthz")).status == 200

    serve(talk, api=Api(broken=True))
    with pytest.raises(OptionsError, match="unable to load configmap"):
        serve(talk, api=Api(broken=True), authentication_tolerate_lookup_failure=False)
    serve(talk, api=Api(broken=True), authentication_tolerate_lookup_failure=False, authentication_skip_lookup=True)
