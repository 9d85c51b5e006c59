"""Every timeout is for a whole request, and nothing is waited for between the last question and the first byte."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from soak.balancer import Balancer
from tests.unit.kube.certificates import authority, server_context
from tests.unit.kube.scripted_server import Exchange, ScriptedServer, answering, serving, silent, talking_to
from tests.virtual_time import now, run

from kubesched.config.configuration import ClientConnection, LeaderElection
from kubesched.kube.authentication import clients_for
from kubesched.kube.client import Client
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.connection_pool import MOST_DIALED_AT_ONCE
from kubesched.kube.credentials import Credentials, FixedAuthorization
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import AnswerTimeoutError, UnreachableError
from kubesched.kube.leader_election import LeaderElector
from kubesched.kube.lease import LeaseLock
from kubesched.kube.shared_work import SharedWork
from kubesched.kube.timing import Timing
from kubesched.kube.tls import ServerTrust

LOOPBACK = ("127.0.0.1",)


def trusting() -> ServerTrust:
    return ServerTrust(ca_data=authority().certificate)


def serving_context(directory: Path) -> ssl.SSLContext:
    return server_context(directory, authority().issue("server", hosts=LOOPBACK))


class Slow(Credentials):
    """Credentials that take their time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def at_hand(self) -> str | None:
        return None

    async def authorization(self) -> str:
        await asyncio.sleep(self.seconds)
        return ""


# -- what a client may have to wait for --------------------------------------------------------------------------------


@asynccontextmanager
async def waiting_for_credentials() -> AsyncIterator[tuple[Client, ScriptedServer]]:
    async with serving(answering(200)) as server, talking_to(server, credentials=Slow(30)) as client:
        yield client, server


@asynccontextmanager
async def waiting_for_a_connection() -> AsyncIterator[tuple[Client, ScriptedServer]]:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(30)
        await answering(200)(exchange)

    async with serving(slow) as server, talking_to(server, connections=1) as client:
        before = asyncio.create_task(client.get("/before"))
        while not server.requests:
            await asyncio.sleep(0)
        yield client, server
        before.cancel()
        await asyncio.gather(before, return_exceptions=True)


@asynccontextmanager
async def waiting_for_tls() -> AsyncIterator[tuple[Client, ScriptedServer]]:
    balancer = Balancer([1])
    balancer.kill(0)
    await balancer.start()
    server = ScriptedServer([silent], port=balancer.port)
    async with talking_to(server, trust=trusting()) as client:
        yield client, server
    await balancer.stop()


WAITS = {
    "credentials": waiting_for_credentials,
    "a connection": waiting_for_a_connection,
    "TLS": waiting_for_tls,
}


@pytest.mark.parametrize("wait", WAITS)
def test_request_ends_in_time_whatever_it_waits_for(wait: str) -> None:
    async def main() -> None:
        async with WAITS[wait]() as (client, _):
            began = now()
            with pytest.raises(AnswerTimeoutError, match="no answer within 5 s") as late:
                await client.post("/x", b"{}", timeout=5, retries=0)
            assert now() - began == pytest.approx(5)
            assert not late.value.maybe_done

    run(main())


def test_request_on_a_connection_at_hand_ends_in_time_and_leaves_its_late_answer_to_nobody() -> None:
    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(5.5)
        await answering(200, b"late")(exchange)

    async def main() -> None:
        async with serving(answering(200), late, answering(200, b"ok")) as server, talking_to(server) as client:
            await client.get("/x")
            with pytest.raises(AnswerTimeoutError, match="no answer within 5 s") as error:
                await client.post("/x", b"{}", timeout=5)
            assert error.value.maybe_done
            assert now() == pytest.approx(5)
            await asyncio.sleep(1)
            assert await client.get("/x") == b"ok"
        assert [request.connection for request in server.requests] == [1, 1, 2]

    run(main())


def test_credentials_that_have_run_out_are_waited_for_though_a_connection_is_at_hand() -> None:
    class RunningOut(Slow):
        def at_hand(self) -> str | None:
            return "old" if now() < 60 else None

        async def authorization(self) -> str:
            return await super().authorization() or "new"

    async def main() -> None:
        async with serving(answering(200)) as server, talking_to(server, credentials=RunningOut(30)) as client:
            await client.get("/x")
            await asyncio.sleep(60)
            await client.get("/x")
            assert now() == 90
        assert [request.headers["authorization"] for request in server.requests] == ["old", "new"]

    run(main())


