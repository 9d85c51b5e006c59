"""The watchdog over pods that wait: it wakes those that fit though no event woke them, and nobody else."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable

import pytest
from tests import virtual_time
from tests.unit.daemon.metric_values import value_of
from tests.unit.scheduler.living import Doorkeeper
from tests.unit.scheduler.memory_cluster import MemoryCluster, Running
from tests.unit.scheduler.world import World, names, pop_pod

from kubesched import config
from kubesched.api.change import Change
from kubesched.daemon import lost_wakeups
from kubesched.daemon.cache_debugger import CacheComparer
from kubesched.daemon.log import VALUES
from kubesched.daemon.lost_wakeups import LostWakeups
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.client import SchedulerMode
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import Replay
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import make_node, make_pod

SMALL, LARGE = make_node("n").capacity(cpu="1"), make_node("n").capacity(cpu="4")
BIG = make_pod("big").requests(cpu="2")


def watched(*objects: object) -> tuple[World, LostWakeups, MetricsRegistry]:
    world, registry = World(*objects, batched=True), MetricsRegistry()  # type: ignore[arg-type]
    return world, LostWakeups(world.scheduler, registry, lambda: world.now), registry


def grow_unnoticed(world: World) -> None:
    """As if the event of a node had been lost on its way to the queue."""
    world.scheduler.state.apply(LARGE.build())


def lost(registry: MetricsRegistry) -> float:
    return value_of(registry, "kubesched_lost_wakeups_total", plugin="NodeResourcesFit")


def test_pod_that_fits_though_nobody_woke_it_is_woken_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    world, watchdog, registry = watched(SMALL, BIG)
    world.see(SMALL.label(disk="hdd"))
    world.pass_seconds(5)
    world.tried()
    world.see(SMALL.label(disk="ssd"))
    grow_unnoticed(world)
    with caplog.at_level(logging.ERROR):
        virtual_time.run(watchdog.look())
    assert lost(registry) == 1
    (logged,) = caplog.records
    values = getattr(logged, VALUES)
    assert (values["pod"], values["rejectedBy"]) == ("default/big", ["NodeResourcesFit"])
    assert values["events"] == ["UnschedulablePodUpdate Pod default/big", "NodeUpdateNodeLabel Node n"]
    assert world.tried().node == "n"


def test_pod_that_does_not_fit_is_left_alone() -> None:
    world, watchdog, registry = watched(SMALL, BIG)
    world.tried()
    virtual_time.run(watchdog.look())
    assert (lost(registry), names(world.queue.unschedulable())) == (0, ["big"])


def test_pod_whose_event_comes_in_the_next_seconds_was_not_lost() -> None:
    world, watchdog, registry = watched(SMALL, BIG)
    world.tried()
    grow_unnoticed(world)

    async def event_comes_while_it_looks() -> None:
        looking = asyncio.create_task(watchdog.look())
        await asyncio.sleep(1)
        world.see(LARGE)
        await looking

    virtual_time.run(event_comes_while_it_looks())
    assert lost(registry) == 0


def test_pod_that_failed_again_meanwhile_is_no_longer_the_same_case() -> None:
    world, watchdog, registry = watched(SMALL, BIG)
    world.tried()
    grow_unnoticed(world)

    async def tried_while_it_looks() -> None:
        looking = asyncio.create_task(watchdog.look())
        await asyncio.sleep(1)
        world.scheduler.state.apply(SMALL.build())
        world.scheduler.activate(world.cluster.pod("big"))
        world.tried()
        grow_unnoticed(world)
        await looking

    virtual_time.run(tried_while_it_looks())
    assert lost(registry) == 0


@pytest.mark.parametrize(
    "held_back",
    [
        lambda world: setattr(world.queue.unschedulable()[0], "gating_plugin", "SchedulingGates"),
        lambda world: setattr(world.queue.unschedulable()[0], "unschedulable_plugins", {Doorkeeper.name}),
        lambda world: setattr(world.queue.unschedulable()[0], "pending_plugins", {"NodeResourcesFit"}),
    ],
    ids=["gate", "permit", "pending"],
)
def test_pod_that_waits_for_something_else_than_a_node_is_left_alone(held_back: Callable[[World], None]) -> None:
    world, watchdog, registry = watched(SMALL, BIG)
    world.tried()
    held_back(world)
    grow_unnoticed(world)
    virtual_time.run(watchdog.look())
    assert value_of(registry, "kubesched_lost_wakeups_total") == 0


def test_each_look_goes_on_with_other_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_wakeups, "MOST_PODS", 2)
    world, watchdog, registry = watched(SMALL, *(make_pod(f"p{i}").requests(cpu=f"{3 - i // 4}") for i in range(5)))
    while world.queue.has_next:
        world.tried()
    world.scheduler.state.apply(make_node("n").capacity(cpu="2").build())  # fits the last pod alone
    for _ in range(3):
        virtual_time.run(watchdog.look())
    assert lost(registry) == 1


def test_waking_is_in_the_recording_and_the_replay_agrees() -> None:
    stream, cluster = io.StringIO(), MemoryCluster()
    recording = Recording(stream, config.default(), lambda: 0.0, mode=SchedulerMode.BATCHED)
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0, mode=SchedulerMode.BATCHED),
        config.default(),
        RecordingClient(cluster, recording),
        in_tree(),
        listeners=[recording],
    )
    watchdog = LostWakeups(scheduler, MetricsRegistry(), lambda: 0.0)
    cluster.put(SMALL.build())
    cluster.put(BIG.build())
    cluster.tell(scheduler)
    try_next(scheduler)
    cluster.tell(scheduler)
    scheduler.handle(Change(SMALL.build(), LARGE.build()))
    (queued,) = scheduler.queue.backoff()
    scheduler.queue.delete(queued.pod)  # as if the event had not woken it
    scheduler.queue._unschedulable.put(queued)
    virtual_time.run(watchdog.look())
    assert try_next(scheduler).node == "n"
    lines = stream.getvalue().splitlines()
    assert sum('"what":"activate"' in line for line in lines) == 1
    assert Replay(lines, in_tree()).run() == []


def try_next(scheduler: Scheduler) -> Attempt:
    attempt = pop_pod(scheduler)
    assert attempt is not None
    scheduler.decide(attempt)
    Running(scheduler.finish(attempt)).to_the_end()
    return attempt


def test_comparer_looks_every_minute_and_the_loop_tries_the_pod() -> None:
    class Synced:
        have_synced = True

    async def a_minute_and_a_half() -> World:
        world, watchdog, registry = watched(SMALL, BIG)
        loop = SchedulingLoop(world.scheduler)
        comparer = CacheComparer(world.scheduler, Synced(), registry, None, watchdog)  # type: ignore[arg-type]
        tasks = [asyncio.create_task(loop.run()), asyncio.create_task(comparer.run())]
        await asyncio.sleep(1)
        grow_unnoticed(world)
        await asyncio.sleep(90)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert lost(registry) == 1
        return world

    world = virtual_time.run(a_minute_and_a_half())
    assert world.cluster.pod("big").spec.node_name == "n"
