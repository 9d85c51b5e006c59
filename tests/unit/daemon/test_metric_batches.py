from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.daemon.metric_values import value_of
from tests.unit.scheduler.memory_cluster import Refusal
from tests.unit.scheduler.world import World

from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.metrics import registry as families
from kubesched.daemon.metrics.client import RestClientMetrics, WorkQueueMetrics
from kubesched.daemon.metrics.listener import ClientMetrics, SchedulerMetrics
from kubesched.daemon.metrics.registry import MOST_NOTES, Batch, MetricsRegistry, Note, allow_lists
from kubesched.testing import make_node, make_pod

PLAIN = (tuple, list, frozenset, str, float, int, bool, type(None))


class Looking(MetricsRegistry):
    """Keeps all notes, of every kind, when they are counted."""

    def __init__(self) -> None:
        super().__init__(FeatureGates({"SchedulerAsyncAPICalls": True}))
        self.seen: list[object] = []

    def batch(self, count: Callable[[list[Note]], None]) -> Batch[Note]:
        def look_and_count(notes: list[Note]) -> None:
            self.seen += notes
            count(notes)

        return super().batch(look_and_count)


def much_happens(registry: MetricsRegistry, *, scrapes: bool = False) -> None:
    """Pods are bound, refused, evicted and gated, and requests are sent; every other attempt is looked into."""
    ticks, draws = count(), count()

    def clock() -> float:
        return next(ticks) / 1024

    world = World(stopwatch=clock)
    metrics = SchedulerMetrics(registry, world.scheduler.profiles, clock=clock, draw=lambda: next(draws) % 2)
    client, requests = ClientMetrics(registry, clock), RestClientMetrics(registry)
    queue = WorkQueueMetrics(registry, "q")
    world.scheduler.listeners.append(metrics)
    low = make_pod("low").requests(cpu="2").priority(1).on("small")
    world.see(
        make_node("n").label(rack="1"),
        make_node("small").label(rack="2").capacity(cpu="2"),
        low,
        make_pod("gated").gate("wait"),
    )
    for i in range(6):
        world.see(make_pod(f"fits-{i}").node_selector(rack="1"), make_pod(f"fits-nowhere-{i}").node_selector(rack="7"))
        if i == 3:
            world.cluster.bind_refusals.append(Refusal("InternalError"))
            world.see(make_pod("high").requests(cpu="2").priority(9).node_selector(rack="2"))
        for _ in range(2):
            world.tried()
        for code in ("201", "429", "<error>"):
            requests.answered("POST", "api", code, clock())
            requests.finished("POST", "api", clock(), 10 * i, None if code == "<error>" else 100 * i)
        client.writing("pod_binding", 1)
        client.wrote("pod_binding", "success", clock())
        queue.added(i + 1)
        queue.taken(i, clock())
        queue.done(clock())
        if scrapes:
            registry.exposed()


def shown(registry: MetricsRegistry) -> dict[str, float]:
    text = registry.exposed().decode()
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    kinds = ("scheduler_", "rest_", "workqueue_", "cardinality_")
    return {f"{s.name}{sorted(s.labels.items())}": s.value for s in samples if s.name.startswith(kinds)}


def test_scrape_shows_what_was_noted_a_moment_ago_and_nothing_twice() -> None:
    registry = MetricsRegistry()
    requests, queue = RestClientMetrics(registry), WorkQueueMetrics(registry, "q")
    for expected in (1, 2):
        requests.answered("POST", "api", "201")
        queue.done(0.5)
        for _ in range(2):
            assert value_of(registry, "rest_client_requests_total", code="201", method="POST", host="api") == expected
            assert value_of(registry, "workqueue_work_duration_seconds_sum", name="q") == expected / 2


def test_it_makes_no_difference_when_notes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_end, at_every_scrape, at_once = MetricsRegistry(), MetricsRegistry(), MetricsRegistry()
    much_happens(in_the_end)
    much_happens(at_every_scrape, scrapes=True)
    monkeypatch.setattr(families, "MOST_NOTES", 1)
    much_happens(at_once)
    expected = shown(at_once)
    assert expected["scheduler_schedule_attempts_total[('profile', 'default-scheduler'), ('result', 'scheduled')]"] > 3
    assert shown(in_the_end) == pytest.approx(expected)
    assert shown(at_every_scrape) == pytest.approx(expected)


@given(st.lists(st.tuples(st.sampled_from(("NodeAdd", "PodAdd", "Surprise")), st.floats(0, 10))))
def test_many_are_counted_as_if_they_came_one_by_one(notes: list[tuple[str, float]]) -> None:
    """Label values that are not allowed count each time, too."""
    event_seconds, incoming = "scheduler_event_handling_duration_seconds", "scheduler_queue_incoming_pods_total"
    allowed = allow_lists({f"{event_seconds},event": "NodeAdd,PodAdd", f"{incoming},event": "PodAdd"})
    together, one_by_one = MetricsRegistry(allow_lists=allowed), MetricsRegistry(allow_lists=allowed)
    together.family(event_seconds).observe_each([((event,), seconds) for event, seconds in notes])
    together.family(incoming).inc_each([("active", event) for event, _ in notes])
    for event, seconds in notes:
        one_by_one.family(event_seconds).child(event).observe(seconds)
        one_by_one.family(incoming).child("active", event).inc()
    assert shown(together) == pytest.approx(shown(one_by_one))


def test_what_is_kept_is_bounded_even_if_nobody_scrapes() -> None:
    counted: list[int] = []
    batch = Batch(counted.extend)
    for noted in range(1, 5 * MOST_NOTES):
        batch.note(noted)
        assert noted - len(counted) < MOST_NOTES
    assert counted == list(range(1, len(counted) + 1))


def test_batches_that_get_a_note_for_each_pod_are_not_counted_at_the_same_pod() -> None:
    registry, counted = MetricsRegistry(), Counter[int]()
    pod = 0
    batches: list[Batch[int]] = [registry.batch(lambda _: counted.update([pod])) for _ in range(12)]
    for pod in range(10 * MOST_NOTES):
        for batch in batches:
            batch.note(pod)
    assert sum(counted.values()) > 120
    assert max(counted.values()) <= 3


def test_attempts_are_counted_in_the_end_even_if_nobody_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "MOST_NOTES", 2)
    registry = MetricsRegistry()
    much_happens(registry)
    assert registry.family("scheduler_schedule_attempts_total").child("scheduled", "default-scheduler").value > 3


def test_notes_are_plain_values_so_that_they_keep_no_pod_alive() -> None:
    registry = Looking()
    much_happens(registry)
    registry.exposed()
    assert len(registry.seen) > 50
    found: list[Any] = list(registry.seen)
    while found:
        each = found.pop()
        assert type(each) in PLAIN, each
        found += gc.get_referents(each) if isinstance(each, (tuple, list, frozenset)) else ()