@pytest.mark.parametrize("wait", ["credentials", "TLS"])
def test_watch_is_opened_in_time_whatever_it_waits_for(wait: str) -> None:
    async def main() -> None:
        async with WAITS[wait]() as (client, _):
            with pytest.raises(AnswerTimeoutError, match="no answer within 5 s"):
                await client.watch("/x", silence=1000, timeout=5)
            assert now() == pytest.approx(5)

    run(main())


def test_body_of_a_refused_watch_must_end_in_time() -> None:
    async def drip(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100000\r\n\r\n")
        while True:
            await exchange.send(b"x")
            await asyncio.sleep(1)

    async def main() -> None:
        async with serving(drip) as server, talking_to(server) as client:
            with pytest.raises(AnswerTimeoutError):
                await client.watch("/x", silence=1000, timeout=5)
            assert now() < 11

    run(main())


def test_plugin_that_is_slower_than_requests_may_last_is_waited_for_by_the_next() -> None:
    runs = []

    async def work() -> None:
        runs.append(now())
        await asyncio.sleep(12)

    async def main() -> None:
        shared = SharedWork(work)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await shared.wait()
        async with asyncio.timeout(5):
            await shared.wait()
        assert (runs, now()) == ([0.0], 12.0)

    run(main())


# -- the fence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["credentials", "a connection"])
def test_write_that_still_waits_when_the_lease_is_lost_is_never_sent(wait: str) -> None:
    async def main() -> None:
        async with WAITS[wait]() as (client, server):
            client.may_write = lambda: now() < 10  # while it waits
            with pytest.raises(UnreachableError, match="the lease is lost") as refused:
                await client.post("/x", b"{}")
            assert not refused.value.maybe_done
            assert "POST" not in [request.method for request in server.requests]

    run(main())


def test_write_is_not_repeated_with_other_credentials_once_the_lease_is_lost() -> None:
    class Renewing(FixedAuthorization):
        async def renew(self, refused: str) -> bool:
            await asyncio.sleep(30)
            return True

    async def main() -> None:
        scripts = [answering(401), answering(201)]
        async with serving(*scripts) as server, talking_to(server, credentials=Renewing()) as client:
            client.may_write = lambda: now() < 10
            with pytest.raises(UnreachableError, match="the lease is lost"):
                await client.post("/x", b"{}")
            assert len(server.requests) == 1

    run(main())


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_bytes_go_out_before_anything_else_can_happen(
    tmp_path: Path, tls: bool, runner: Callable[[Awaitable[None]], None]
) -> None:
    """If the event loop kept them until its next turn, a plugin could compute for seconds before that."""
    came: list[bytes] = []
    heard = threading.Event()

    def accept(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        if tls:
            connection = serving_context(tmp_path).wrap_socket(connection, server_side=True)
        with connection:
            came.append(connection.recv(1000))
            heard.set()

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            thread = threading.Thread(target=accept, args=(listening,))
            thread.start()
            address = f"{'https' if tls else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
            connection = await Dialer(address, trusting()).dial(None, lambda connection: None)
            connection.request(b"POST / HTTP/1.1\r\n\r\n")
            assert heard.wait(10), "nothing came while this thread did other things"
            connection.close()
            thread.join()

    runner(main())
    assert came == [b"POST / HTTP/1.1\r\n\r\n"]


# -- one of two API servers dies ---------------------------------------------------------------------------------------


@asynccontextmanager
async def two_servers(
    directory: Path, *scripts: Any, rng: random.Random | None = None
) -> AsyncIterator[tuple[Balancer, ScriptedServer]]:
    """Two API servers behind one address, and that address."""
    context = serving_context(directory)
    async with serving(*scripts, tls=context) as one, serving(*scripts, tls=context) as two:
        balancer = Balancer([one.port, two.port], rng)
        await balancer.start()
        try:
            yield balancer, ScriptedServer([silent], port=balancer.port)
        finally:
            await balancer.stop()


def test_connection_is_made_although_the_first_server_asked_is_dead(tmp_path: Path) -> None:
    async def main() -> None:
        async with two_servers(tmp_path, answering(200, b"ok")) as (balancer, address):
            balancer.kill(0)
            async with talking_to(address, trust=trusting()) as client:
                assert await client.get("/x", timeout=5) == b"ok"
                assert now() == pytest.approx(0.5, abs=0.1)

    run(main())


def test_refusal_is_told_at_once() -> None:
    async def main() -> None:
        async with serving(silent) as server:
            pass
        async with talking_to(server) as client:
            with pytest.raises(UnreachableError, match="connection refused"):
                await client.get("/x", retries=0)
            assert now() == 0

    run(main())


class FirstThreeToOne(random.Random):
    """The first three connections go to one server, all others to the other."""

    chosen = 0

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        self.chosen += 1
        return int(self.chosen > 3)


def test_idle_connections_are_not_trusted_after_one_was_silent(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            two_servers(tmp_path, answering(200, b"ok"), rng=FirstThreeToOne()) as (balancer, address),
            talking_to(address, trust=trusting()) as client,
        ):
            await asyncio.gather(*(client.get("/x") for _ in range(3)))
            balancer.kill(0)
            with pytest.raises(AnswerTimeoutError):
                await client.post("/x", b"{}", timeout=5)
            assert await client.get("/x", timeout=5) == b"ok"
            assert now() == pytest.approx(5, abs=0.1)

    run(main())


def test_lease_is_kept_while_one_of_two_servers_is_dead(tmp_path: Path) -> None:
    lease: dict[str, Any] = {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": {}}

    async def keep(exchange: Exchange) -> None:
        if exchange.request.body:
            lease.update(json.loads(exchange.request.body))
        await answering(200, json.dumps(lease).encode())(exchange)

    async def main() -> None:
        async with (
            two_servers(tmp_path, keep, rng=random.Random(1)) as (balancer, address),
            talking_to(address, trust=trusting()) as client,
        ):
            lock = LeaseLock(client, namespace="kube-system", name="kube-scheduler")
            elector = LeaderElector(lock, "me", LeaderElection(), timing=Timing(clock=now))

            async def lead() -> None:
                for turn in range(20):
                    await asyncio.sleep(20)
                    balancer.kill(turn % 2)
                    await asyncio.sleep(45)
                    balancer.revive(turn % 2)

            await elector.run(lead)
            assert balancer.hung > 30, "some dials met a dead server, too"

    run(main())


def test_question_about_the_lease_does_not_wait_for_the_connections_of_those_without_an_answer() -> None:
    """Three servers in a row take the question and die of it."""
    lease: dict[str, Any] = {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": {}}
    answer = answering(200, json.dumps(lease).encode())

    async def main() -> None:
        async with serving(answer, answer, silent, silent, silent, answer) as server:
            settings = ConnectionSettings(server=f"http://127.0.0.1:{server.port}")
            clients = clients_for(settings, ClientConnection(), {}, clock=now)
            lock = LeaseLock(clients.leases, namespace="kube-system", name="kube-scheduler")
            elector = LeaderElector(lock, "me", LeaderElection(), timing=Timing(clock=now))
            await elector.acquire()
            began = now()
            assert await elector._try(deadline=began + 10)
            assert now() - began == pytest.approx(3.75, abs=0.1), "the fourth, after three quarters of five seconds"
            await clients.transport.close()
            await clients.transport_of_leases.close()

    run(main())


def test_connection_for_the_lease_is_dialed_with_more_effort() -> None:
    """Nothing is heard of any server: how often is each asked for a connection in ten seconds?"""

    async def main() -> None:
        balancer = Balancer([1])
        balancer.kill(0)
        await balancer.start()
        settings = ConnectionSettings(server=f"https://127.0.0.1:{balancer.port}", trust=trusting())
        clients = clients_for(settings, ClientConnection(), {}, clock=now)
        dials = []
        for client in (clients.leases, clients.scheduler):
            before = balancer.hung
            with pytest.raises(AnswerTimeoutError):
                await client.get("/x", timeout=10, retries=0)
            dials.append(balancer.hung - before)
            await clients.transport_of_leases.close()
        await clients.transport.close()
        await balancer.stop()
        assert dials == [7, 5]

    run(main())


def test_watches_that_are_lost_together_are_not_dialed_all_at_once() -> None:
    async def main() -> None:
        balancer = Balancer([1])
        balancer.kill(0)
        await balancer.start()
        address = ScriptedServer([silent], port=balancer.port)
        async with talking_to(address, trust=trusting()) as client:
            watches = [asyncio.create_task(client.watch("/x", silence=60, timeout=5)) for _ in range(20)]
            await asyncio.sleep(0.3)
            assert balancer.hung == MOST_DIALED_AT_ONCE
            await asyncio.gather(*watches, return_exceptions=True)
        await balancer.stop()

    run(main())
