"""Names of servers, in virtual time: several addresses, and name servers that are slow, ill or away."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.virtual_time import now, run

from kubesched.kube.dialing import Dialer, HostLookup
from kubesched.kube.http_connection import HttpConnection
from kubesched.kube.tls import ServerTrust


class NameServer:
    """Answers after so many seconds; without addresses it fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
        self.addresses = addresses
        self.takes = 0.0
        self.asked = 0
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", self._answer)

    async def _answer(self, host: str, port: object, **_: object) -> list[tuple[object, ...]]:
        self.asked += 1
        await asyncio.sleep(self.takes)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in self.addresses]


def test_address_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        server = NameServer(monkeypatch)
        assert await HostLookup("10.0.0.1").addresses() == ["10.0.0.1"]
        assert await HostLookup("::1").addresses() == ["::1"]
        assert server.asked == 0

    run(main())


def test_those_who_ask_at_the_same_time_share_a_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups block threads, four for all connections of a process: dozens would keep the lease's from being begun."""

    async def main() -> None:
        server = NameServer(monkeypatch, "10.0.0.1", "10.0.0.2")
        server.takes = 3.0
        lookup = HostLookup("kubernetes")
        answers = await asyncio.gather(*(lookup.addresses() for _ in range(20)))
        assert answers == [["10.0.0.1", "10.0.0.2"]] * 20
        assert (server.asked, now()) == (1, 3.0)
        server.addresses = ("10.0.0.3",)
        server.takes = 0.0
        assert await lookup.addresses() == ["10.0.0.3"]

    run(main())


def test_last_addresses_are_used_while_the_name_server_is_ill(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        server = NameServer(monkeypatch, "10.0.0.1")
        lookup = HostLookup("kubernetes")
        await lookup.addresses()
        server.addresses = ()
        assert await lookup.addresses() == ["10.0.0.1"]
        server.takes = 1000.0
        assert await lookup.addresses() == ["10.0.0.1"]
        assert now() == 0.5
        await lookup.end()

    run(main())


def test_name_that_nobody_knows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        NameServer(monkeypatch)
        with pytest.raises(socket.gaierror):
            await HostLookup("nobody").addresses()

    run(main())


def dialing(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, float | OSError], *, is_urgent: bool = False
) -> tuple[Dialer, list[str]]:
    """A dialer whose connections take so many seconds or fail, by address; and the addresses it tried."""
    tried: list[str] = []
    dialer = Dialer("http://kubernetes:80", ServerTrust(), is_urgent=is_urgent)

    async def dial(address: str, *_: object) -> HttpConnection:
        tried.append(address)
        answer = answers[address]
        if isinstance(answer, OSError):
            raise answer
        await asyncio.sleep(answer)
        return HttpConnection(asyncio.get_running_loop(), lambda _: None, bytearray(1024))

    monkeypatch.setattr(dialer, "_dial_at", dial)
    return dialer, tried


def test_each_dial_begins_with_another_address_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or all would hang at the first, if whoever is there has died without a word."""

    async def main() -> None:
        NameServer(monkeypatch, "10.0.0.1", "10.0.0.2")
        dialer, tried = dialing(monkeypatch, {"10.0.0.1": 1000.0, "10.0.0.2": 0.0})
        await dialer.dial(None, lambda _: None)
        assert (tried, now()) == (["10.0.0.1", "10.0.0.2"], 0.5)
        await dialer.close()

    run(main())


def test_address_that_refuses_is_followed_by_the_next_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        NameServer(monkeypatch, "10.0.0.1", "10.0.0.2")
        dialer, tried = dialing(monkeypatch, {"10.0.0.1": ConnectionRefusedError(), "10.0.0.2": 0.0})
        await dialer.dial(None, lambda _: None)
        assert (tried, now()) == (["10.0.0.1", "10.0.0.2"], 0.0)

    run(main())


@pytest.mark.parametrize(("is_urgent", "dials"), [(False, 1), (True, 3)])
def test_where_connections_are_slow_the_next_is_dialed_later_unless_it_is_urgent(
    monkeypatch: pytest.MonkeyPatch, is_urgent: bool, dials: int
) -> None:
    """A server with too much to do is not helped by three handshakes for each that is needed."""

    async def main() -> None:
        NameServer(monkeypatch, "10.0.0.1")
        dialer, tried = dialing(monkeypatch, {"10.0.0.1": 1.9}, is_urgent=is_urgent)
        dialer._took = 1.9
        await dialer.dial(None, lambda _: None)
        assert (len(tried), now()) == (dials, 1.9)
        await dialer.close()

    run(main())


def test_urgent_dial_is_tried_again_every_other_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """It outlives the question about the lease that it was begun for, and the next relies on it."""

    async def main() -> None:
        NameServer(monkeypatch, "10.0.0.1")
        dialer, tried = dialing(monkeypatch, {"10.0.0.1": 1000.0}, is_urgent=True)
        dial = asyncio.create_task(dialer.dial(None, lambda _: None))
        await asyncio.sleep(10)
        assert len(tried) == 7, "at 0, 0.5, 1.5, 3.5, 5.5, 7.5 and 9.5"
        dial.cancel()
        await asyncio.gather(dial, return_exceptions=True)
        await dialer.close()

    run(main())
