"""Reflectors: list, watch, and whatever servers do in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.kube.memory_server import (
    EXPIRED,
    TOO_LARGE,
    MemoryServer,
    MemoryStream,
    bookmark,
    error_event,
    line,
)
from tests.unit.kube.reflecting import Reflecting

from kubesched.kube.errors import ApiStatusError, UnreachableError

Reflect = Callable[..., Reflecting]
LOST = UnreachableError("the connection was lost")


@pytest.fixture
def reflect() -> Iterator[Reflect]:
    made: list[Reflecting] = []

    def start(server: MemoryServer, **options: Any) -> Reflecting:
        made.append(Reflecting(server, **options))
        return made[-1]

    yield start
    for it in made:
        it.close()


def server_with(*names: str, **options: Any) -> MemoryServer:
    server = MemoryServer(**options)
    for name in names:
        server.put(name)
    return server


def test_streamed_list_goes_on_as_a_watch(reflect: Reflect) -> None:
    server = server_with("a", "b")
    it = reflect(server)
    assert it.reflector.has_synced
    server.put("c")
    server.put("a", colour="red")
    server.delete("b")
    it.run()
    assert it.view.told() == ["+a", "+b", "+c", "~a", "-b"]
    assert server.asked == ["stream newest"]
    it.assert_knows_the_truth()


def test_server_without_streamed_lists_is_listed_in_pages_from_any_version_it_has(reflect: Reflect) -> None:
    server = server_with(*"abcde", streams_lists=False, page_size=2)
    it = reflect(server)
    assert it.reflector.has_synced
    assert server.asked == ["stream newest", "list 0", "list 0 from 2@15", "list 0 from 4@15", "watch 15"]
    assert it.pauses == []
    it.assert_knows_the_truth()


def test_server_that_ignores_the_wish_for_a_streamed_list_is_listed_in_pages(reflect: Reflect) -> None:
    server = server_with("a")
    server.failures = []
    it = reflect(MemoryServer(), streamed_lists=False)
    assert it.server.asked == ["list 0", "watch 10"]
    old = server_with("a")
    original = old.watch

    async def ignoring(*, resource_version: str, seconds: int, initial_events: bool) -> MemoryStream:
        stream = await original(resource_version=resource_version or "0", seconds=seconds, initial_events=False)
        if initial_events:
            stream.send(bookmark(old.version))
        return stream

    old.watch = ignoring  # type: ignore[method-assign]
    it = reflect(old)
    assert old.asked == ["watch 0", "list 0", "watch 11"]
    it.assert_knows_the_truth()


def test_list_that_cannot_be_streamed_by_an_old_etcd_is_read_in_pages_at_once(reflect: Reflect) -> None:
    server = server_with("a")
    refusal = ApiStatusError(500, "InternalError", "the required storage feature RequestWatchProgress is disabled")
    original = server.watch

    async def refusing(*, resource_version: str, seconds: int, initial_events: bool) -> MemoryStream:
        stream = await original(resource_version=resource_version, seconds=seconds, initial_events=initial_events)
        if initial_events:
            stream.lines_to_send = [error_event(refusal)]
        return stream

    server.watch = refusing  # type: ignore[method-assign]
    it = reflect(server)
    assert it.reflector.has_synced
    assert server.asked == ["stream newest", "list 0", "watch 11"]
    assert it.pauses == []
    server.put("b")
    it.run()
    it.assert_knows_the_truth()


def test_pages_that_expire_on_the_way_are_read_all_at_once(reflect: Reflect) -> None:
    server = server_with(*"abcd", streams_lists=False, page_size=2)
    original = server.page

    async def compacting(*, resource_version: str, limit: int, more: str) -> bytes:
        if more:
            server.put("e")
            server.compact()
        return await original(resource_version=resource_version, limit=limit, more=more)

    server.page = compacting  # type: ignore[method-assign]
    it = reflect(server, streamed_lists=False)
    assert server.asked == ["list 0", "list 0 from 2@14", "list newest", "watch 15"]
    it.assert_knows_the_truth()


def test_not_synced_before_the_whole_list_was_delivered(reflect: Reflect) -> None:
    server = server_with("a")
    server.failures = [LOST, ApiStatusError(403, "Forbidden", "no")]
    it = reflect(server)
    assert not it.reflector.has_synced
    it.settle()
    assert it.reflector.has_synced
    it.assert_knows_the_truth()


def test_watch_that_ended_is_resumed_where_it_was(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.put("b")
    it.pass_time(300)
    server.drop()
    server.put("c")
    it.run()
    assert server.asked == ["stream newest", "watch 12"]
    assert it.pauses == []
    assert it.view.told() == ["+a", "+b", "+c"]


def test_broken_watch_is_resumed_without_a_list_and_without_a_pause(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    it.pass_time(10)
    server.drop(LOST)
    server.delete("a")
    it.run()
    assert server.asked == ["stream newest", "watch 11"]
    assert it.pauses == []
    assert it.view.told() == ["+a", "-a"]


def test_bookmarks_move_the_place_to_resume(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.version = 500
    server.send_to_all(bookmark(500))
    it.pass_time(10)
    server.compact()
    server.drop()
    it.run()
    assert server.asked[-1] == "watch 500"
    assert it.reflector.lists == 1


@pytest.mark.parametrize("as_event", [True, False])
def test_forgotten_version_leads_to_a_list_that_replaces(reflect: Reflect, as_event: bool) -> None:
    server = server_with("same", "changed", "gone", "again")
    it = reflect(server)
    it.view.told()
    it.pass_time(10)
    if as_event:
        server.mangle = lambda stream, line: None
    else:
        server.drop(LOST)
    server.put("changed", colour="red")
    server.delete("gone")
    server.delete("again")
    server.put("again")
    server.put("new")
    server.compact()
    server.mangle = MemoryStream.send
    if as_event:
        server.send_to_all(error_event(EXPIRED))
    it.settle()
    assert sorted(it.view.told()) == sorted(["-gone", "~changed", "-again", "+again", "+new"])
    it.assert_knows_the_truth()


def test_version_from_the_future_leads_to_a_list_of_the_newest(reflect: Reflect) -> None:
    server = server_with("a", "b")
    it = reflect(server)
    it.pass_time(10)
    server.restart_from_backup(["b"])
    server.put("c")
    it.settle()
    assert server.asked[2] == "stream newest", "at once: no version of ours means anything there"
    it.assert_knows_the_truth()


def test_server_that_lags_behind_is_asked_again(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    it.pass_time(10)
    server.failures = [TOO_LARGE, TOO_LARGE]
    server.drop()
    it.settle()
    it.assert_knows_the_truth()


def test_pauses_grow_with_jitter_and_shrink_after_peace(reflect: Reflect) -> None:
    server = server_with("a")
    server.failures = [LOST] * 8
    it = reflect(server)
    for _ in range(8):
        it.pass_time(1)
    assert it.pauses == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45, 45])
    it.pass_time(200)
    server.failures = [LOST]
    server.drop()
    it.run()
    assert it.pauses[-1] == pytest.approx(1.2)


def test_watch_that_ends_at_once_is_not_hammered(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    for _ in range(3):
        server.drop()
        it.run()
        assert it.is_asleep
        it.pass_time(1)


def test_watch_that_is_cut_under_load_is_resumed_at_once_however_often(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    for i in range(50):
        server.put(f"p{i}")
        server.drop(LOST if i % 2 else None)
        it.run()
    assert it.pauses == []
    assert it.reflector.lists == 1
    it.assert_knows_the_truth()


def test_watch_that_only_repeats_itself_before_it_ends_is_not_hammered(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    for _ in range(3):
        server.send_to_all(line("ADDED", server.objects["a"]))
        it.run()
        server.drop()
        it.run()
        assert it.is_asleep
        it.pass_time(1)


def test_duplicates_and_older_events_are_ignored(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    old = dict(server.objects["a"])
    server.put("a", colour="red")
    new = server.objects["a"]
    server.send_to_all(line("MODIFIED", new), line("MODIFIED", old), line("ADDED", old), line("DELETED", old))
    it.run()
    assert it.view.told() == ["+a", "~a"]
    assert it.reflector.resource_version == new["metadata"]["resourceVersion"]


def test_late_event_does_not_bring_back_what_was_deleted(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    old = server.objects["a"]
    server.delete("a")
    server.send_to_all(line("MODIFIED", old), line("ADDED", old))
    it.run()
    assert it.view.told() == ["+a", "-a"]


def test_same_name_with_another_uid_is_another_object(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.mangle = lambda stream, sent: None  # the deletion is not seen
    server.delete("a")
    server.mangle = MemoryStream.send
    server.put("a")
    it.run()
    assert it.view.told() == ["+a", "-a", "+a"]


def test_unknown_events_are_skipped(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.send_to_all(line("SURPRISE", server.objects["a"]))
    server.put("b")
    it.run()
    assert it.view.told() == ["+a", "+b"]


def test_unreadable_line_ends_the_watch_but_not_the_reflector(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.send_to_all(b"{rubbish")
    server.put("b")
    it.settle()
    it.assert_knows_the_truth()
    assert it.reflector.lists == 1


def test_relist_reads_the_newest_state_and_tells_when_it_is_known(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.mangle = lambda stream, sent: None  # the watch has gone deaf
    server.put("b")
    task = it.start_relist()
    assert task.done()
    it.assert_knows_the_truth()
    assert server.asked == ["stream newest", "stream newest"]


def test_relist_asked_for_during_a_list_follows_without_a_pause(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    first, second = it.start_relists(2)
    assert first.done()
    assert second.done()
    assert it.pauses == []


def test_long_list_that_fails_is_not_repeated_at_once(reflect: Reflect) -> None:
    server = server_with("a")
    server.failures = [LOST]
    it = reflect(server, streamed_lists=False)

    async def slow(**asked: object) -> bytes:
        it.now += 30
        raise ApiStatusError(500)

    server.page = slow  # type: ignore[method-assign]
    it.pass_time(2)
    assert len(it.pauses) == 2


def test_relist_goes_on_when_the_server_fails_at_first(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.put("b")
    server.failures = [LOST, LOST]
    task = it.start_relist()
    assert not task.done()
    it.settle()
    assert task.done()
    it.assert_knows_the_truth()


def test_relist_ends_a_pause_once_and_no_more(reflect: Reflect) -> None:
    server = server_with("a")
    server.failures = [LOST, LOST, LOST, LOST]
    it = reflect(server)
    assert len(it.pauses) == 1
    task = it.start_relist()
    assert len(server.asked) == 2  # at once, without time passing
    assert len(it.pauses) == 2  # a server that fails all the same is left in peace
    it.settle()
    assert task.done()
    it.assert_knows_the_truth()


def test_others_run_between_batches_of_a_large_list(reflect: Reflect) -> None:
    server = server_with(*(f"pod-{n}" for n in range(1000)))
    server.failures = [LOST]
    it = reflect(server)
    naps = 0
    original = it._sleep

    async def counting(seconds: float) -> None:
        nonlocal naps
        naps += not seconds
        await original(seconds)

    it.reflector._sleep = counting
    it.settle()
    it.assert_knows_the_truth()
    assert naps == 10


def test_mistake_of_the_handler_is_not_hidden(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)

    def broken(change: object) -> None:
        raise ValueError("a mistake")

    it.view.handle = broken  # type: ignore[method-assign]
    server.put("b")
    with pytest.raises(ValueError, match="a mistake"):
        it.run()


def test_change_that_the_watch_kept_to_itself_is_noticed_by_a_list(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.mangle = lambda stream, event: None  # nobody is told
    server.put("b")
    server.send_to_all(bookmark(server.version))
    it.run()
    assert it.reflector.missed == 0
    it.start_relist()
    assert it.reflector.missed == 1
    it.assert_knows_the_truth()


def test_change_that_comes_just_before_a_list_is_not_missed(reflect: Reflect) -> None:
    server = server_with("a")
    it = reflect(server)
    server.mangle = lambda stream, event: None  # it is on its way
    server.put("b")
    it.start_relist()
    assert it.reflector.missed == 0
    it.assert_knows_the_truth()
