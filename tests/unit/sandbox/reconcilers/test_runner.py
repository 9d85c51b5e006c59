from __future__ import annotations

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sandbox_server import fresh_api

from kubesched.api.kinds import CONFIG_MAPS, Resource
from kubesched_sandbox.api import ApiEvent
from kubesched_sandbox.reconcilers import Dispatch, KeyedReconciler, Runner
from kubesched_sandbox.reconcilers.reconciler import Key, WorkQueue, key_of

NAMED = {"metadata": {"name": "one"}}


class Copier(KeyedReconciler):
    """Remembers what it worked on; a name may be poison for a while."""

    watches: tuple[Resource, ...] = (CONFIG_MAPS,)

    def __init__(self, api: object, *, poison: str = "", cures_after: int = 0) -> None:
        super().__init__(api)  # type: ignore[arg-type]
        self.seen: list[str] = []
        self._poison, self._left = poison, cures_after

    def observe(self, event: ApiEvent) -> None:
        if event.object["metadata"]["namespace"] == "default":
            self.queue.add(key_of(event.object))

    def sync(self, key: Key, now: float) -> float | None:
        if key[1] == self._poison and self._left > 0:
            self._left -= 1
            raise RuntimeError("poison")
        self.seen.append(key[1])
        return None


def test_key_that_fails_is_logged_and_tried_again_while_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    api = fresh_api()
    copier = Copier(api, poison="bad", cures_after=3)
    dispatch = Dispatch(api, [copier])
    for name in ("bad", "good"):
        api.create(CONFIG_MAPS, "default", {"metadata": {"name": name}})
    with caplog.at_level(logging.ERROR):
        dispatch.settle(100.0)
    assert copier.seen == ["good"]
    assert "default/bad failed" in caplog.text
    waits = []
    now = 100.0
    while (due := dispatch.next_due()) is not None:
        waits.append(due - now)
        now = due
        dispatch.settle(now)
    assert copier.seen == ["good", "bad"]
    assert waits == sorted(waits)
    assert len(waits) == 3


def test_controller_that_breaks_down_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Copier):
        def reconcile(self, now: float) -> float | None:
            raise RuntimeError("broken")

    api = fresh_api()
    copier = Copier(api)
    dispatch = Dispatch(api, [Broken(api), copier])
    api.create(CONFIG_MAPS, "default", NAMED)
    dispatch.settle(100.0)
    assert copier.seen == ["one"]
    assert "Broken failed" in caplog.text


def test_writer_does_not_suffer_for_a_controller_that_cannot_take_in_an_event(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(Copier):
        def observe(self, event: ApiEvent) -> None:
            raise RuntimeError("deaf")

    api = fresh_api()
    copier = Copier(api)
    dispatch = Dispatch(api, [Deaf(api), copier])
    api.create(CONFIG_MAPS, "default", NAMED)
    dispatch.settle(100.0)
    assert copier.seen == ["one"]
    assert "Deaf could not take in an event" in caplog.text


def test_runner_works_on_events_and_lets_others_have_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched_sandbox.reconcilers.reconciler.SLICE", 0.0)

    async def scenario() -> tuple[list[str], int]:
        api = fresh_api()
        copier = Copier(api)
        runner = Runner(api, [copier])
        runner.start()
        turns = 0
        for number in range(100):
            api.create(CONFIG_MAPS, "default", {"metadata": {"name": f"map-{number}"}})
        while len(copier.seen) < 100:
            turns += 1
            await asyncio.sleep(0)
        await runner.stop()
        return copier.seen, turns

    seen, turns = asyncio.run(scenario())
    assert len(seen) == 100
    assert turns >= 100


def test_stopped_runner_hears_nothing_more() -> None:
    async def scenario() -> list[str]:
        api = fresh_api()
        copier = Copier(api)
        runner = Runner(api, [copier])
        runner.start()
        await asyncio.sleep(0)
        await runner.stop()
        api.create(CONFIG_MAPS, "default", NAMED)
        await asyncio.sleep(0)
        return copier.seen

    assert asyncio.run(scenario()) == []


def test_resting_key_gathers_changes_until_its_time() -> None:
    queue = WorkQueue()
    queue.rest(("", "dear"), 10.0, 2.0)
    queue.add(("", "dear"))
    queue.add(("", "dear"))
    assert (queue.take(10.0), queue.next_due(10.0)) == (None, 12.0)
    assert queue.take(12.0) == ("", "dear")
    assert queue.take(12.0) is None


_NAMES = st.sampled_from("abc")
_ACTIONS = st.one_of(
    st.tuples(st.just("add"), _NAMES, st.just(0)),
    st.tuples(st.just("at"), _NAMES, st.integers(0, 20)),
    st.tuples(st.just("take"), _NAMES, st.integers(0, 20)),
)


@given(st.lists(_ACTIONS, max_size=40))
def test_queue_hands_out_every_key_when_it_is_due_and_once(actions: list[tuple[str, str, int]]) -> None:
    queue, now = WorkQueue(), 0.0
    due: dict[str, float] = {}
    dirty: set[str] = set()
    for kind, name, number in actions:
        if kind == "add":
            queue.add(("", name))
            dirty.add(name)
        elif kind == "at":
            queue.add_at(("", name), now + number)
            due[name] = min(due.get(name, float("inf")), now + number)
        else:
            now += number
            ready = dirty | {each for each, when in due.items() if when <= now}
            taken = set()
            while (key := queue.take(now)) is not None:
                assert key[1] not in taken
                taken.add(key[1])
            assert taken == ready
            dirty.clear()
            due = {each: when for each, when in due.items() if when > now}
            assert queue.next_due(now) == min(due.values(), default=None)
