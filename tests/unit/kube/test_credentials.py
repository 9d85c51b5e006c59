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
from kubesched.kube.kubeconfig import KubeconfigUser
from kubesched.kube.observer import Observer
from kubesched.kube.tls import Certificate

ONE, TWO = authority().issue("one"), authority().issue("two")


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def shown_by(user: KubeconfigUser) -> str:
    settings = ConnectionSettings(server="https://a", user=user)
    credentials = credentials_for(settings, {}, observer=Observer(), clock=time.monotonic)
    return asyncio.run(credentials.authorization())


def test_token_user_and_password_are_shown_as_headers() -> None:
    assert shown_by(KubeconfigUser(token="t")) == "Bearer t"
    assert shown_by(KubeconfigUser(username="u", password="p:w")) == "Basic " + base64.b64encode(b"u:p:w").decode()
    assert shown_by(KubeconfigUser()) == ""


def test_token_with_a_line_break_is_refused() -> None:
    with pytest.raises(CredentialsError, match="line break"):
        shown_by(KubeconfigUser(token="t\r\nX-Evil: 1"))


def test_token_file_goes_before_the_token_that_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("fresh\n")
    assert shown_by(KubeconfigUser(token="old", token_file=str(tmp_path / "token"))) == "Bearer fresh"


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


@pytest.fixture
def files(tmp_path: Path) -> tuple[CertificateFiles, Clock, Path, Path]:
    """A certificate in files, which has been read."""
    clock, chain, key = Clock(), tmp_path / "crt", tmp_path / "key"
    chain.write_bytes(ONE.certificate)
    key.write_bytes(ONE.key)
    made = CertificateFiles(str(chain), str(key), clock=clock)
    assert made.current() == Certificate(ONE.certificate, ONE.key)
    return made, clock, chain, key


Files = tuple[CertificateFiles, Clock, Path, Path]


def test_certificate_files_are_read_again_when_replaced(files: Files, tmp_path: Path) -> None:
    made, clock, chain, key = files
    first = made.current()
    clock.now += 100
    assert made.current() is first
    for path, content in ((key, TWO.key), (chain, TWO.certificate)):
        replacement = tmp_path / "new"
        replacement.write_bytes(content)
        os.replace(replacement, path)
    clock.now += 1
    assert made.current() == Certificate(TWO.certificate, TWO.key)


@pytest.mark.parametrize("key_first", [False, True])
def test_certificate_is_taken_only_with_its_key_and_within_a_second_of_it(files: Files, key_first: bool) -> None:
    made, clock, chain, key = files
    steps = [(chain, TWO.certificate), (key, TWO.key)]
    for path, content in reversed(steps) if key_first else steps:
        assert made.current() == Certificate(ONE.certificate, ONE.key)
        path.write_bytes(content)
        clock.now += 1
        made.current()
        clock.now += 60
    clock.now -= 60
    assert made.current() == Certificate(TWO.certificate, TWO.key)


@pytest.mark.parametrize("content", [b"", ONE.certificate[:200], b"\xff\x00 rubbish"])
def test_half_written_certificate_is_not_taken(files: Files, content: bytes) -> None:
    made, clock, chain, _ = files
    chain.write_bytes(content)
    for _ in range(3):
        clock.now += 1
        assert made.current() == Certificate(ONE.certificate, ONE.key)
    chain.unlink()
    clock.now += 1
    assert made.current() == Certificate(ONE.certificate, ONE.key)


def test_certificate_that_never_fitted_its_key_is_an_error_until_it_does(tmp_path: Path) -> None:
    clock, chain, key = Clock(), tmp_path / "crt", tmp_path / "key"
    chain.write_bytes(ONE.certificate)
    key.write_bytes(TWO.key)
    made = CertificateFiles(str(chain), str(key), clock=clock)
    with pytest.raises(CredentialsError, match=r"client certificate: .*crt and .*key: .*"):
        made.current()
    chain.write_bytes(TWO.certificate)
    assert made.current() == Certificate(TWO.certificate, TWO.key)


def test_new_certificate_after_a_refusal_is_worth_another_try(files: Files) -> None:
    made, _, chain, key = files

    async def main() -> None:
        credentials = WithCertificate(FixedAuthorization(), made)
        assert not await credentials.renew("")
        chain.write_bytes(TWO.certificate)
        assert not await credentials.renew("")
        key.write_bytes(TWO.key)
        assert await credentials.renew("")

    asyncio.run(main())


def test_impersonation_goes_with_every_request() -> None:
    async def main() -> None:
        user = KubeconfigUser(
            impersonate="jane", impersonate_groups=("dev",), impersonate_user_extra={"acme/why": ("test",)}
        )
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
    settings = ConnectionSettings(server="https://a", user=KubeconfigUser(impersonate="a\r\nX: y"))
    with pytest.raises(ConnectionSettingsError, match="Impersonate-User"):
        transport_for(settings, {})


def test_inline_certificate_is_shown() -> None:
    pair = authority().issue("client")
    settings = ConnectionSettings(
        server="https://a", user=KubeconfigUser(client_certificate_data=pair.certificate, client_key_data=pair.key)
    )
    credentials = credentials_for(settings, {}, observer=Observer(), clock=time.monotonic)
    certificate = credentials.certificate()
    assert certificate is not None
    assert certificate.chain == pair.certificate
