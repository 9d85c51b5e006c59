"""TLS with real certificates, and proxies that really tunnel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import uvloop
from tests.unit.kube.certificates import Authority, KeyPair, authority, server_context
from tests.unit.kube.scripted_server import Exchange, answering, serving, talking_to

from kubesched.kube import dialing
from kubesched.kube.credentials import FixedAuthorization, WithCertificate
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import ConnectionSettingsError, UnreachableError
from kubesched.kube.http_connection import HttpConnection
from kubesched.kube.tls import Certificate, ServerTrust

LOOPBACK = ("127.0.0.1",)
Runner = Callable[[Awaitable[None]], None]

loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])


def trusting(server_name: str = "") -> ServerTrust:
    return ServerTrust(ca_data=authority().certificate, server_name=server_name)


@loops
def test_server_signed_by_the_authority_is_trusted(tmp_path: Path, run: Runner) -> None:
    async def main() -> None:
        context = server_context(tmp_path, authority().issue("server", hosts=LOOPBACK))
        async with (
            serving(answering(200, b"ok"), tls=context) as server,
            talking_to(server, trust=trusting()) as client,
        ):
            assert await client.get("/") == b"ok"

    run(main())


def refused(tmp_path: Path, pair: KeyPair, trust: ServerTrust) -> str:
    words = ""

    async def main() -> None:
        nonlocal words
        context = server_context(tmp_path, pair)
        async with serving(answering(200), tls=context) as server, talking_to(server, trust=trust) as client:
            with pytest.raises(UnreachableError) as caught:
                await client.get("/", retries=0)
            words = str(caught.value)

    asyncio.run(main())
    return words


def test_server_of_another_authority_is_refused(tmp_path: Path) -> None:
    words = refused(tmp_path, Authority("other").issue("server", hosts=LOOPBACK), trusting())
    assert "the server's certificate: " in words
    assert "\n" not in words


def test_server_of_another_name_is_refused_unless_its_name_is_given(tmp_path: Path) -> None:
    pair = authority().issue("server", hosts=("kubernetes.default",))
    assert "IP address mismatch" in refused(tmp_path, pair, trusting())

    async def main() -> None:
        context = server_context(tmp_path, pair)
        trust = trusting(server_name="kubernetes.default")
        async with serving(answering(200, b"ok"), tls=context) as server, talking_to(server, trust=trust) as client:
            assert await client.get("/") == b"ok"

    asyncio.run(main())


def test_name_in_the_subject_only_is_no_name(tmp_path: Path) -> None:
    words = refused(tmp_path, authority().issue("localhost"), trusting("localhost"))
    assert "the server's certificate: Hostname mismatch" in words


def test_expired_certificate_is_said_to_be(tmp_path: Path) -> None:
    pair = authority().issue("server", hosts=LOOPBACK, days=-1)
    assert "certificate has expired" in refused(tmp_path, pair, trusting())


def test_authorities_in_a_file_are_read_again_when_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        other = Authority("other")
        file = tmp_path / "ca.crt"
        file.write_bytes(other.certificate)
        context = server_context(tmp_path, authority().issue("server", hosts=LOOPBACK))
        trust = ServerTrust(ca_file=str(file))
        async with serving(answering(200, b"ok"), tls=context) as server, talking_to(server, trust=trust) as client:
            with pytest.raises(UnreachableError):
                await client.get("/")
            file.write_bytes(other.certificate + authority().certificate)
            assert await client.get("/") == b"ok"

    asyncio.run(main())


def test_authorities_that_are_half_written_are_those_that_they_were(tmp_path: Path) -> None:
    async def main() -> None:
        context = server_context(tmp_path, authority().issue("server", hosts=LOOPBACK))
        authorities = tmp_path / "ca.crt"
        authorities.write_bytes(authority().certificate)
        trust = ServerTrust(ca_file=str(authorities))
        async with serving(answering(200), tls=context) as server, talking_to(server, trust=trust) as client:
            (await client.watch("/", silence=1)).close()
            authorities.write_bytes(authority().certificate[:300])
            (await client.watch("/", silence=1)).close()

    asyncio.run(main())


def test_insecure_trusts_anybody(tmp_path: Path) -> None:
    async def main() -> None:
        context = server_context(tmp_path, Authority("other").issue("x"))
        trust = ServerTrust(insecure=True)
        async with serving(answering(200, b"ok"), tls=context) as server, talking_to(server, trust=trust) as client:
            assert await client.get("/") == b"ok"

    asyncio.run(main())


class Rotating(FixedAuthorization):
    """Shows what it is told to."""

    shown: Certificate

    def certificate(self) -> Certificate | None:
        return self.shown


@pytest.mark.parametrize("refuses_the_first", [False, True])
def test_client_certificate_is_shown_and_replaced_without_a_pause(tmp_path: Path, refuses_the_first: bool) -> None:
    """A server need not take the first any more when there is a second: it may have expired."""

    async def main() -> None:
        names: list[str] = []

        async def note(exchange: Exchange) -> None:
            peer = exchange.writer.get_extra_info("peercert")
            names.append(peer["subject"][0][0][1])
            is_refused = refuses_the_first and names[-1] == "one" and len(names) > 2
            await answering(401 if is_refused else 200)(exchange)

        one, two = authority().issue("one"), authority().issue("two")
        credentials = Rotating()
        context = server_context(tmp_path, authority().issue("server", hosts=LOOPBACK), clients=authority())
        async with (
            serving(note, tls=context) as server,
            talking_to(server, trust=trusting(), credentials=credentials) as client,
        ):
            credentials.shown = Certificate(one.certificate, one.key)
            await client.get("/")
            await client.get("/")
            credentials.shown = Certificate(two.certificate, two.key)
            await client.get("/")
            async with asyncio.timeout(30):
                while names[-1] != "two":
                    await client.get("/")
        assert names[:3] == ["one", "one", "one"], "on the connection that there was"
        assert names[3] == "two" if refuses_the_first else names[-1] == "two"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("trust", "certificate", "words"),
    [
        (ServerTrust(ca_data=b"rubbish"), None, "certificate-authority-data: expected certificates in PEM"),
        (ServerTrust(ca_file="/no/such"), None, "/no/such: expected certificates in PEM: No such file"),
        (ServerTrust(), Certificate(b"a", b"b"), "expected a client certificate and its key in PEM"),
    ],
)
def test_unusable_certificates_are_mistakes_in_the_settings(
    trust: ServerTrust, certificate: Certificate | None, words: str
) -> None:
    async def main() -> None:
        credentials = WithCertificate(FixedAuthorization(), certificate) if certificate else None
        async with (
            serving(answering(200)) as server,
            talking_to(server, trust=trust, credentials=credentials) as client,
        ):
            with pytest.raises(ConnectionSettingsError) as caught:
                await client.get("/")
            assert words in str(caught.value)

    asyncio.run(main())


class TunnelServer:
    """A proxy: HTTP CONNECT or SOCKS5, with or without a password."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[bytes] = []
        self.reply = b"HTTP/1.1 200 Connection established\r\n\r\n"

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head)
        host, port = head.split(b" ")[1].decode().rsplit(":", 1)
        writer.write(self.reply)
        if b" 200 " in self.reply:
            await _piped(reader, writer, host, int(port))
        writer.close()

    async def socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        if 2 in await reader.readexactly(count):
            writer.write(b"\x05\x02")
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            self.asked.append(user + b":" + password)
            writer.write(b"\x01\x00")
        else:
            writer.write(b"\x05\x00")
        *_, kind = await reader.readexactly(4)
        assert kind == 1
        host = ".".join(map(str, await reader.readexactly(4)))
        port = int.from_bytes(await reader.readexactly(2))
        writer.write(b"\x05\x00\x00\x01\0\0\0\0\0\0")
        await _piped(reader, writer, host, port)


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    far_reader, far_writer = await asyncio.open_connection(host, port)

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))


