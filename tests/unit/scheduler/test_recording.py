"""A recording replayed says the same, unless something changed."""

from __future__ import annotations

import io
import json
import random

import pytest
from tests.unit.scheduler.group_world import ALL_GATES, make_gang, members
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal, Running
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.framework.client import SchedulerMode
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import Replay, ReplayError
from kubesched.testing import make_node, make_pod


def recorded_day() -> list[str]:
    """Pods that fit, that do not, that preempt, and one whose binding is refused, on three nodes."""
    now = 0.0
    stream = io.StringIO()
    configuration = config.default()
    recording = Recording(stream, configuration, lambda: now)
    cluster = MemoryCluster()
    draws = iter([2, 0, 1] + [0] * 20)
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: now, draw=lambda among: min(next(draws), among - 1)),
        configuration,
        RecordingClient(cluster, recording),
        in_tree(),
        listeners=[recording],
    )
    cluster.bind_refusals.append(Refusal("InternalError"))
    for name in ("n1", "n2", "n3"):
        cluster.put(make_node(name).build())
    for i in range(4):
        cluster.put(make_pod(f"p{i}").requests(cpu="3").build())
    cluster.put(make_pod("urgent").requests(cpu="3").priority(10).build())
    while now < 20:
        cluster.tell(scheduler)
        scheduler.flush_backoff()
        while attempt := scheduler.pop():
            scheduler.decide(attempt)
            Running(scheduler.finish(attempt)).to_the_end()
            cluster.tell(scheduler)
        now += 1
    cluster.put(make_pod("late").requests(cpu="3").priority(20).build())
    cluster.tell(scheduler)
    while attempt := scheduler.pop():
        scheduler.decide(attempt)
        Running(scheduler.finish(attempt)).to_the_end()
        cluster.tell(scheduler)
    assert cluster.evicted
    assert len(cluster.bindings) >= 4
    return stream.getvalue().splitlines()


def test_the_same_code_decides_the_same() -> None:
    replay = Replay(recorded_day(), in_tree())
    assert replay.run() == []
    assert replay.decisions >= 6


@pytest.mark.parametrize("spares", [True, False])
def test_whether_vain_attempts_were_spared_is_part_of_a_recording(spares: bool) -> None:
    stream, configuration, cluster = io.StringIO(), config.default(), MemoryCluster()
    recording = Recording(
        stream, configuration, lambda: 0.0, mode=SchedulerMode.BATCHED if spares else SchedulerMode.PARITY
    )
    scheduler = build_scheduler(
        SchedulerSettings(
            clock=lambda: 0.0, draw=lambda among: 0, mode=SchedulerMode.BATCHED if spares else SchedulerMode.PARITY
        ),
        configuration,
        RecordingClient(cluster, recording),
        in_tree(),
        listeners=[recording],
    )
    placed = make_pod("placed").requests(cpu="4").on("n1").build()
    for obj in (make_node("n1").build(), placed, *(make_pod(name).requests(cpu="3").build() for name in "abc")):
        cluster.put(obj)
    attempts = 0
    for is_gone in (False, True):
        if is_gone:
            cluster.remove(placed)
        cluster.tell(scheduler)
        while attempt := scheduler.pop():
            attempts += 1
            scheduler.decide(attempt)
            Running(scheduler.finish(attempt)).to_the_end()
    assert attempts == (5 if spares else 6)
    assert Replay(stream.getvalue().splitlines(), in_tree()).run() == []


def test_pod_that_is_tried_again_while_its_last_attempt_is_still_written_is_replayed() -> None:
    now = 0.0
    stream = io.StringIO()
    recording = Recording(stream, config.default(), lambda: now)
    cluster = MemoryCluster()
    client = RecordingClient(cluster, recording)
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: now, draw=lambda among: 0),
        config.default(),
        client,
        in_tree(),
        listeners=[recording],
    )
    cluster.put(make_pod("p").requests(cpu="3").build())
    cluster.put(make_node("small").capacity(cpu="1").build())
    cluster.tell(scheduler)

    first = pop_pod(scheduler)
    assert first is not None
    scheduler.decide(first)
    writing = Running(scheduler.finish(first))
    writing.go_on()  # as far as its condition, which is on its way
    cluster.put(make_node("large").build())
    cluster.tell(scheduler)
    now = 10.0
    scheduler.flush_backoff()
    second = pop_pod(scheduler)
    assert second is not None
    scheduler.decide(second)
    Running(scheduler.finish(second)).to_the_end()
    writing.to_the_end()

    assert [first.outcome, second.outcome] == ["unschedulable", "bound"]
    assert Replay(stream.getvalue().splitlines(), in_tree()).run() == []


