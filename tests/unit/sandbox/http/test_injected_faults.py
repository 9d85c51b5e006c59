from __future__ import annotations

import asyncio

import aiohttp
import pytest
from tests.sandbox_server import fresh_api
from tests.unit.sandbox.http.asking import CONFIG_MAPS, Asking, config, with_server

from kubesched.api import kinds
from kubesched_sandbox.http import FaultError, Faults, Rule, parse_fault


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("drop-watch", Rule("drop-watch")),
        (
            "429:p=0.1,verb=create,resource=pods,retry-after=3",
            Rule("429", probability=0.1, verb="create", resource="pods", retry_after=3),
        ),
        ("delay:seconds=0.5,count=2", Rule("delay", seconds=0.5, count=2)),
        ("500-after: verb=create , resource=pods/binding", Rule("500-after", verb="create", resource="pods/binding")),
    ],
)
def test_rules_are_read_as_they_are_written(text: str, rule: Rule) -> None:
    assert parse_fault(text) == rule


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is no fault; there are drop-watch, delay, 410, "),
        ("418:p=1", "'418' is no fault; there are drop-watch, delay, 410, "),
        ("429:p=2", "probability 2.0: must be between 0 and 1"),
        ("429:p=nan", "probability nan: must be between 0 and 1"),
        ("429:p=often", "'p=often': expected a number"),
        ("429:count=1.5", "'count=1.5': expected a whole number"),
        ("429:colour=red", "'colour=red' is no option; there are p, verb, resource, "),
        ("429:p", "'p' is no option; there are p, verb, resource, count, seconds, retry-after, each with =value"),
        ("delay:seconds=-1", "seconds -1.0: must be between 0 and 3600"),
    ],
)
def test_wrong_rules_are_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(FaultError) as refused:
        parse_fault(text)
    assert str(refused.value).startswith(reason)


def test_the_same_seed_makes_the_same_faults() -> None:
    def run(seed: int) -> list[bool]:
        faults = Faults([parse_fault("500-before:p=0.5")], seed)
        return [faults.before("create", "pods") is not None for _ in range(50)]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_rule_happens_to_whom_it_concerns_and_not_too_often() -> None:
    faults = Faults([parse_fault("409:verb=update,resource=pods,count=2")])
    assert faults.before("create", "pods") is None
    assert faults.before("update", "nodes") is None
    assert [faults.before("update", "pods") is not None for _ in range(4)] == [True, True, False, False]


def test_watch_faults_concern_events() -> None:
    faults = Faults([parse_fault("duplicate:resource=pods")])
    assert faults.for_event(kinds.PODS) == "duplicate"
    assert faults.for_event(kinds.NODES) is None


@pytest.mark.parametrize(("what", "code", "stored"), [("500-before", 500, 0), ("500-after", 500, 1), ("429", 429, 0)])
def test_requests_fail_before_or_after_they_are_done(what: str, code: int, stored: int) -> None:
    api = fresh_api()

    async def test(ask: Asking) -> None:
        answer = await ask("POST", CONFIG_MAPS, config("a"))
        assert answer.status == code
        assert len(api.select(kinds.CONFIG_MAPS, "default")) == stored

    with_server(test, api, faults=Faults([parse_fault(f"{what}:verb=create,resource=configmaps")]))


def test_faults_are_switched_while_the_server_runs() -> None:
    async def test(ask: Asking) -> None:
        rules = {"rules": [{"what": "429", "verb": "create", "retryAfter": 7, "count": 1}], "seed": 5}
        assert (await ask("PUT", "/sandbox/faults", rules)).status == 200
        refused = await ask("POST", CONFIG_MAPS, config("a"))
        assert (refused.status, refused.headers["Retry-After"]) == (429, "7")
        shown = (await ask("GET", "/sandbox/faults")).json
        assert (shown["seed"], shown["rules"][0]["happened"]) == (5, 1)
        assert (await ask("DELETE", "/sandbox/faults")).json["rules"] == []
        assert (await ask("POST", CONFIG_MAPS, config("a"))).status == 201
        assert (await ask("PUT", "/sandbox/faults", {"rules": [{"what": "magic"}]})).status == 400
        assert (await ask("PUT", "/sandbox/faults", {"rules": [{"what": "409", "probability": 2}]})).status == 400
        assert (await ask("POST", "/sandbox/faults", {})).status == 405

    with_server(test)


def test_events_are_doubled_on_demand() -> None:
    async def test(ask: Asking) -> None:
        watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion=1", 2))
        await ask.until_watchers(1)
        await ask("POST", CONFIG_MAPS, config("a"))
        first, second = await watch
        assert first == second

    with_server(test, faults=Faults([parse_fault("duplicate:resource=configmaps")]))


def test_events_change_places_on_demand() -> None:
    async def test(ask: Asking) -> None:
        watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion=1", 3))
        await ask.until_watchers(1)
        for name in "abc":
            await ask("POST", CONFIG_MAPS, config(name))
        assert [event["object"]["metadata"]["name"] for event in await watch] == ["b", "a", "c"]

    with_server(test, faults=Faults([parse_fault("reorder:count=1")]))


def test_a_watch_can_expire_while_it_runs() -> None:
    async def test(ask: Asking) -> None:
        watch = asyncio.create_task(ask("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion=1"))
        await ask.until_watchers(1)
        await ask("PUT", "/sandbox/faults", {"rules": [{"what": "410", "verb": "watch"}]})
        await ask("POST", CONFIG_MAPS, config("a"))
        told = (await watch).json
        assert (told["type"], told["object"]["code"]) == ("ERROR", 410)
        assert (await ask("GET", f"{CONFIG_MAPS}?watch=true")).status == 410

    with_server(test)


def test_a_frozen_request_is_never_answered() -> None:
    async def test(ask: Asking) -> None:
        asking = asyncio.create_task(ask("GET", CONFIG_MAPS))
        done, _ = await asyncio.wait([asking], timeout=0.1)
        assert not done
        asking.cancel()

    with_server(test, faults=Faults([parse_fault("freeze:verb=list")]))


def test_a_dropped_watch_breaks_its_connection() -> None:
    async def test(ask: Asking) -> None:
        watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion=1", 1))
        await ask.until_watchers(1)
        await ask("POST", CONFIG_MAPS, config("a"))
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await watch

    api = fresh_api()
    with_server(test, api, faults=Faults([parse_fault("drop-watch")]))


def test_a_frozen_watch_says_nothing_more_and_stays_open() -> None:
    async def test(ask: Asking) -> None:
        watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion=1", 1))
        await ask.until_watchers(1)
        await ask("POST", CONFIG_MAPS, config("a"))
        done, _ = await asyncio.wait([watch], timeout=0.1)
        assert not done
        watch.cancel()

    with_server(test, faults=Faults([parse_fault("freeze:verb=watch")]))


def test_a_delay_holds_requests_up() -> None:
    async def test(ask: Asking) -> None:
        started = asyncio.get_running_loop().time()
        await ask("GET", CONFIG_MAPS)
        assert asyncio.get_running_loop().time() - started >= 0.1

    with_server(test, faults=Faults([parse_fault("delay:seconds=0.1,verb=list")]))
