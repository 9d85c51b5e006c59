"""What listeners of a scheduler get to know, and that no way into the scheduler goes around them."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Sequence

from msgspec.structs import replace
from tests.unit.scheduler.memory_cluster import MemoryCluster, Running
from tests.unit.scheduler.world import World, pop_pod

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import ClusterEvent
from kubesched.framework.plugin import PermitPlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import Code, Status
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.listener import Listeners, SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import NEEDED, Replay
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import make_node, make_pod


class Diary(SchedulerListener):
    """Writes down what happens to pods and nodes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.entries: list[str] = []
        self._scheduler = scheduler
        scheduler.listeners.append(self)

    def handling(self, change: Change[KubeObject]) -> None:
        self.entries.append(f"handling {change.obj.name}: {self._scheduler.state.nodes.live_count} nodes")

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        self.entries.append(f"handled {change.obj.name}: {', '.join(event.label for event in events)}")

    def popped(self, attempt: Attempt) -> None:
        self.entries.append(f"popped {attempt.queued.pod.name}")

    def decided(self, attempt: Attempt) -> None:
        self.entries.append(f"decided {attempt.queued.pod.name}: {attempt.node}")

    def finishing(self, attempt: Attempt) -> None:
        self.entries.append("finishing")

    def finished(self, attempt: Attempt) -> None:
        self.entries.append(f"finished: {attempt.outcome}")

    def broken_off(self, attempt: Attempt) -> None:
        self.entries.append("broken off")


def written(world: World) -> Diary:
    return Diary(world.scheduler)


def test_change_is_announced_before_and_after_it_is_handled() -> None:
    world = World()
    diary = written(world)
    world.see(make_node("n"))
    assert diary.entries == ["handling n: 0 nodes", "handled n: NodeAdd"]


def test_binding_leaves_the_queue_and_comes_to_the_cache() -> None:
    world = World(make_node("n"), make_pod("p"))
    diary = written(world)
    world.see(make_pod("p").on("n"))
    assert diary.entries[-1] == "handled p: AssignedPodAdd, UnschedulablePodDelete"


def test_object_with_another_uid_is_a_deletion_and_an_addition() -> None:
    world = World(make_node("n"))
    diary = written(world)
    node = make_node("n").build()
    another = replace(node, metadata=replace(node.metadata, uid="another"))
    world.scheduler.handle(Change(node, another))
    assert diary.entries[-1] == "handled n: NodeDelete, NodeAdd"
    assert world.scheduler.state.nodes.live_count == 1


def test_attempt_is_followed_from_its_turn_to_its_outcome() -> None:
    world = World(make_node("n"), make_pod("p"))
    diary = written(world)
    world.finish(world.decided(), tell=False)
    assert diary.entries == ["popped p", "decided p: n", "finishing", "finished: bound"]


def test_attempt_that_is_cancelled_is_broken_off_and_not_finished() -> None:
    world = World(make_node("n"), make_pod("p"))
    diary = written(world)
    finishing = Running(world.scheduler.finish(world.decided()))
    finishing.go_on()
    finishing.abandon()
    assert diary.entries[-2:] == ["finishing", "broken off"]


class Doorkeeper(PermitPlugin):
    """Keeps pods waiting for a minute."""

    name = "Doorkeeper"

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        return Status(Code.WAIT), 60.0


def recorded_minute_of_waiting(plugins: Registry) -> list[str]:
    """A pod waits for a Permit plugin, in vain, and is to be tried again."""
    now = 0.0
    stream, cluster = io.StringIO(), MemoryCluster()
    enabled = {"enabled": [{"name": "Doorkeeper"}]}
    configuration = config.from_plain(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": enabled}}],
        }
    )
    recording = Recording(stream, configuration, lambda: now)
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: now, draw=lambda among: 0),
        configuration,
        RecordingClient(cluster, recording),
        plugins,
        listeners=[recording],
    )
    cluster.put(make_node("n").build())
    cluster.put(make_pod("p").build())
    cluster.tell(scheduler)
    scheduler.flush_backoff()
    scheduler.flush_leftovers()
    attempt = pop_pod(scheduler)
    assert attempt is not None
    scheduler.decide(attempt)
    Running(scheduler.wait(attempt)).to_the_end()
    cluster.tell(scheduler)
    now = 61.0
    assert scheduler.permitted() == [attempt]
    Running(scheduler.finish(attempt)).to_the_end()
    scheduler.activate(cluster.pod("p"))
    return stream.getvalue().splitlines()


def test_every_call_of_a_scheduler_is_in_its_recording() -> None:
    """A public method that is added to the scheduler has to be recorded, or a replay would not make its call."""
    lines = recorded_minute_of_waiting(Registry((*IN_TREE, Doorkeeper)))
    recorded = {json.loads(line)["what"] for line in lines[1:]}
    calls = {name for name, _ in inspect.getmembers(Scheduler, inspect.isfunction) if not name.startswith("_")}
    assert calls - {"handle"} <= recorded
    assert {"added", "updated"} <= recorded
    assert recorded <= set(NEEDED)


def test_wait_for_a_permit_plugin_is_replayed_with_its_write() -> None:
    plugins = Registry((*IN_TREE, Doorkeeper))
    lines = recorded_minute_of_waiting(plugins)
    assert Replay(lines, plugins).run() == []
    waits = next(i for i, line in enumerate(lines) if '"what":"wait"' in line)
    end = next(i for i, line in enumerate(lines) if '"what":"finish"' in line)
    without = [line for i, line in enumerate(lines) if '"what":"call"' not in line or not waits < i < end]
    assert len(without) < len(lines)
    assert Replay(without, plugins).run()


class Rooms(SchedulerListener):
    """Notes where pods came to, and nothing else."""

    def __init__(self, notes: list[str], name: str) -> None:
        self._notes = notes
        self._name = name

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        self._notes.append(f"{self._name}: {queued.pod.name} {place}")


def test_listeners_are_told_in_the_order_in_which_they_came_until_they_are_removed() -> None:
    notes: list[str] = []
    first, second = Rooms(notes, "first"), Rooms(notes, "second")
    listeners = Listeners([first])
    pod = QueuedPod(make_pod("a").build(), 0.0)
    listeners.moved(pod, "e", "Active")
    listeners.append(second)
    listeners.moved(pod, "e", "Backoff")
    listeners.remove(first)
    listeners.moved(pod, "e", "Active")
    listeners.remove(second)
    listeners.moved(pod, "e", "Active")
    assert notes == ["first: a Active", "first: a Backoff", "second: a Backoff", "second: a Active"]
    assert not listeners


def test_who_listens_only_to_single_pods_hears_of_those_that_were_held_back_together() -> None:
    notes: list[str] = []
    listeners = Listeners([Rooms(notes, "it"), SchedulerListener()])
    listeners.held_back([QueuedPod(make_pod(name).build(), 0.0) for name in "ab"], "e", 0.0)
    assert notes == ["it: a Unschedulable", "it: b Unschedulable"]


def test_every_hook_reaches_a_listener_that_overrides_it() -> None:
    hooks = [name for name in vars(SchedulerListener) if not name.startswith("_")]
    heard: list[str] = []
    overrides = {name: lambda self, *what, name=name: heard.append(name) for name in hooks}
    listeners = Listeners([type("All", (SchedulerListener,), overrides)()])
    for name in hooks:
        getattr(listeners, name)()
    assert heard == hooks