def test_groups_are_replayed_with_all_that_was_drawn_for_their_pods() -> None:
    now, stream, dice = 0.0, io.StringIO(), random.Random(3)
    configuration = config.default(ALL_GATES)
    recording = Recording(stream, configuration, lambda: now)
    cluster = MemoryCluster()
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: now, draw=dice.randrange),
        configuration,
        RecordingClient(cluster, recording),
        in_tree(),
        listeners=[recording],
    )
    for i in range(6):
        cluster.put(make_node(f"n{i}").capacity(cpu="2").label(rack=f"r{i % 2}").build())
    for name, size in (("a", 4), ("b", 4), ("c", 9)):
        cluster.put(make_gang(name, size, topology="rack" if name == "b" else "", priority=5 if name == "b" else 0))
        for pod in members(name, size):
            cluster.put((pod.priority(5) if name == "b" else pod).build())
    while now < 9:
        cluster.tell(scheduler)
        scheduler.flush_backoff()
        while attempt := scheduler.pop():
            scheduler.decide(attempt)
            for each in attempt.attempts:
                Running(scheduler.finish(each)).to_the_end()
            cluster.tell(scheduler)
        now += 1
    assert len(cluster.bindings) == 8
    replay = Replay(stream.getvalue().splitlines(), in_tree())
    assert replay.run() == []
    assert replay.decisions > 17


def test_another_decision_is_named() -> None:
    lines = recorded_day()
    at, entry = next((i, json.loads(text)) for i, text in enumerate(lines) if '"what":"decide"' in text)
    was = entry["node"]
    lines[at] = json.dumps({**entry, "node": "n9"})
    [difference] = Replay(lines, in_tree()).run()
    assert (difference.line, difference.recorded, difference.replayed) == (at + 1, "n9", was)
    assert f"recorded 'n9', now '{was}'" in str(difference)


def test_another_configuration_shows() -> None:
    lines = recorded_day()
    header = json.loads(lines[0])
    for profile in header["config"]["profiles"]:
        points = profile["plugins"]["multiPoint"]
        points["enabled"] = [each for each in points["enabled"] if each["name"] != "NodeResourcesFit"]
        points["disabled"] = [{"name": "NodeResourcesFit"}]
    lines[0] = json.dumps(header)
    assert Replay(lines, in_tree()).run()


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "line 1: expected a header"),
        (["{}"], "line 1: expected a header"),
        (["not json"], "line 1: "),
        (['{"format": "kubesched recording 2", "config": {"kind": "Pod"}}'], "line 1: config: "),
    ],
)
def test_what_is_no_recording_is_refused(lines: list[str], problem: str) -> None:
    with pytest.raises(ReplayError, match=problem):
        Replay(lines, in_tree())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[]", "line 2: expected an object"),
        ('{"what": "pop"}', r"line 2: expected a time \(t\)"),
        ('{"t": 1, "what": "added", "object": {"kind": "Cat"}}', "line 2: object: expected a Kubernetes object"),
        ('{"t": 1, "what": "added", "object": {"kind": "Pod", "spec": 3}}', "line 2: object: "),
        ('{"t": 1, "what": "sing"}', "line 2: 'sing' is nothing that a recording has"),
        ('{"t": 1, "what": "decide"}', "line 2: 'decide' needs a pod"),
        ('{"t": 1, "what": "pop", "pod": "default/p"}', "line 2: 'pop' needs an attempt"),
    ],
)
def test_a_damaged_line_is_named(line: str, problem: str) -> None:
    header = recorded_day()[0]
    with pytest.raises(ReplayError, match=problem):
        Replay([header, line], in_tree()).run()