@asynccontextmanager
async def proxying(kind: str) -> AsyncIterator[TunnelServer]:
    proxy = TunnelServer()
    listening = await asyncio.start_server(getattr(proxy, kind), "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()


@loops
@pytest.mark.parametrize(("kind", "scheme"), [("connect", "http"), ("socks", "socks5")])
def test_tls_goes_through_a_proxy(tmp_path: Path, run: Runner, kind: str, scheme: str) -> None:
    async def main() -> None:
        context = server_context(tmp_path, authority().issue("server", hosts=LOOPBACK))
        async with serving(answering(200, b"ok"), tls=context) as server, proxying(kind) as proxy:
            url = f"{scheme}://me:pass%20word@127.0.0.1:{proxy.port}"
            async with talking_to(server, trust=trusting(), proxy=url) as client:
                assert await client.get("/") == b"ok"
                with closing(await client.watch("/", silence=5)) as watch:
                    assert await watch.lines() == []
            if kind == "connect":
                assert f"CONNECT 127.0.0.1:{server.port} HTTP/1.1".encode() in proxy.asked[0]
                assert b"Proxy-Authorization: Basic bWU6cGFzcyB3b3Jk\r\n" in proxy.asked[0]
            else:
                assert proxy.asked[0] == b"me:pass word"

    run(main())


def test_requests_in_the_clear_are_handed_to_the_proxy_with_their_whole_address() -> None:
    async def main() -> None:
        async with serving(answering(200)) as server, serving(answering(200, b"by proxy")) as proxy:
            async with talking_to(server, proxy=f"http://127.0.0.1:{proxy.port}") as client:
                assert await client.get("/api?x=1") == b"by proxy"
            assert proxy.paths == [f"http://127.0.0.1:{server.port}/api?x=1"]

    asyncio.run(main())


def test_proxy_that_refuses_is_named() -> None:
    async def main() -> None:
        async with serving(answering(200)) as server, proxying("connect") as proxy:
            proxy.reply = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
            async with talking_to(server, trust=trusting(), proxy=f"http://127.0.0.1:{proxy.port}") as client:
                with pytest.raises(UnreachableError, match=r"proxy 127.0.0.1:\d+: it answered \"HTTP/1.1 407 Proxy"):
                    await client.get("/", retries=0)

    asyncio.run(main())


def test_connection_that_loses_the_race_is_made_and_closed_not_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop goes on with a handshake that was cancelled, on a closed socket, and logs how that breaks."""
    monkeypatch.setattr(dialing, "NEXT_DIAL_AFTER", 0.0)

    async def main() -> None:
        late, closed = asyncio.Event(), asyncio.Event()
        made: list[HttpConnection] = []

        async def dial(*_: object) -> HttpConnection:
            connection = HttpConnection(asyncio.get_running_loop(), lambda _: None, bytearray(1024))
            made.append(connection)
            if len(made) == 1:
                monkeypatch.setattr(connection, "close", closed.set)
                await late.wait()
            return connection

        dialer = Dialer("http://127.0.0.1:1", trusting())
        monkeypatch.setattr(dialer, "_dial", dial)
        assert await dialer.dial(None, lambda _: None) is not made[0]
        late.set()
        async with asyncio.timeout(30):
            await closed.wait()
        await dialer.close()

    asyncio.run(main())
