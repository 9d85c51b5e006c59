"""The oidc provider: a token is used until it runs out, then the refresh token buys another."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.unit.kube.scripted_server import Script, ScriptedServer, answering, serving

from kubesched.kube.errors import CredentialsError
from kubesched.kube.oidc import OidcCredentials

NOW = 1_800_000_000


def token(name: str, *, expires: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": name, "exp": expires}).encode()).decode().rstrip("=")
    return f"header.{claims}.signature"


def found(server: ScriptedServer) -> Script:
    endpoint = {"token_endpoint": f"http://127.0.0.1:{server.port}/token?tenant=1"}
    return answering(200, json.dumps(endpoint).encode())


def credentials(server: ScriptedServer, **config: str) -> OidcCredentials:
    issuer = {"idp-issuer-url": f"http://127.0.0.1:{server.port}/", "client-id": "me"}
    return OidcCredentials({**issuer, **config}, environ={}, wall_clock=lambda: NOW)


def tokens(**answer: Any) -> Script:
    return answering(200, json.dumps(answer).encode())


def test_valid_token_is_used_without_asking() -> None:
    async def main() -> None:
        async with serving(answering(500)) as server:
            valid = token("a", expires=NOW + 60)
            assert await credentials(server, **{"id-token": valid}).authorization() == f"Bearer {valid}"
            assert server.requests == []

    asyncio.run(main())


def test_expired_token_is_refreshed_and_refresh_tokens_rotate() -> None:
    async def main() -> None:
        fresh, later = token("fresh", expires=NOW + 5), token("later", expires=NOW + 600)
        async with serving(answering(500)) as server:
            server.scripts = [
                found(server),
                tokens(id_token=fresh, refresh_token="second"),
                found(server),
                tokens(id_token=later),
            ]
            oidc = credentials(server, **{"id-token": token("old", expires=NOW - 1), "refresh-token": "first"})
            assert await oidc.authorization() == f"Bearer {fresh}"
            assert await oidc.authorization() == f"Bearer {later}"
            assert server.paths[:2] == ["/.well-known/openid-configuration", "/token?tenant=1"]
            forms = [parse_qs(request.body.decode()) for request in server.requests if request.body]
            assert forms[0] == {"grant_type": ["refresh_token"], "refresh_token": ["first"], "client_id": ["me"]}
            assert forms[1]["refresh_token"] == ["second"]

    asyncio.run(main())


def test_secret_goes_in_the_header_or_else_in_the_form() -> None:
    async def main() -> None:
        fresh = token("fresh", expires=NOW + 600)
        async with serving(answering(500)) as server:
            server.scripts = [found(server), answering(401), tokens(id_token=fresh)]
            oidc = credentials(server, **{"refresh-token": "r", "client-secret": "s"})
            assert await oidc.authorization() == f"Bearer {fresh}"
            _, header, form = server.requests
            assert header.headers["authorization"].startswith("Basic ")
            assert b"client_secret" not in header.body
            assert b"client_secret=s" in form.body

    asyncio.run(main())


def test_refused_token_is_refreshed() -> None:
    async def main() -> None:
        valid, fresh = token("a", expires=NOW + 60), token("b", expires=NOW + 60)
        async with serving(answering(500)) as server:
            server.scripts = [found(server), tokens(id_token=fresh)]
            oidc = credentials(server, **{"id-token": valid, "refresh-token": "r"})
            assert await oidc.renew(await oidc.authorization())
            assert await oidc.authorization() == f"Bearer {fresh}"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("config", "script", "words"),
    [
        ({}, answering(500), "no valid id-token, and cannot refresh without refresh-token"),
        ({"id-token": "x"}, answering(500), "not a valid JWT"),
        ({"id-token": "a.!.c"}, answering(500), "parsing claims"),
        ({"refresh-token": "r"}, answering(404, b"nothing\nhere"), "status 404: nothing here"),
        ({"refresh-token": "r"}, answering(200, b"{}"), "doesn't contain a token_endpoint"),
        ({"refresh-token": "r"}, answering(200, b"<html>"), "the answer cannot be read"),
    ],
)
def test_failures_are_said_in_words(config: dict[str, str], script: Script, words: str) -> None:
    async def main() -> None:
        async with serving(script) as server:
            with pytest.raises(CredentialsError, match=r"^oidc: ") as caught:
                await credentials(server, **config).authorization()
            assert words in str(caught.value)

    asyncio.run(main())


def test_answer_without_an_identity_token_is_an_error() -> None:
    async def main() -> None:
        async with serving(answering(500)) as server:
            server.scripts = [found(server), tokens(access_token="x")]
            with pytest.raises(CredentialsError, match="did not contain an id_token"):
                await credentials(server, **{"refresh-token": "r"}).authorization()

    asyncio.run(main())
