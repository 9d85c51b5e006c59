"""Events: written on the side, repeats as series, bounded, and flushed at the end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from tests.builders import Json
from tests.unit.kube.scripted_server import answering, serving, talking_to
from tests.virtual_time import now, run

from kubesched.kube.errors import ApiStatusError, KubeError, UnreachableError
from kubesched.kube.event_record import EventReference, event_name, reference
from kubesched.kube.events import EventRecorder
from kubesched.kube.timing import Timing
from kubesched.testing import make_pod

NOTE = "Successfully assigned ns/p to n"
LOST = UnreachableError("connection refused")


@dataclass
class Sink:
    """An API server for events in memory."""

    events: dict[str, Json] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    failures: list[KubeError] = field(default_factory=list)
    delay: float = 0.0

    async def post(self, path: str, body: bytes) -> bytes:
        await self._reach("create")
        event = json.loads(body)
        name = event["metadata"]["name"]
        if name in self.events:
            raise ApiStatusError(409, "AlreadyExists", "already exists")
        self.events[name] = event
        return body

    async def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        await self._reach("patch")
        name = path.rpartition("/")[2]
        if name not in self.events:
            raise ApiStatusError(404, "NotFound", "not found")
        self.events[name] |= json.loads(body)
        return body

    async def _reach(self, call: str) -> None:
        await asyncio.sleep(self.delay)
        self.calls.append(call)
        if self.failures:
            raise self.failures.pop(0)

    @property
    def counts(self) -> list[int]:
        return [event.get("series", {"count": 1})["count"] for event in self.events.values()]


def recorder(sink: Sink, *, capacity: int = 1000, writers: int = 16) -> EventRecorder:
    return EventRecorder(
        sink,
        "default-scheduler",
        instance="default-scheduler-host",
        timing=Timing(clock=now, wall_clock=lambda: int((1.8e9 + now()) * 1e9) + len(sink.calls), chance=lambda: 0.0),
        capacity=capacity,
        writers=writers,
    )


def about(name: str = "p") -> EventReference:
    return reference(make_pod(name, namespace="ns").build(), "v1", "Pod")


def tell(events: EventRecorder, name: str = "p", note: str = NOTE, reason: str = "Scheduled") -> None:
    events.record(about(name), type="Normal", reason=reason, action="Binding", note=note)


def while_running(events: EventRecorder, story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        task = asyncio.create_task(events.run())
        await story()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_event_says_who_what_when_and_why() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        node = EventReference("v1", "Node", name="n")
        events.record(about(), related=node, type="Warning", reason="FailedScheduling", action="Scheduling", note="no")
        await asyncio.sleep(1)

    while_running(events, story)
    (event,) = sink.events.values()
    assert event.pop("metadata") == {"name": "p.18fae27693b40000", "namespace": "ns"}
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2027-01-15T08:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p", "uid": "uid-of-p"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        "note": "no",
        "type": "Warning",
    }


def test_first_repeat_makes_a_series_and_later_ones_are_only_counted() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        for _ in range(5):
            tell(events)
            await asyncio.sleep(60)
        assert sink.calls == ["create", "patch"]
        assert sink.counts == [2]
        await asyncio.sleep(900)  # the series ends, and its last count is written
        assert sink.calls == ["create", "patch", "patch"]
        assert sink.counts == [5]
        (event,) = sink.events.values()
        assert event["series"]["lastObservedTime"] == "2027-01-15T08:04:00.000000Z"

    while_running(events, story)


def test_repeat_after_the_end_of_a_series_is_a_new_event() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events)
        await asyncio.sleep(361)
        tell(events)
        await asyncio.sleep(1)

    while_running(events, story)
    assert sink.counts == [1, 1]


def test_series_that_goes_on_is_written_every_half_hour() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        for _ in range(70):
            tell(events)
            await asyncio.sleep(60)

    while_running(events, story)
    assert sink.calls == ["create", "patch", "patch", "patch"]


def test_another_note_reason_or_pod_is_another_event() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events)
        tell(events, note="another")
        tell(events, reason="Another")
        tell(events, name="another")
        await asyncio.sleep(1)

    while_running(events, story)
    assert sink.calls == ["create"] * 4


def test_only_the_last_events_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched.kube.events.MOST_REMEMBERED", 3)
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events, name="repeated")
        await asyncio.sleep(1)
        for n in range(5):
            tell(events, name=f"once-{n}")
            tell(events, name="repeated")
            await asyncio.sleep(1)
        for n in range(5):
            tell(events, name=f"later-{n}")
            await asyncio.sleep(1)
        tell(events, name="repeated")
        await asyncio.sleep(1)

    while_running(events, story)
    repeated = [event["series"]["count"] for event in sink.events.values() if "series" in event]
    assert repeated == [6]  # written when it was forgotten
    assert len(sink.events) == 12


def test_series_whose_event_was_deleted_is_created_anew() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events)
        await asyncio.sleep(1)
        sink.events.clear()
        tell(events)
        await asyncio.sleep(1)

    while_running(events, story)
    assert sink.calls == ["create", "patch", "create"]
    assert sink.counts == [2]


def test_repeat_before_the_first_was_written_is_one_write() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events)
        tell(events)
        await asyncio.sleep(1)

    while_running(events, story)
    assert sink.counts == [2]
    assert sink.calls == ["create"]


def test_unreachable_server_is_tried_again_but_not_for_ever() -> None:
    sink = Sink(failures=[LOST, LOST])
    events = recorder(sink)

    async def story() -> None:
        tell(events)
        await asyncio.sleep(25)
        assert sink.counts == [1]
        sink.failures = [LOST] * 12
        tell(events, name="q")
        await asyncio.sleep(300)
        assert events.failed == 1
        assert sink.counts == [1]

    while_running(events, story)


def test_event_that_the_server_refuses_is_not_tried_again() -> None:
    sink = Sink(failures=[ApiStatusError(403, "Forbidden", "namespace is being terminated")])
    events = recorder(sink)

    async def story() -> None:
        tell(events)
        await asyncio.sleep(100)

    while_running(events, story)
    assert sink.calls == ["create"]
    assert events.failed == 1


def test_event_that_came_through_though_no_answer_did_is_no_failure() -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        original = sink.post

        async def answerless(path: str, body: bytes) -> bytes:
            sink.post = original  # type: ignore[method-assign]
            await original(path, body)
            raise LOST

        sink.post = answerless  # type: ignore[method-assign]
        tell(events)
        await asyncio.sleep(100)

    while_running(events, story)
    assert sink.counts == [1]
    assert events.failed == 0


def test_queue_is_bounded_and_what_is_dropped_is_counted() -> None:
    sink = Sink()
    events = recorder(sink, capacity=10)

    async def story() -> None:
        for n in range(25):
            tell(events, name=f"p{n}")
        await asyncio.sleep(1)

    while_running(events, story)
    assert len(sink.events) == 10
    assert events.dropped == 15
    assert len(events._entries) == 10, "a repeat of what was dropped is an event of its own"


def test_flush_writes_what_is_queued_and_the_last_counts() -> None:
    async def main() -> None:
        sink = Sink(delay=0.1)
        events = recorder(sink)
        task = asyncio.create_task(events.run())
        for _ in range(4):
            tell(events)
            await asyncio.sleep(1)
        for n in range(40):
            tell(events, name=f"late-{n}")
        await asyncio.sleep(0.05)  # some are being written
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await events.flush(10)
        assert len(sink.events) == 41
        assert sink.counts == [4, *[1] * 40]
        assert events.dropped == events.failed == 0

    run(main())


def test_flush_ends_in_time() -> None:
    async def main() -> None:
        sink = Sink(delay=3)
        events = recorder(sink, writers=2)
        for n in range(10):
            tell(events, name=f"p{n}")
        await events.flush(5)
        assert now() == pytest.approx(5)
        assert len(sink.events) == 2
        assert events.dropped == 8

    run(main())


def test_flush_does_not_wait_for_a_server_that_is_gone() -> None:
    async def main() -> None:
        sink = Sink(failures=[LOST] * 100)
        events = recorder(sink)
        tell(events)
        await events.flush(60)
        assert now() == 0
        assert events.failed == 1

    run(main())


def test_names_are_names() -> None:
    assert event_name("p", 255) == "p.ff"
    assert len(event_name("p" * 250, 10**18)) == 36
    assert len(event_name("Not_A_Name", 1)) == 36


@pytest.mark.parametrize("letter", ["x", "ß"])
def test_notes_are_shortened_to_the_bytes_that_the_api_allows(letter: str) -> None:
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events, note=letter * 5000)
        await asyncio.sleep(1)

    while_running(events, story)
    (event,) = sink.events.values()
    assert 1020 < len(event["note"].encode()) <= 1024


def test_notes_that_differ_only_in_what_is_cut_off_are_repeats() -> None:
    """So a note of any length is remembered at no more than its written length."""
    sink = Sink()
    events = recorder(sink)

    async def story() -> None:
        tell(events, note="9" * 5000)
        await asyncio.sleep(1)
        tell(events, note="9" * 5001)
        await asyncio.sleep(1)

    while_running(events, story)
    assert sink.calls == ["create", "patch"]


def test_events_are_posted_to_the_api() -> None:
    async def main() -> None:
        async with serving(answering(201)) as server, talking_to(server) as client:
            events = EventRecorder(client, "default-scheduler")
            tell(events)
            await events.flush(5)
            tell(events)
            await events.flush(5)
            create, patch = server.requests
            assert (create.method, create.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
            assert patch.path.startswith("/apis/events.k8s.io/v1/namespaces/ns/events/p.")
            assert patch.headers["content-type"] == "application/strategic-merge-patch+json"
            assert json.loads(patch.body)["series"]["count"] == 2

    asyncio.run(main())


def test_recording_is_cheap() -> None:
    """About 10 us; the bound is loose because machines are shared."""

    async def main() -> None:
        events = EventRecorder(Sink(), "default-scheduler", capacity=10_000)
        references = [about(f"p{n}") for n in range(2000)]
        best = float("inf")
        for part in range(4):
            started = time.process_time()
            for ref in references[part * 500 : part * 500 + 500]:
                events.record(ref, type="Normal", reason="Scheduled", action="Binding", note=NOTE)
            best = min(best, (time.process_time() - started) / 500)
        assert best < 100e-6

    asyncio.run(main())
