"""What is kept for a while is bounded, and what cannot be seen from outside holds all the same."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import numpy as np
import pytest
from tests.unit.daemon.test_doubt import BROKEN, POD, live, outcome_of_binding
from tests.unit.kube.scripted_server import Exchange, answering, serving, talking_to

from kubesched.api.pod import PodCondition
from kubesched.api.selectors import selector_from_labels
from kubesched.daemon.serving import reviews
from kubesched.daemon.serving.endpoints import STUCK_AFTER, thread_check
from kubesched.daemon.serving.reviews import ReviewCache
from kubesched.framework import answers, equivalence
from kubesched.framework.answers import AnswerCache
from kubesched.framework.equivalence import CachedFilters, EquivalenceCache
from kubesched.framework.recently_used import RecentlyUsed
from kubesched.kube import known_objects
from kubesched.kube.decoding import DictCodec, Identity
from kubesched.kube.dialing import Dialer
from kubesched.kube.known_objects import KnownObjects
from kubesched.kube.tls import ServerTrust
from kubesched.state import matching
from kubesched.state.cluster import ClusterState

MOST = 16


def test_binding_names_the_uid_of_the_pod_that_was_decided_upon() -> None:
    _, server = outcome_of_binding(answering(201), BROKEN)
    body: dict[str, Any] = json.loads(server.requests[0].body)
    assert body["metadata"]["uid"] == "uid-of-p"


def test_eviction_names_the_uid_of_the_victim_that_was_chosen() -> None:
    async def main() -> None:
        async with serving(answering(200)) as server, talking_to(server) as client:
            await live(client).evict(POD, PodCondition(type="DisruptionTarget", status="True"))
        deletion: dict[str, Any] = json.loads(server.requests[-1].body)
        assert server.requests[-1].method == "DELETE"
        assert deletion["preconditions"] == {"uid": "uid-of-p"}

    asyncio.run(main())


def test_thread_that_gives_no_sign_of_life_fails_the_check() -> None:
    assert thread_check(lambda: STUCK_AFTER).problem() is None
    assert thread_check(lambda: STUCK_AFTER + 1).problem() == "no sign of life for 181 s"


def test_deletions_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_objects, "MOST_TOMBSTONES", MOST)
    known = KnownObjects(DictCodec())
    for number in range(3 * MOST):
        list(known.delete(Identity(f"ns/{number}", "", number + 1)))
    assert len(known._tombstones) == MOST


def test_reviews_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "_MOST", MOST)

    async def ask_many() -> ReviewCache[bool]:
        cache: ReviewCache[bool] = ReviewCache(lambda answer: 60.0)

        async def yes() -> bool:
            return True

        for number in range(3 * MOST):
            await cache.get(number, yes)
        return cache

    assert len(asyncio.run(ask_many())._answers) == MOST


def test_match_counters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_BYTES_KEPT", MOST * 16_768)
    state = ClusterState()
    for number in range(3 * MOST):
        state.matches.counter(None, selector_from_labels({"app": str(number)}), with_terminating=False)
        assert len(state.matches._counters) <= MOST


def test_answers_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_BYTES_KEPT", 0)
    assert AnswerCache(ClusterState())._most(8) == MOST


def test_classes_of_equivalent_pods_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "_BYTES_KEPT", 0)
    state = ClusterState()
    cache = EquivalenceCache(state, AnswerCache(state))
    kept: RecentlyUsed[CachedFilters] = RecentlyUsed(ordinary=1000, large=1000)
    nothing = np.zeros(0, dtype=bool)
    for number in range(3 * MOST):
        cache._keep(kept, number, CachedFilters(nothing, nothing, (), state.nodes.changes, 0), bytes_per_row=8)
    assert len(kept) == MOST


def test_bytes_after_an_answer_end_the_connection() -> None:
    """They would be taken for the answer to the next question."""

    async def too_much(exchange: Exchange) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
        await exchange.send(answer % (2, b"ok") + answer % (4, b"evil"))

    async def main() -> None:
        async with serving(too_much, answering(200, b"fine")) as server, talking_to(server) as client:
            assert await client.get("/first") == b"ok"
            assert await client.get("/second") == b"fine"
            assert server.requests[0].connection != server.requests[1].connection

    asyncio.run(main())


def test_connections_are_kept_alive_by_the_kernel_so_that_a_dead_server_is_noticed() -> None:
    async def main() -> None:
        async with serving(answering(200)) as server:
            made = await Dialer(f"http://127.0.0.1:{server.port}", ServerTrust()).dial(None, lambda connection: None)
            assert made._transport is not None
            sock = made._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
            made.close()

    asyncio.run(main())
