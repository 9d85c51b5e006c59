"""Writes in doubt: nothing is given away before it is known what became of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from tests.device_builders import make_claim
from tests.unit.kube.scripted_server import Script, ScriptedServer, answering, hanging_up, serving, talking_to
from tests.virtual_time import now, run

from kubesched.api.device_claims import AllocatedDevice, AllocationResult, DeviceAllocation, ResourceClaim
from kubesched.api.merge_patch import apply_merge_patch
from kubesched.api.pod import Pod
from kubesched.daemon.doubt import ask_until_certain
from kubesched.daemon.live_client import LiveClient
from kubesched.framework.client import ClientError
from kubesched.kube.client import Client
from kubesched.kube.credentials import FixedAuthorization
from kubesched.kube.errors import (
    ApiStatusError,
    ConnectionSettingsError,
    CredentialsError,
    KubeError,
    UnreachableError,
)
from kubesched.kube.events import EventRecorder
from kubesched.plugins.dynamic_resources.claims import consumer_of
from kubesched.plugins.dynamic_resources.writes import ReserveClaim, apply_write, finalizer_patch, write_claim
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.testing import make_pod

POD = make_pod("p").build()
BROKEN = answering(500)


def live(client: Client, on_contradiction: Callable[[Pod], None] = lambda pod: None) -> LiveClient:
    made = LiveClient(client, EventRecorder(client, "test"), ObjectWaiter())
    made.attach(on_contradiction)
    return made


def bound_to(node: str, uid: str = POD.uid) -> Script:
    body = {"metadata": {"name": "p", "namespace": "default", "uid": uid}, "spec": {"nodeName": node}}
    return answering(200, json.dumps(body).encode())


def outcome_of_binding(*scripts: Script) -> tuple[str, ScriptedServer]:
    """How binding the pod to node `n` ends, if the server follows these scripts."""

    async def main() -> tuple[str, ScriptedServer]:
        async with serving(*scripts) as server, talking_to(server) as client:
            try:
                await live(client).bind(POD, "n")
            except ClientError as problem:
                return problem.reason, server
            return "bound", server

    return asyncio.run(main())


@pytest.mark.parametrize("first", [BROKEN, answering(409), hanging_up], ids=["500", "409", "none"])
def test_binding_that_may_have_taken_effect_is_looked_up(first: Script) -> None:
    outcome, server = outcome_of_binding(first, bound_to("n"))
    assert outcome == "bound"
    assert [request.method for request in server.requests] == ["POST", "GET"]


def test_binding_in_doubt_is_asked_about_until_there_is_an_answer() -> None:
    outcome, server = outcome_of_binding(BROKEN, BROKEN, BROKEN, bound_to("n"))
    assert outcome == "bound"
    assert [request.method for request in server.requests] == ["POST", "GET", "GET", "GET"]


@pytest.mark.parametrize(
    "answer",
    [bound_to(""), bound_to("elsewhere"), bound_to("n", uid="another"), answering(404)],
    ids=["unbound", "elsewhere", "another-pod", "gone"],
)
def test_binding_that_did_not_take_effect_is_an_error(answer: Script) -> None:
    assert outcome_of_binding(BROKEN, answer)[0] == "InternalError"


NO_ANSWERS = {
    "unauthorized": answering(401),
    "forbidden": answering(403),
    "bad": answering(400),
    "too-many": answering(429),
    "broken": BROKEN,
    "none": hanging_up,
    "unreadable": answering(200, b"<html>"),
    "no-pod": answering(200, b"[]"),
}


@pytest.mark.parametrize("unlucky", NO_ANSWERS)
def test_question_without_an_answer_is_asked_again(unlucky: str) -> None:
    outcome, server = outcome_of_binding(BROKEN, NO_ANSWERS[unlucky], bound_to("n"))
    assert outcome == "bound"
    assert [request.method for request in server.requests] == ["POST", "GET", "GET"]


@pytest.mark.parametrize("error", [CredentialsError("no token"), ConnectionSettingsError("no authorities")])
def test_mistakes_of_our_own_are_no_answer(error: KubeError) -> None:
    class Failing(FixedAuthorization):
        failures = 0

        def __init__(self, server: ScriptedServer) -> None:
            self._server = server

        def at_hand(self) -> str:
            if self._server.requests and self.failures < 3:
                self.failures += 1
                raise error
            return ""

    async def main() -> None:
        async with serving(BROKEN, bound_to("n")) as server:
            async with talking_to(server, credentials=Failing(server)) as client:
                await live(client).bind(POD, "n")
            assert [request.method for request in server.requests] == ["POST", "GET"]

    asyncio.run(main())


@pytest.mark.parametrize("last", [answering(403), answering(401), answering(429), answering(400)])
def test_doubt_of_an_earlier_try_is_not_forgotten_over_the_answer_to_a_later_one(last: Script) -> None:
    """The server asked us to try again, and may have done it the first time all the same."""
    outcome, server = outcome_of_binding(answering(503, Retry_After="0"), last, bound_to("n"))
    assert outcome == "bound"
    assert [request.method for request in server.requests] == ["POST", "POST", "GET"]


def test_binding_that_was_refused_is_an_error_without_a_question() -> None:
    outcome, server = outcome_of_binding(answering(403))
    assert outcome == "Forbidden"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("scripts", "contradicts"),
    [
        ([answering(404)], True),
        ([answering(409), bound_to("elsewhere")], True),
        ([answering(409), answering(404)], True),
        ([answering(409), bound_to("")], False),
        ([answering(500), bound_to("n")], False),
        ([answering(403)], False),
    ],
    ids=["gone", "elsewhere", "gone-since", "conflict", "bound", "forbidden"],
)
def test_answer_that_the_watch_should_have_told_of_is_reported(scripts: list[Script], contradicts: bool) -> None:
    reported: list[Pod] = []

    async def main() -> None:
        async with serving(*scripts) as server, talking_to(server) as client:
            with contextlib.suppress(ClientError):
                await live(client, reported.append).bind(POD, "n")

    asyncio.run(main())
    assert reported == ([POD] if contradicts else [])


# -- claims ------------------------------------------------------------------------------------------------------------

DEVICES = AllocationResult(devices=DeviceAllocation(results=(AllocatedDevice("r", "gpu.example.com", "pool", "d"),)))
CLAIM = make_claim("c")
RESERVING = ReserveClaim(CLAIM, consumer_of(POD), DEVICES, "2026-01-01T00:00:00Z")


def stored(version: str, **status: Any) -> dict[str, Any]:
    claim: dict[str, Any] = msgspec.to_builtins(CLAIM)
    claim["metadata"] |= {"resourceVersion": version}
    return claim | {"status": status}


def reserving(
    *scripts: Script, write: ReserveClaim = RESERVING, known: dict[str, Any] | None = None
) -> ResourceClaim | None:
    async def main() -> ResourceClaim | None:
        async with serving(*scripts) as server, talking_to(server) as client:
            last_seen = None if known is None else msgspec.convert(known, ResourceClaim)
            return await write_claim(live(client), write, last_seen)

    return asyncio.run(main())


def answered(claim: dict[str, Any]) -> Script:
    return answering(200, json.dumps(claim).encode())


def test_allocation_that_took_effect_after_all_is_kept() -> None:
    before = stored("1")
    kept = apply_merge_patch(before, finalizer_patch(RESERVING, before))
    after = apply_write(RESERVING, kept)
    written = reserving(answered(before), answered(kept), BROKEN, BROKEN, answered(after))
    assert written is not None
    assert written.is_reserved_for(POD.uid)


def test_allocation_that_did_not_take_effect_is_an_error() -> None:
    before = stored("1")
    kept = apply_merge_patch(before, finalizer_patch(RESERVING, before))
    with pytest.raises(ClientError, match="500"):
        reserving(answered(before), answered(kept), BROKEN, answered(kept))


SHARING = ReserveClaim(CLAIM, consumer_of(POD), None, "")
ALLOCATED = stored("1", allocation=msgspec.to_builtins(DEVICES))


def test_reservation_that_took_effect_after_all_is_kept() -> None:
    after = stored("2", **apply_write(SHARING, ALLOCATED)["status"])
    written = reserving(BROKEN, answered(after), write=SHARING, known=ALLOCATED)
    assert written is not None
    assert written.is_reserved_for(POD.uid)


def test_reservation_that_did_not_take_effect_is_an_error() -> None:
    with pytest.raises(ClientError, match="500"):
        reserving(BROKEN, answered(ALLOCATED), write=SHARING, known=ALLOCATED)


# -- asking ------------------------------------------------------------------------------------------------------------


def test_questions_come_ever_less_often_but_never_end() -> None:
    times: list[float] = []

    async def ask() -> str:
        times.append(now())
        if len(times) < 12:
            raise UnreachableError("nobody there")
        return "here"

    assert run(ask_until_certain(ask)) == "here"
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert pauses[-1] == pytest.approx(5.0)


def test_not_found_is_an_answer() -> None:
    async def ask() -> None:
        raise ApiStatusError(404, "NotFound", "gone")

    with pytest.raises(ApiStatusError, match="gone"):
        run(ask_until_certain(ask))
