"""The real scheduler in virtual time: pods arrive, are placed or wait, finish; time jumps to what can happen next.

    drain the queue ──► nothing left to try ──► jump: arrival, completion, backoff, flush of leftovers ──► drain ...

It ends when no pod is to arrive or to finish, and all that wait have been tried since the cluster last changed.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import IO, Protocol, TypeVar

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodStatus
from kubesched.config import SchedulerConfiguration
from kubesched.framework.budget import counting_looks
from kubesched.framework.client import ClusterClient
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt, Done, WaitingOnPermit
from kubesched.scheduler.groups.group_attempt import GroupAttempt
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.settings import LONGEST_WAIT
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.run_now import run_now
from kubesched.scheduler.scheduler import Scheduler
from kubesched.simulate.cluster import created_at
from kubesched.simulate.meter import UtilisationMeter
from kubesched.simulate.report import PodStory, Preempted, SimulationReport
from kubesched.simulate.workloads import PodSeries, arrival_of, duration_of, expand
from kubesched.simulate.world import START, World

LEFTOVERS_EVERY = 30.0
_SAME_NAME_AGAIN = ("StatefulSet", "DaemonSet")

Progress = Callable[[int, int], None]
"""Called after every attempt with the pods that were placed so far, and all that are to be."""


K = TypeVar("K", bound=KubeObject)


class SimulatedOperation(Protocol):
    """What an operator does to the cluster while time passes, such as an upgrade."""

    def begin(self, simulation: Simulation) -> None:
        """Plan what is to be done."""

    def bound(self, pod: Pod) -> None:
        """A pod was placed."""

    def gone(self, pod: Pod) -> None:
        """A pod that had been placed is there no longer."""


class Simulation:
    """One run, to be used once."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        configuration: SchedulerConfiguration,
        *,
        seed: int = 0,
        plugins: Registry | None = None,
        record: IO[str] | None = None,
        with_annotations: bool = False,
        operation: SimulatedOperation | None = None,
        pods_finish: bool = True,
    ) -> None:
        """`record` takes all that reaches the scheduler and what it decides. Extenders are not asked.

        `operation` is what is done to the cluster while time passes, such as an upgrade of its nodes. Unless
        `pods_finish`, all that run go on, whatever their annotations say: then it is about the cluster of this moment.
        """
        self._pods_finish = pods_finish
        features = configuration.features
        expansion = expand(objects, job_groups=features.job_groups, release=features.release)
        self.now = 0.0
        self._seed = seed
        self._world = World(expansion.objects, lambda: self.now)
        self._world.on_bound = self._bound
        self._world.on_evicted = self._evicted
        recording = None
        if record is not None:
            recording = Recording(record, configuration, lambda: self.now, with_annotations=with_annotations)
        self._scheduler = self._make_scheduler(configuration, all_plugins() if plugins is None else plugins, recording)
        self._meter = UtilisationMeter(self._scheduler.state)
        self._calendar: list[tuple[float, int, Callable[[], None]]] = []
        self._entries = 0
        self._stories: dict[str, PodStory] = {}
        """By uid, as a name may come again."""
        self._original_names: dict[str, str] = {}
        """By uid of a pod that was made anew: the name of the one that was there at first."""
        self._preemptions: list[Preempted] = []
        self._tried_at: dict[str, int] = {}
        """By uid: how many changes the world had seen when the pod last failed."""
        self._next_in_series: dict[str, tuple[str, deque[Pod]]] = {}
        """By uid: what brings the next pods of the series, and which those are."""
        self._replacements: dict[str, int] = {}
        self._attempts = self._placed = self._expected = 0
        self._running = len(self._world.pods)
        self._ended = 0.0
        for pod in self._world.pods.values():
            self._finish_in_time(pod)
        for series in sorted(expansion.series, key=lambda series: created_at(series.pods[0])):
            self._begin(series)
        self._operation = operation
        if operation is not None:
            operation.begin(self)

    def _make_scheduler(
        self, configuration: SchedulerConfiguration, plugins: Registry, recording: Recording | None
    ) -> Scheduler:
        client: ClusterClient = self._world if recording is None else RecordingClient(self._world, recording)
        return build_scheduler(
            SchedulerSettings(
                clock=lambda: self.now,
                draw=random.Random(self._seed).randrange,
                now=lambda: START.timestamp() + self.now,
                budget=counting_looks(),
            ),
            configuration,
            client,
            plugins,
            listeners=() if recording is None else (recording,),
        )

    def run(self, progress: Progress | None = None) -> SimulationReport:
        """Let time pass until nothing can change any more."""
        while True:
            self._drain(progress)
            pending = len(self._world.pods) - self._running
            self._meter.read(self.now, running=self._running, pending=pending, placed=self._placed)
            then = self._next_time()
            if then is None:
                return self._report()
            self._pass_time(then)

    # -- pods come and go ---------------------------------------------------------------------------------------------

    def _begin(self, series: PodSeries) -> None:
        self._expected += len(series.pods)
        initial, later = series.pods[: series.at_once], deque(series.pods[series.at_once :])
        for pod in series.pods if later else ():
            self._next_in_series[pod.uid] = (series.after, later)
        for pod in initial:
            self.plan(arrival_of(pod), partial(self._arrive, pod))

    def _arrive(self, pod: Pod) -> None:
        original_name = self._original_names.get(pod.uid, "")
        self._stories[pod.uid] = PodStory(pod.key, pod.priority, self.now, replaces=original_name)
        self._world.create_pod(pod)

    def _bound(self, pod: Pod) -> None:
        story = self._stories[pod.uid]
        story.node, story.placed, story.message = pod.spec.node_name, self.now, ""
        self._placed += 1
        self._running += 1
        self._ended = self.now
        self._finish_in_time(pod)
        self._bring_next(pod, after="bound")
        if self._operation is not None:
            self._operation.bound(pod)

    def _finish_in_time(self, pod: Pod) -> None:
        duration = duration_of(pod) if self._pods_finish else None
        if duration is not None:
            self.plan(self.now + duration, partial(self._finish, pod))

    def _finish(self, pod: Pod) -> None:
        stored = self._world.pods.get(pod.key)
        if stored is None or stored.uid != pod.uid:
            return  # evicted before its time
        self._world.remove(stored)
        self._gone(stored)
        if pod.uid in self._stories:
            self._stories[pod.uid].finished = self.now
        self._bring_next(pod, after="finished")

    def _bring_next(self, pod: Pod, *, after: str) -> None:
        when, later = self._next_in_series.get(pod.uid, ("", None))
        if when == after and later:
            following = later.popleft()
            self.plan(max(self.now, arrival_of(following)), partial(self._arrive, following))

    def _gone(self, pod: Pod) -> None:
        self._running -= 1
        self._ended = self.now
        if self._operation is not None:
            self._operation.gone(pod)

    def _evicted(self, pod: Pod, *, orphans_too: bool = False, nominated: str = "") -> Pod | None:
        """A pod that a controller looks after is made anew."""
        self._gone(pod)
        if pod.uid in self._stories:
            self._stories[pod.uid].evicted = self.now
        owner = pod.metadata.controller
        if owner is None and not orphans_too:
            return None
        count = self._replacements[pod.key] = self._replacements.get(pod.key, 0) + 1
        name = pod.name if owner is None or owner.kind in _SAME_NAME_AGAIN else f"{pod.name}-r{count}"
        meta = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.uid}/{count}", deletion_timestamp="")
        spec = msgspec.structs.replace(pod.spec, node_name="")
        status = PodStatus(nominated_node_name=nominated)
        replacement = Pod(api_version="v1", kind="Pod", metadata=meta, spec=spec, status=status)
        if self._next_in_series.get(pod.uid, ("",))[0] == "finished":
            self._next_in_series[replacement.uid] = self._next_in_series[pod.uid]
        self._original_names[replacement.uid] = self._original_names.get(pod.uid, pod.key)
        self._expected += 1
        self.plan(self.now, partial(self._arrive, replacement))
        return replacement

    # -- what an operation does ---------------------------------------------------------------------------------------

    def plan(self, time: float, action: Callable[[], None]) -> None:
        """Do this when the time has come."""
        self._entries += 1
        heapq.heappush(self._calendar, (time, self._entries, action))

    def objects(self, kind: type[K]) -> list[K]:
        """All objects of a kind, as they are now; pods that are still to come are not among them."""
        return self._world.all(kind)

    def put(self, obj: KubeObject) -> None:
        """A new object, or a new version of one; of pods only those that run already, such as a node's daemons."""
        self._ended = self.now
        self._running += isinstance(obj, Pod)
        self._world.put(obj)

    def take_away(self, obj: KubeObject) -> None:
        """Delete an object. Nobody makes it anew."""
        self._ended = self.now
        if isinstance(obj, Pod):
            self._world.remove(obj)
            self._gone(obj)
        else:
            self._world.take_away(obj)

    def evict(self, pod: Pod, nominated: str = "") -> Pod | None:
        """Delete a pod, to be made anew; even if it has no controller, as it is to find out where it would go.

        Returns the pod that comes in its place, which is nominated to a node, if one is given.
        """
        self._world.remove(pod)
        return self._evicted(pod, orphans_too=True, nominated=nominated)

    # -- attempts -----------------------------------------------------------------------------------------------------

    def _drain(self, progress: Progress | None) -> None:
        """Try all pods that can be tried now."""
        scheduler, in_vain = self._scheduler, 0
        self._happen()
        while in_vain <= len(self._world.pods) + 1:
            attempt = scheduler.pop()
            if attempt is not None:
                scheduler.decide(attempt)
                attempts = list(attempt.attempts)
            else:
                attempts = scheduler.permitted()
                if not attempts:
                    return
            before = self._world.changes
            for pod_attempt in attempts:
                self._carry_out(pod_attempt)
            if isinstance(attempt, GroupAttempt):
                run_now(scheduler.finish(attempt))
            self._happen()
            # Pods that wake each other without end wait for the next second.
            in_vain = 0 if self._world.changes > before else in_vain + 1
            if progress is not None:
                progress(self._placed, self._expected)

    def _carry_out(self, attempt: Attempt) -> None:
        if isinstance(attempt.state, WaitingOnPermit):
            return
        if not isinstance(attempt.state, Done):
            run_now(self._scheduler.finish(attempt))
        self._attempts += 1
        pod, failure = attempt.queued.pod, attempt.failure
        story = self._stories.get(pod.uid)
        if story is not None:
            story.attempts = attempt.queued.attempts
        if failure is None:
            return
        self._tried_at[pod.uid] = self._world.changes
        if story is not None:
            story.message = failure.message
        if attempt.victims:
            victims = tuple(victim.pod.key for victim in attempt.victims)
            node = failure.nominated or ""
            self._preemptions.append(Preempted(self.now, pod.key, pod.priority, node, victims))

    # -- time ---------------------------------------------------------------------------------------------------------

    def _happen(self) -> None:
        """Do all that is due by now, and deliver the changes to the scheduler."""
        self._world.deliver(self._scheduler.handle)
        while self._calendar and self._calendar[0][0] <= self.now:
            _, _, action = heapq.heappop(self._calendar)
            action()
            self._world.deliver(self._scheduler.handle)

    def _next_time(self) -> float | None:
        """When something can happen next; None if never."""
        times = [self._calendar[0][0]] if self._calendar else []
        queue, next_second = self._scheduler.queue, self.now // 1 + 1
        if len(self._scheduler.waiting):
            times.append(next_second)
        if any(map(self._is_worth_a_try, (*queue.active(), *queue.backoff()))):
            times.append(next_second)
        failed = [queue.backoff_until(queued) + 1 for queued in queue.error_backoff() if self._is_worth_a_try(queued)]
        if failed:
            times.append(max(min(failed), next_second))
        next_flush = _next_flush(self.now)
        if not times or min(times) > next_flush:
            times += self._leftover_times()
        return min(times, default=None)

    def _leftover_times(self) -> list[float]:
        """When pods are tried that have waited for long. One that nothing has changed for would only fail again."""
        return [
            _next_flush(max(queued.timestamp, queued.flushed_at) + LONGEST_WAIT)
            for queued in self._scheduler.queue.unschedulable()
            if not queued.is_gated and self._is_worth_a_try(queued)
        ]

    def _is_worth_a_try(self, queued: QueuedPod) -> bool:
        return self._tried_at.get(queued.pod.uid, -1) < self._world.changes

    def _pass_time(self, then: float) -> None:
        flush = then // LEFTOVERS_EVERY > self.now // LEFTOVERS_EVERY
        self._meter.passes(then - self.now)
        self.now = then
        self._scheduler.flush_backoff()
        if flush:
            self._scheduler.flush_leftovers()

    # -- the end ------------------------------------------------------------------------------------------------------

    def _report(self) -> SimulationReport:
        self._explain_the_untried()
        ended, meter = self._ended, self._meter
        return SimulationReport(
            seed=self._seed,
            nodes=self._scheduler.state.nodes.live_count,
            ended=ended,
            attempts=self._attempts,
            not_created=self._not_created(),
            pods=tuple(self._stories.values()),
            preemptions=tuple(self._preemptions),
            total=meter.total(ended),
            by_zone=meter.by_zone(ended),
            by_node=meter.by_node(ended),
            timeline=tuple(moment for moment in meter.timeline if moment.time <= ended or moment.time == 0),
        )

    def pods_at_the_end(self) -> dict[str, tuple[Pod, str]]:
        """All pods that are there, with the reasons of those that wait; each by the name of the one it came from."""
        by_name = {}
        for pod in self._world.pods.values():
            story = self._stories.get(pod.uid)
            reason = "" if story is None or pod.spec.node_name else story.message
            by_name[self._original_names.get(pod.uid, pod.key)] = pod, reason
        return by_name

    def objects_at_the_end(self) -> tuple[KubeObject, ...]:
        """The whole cluster: what workloads were to make is made, and pods are where they were placed."""
        return self._world.everything()

    def _not_created(self) -> int:
        return sum(map(len, {id(later): later for _, later in self._next_in_series.values()}.values()))

    def _explain_the_untried(self) -> None:
        """Pods that wait without ever having been tried."""
        engine = self._scheduler.engine
        for pod in self._world.pods.values():
            story = self._stories.get(pod.uid)
            if story is None or pod.spec.node_name or story.message:
                continue
            if not engine.knows(pod.spec.scheduler_name):
                story.message = f"waits for another scheduler: there is no profile {pod.spec.scheduler_name!r}"
            elif pod.is_terminating:
                story.message = "is being deleted; its workload makes it anew when its kubelet says that it is gone"
            else:
                gate = engine.pre_enqueue(pod)
                story.message = gate.message if gate is not None else "waits for a Permit plugin"


def _next_flush(time: float) -> float:
    """When `flush_leftovers` runs next after this time: every 30 seconds, on the half minute."""
    return (time // LEFTOVERS_EVERY + 1) * LEFTOVERS_EVERY
