"""Credentials: shown with every request, and read again when they may have changed."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from pathlib import Path

import pytest
from tests.unit.kube.certificates import authority
from tests.unit.kube.scripted_server import answering, serving, talking_to

from kubesched.kube.authentication import credentials_for, transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.credentials import CertificateFiles, FixedAuthorization, TokenFile, WithCertificate, bearer
from kubesched.kube.errors import ApiStatusError, ConnectionSettingsError, CredentialsError
from kubesched.kube.kubeconfig import User
from kubesched.kube.observer import Observer


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def shown_by(user: User) -> str:
    settings = ConnectionSettings(server="https://a", user=user)
    credentials = credentials_for(settings, {}, observer=Observer(), clock=time.monotonic)
    return asyncio.run(credentials.authorization())


def test_token_user_and_password_are_shown_as_headers() -> None:
    assert shown_by(User(token="t")) == "Bearer t"
    assert shown_by(User(username="u", password="p:w")) == "Basic " + base64.b64encode(b"u:p:w").decode()
    assert shown_by(User()) == ""


def test_token_with_a_line_break_is_refused() -> None:
    with pytest.raises(CredentialsError, match="line break"):
        shown_by(User(token="t\r\nX-Evil: 1"))


def test_token_file_goes_before_the_token_that_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("fresh\n")
    assert shown_by(User(token="old", token_file=str(tmp_path / "token"))) == "Bearer fresh"


def test_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    async def main() -> None:
        clock, path = Clock(), tmp_path / "token"
        path.write_text("one")
        file = TokenFile(str(path), clock=clock)
        assert await file.authorization() == "Bearer one"
        path.write_text("two")
        clock.now += 30
        assert await file.authorization() == "Bearer one"
        clock.now += 30
        assert await file.authorization() == "Bearer two"

    asyncio.run(main())


def test_last_token_is_kept_when_the_file_cannot_be_read(tmp_path: Path) -> None:
    async def main() -> None:
        clock, path = Clock(), tmp_path / "token"
        path.write_text("one")
        file = TokenFile(str(path), clock=clock)
        await file.authorization()
        path.write_text("")
        clock.now += 100
        assert await file.authorization() == "Bearer one"
        path.unlink()
        clock.now += 100
        assert await file.authorization() == "Bearer one"

    asyncio.run(main())


def test_token_file_that_was_never_readable_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(CredentialsError, match=r'failed to read token file "/no/such": No such file'):
            await TokenFile("/no/such", clock=Clock()).authorization()

    asyncio.run(main())


def test_refused_token_is_read_again_and_the_request_repeated(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "token"
        path.write_text("old")
        file = TokenFile(str(path), clock=Clock())
        await file.authorization()
        path.write_text("new")
        scripts = [answering(401), answering(201, b"done")]
        async with serving(*scripts) as server, talking_to(server, credentials=file) as client:
            assert await client.post("/x", b"{}") == b"done"
            assert [request.headers["authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]
            assert [request.body for request in server.requests] == [b"{}", b"{}"]

    asyncio.run(main())


def test_token_that_stays_refused_is_an_error() -> None:
    async def main() -> None:
        fixed = FixedAuthorization(bearer("t"))
        async with serving(answering(401)) as server, talking_to(server, credentials=fixed) as client:
            with pytest.raises(ApiStatusError) as caught:
                await client.get("/x")
            assert caught.value.reason == "Unauthorized"
            with pytest.raises(ApiStatusError):
                await client.watch("/x", silence=1)

    asyncio.run(main())


def test_certificate_files_are_read_again_when_replaced(tmp_path: Path) -> None:
    clock, chain, key = Clock(), tmp_path / "crt", tmp_path / "key"
    chain.write_bytes(b"one")
    key.write_bytes(b"one")
    files = CertificateFiles(str(chain), str(key), clock=clock)
    first = files.current()
    assert first is not None
    assert first.chain == b"one"
    clock.now += 100
    assert files.current() is first
    replacement = tmp_path / "new"
    replacement.write_bytes(b"two")
    os.replace(replacement, chain)
    assert files.current() is first
    clock.now += 100
    second = files.current()
    assert second is not None
    assert second.chain == b"two"


def test_new_certificate_after_a_refusal_is_worth_another_try(tmp_path: Path) -> None:
    async def main() -> None:
        chain, key = tmp_path / "crt", tmp_path / "key"
        chain.write_bytes(b"one")
        key.write_bytes(b"one")
        credentials = WithCertificate(FixedAuthorization(), CertificateFiles(str(chain), str(key), clock=Clock()))
        assert not await credentials.renew("")
        chain.write_bytes(b"another")
        assert await credentials.renew("")

    asyncio.run(main())


def test_impersonation_goes_with_every_request() -> None:
    async def main() -> None:
        user = User(impersonate="jane", impersonate_groups=("dev",), impersonate_user_extra={"acme/why": ("test",)})
        async with serving(answering(200)) as server:
            settings = ConnectionSettings(server=f"http://127.0.0.1:{server.port}", user=user)
            transport = transport_for(settings, {})
            client = Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
            await client.get("/x")
            await transport.close()
            headers = server.requests[0].headers
            assert headers["impersonate-user"] == "jane"
            assert headers["impersonate-group"] == "dev"
            assert headers["impersonate-extra-acme%2fwhy"] == "test"

    asyncio.run(main())


def test_impersonation_cannot_smuggle_headers() -> None:
    settings = ConnectionSettings(server="https://a", user=User(impersonate="a\r\nX: y"))
    with pytest.raises(ConnectionSettingsError, match="Impersonate-User"):
        transport_for(settings, {})


def test_inline_certificate_is_shown() -> None:
    pair = authority().issue("client")
    settings = ConnectionSettings(
        server="https://a", user=User(client_certificate_data=pair.certificate, client_key_data=pair.key)
    )
    credentials = credentials_for(settings, {}, observer=Observer(), clock=time.monotonic)
    certificate = credentials.certificate()
    assert certificate is not None
    assert certificate.chain == pair.certificate
