"""The scheduler: takes pods from the queue one by one, decides, assumes, binds; on failure reports and requeues.

An attempt has three steps, so that a driver may do other things in between: `pop`, `decide` (quick, changes only
the cache) and `finish` (writes to the cluster, and may wait).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kubesched.api.change import Change
from kubesched.api.kinds import Kind, watched
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.config import SchedulerConfiguration
from kubesched.framework.budget import Budget, Expense
from kubesched.framework.client import ClusterClient
from kubesched.framework.decision import Decision
from kubesched.framework.engine import Engine
from kubesched.framework.errors import describe
from kubesched.framework.extender import EXTENDER, Extender, ExtenderAnswers, ignoring_managed_resources
from kubesched.framework.group_answers import GroupAnswers
from kubesched.framework.groups import GroupAliasPlugin
from kubesched.framework.plugin import PluginContext, PreEnqueuePlugin, QueueSortPlugin
from kubesched.framework.profile import ANY_EVENT, Profile, custom_resources, interests_of
from kubesched.framework.registry import Registry
from kubesched.framework.status import error
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.attempt.attempt import (
    EVICTION,
    Asking,
    Assumed,
    Attempt,
    AttemptOutcome,
    Denied,
    Done,
    Failed,
    Paused,
)
from kubesched.scheduler.attempt.binding_cycle import BindingCycle, PreBinding
from kubesched.scheduler.attempt.failures import FailureReporter
from kubesched.scheduler.attempt.old_news import OldNews
from kubesched.scheduler.attempt.scheduling_cycle import SchedulingCycle
from kubesched.scheduler.event_handlers import EventHandlers
from kubesched.scheduler.groups.conditions import GroupConditions
from kubesched.scheduler.groups.group_attempt import EntityAttempt, GroupAttempt, GroupDecided, NotedDraws
from kubesched.scheduler.groups.group_cycle import GroupCycle
from kubesched.scheduler.groups.group_queue import GroupQueue
from kubesched.scheduler.groups.queued_group import QueuedPodGroup
from kubesched.scheduler.handle import SchedulerHandle
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.listeners import Listeners
from kubesched.scheduler.queue.scheduling_queue import LONGEST_WAIT, SchedulingQueue
from kubesched.scheduler.write_counting import WriteCounter
from kubesched.state.cluster import ClusterState

log = logging.getLogger(__name__)

_FEW_WRITES = 8
"""Under way. With more, the API server has enough to do without attempts that need not be made yet."""
_BUDGET_EXCEEDED = "kubesched_decision_budget_exceeded_total"


class Scheduler:
    """All profiles of a configuration at work on one cluster."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        client: ClusterClient,
        *,
        clock: Callable[[], float],
        draw: Callable[[int], int],
        plugins: Registry,
        choose: Callable[[list[str]], str] | None = None,
        extenders: Sequence[Extender] = (),
        longest_wait: float = LONGEST_WAIT,
        spares_vain_attempts: bool = False,
        now: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
        listeners: Iterable[SchedulerListener] = (),
        budget: Budget | None = None,
    ) -> None:
        """`plugins` are those that profiles may name; `client` is for what they and the scheduler write.

        `clock` gives seconds; `draw` decides among equally good nodes, unless `choose` does so by name.

        `now` is the time of day in seconds since 1970, for what objects say about times; `stopwatch` is for durations.
        `extenders` have a say after the plugins, in this order; those of the configuration are made elsewhere.
        After `longest_wait` seconds a pod is tried again even if nothing happened. With `spares_vain_attempts` not
        every pod is tried before its backoff is over, just because there is nothing else to do, as kube-scheduler does
        it: not where an equal one has just been rejected, nor while many writes are under way; and plugins may do
        without more of that (`Handle`). Without a `budget` a decision may take for ever.
        """
        configuration = ignoring_managed_resources(configuration)
        self.extenders = list(extenders)
        self.listeners = Listeners(listeners)
        self._stopwatch = stopwatch
        features = configuration.features
        self._kinds = watched(features.is_on)
        if _names_aliases(configuration, plugins):
            features = replace(features, pod_groups=True)
        client = self.writes = WriteCounter(client)
        self.state = ClusterState(features)
        self.waiting = WaitingPods(clock, self._on_settled)
        pre_binding = PreBinding()
        handle = SchedulerHandle(
            lambda: self.queue, pre_binding, self.listeners, spares_vain_attempts=spares_vain_attempts
        )
        context = PluginContext(features=features, waiting=self.waiting, now=now, client=client, handle=handle)
        self.profiles = {config.scheduler_name: Profile(config, plugins, context) for config in configuration.profiles}
        self._draws = NotedDraws(draw)
        self.engine = Engine(
            self.state,
            self.profiles.values(),
            self._draws if features.pod_groups else draw,
            configuration.percentage_of_nodes_to_score or 0,
            choose=choose,
            extenders=self.extenders,
            budget=budget,
        )
        self.pods: dict[str, Pod] = {}
        """All pods by name, as the watch last showed them."""
        self._popped = 0
        self.queue = self._make_queue(configuration, clock, longest_wait, spares_vain_attempts)
        made = (plugin for profile in self.profiles.values() for plugin in profile.plugins.values())
        aliases = [plugin for plugin in made if isinstance(plugin, GroupAliasPlugin)]
        self._event_handlers = EventHandlers(
            self.state, self.queue, self.pods, self.waiting, self.engine.knows, aliases[:1]
        )
        old_news = OldNews(self.state, clock) if spares_vain_attempts else None
        self._failures = FailureReporter(self.queue, self.pods.get, client, old_news)
        self.evicts_first = not features.async_preemption
        """Whether victims are evicted before their preemptor goes back to the queue; until then no pod is tried."""
        self._scheduling = SchedulingCycle(
            self.engine, self.queue, client, self.profiles, self.waiting, self.pods.get, self.evicts_first
        )
        self._groups: GroupCycle | None = None
        if isinstance(self.queue, GroupQueue):
            self._groups = GroupCycle(
                self.engine, self.queue, self._scheduling, self.profiles, self.pods.get, evicts_first=self.evicts_first
            )
        self._conditions = GroupConditions(client, self._latest_group, now)
        self._binding = BindingCycle(
            self.state,
            self.queue,
            client,
            self.profiles,
            self._scheduling.reserving.unreserve,
            pre_binding,
            self.extenders,
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that must be watched."""
        return self._kinds

    @property
    def custom_resources(self) -> frozenset[str]:
        """Resources that must be watched only because plugins wait for them: `racks.v1.example.com`."""
        return custom_resources(plugin for profile in self.profiles.values() for plugin in profile.plugins.values())

    def _make_queue(
        self,
        configuration: SchedulerConfiguration,
        clock: Callable[[], float],
        longest_wait: float,
        spares_vain_attempts: bool,
    ) -> SchedulingQueue:
        profiles = self.profiles
        of_extenders = {EXTENDER: ANY_EVENT} if self.extenders else {}
        kind = GroupQueue if self.state.features.pod_groups else SchedulingQueue
        return kind(
            self.state,
            next(iter(profiles.values())).at("queue_sort", QueueSortPlugin)[0],
            {name: profile.at("pre_enqueue", PreEnqueuePlugin) for name, profile in profiles.items()},
            {
                name: of_extenders | {plugin.name: interests_of(plugin) for plugin in profile.plugins.values()}
                for name, profile in profiles.items()
            },
            clock=clock,
            find=self.pods.get,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            longest_wait=longest_wait,
            spares_vain_attempts=spares_vain_attempts,
            is_busy=lambda: spares_vain_attempts and self.writes.under_way > _FEW_WRITES,
            listeners=self.listeners,
            stopwatch=self._stopwatch,
        )

    # -- what the watch says ------------------------------------------------------------------------------------------

    def handle(self, change: Change[KubeObject]) -> None:
        """Bring cache and queue up to date with a change of the cluster. There is no other way to do so."""
        self.listeners.handling(change)
        before = self._stopwatch() if self.listeners else 0.0
        events = self._event_handlers.handle(change)
        if self.listeners:
            seconds = self._stopwatch() - before
            self.listeners.handled(change, events, seconds)

    # -- time ---------------------------------------------------------------------------------------------------------

    def flush_backoff(self) -> None:
        """To be called every second."""
        self.listeners.flushing_backoff()
        self.queue.flush_backoff()

    def flush_leftovers(self) -> None:
        """To be called every half minute."""
        self.listeners.flushing_leftovers()
        self.queue.flush_leftovers()

    # -- an attempt ---------------------------------------------------------------------------------------------------

    def pop(self) -> EntityAttempt | None:
        """The turn of the next pod, or of the next pod group."""
        popped = self.queue.pop()
        if popped is None:
            return None
        entity, pods, place = popped
        is_group = isinstance(entity, QueuedPodGroup)
        attempts = []
        for queued in pods:
            self._popped += 1
            kind = GroupAnswers if is_group else ExtenderAnswers
            answers = self.engine.answers_for(queued.pod, kind) if self.extenders else None
            attempt = Attempt(queued, place, answers=answers, number=self._popped)
            self.listeners.popped(attempt)
            attempts.append(attempt)
        return GroupAttempt(entity, attempts) if isinstance(entity, QueuedPodGroup) else attempts[0]

    def decide(self, attempt: EntityAttempt) -> None:
        """Find a node and assume the pod there, or find out why not; or what to ask extenders before that.

        A decision that takes long is Paused: others get their turn, and then it is to be decided again. Pods of a group
        are decided all at once: then each of `attempts` is to be finished, and the attempt at the group as well.
        """
        if isinstance(attempt, GroupAttempt):
            self._decide_group(attempt)
            return
        state = attempt.state = self._scheduling.decide(attempt)
        if isinstance(state, Paused):
            self._count_expense(state.expense, "paused")
            return
        if isinstance(state, Asking):
            return
        if attempt.ran_out is not None:
            self._count_expense(attempt.ran_out, "given up")
        self.listeners.decided(attempt)

    def _decide_group(self, attempt: GroupAttempt) -> None:
        assert self._groups is not None
        before = self._stopwatch() if self.listeners else 0.0
        attempt.draws = self._draws.begin(attempt.draws if isinstance(attempt.state, Paused) else ())
        state = attempt.state = self._groups.decide(attempt)
        self._draws.end()
        if isinstance(state, Paused):
            self._count_expense(state.expense, "paused")
        if not isinstance(state, GroupDecided):
            return
        if (ran_out := self.engine.budget.ran_out) is not None:
            self._count_expense(ran_out, "given up")
        attempt.seconds = self._stopwatch() - before if self.listeners else 0.0
        self.listeners.group_decided(attempt)
        for each in attempt.attempts:
            self.listeners.decided(each)

    def _latest_group(self, group: PodGroup) -> PodGroup | None:
        latest = self.state.objects.get(PodGroup, group.name, group.namespace)
        return latest if latest is not None and latest.identity == group.identity else None

    def _count_expense(self, expense: Expense, result: str) -> None:
        self.listeners.counted(_BUDGET_EXCEEDED, (*expense, result))

    def _on_settled(self) -> None:
        self.listeners.settled()

    def permitted(self) -> list[Attempt]:
        """Attempts that waited for a Permit plugin and need not any longer: to be finished now."""
        over = self._scheduling.settled()
        if over:
            self.listeners.permitted(over)
        return over

    async def wait(self, attempt: Attempt) -> None:
        """While a pod waits for a Permit plugin, its status names its node. To be over before `finish`."""
        self.listeners.waiting(attempt)
        await self._binding.nominate_expected_node(attempt.queued.pod, attempt.node)

    async def finish(self, attempt: EntityAttempt) -> None:
        """Write what was decided: bind the pod, or report its failure; or write the condition of the group."""
        if isinstance(attempt, GroupAttempt):
            if isinstance(attempt.state, GroupDecided) and attempt.state.group is not None:
                await self._conditions.write(attempt.state.group, attempt.state.status)
            return
        self.listeners.finishing(attempt)
        try:
            match attempt.state:
                case Assumed(decision):
                    await self._bind(attempt, decision)
                case Denied() as denied:
                    attempt.state = await self._take_back(attempt, denied)
                case Failed() as failed:
                    attempt.state = await self._give_up(attempt, failed)
        except BaseException:  # a task that is cancelled among them
            self.listeners.broken_off(attempt)
            raise
        self.listeners.finished(attempt)

    async def _bind(self, attempt: Attempt, decision: Decision) -> None:
        failure = await self._binding.run(attempt.queued.pod, decision)
        if failure is None:
            attempt.state = Done(AttemptOutcome.BOUND, decision)
            self._scheduling.activate_others(decision)
        else:
            attempt.state = denied = Denied(failure, decision)
            attempt.state = await self._take_back(attempt, denied)

    async def _take_back(self, attempt: Attempt, denied: Denied) -> Done:
        """The pod will not arrive. Others may profit from that, but it must not wake itself if a plugin rejected it."""
        failure, decision = denied.failure, denied.decision
        assumed, me = await self._binding.take_back(decision), attempt.queued.identity
        if not failure.is_rejection:
            self._binding.announce(assumed)
        await self._failures.report(attempt.queued, failure)
        if failure.is_rejection:
            self._binding.announce(assumed, lambda entity: all(queued.identity != me for queued in entity.queued_pods))
        rejected = failure.is_rejection
        outcome = AttemptOutcome.BIND_UNSCHEDULABLE if rejected else AttemptOutcome.BIND_ERROR
        return Done(outcome, decision, failure)

    async def _give_up(self, attempt: Attempt, failed: Failed) -> Done:
        """No node for the pod: it goes back to the queue, and victims are evicted so that there will be one."""
        failure, decision = failed.failure, failed.decision
        evicted = await self._evict(attempt, failed) if self.evicts_first else False
        if decision is not None:
            await self._binding.run_deferred(decision)
        if failed.is_requeued:
            await self._failures.tell(attempt.queued.pod, failure)
        else:
            await self._failures.report(attempt.queued, failure)
        if not self.evicts_first:
            evicted = await self._evict(attempt, failed)
        outcome = AttemptOutcome.UNSCHEDULABLE if failure.is_rejection else AttemptOutcome.ERROR
        return Done(outcome, decision, failure, failed.victims, evicted)

    async def _evict(self, attempt: Attempt, failed: Failed) -> bool:
        """Make the room that a post-filter found. Where that comes first and fails, no node is nominated."""
        decision = failed.decision
        result = decision.post_filter if decision is not None and failed.victims else None
        if decision is None or result is None or result.preemption is None:
            return False
        decision.cycle.start_lap()
        try:
            status = await result.preemption.carry_out()
        except Exception as failure:  # of a plugin
            log.exception("the preemption for pod %s broke", attempt.queued.key)
            status = error(f"preemption: {describe(failure)}")
        if status is not None and self.evicts_first:
            said = decision.diagnosis.message() if decision.diagnosis is not None else ""
            failed.failure.message, failed.failure.nominated = f"{said} {status.message}", None
        elif status is not None:
            log.warning("the preemption for pod %s failed: %s", attempt.queued.key, status.message)
        decision.cycle.lap(EVICTION)
        return status is None


def _names_aliases(configuration: SchedulerConfiguration, plugins: Registry) -> bool:
    """Whether a profile enables a plugin by which pods may belong to groups though no gate is on."""
    named = {name for profile in configuration.profiles for name in profile.plugins.enabled_names()}
    return any(issubclass(plugin, GroupAliasPlugin) for name, plugin in plugins.items() if name in named)
