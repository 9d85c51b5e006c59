"""The watchdog over the event loop: it counts the times that it stood still, and names what it stood still for."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable

import pytest
from tests import virtual_time
from tests.unit.daemon.metric_values import value_of
from tests.unit.scheduler.world import World, pop_pod

from kubesched.api.change import Change
from kubesched.daemon.log import VALUES
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.stalls import LONGEST, Stalls
from kubesched.framework.stopwatch import Stopwatch
from kubesched.testing import make_node, make_pod

Step = Callable[[Stalls], None]


@pytest.fixture
def watched(caplog: pytest.LogCaptureFixture) -> Callable[..., list[tuple[str, str]]]:
    """Steps of work, each with the event loop to itself: which stalls were counted, and what the log says of them."""

    def run(*steps: Step, worked: Callable[[], float] | None = None) -> list[tuple[str, str]]:
        registry = MetricsRegistry()

        async def take_turns() -> None:
            stalls = Stalls(registry, worked or virtual_time.now)
            ticking = asyncio.create_task(stalls.run())
            for step in steps:
                await asyncio.sleep(1.01)
                step(stalls)
            await asyncio.sleep(1)
            ticking.cancel()

        with caplog.at_level(logging.INFO):
            virtual_time.run(take_turns())
        told = [getattr(record, VALUES) for record in caplog.records]
        assert value_of(registry, "kubesched_event_loop_stalls_total") == len(told)
        for values in told:
            assert value_of(registry, "kubesched_event_loop_stalls_total", culprit=values["culprit"])
        return [(values["culprit"], values["name"]) for values in told]

    return run


def event(seconds: float) -> Step:
    def handle(stalls: Stalls) -> None:
        virtual_time.work_for(seconds)
        stalls.handled(Change(new=make_node("n").build()), (), seconds)

    return handle


def decision(seconds: float, *, detailed: bool = False) -> Step:
    def decide(stalls: Stalls) -> None:
        attempt = pop_pod(World(make_pod("slow")).scheduler)
        assert attempt is not None
        attempt.watch = Stopwatch(virtual_time.now, is_detailed=detailed)
        attempt.watch.lap("PreFilter")
        if detailed:
            attempt.watch.timed("DefaultPreemption", "PostFilter", virtual_time.work_for, seconds)
        else:
            virtual_time.work_for(seconds)
        attempt.watch.lap("PostFilter")
        stalls.decided(attempt)

    return decide


def test_object_that_is_handled_for_long_is_named(watched: Callable[..., object]) -> None:
    assert watched(event(0.3)) == [("event", "Node n added")]


def test_pod_that_is_decided_for_long_is_named_with_its_extension_point(watched: Callable[..., object]) -> None:
    assert watched(decision(0.3)) == [("decision", "Pod default/slow PostFilter")]


def test_plugin_is_named_where_plugins_are_measured(watched: Callable[..., object]) -> None:
    assert watched(decision(0.3, detailed=True)) == [("decision", "Pod default/slow PostFilter DefaultPreemption")]


def test_the_longest_of_several_is_the_culprit(watched: Callable[..., object]) -> None:
    def all_at_once(stalls: Stalls) -> None:
        event(0.03)(stalls)
        decision(0.2)(stalls)
        event(0.04)(stalls)

    assert watched(all_at_once) == [("decision", "Pod default/slow PostFilter")]


def test_garbage_collection_is_named(watched: Callable[..., object]) -> None:
    def collect(_: Stalls) -> None:
        def slowly(phase: str, info: dict[str, int]) -> None:
            if phase == "start":
                virtual_time.work_for(0.2)

        gc.callbacks.append(slowly)
        gc.collect()
        gc.callbacks.remove(slowly)

    assert watched(collect) == [("garbage collection", "generation 2")]


def test_what_nobody_measured_is_counted_as_well(watched: Callable[..., object]) -> None:
    assert watched(lambda _: virtual_time.work_for(0.3)) == [("other", "nothing that took long by itself")]


def test_thread_that_did_not_run_blames_the_machine(watched: Callable[..., object]) -> None:
    away = [("machine", "the thread had no processor, or waited for the disk")]
    assert watched(decision(0.3), worked=lambda: 0.0) == away


def test_short_work_and_long_waiting_are_no_stalls(watched: Callable[..., object]) -> None:
    short = LONGEST * 0.9
    assert watched(event(short), decision(short), lambda _: virtual_time.work_for(short)) == []


def test_attempt_that_waited_between_two_turns_did_not_hold_up_anybody(watched: Callable[..., object]) -> None:
    def decide(stalls: Stalls) -> None:
        attempt = pop_pod(World(make_pod("slow")).scheduler)
        assert attempt is not None
        attempt.watch = Stopwatch(lambda: virtual_time.now() - 7)
        attempt.watch.started -= 5
        attempt.watch.restart()
        attempt.watch.lap("Filter")
        stalls.decided(attempt)

    assert watched(decide) == []
