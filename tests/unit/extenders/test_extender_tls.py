"""Extenders that are reached by TLS: whom they trust, and who trusts them."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
from msgspec.structs import replace
from tests.builders import Json
from tests.unit.extenders.extender_server import (
    POD,
    A,
    B,
    ExtenderServer,
    asked,
    assert_ends_with_error,
    decide,
    filtering,
    passing,
    settings,
)
from tests.unit.extenders.odd_servers import Tunnels

from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.extender import ExtenderSettingsError

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBoTCCAUegAwIBAgIUSX10BUP3vNQNfDJ8/NQlDs2SZa0wCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNZXh0ZW5kZXIudGVzdDAgFw0yNjExMTUyMjU3MDFaGA8yMTI2
MTAyMjIyNTcwMVowGDEWMBQGA1UEAwwNZXh0ZW5kZXIudGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABJ7wp7s78ngx5abNnbyQTQX8a6zK5304GufezJd/1/at
uxre/x/5Ze06MJDHYYa6w0cyBcRD4fljbMB4ieiow96jbTBrMB0GA1UdDgQWBBQW
lSxhYsZ0pWk9Uf6racJiGhb8IzAfBgNVHSMEGDAWgBQWlSxhYsZ0pWk9Uf6racJi
Ghb8IzAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDWV4dGVuZGVyLnRlc3Qw
CgYIKoZIzj0EAwIDSAAwRQIgeuW92PhzUtQxOuJ2I3whynS5G2ppJFutCKqlsa3O
BbUCIQDly1U84jsudGqeq955i5cTnC6NwVEfHiEVJYQD4dRqNQ==
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgO45kVBiny3YlSbn9
moWMxrIZEFLBntn5KCFbt1sev/OhRANCAASe8Ke7O/J4MeWmzZ28kE0F/Gusyud9
OBrn3syXf9f2rbsa3v8f+WXtOjCQx2GGusNHMgXEQ+H5Y2zAeInoqMPe
-----END PRIVATE KEY-----
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[ExtenderServer]:
    """A server whose certificate is for extender.test."""
    yield from secured(tmp_path, ssl.CERT_NONE)


@pytest.fixture
def mutual_tls(tmp_path: Path) -> Iterator[ExtenderServer]:
    """One that lets in only those who show the same certificate."""
    yield from secured(tmp_path, ssl.CERT_REQUIRED)


def secured(directory: Path, verify: ssl.VerifyMode) -> Iterator[ExtenderServer]:
    (directory / "cert.pem").write_text(CERTIFICATE)
    (directory / "key.pem").write_text(KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    context.load_verify_locations(directory / "cert.pem")
    context.verify_mode = verify
    server = ExtenderServer()
    server.speak_tls(context)
    server.answers["filter"] = passing("b")
    server.start()
    yield server
    server.stop()


def test_server_is_trusted_by_its_authority_and_name(tls: ExtenderServer) -> None:
    trusted = {"caData": encoded(CERTIFICATE), "serverName": "extender.test"}
    assert decide(POD, A, B, by=[filtering(tls, tlsConfig=trusted)]).node == "b"
    nameless = decide(POD, A, B, by=[filtering(tls, tlsConfig={"caData": encoded(CERTIFICATE)})])
    assert_ends_with_error(nameless, "certificate")


def test_server_of_unknown_authority_is_not_trusted(tls: ExtenderServer) -> None:
    assert_ends_with_error(decide(POD, A, B, by=[filtering(tls)]), "CERTIFICATE_VERIFY_FAILED")


@pytest.mark.parametrize("more", [{"enableHTTPS": True}, {"tlsConfig": {"insecure": True}}])
def test_server_is_trusted_blindly_if_so_configured(tls: ExtenderServer, more: Json) -> None:
    assert decide(POD, A, B, by=[filtering(tls, **more)]).node == "b"


def test_kept_connection_leads_through_a_proxy(tls: ExtenderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Tunnels(tls.port)
    monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{proxy.port}")
    trusted = {"caData": encoded(CERTIFICATE)}
    config = settings(filtering(tls, urlPrefix="https://extender.test/scheduler", tlsConfig=trusted)).extenders[0]
    extender = HTTPExtender(config)

    async def ask_twice() -> list[frozenset[str]]:
        return [(await extender.filter(POD, (A.build(), B.build()))).passed for _ in range(2)]

    assert asked(ask_twice, [extender]) == [{"b"}, {"b"}]
    proxy.stop()
    assert [line.split(b"\r\n")[0] for line in proxy.asked] == [b"CONNECT extender.test:443 HTTP/1.1"]
    assert (len(tls.asked), tls.connections) == (2, 1)


def test_proxy_that_is_reached_by_tls_leads_to_an_extender_that_is_as_well(
    tls: ExtenderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", tls.port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    async def story() -> frozenset[str]:
        async with await asyncio.start_server(lead, "127.0.0.1", 0, ssl=context) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
            address = {"urlPrefix": "https://extender.test/scheduler", "tlsConfig": {"insecure": True}}
            extender = HTTPExtender(settings(filtering(tls, **address)).extenders[0])
            answer = await extender.filter(POD, (A.build(), B.build()))
            await extender.close()
            return answer.passed

    assert uvloop.run(story()) == {"b"}


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def test_certificates_are_checked_even_if_the_address_does_without_tls() -> None:
    config = settings({"urlPrefix": "http://extender.test", "tlsConfig": {"caFile": "/does/not/exist"}}).extenders[0]
    with pytest.raises(ExtenderSettingsError, match="No such file"):
        HTTPExtender(config)


@pytest.mark.parametrize("inline", [True, False])
def test_client_certificate_is_shown(mutual_tls: ExtenderServer, tmp_path: Path, inline: bool) -> None:
    data = {"certData": encoded(CERTIFICATE), "keyData": encoded(KEY), "caData": encoded(CERTIFICATE)}
    files = {"certFile": str(tmp_path / "cert.pem"), "keyFile": str(tmp_path / "key.pem")}
    files["caFile"] = str(tmp_path / "cert.pem")
    shown = {**(data if inline else files), "serverName": "extender.test"}
    assert decide(POD, A, B, by=[filtering(mutual_tls, tlsConfig=shown)]).node == "b"


@pytest.mark.parametrize(
    ("tls_config", "words"),
    [
        ({"insecure": True, "caData": encoded(CERTIFICATE)}, "makes no sense together with insecure"),
        ({"certData": encoded(CERTIFICATE)}, "must be given together"),
        ({"caData": encoded("no certificate")}, "tlsConfig: "),
        ({"caFile": "/does/not/exist"}, "No such file"),
    ],
)
def test_certificates_that_cannot_be_used_are_refused_at_once(tls_config: Json, words: str) -> None:
    extender = settings({"urlPrefix": "https://extender.test", "tlsConfig": tls_config}).extenders[0]
    with pytest.raises(ExtenderSettingsError, match=words):
        HTTPExtender(extender)


def test_address_that_is_none_is_refused_at_once(server: ExtenderServer) -> None:
    extender = settings({"urlPrefix": server.url}).extenders[0]
    with pytest.raises(ExtenderSettingsError, match="expected an address"):
        HTTPExtender(replace(extender, url_prefix="extender.test:80"))
