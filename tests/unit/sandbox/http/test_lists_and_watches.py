from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.sandbox_server import fresh_api
from tests.unit.sandbox.http.asking import CONFIG_MAPS, PODS, Asking, config, pod, with_server

from kubesched.api import kinds
from kubesched_sandbox.api import Api
from kubesched_sandbox.http import watches
from kubesched_sandbox.store import Store


def with_configs(count: int, store: Store | None = None) -> Api:
    api = fresh_api(store)
    for n in range(count):
        api.create(kinds.CONFIG_MAPS, "default", config(f"c{n}", labels={"even": str(n % 2 == 0).lower()}))
    return api


def told(events: list[Any]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def test_pages_are_of_one_snapshot() -> None:
    api = with_configs(5)

    async def test(ask: Asking) -> None:
        first = await ask("GET", f"{CONFIG_MAPS}?limit=2")
        assert first.names == ["c0", "c1"]
        assert first.json["metadata"]["remainingItemCount"] == 3
        api.delete(kinds.CONFIG_MAPS, "default", "c3")
        api.create(kinds.CONFIG_MAPS, "default", config("c9"))
        second = await ask("GET", f"{CONFIG_MAPS}?limit=2&continue={first.json['metadata']['continue']}")
        assert second.names == ["c2", "c3"]
        third = await ask("GET", f"{CONFIG_MAPS}?limit=2&continue={second.json['metadata']['continue']}")
        assert third.names == ["c4"]
        assert "continue" not in third.json["metadata"]
        versions = {page.json["metadata"]["resourceVersion"] for page in (first, second, third)}
        assert len(versions) == 1
        elsewhere = await ask("GET", f"{PODS}?continue={first.json['metadata']['continue']}")
        assert elsewhere.status == 400

    with_server(test, api)


def test_a_page_after_too_long_is_gone() -> None:
    now = 1_700_000_000.0
    api = fresh_api(clock=lambda: now)
    for name in "abc":
        api.create(kinds.CONFIG_MAPS, "default", config(name))

    async def test(ask: Asking) -> None:
        nonlocal now
        token = (await ask("GET", f"{CONFIG_MAPS}?limit=1")).json["metadata"]["continue"]
        now += 301
        answer = await ask("GET", f"{CONFIG_MAPS}?limit=1&continue={token}")
        assert (answer.status, answer.reason) == (410, "Expired")

    with_server(test, api)


def test_a_list_can_be_of_an_exact_revision() -> None:
    api = with_configs(2)
    revision = api.store.revision
    api.delete(kinds.CONFIG_MAPS, "default", "c0")

    async def test(ask: Asking) -> None:
        exact = await ask("GET", f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
        assert exact.names == ["c0", "c1"]
        newer = await ask("GET", f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=NotOlderThan")
        assert newer.names == ["c1"]
        api.store.compact()
        old = await ask("GET", f"{CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
        assert (old.status, old.reason) == (410, "Expired")

    with_server(test, api)


def test_a_revision_of_the_future_is_too_large() -> None:
    async def test(ask: Asking) -> None:
        for path in (f"{PODS}?resourceVersion=99999", f"{PODS}?watch=1&resourceVersion=99999"):
            answer = await ask("GET", path)
            assert (answer.status, answer.reason) == (504, "Timeout")
            assert answer.json["message"].startswith("Too large resource version: 99999")
            assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
            assert answer.headers["Retry-After"] == "1"

    with_server(test)


def test_a_watch_tells_what_is_there_and_what_comes() -> None:
    api = with_configs(1)

    async def test(ask: Asking) -> None:
        watch = asyncio.create_task(ask.events(f"{CONFIG_MAPS}?watch=true", 4))
        await ask.until_watchers(1)
        await ask("POST", CONFIG_MAPS, config("new"))
        await ask("PUT", f"{CONFIG_MAPS}/new", {**config("new"), "data": {"b": "2"}})
        await ask("DELETE", f"{CONFIG_MAPS}/new")
        events = await watch
        assert told(events) == [("ADDED", "c0"), ("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "new")]
        revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert revisions == sorted(set(revisions))

    with_server(test, api)


def test_a_watch_resumes_after_a_resource_version() -> None:
    api = with_configs(2)
    since = api.store.revision
    api.create(kinds.CONFIG_MAPS, "default", config("later"))
    api.create(kinds.CONFIG_MAPS, "kube-public", config("elsewhere"))
    api.delete(kinds.CONFIG_MAPS, "default", "c0")

    async def test(ask: Asking) -> None:
        events = await ask.events(f"{CONFIG_MAPS}?watch=true&resourceVersion={since}", 2)
        assert told(events) == [("ADDED", "later"), ("DELETED", "c0")]

    with_server(test, api)


def test_a_watch_from_before_the_history_ends_with_an_error_event() -> None:
    api = with_configs(3)
    api.store.compact()

    async def test(ask: Asking) -> None:
        answer = await ask("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion=2")
        assert answer.status == 200
        event = msgspec.json.decode(answer.raw)
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 2 (")

    with_server(test, api)


def test_a_selector_makes_objects_come_and_go() -> None:
    api = fresh_api()
    api.create(kinds.PODS, "default", pod("web", labels={"app": "web"}))
    since = api.store.revision
    api.patch(kinds.PODS, "default", "web", {"metadata": {"labels": {"app": "other"}}})
    gone = api.store.revision
    api.patch(kinds.PODS, "default", "web", {"metadata": {"labels": {"x": "y"}}})
    api.patch(kinds.PODS, "default", "web", {"metadata": {"labels": {"app": "web"}}})
    api.patch(kinds.PODS, "default", "web", {"metadata": {"labels": {"x": "z"}}})
    api.delete(kinds.PODS, "default", "web")

    async def test(ask: Asking) -> None:
        events = await ask.events(f"{PODS}?watch=true&resourceVersion={since}&labelSelector=app%3Dweb", 4)
        assert [event["type"] for event in events] == ["DELETED", "ADDED", "MODIFIED", "DELETED"]
        assert events[0]["object"]["metadata"]["labels"] == {"app": "web"}
        assert events[0]["object"]["metadata"]["resourceVersion"] == str(gone)

    with_server(test, api)


def test_initial_events_end_with_a_bookmark() -> None:
    api = with_configs(2)

    async def test(ask: Asking) -> None:
        options = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        events = await ask.events(f"{CONFIG_MAPS}?{options}", 3)
        assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
        metadata = events[2]["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == str(api.store.revision)

    with_server(test, api)


def test_a_watch_ends_after_its_time_with_a_bookmark() -> None:
    async def test(ask: Asking) -> None:
        answer = await ask(
            "GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=5"
        )
        last = msgspec.json.decode(answer.raw.splitlines()[-1])
        assert last["type"] == "BOOKMARK"
        assert last["object"]["kind"] == "ConfigMap"

    with_server(test)


def test_a_single_object_can_be_watched_by_its_path() -> None:
    async def test(ask: Asking) -> None:
        for path in (f"{CONFIG_MAPS}/c1?watch=true", "/api/v1/watch/namespaces/default/configmaps/c1"):
            assert told(await ask.events(path, 1)) == [("ADDED", "c1")]

    with_server(test, with_configs(3))


def test_a_watch_of_a_table_shows_rows() -> None:
    async def test(ask: Asking) -> None:
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        async with ask.session.get(f"{CONFIG_MAPS}?watch=true", headers=accept) as response:
            event = msgspec.json.decode(await response.content.readline())
        assert event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"][0] == "c0"

    with_server(test, with_configs(1))


def test_a_client_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "MOST_UNSENT", 100_000)
    api = fresh_api()

    async def test(ask: Asking) -> None:
        reader, writer = await asyncio.open_connection(ask.server.host, ask.server.port, limit=1024)
        writer.write(f"GET {CONFIG_MAPS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await writer.drain()
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        await ask.until_watchers(1)
        for n in range(3000):
            api.create(kinds.CONFIG_MAPS, "default", {"metadata": {"name": f"c{n}"}, "data": {"x": "x" * 4000}})
            if n % 50 == 0:
                await asyncio.sleep(0.003)
                if ask.server.watchers == 0:
                    break
        assert ask.server.watchers == 0
        writer.close()

    with_server(test, api)


def test_watchers_that_leave_are_forgotten() -> None:
    async def test(ask: Asking) -> None:
        await ask.events(f"{CONFIG_MAPS}?watch=true", 1)
        await ask.until_watchers(0)

    with_server(test, with_configs(1))
