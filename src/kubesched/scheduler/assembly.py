"""Makes a scheduler from its settings, a configuration, a client and plugins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kubesched.api.kinds import watched
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.config import SchedulerConfiguration
from kubesched.framework.budget import Budget
from kubesched.framework.client import ClusterClient, SchedulerMode
from kubesched.framework.engine import Engine
from kubesched.framework.extender import Extender, ignoring_managed_resources
from kubesched.framework.groups import GroupAliasPlugin
from kubesched.framework.plugin import PluginContext
from kubesched.framework.profile import Profile
from kubesched.framework.registry import Registry
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.attempt.binding_cycle import BindingCycle, PreBinding
from kubesched.scheduler.attempt.failures import FailureReporter
from kubesched.scheduler.attempt.scheduling_cycle import SchedulingCycle
from kubesched.scheduler.event_handlers import EventHandlers
from kubesched.scheduler.groups.conditions import GroupConditions
from kubesched.scheduler.groups.group_attempt import NotedDraws
from kubesched.scheduler.groups.group_cycle import GroupCycle
from kubesched.scheduler.groups.group_queue import GroupQueue
from kubesched.scheduler.handle import SchedulerHandle
from kubesched.scheduler.listener import Listeners, SchedulerListener
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.queue.settings import LONGEST_WAIT, PluginIndex, QueueSettings
from kubesched.scheduler.queue.unschedulable_classes import UnschedulableClasses
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.write_counting import WriteCounter
from kubesched.state.cluster import ClusterState


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    """What a program decides about its scheduler, beside the configuration. All durations are in seconds."""

    clock: Callable[[], float]
    draw: Callable[[int], int]
    """`draw(n)` is a number from 0 to n - 1: the choice among n equally good nodes."""
    choose: Callable[[list[str]], str] | None = None
    """If set, it chooses by name instead, to repeat what another scheduler did."""
    mode: SchedulerMode = SchedulerMode.PARITY
    longest_wait: float = LONGEST_WAIT
    """After this time an unschedulable pod is tried again even if nothing happened."""
    now: Callable[[], float] = time.time
    """The time of day in seconds since 1970, for what objects say about times."""
    stopwatch: Callable[[], float] = time.monotonic
    """For durations that listeners are told."""
    budget: Budget | None = None
    """Without one a decision may take for ever."""


def build_scheduler(
    settings: SchedulerSettings,
    configuration: SchedulerConfiguration,
    client: ClusterClient,
    plugins: Registry,
    *,
    extenders: Sequence[Extender] = (),
    listeners: Iterable[SchedulerListener] = (),
) -> Scheduler:
    """A scheduler without any objects yet.

    Profiles may name `plugins`; these and the scheduler write through `client`. `extenders` are asked after the
    plugins, in this order; the caller makes those of the configuration. ProfileError if a profile cannot be made.
    """
    configuration = ignoring_managed_resources(configuration)
    features = configuration.features
    kinds = watched(features.is_on)
    if _names_aliases(configuration, plugins):
        features = replace(features, pod_groups=True)
    hooks, state, pods = Listeners(listeners, settings.stopwatch), ClusterState(features), dict[str, Pod]()
    writes, pre_binding = WriteCounter(client), PreBinding()
    waiting = WaitingPods(settings.clock, lambda: hooks.settled())
    handle = SchedulerHandle(pre_binding, hooks, settings.mode)
    context = PluginContext(features=features, waiting=waiting, now=settings.now, client=writes, handle=handle)
    profiles = {config.scheduler_name: Profile(config, plugins, context) for config in configuration.profiles}
    draws, classes = NotedDraws(settings.draw), UnschedulableClasses(state, profiles, settings.clock)
    engine = Engine(
        state,
        profiles.values(),
        draws if features.pod_groups else settings.draw,
        configuration.percentage_of_nodes_to_score or 0,
        choose=settings.choose,
        extenders=extenders,
        budget=settings.budget,
        repeated=classes,
    )
    is_batched = settings.mode is SchedulerMode.BATCHED
    queue_settings = QueueSettings(
        clock=settings.clock,
        initial_backoff=configuration.pod_initial_backoff_seconds,
        max_backoff=configuration.pod_max_backoff_seconds,
        longest_wait=settings.longest_wait,
        mode=settings.mode,
        is_busy=writes.is_busy if is_batched else lambda: False,
    )
    index = PluginIndex.of(profiles.values(), has_extenders=bool(extenders))
    group_queue = GroupQueue(state, index, queue_settings, pods.get, hooks, classes) if features.pod_groups else None
    queue = group_queue or SchedulingQueue(state, index, queue_settings, pods.get, hooks, classes)
    handle.attach(queue)
    evicts_first = not features.async_preemption
    scheduling = SchedulingCycle(engine, queue, writes, profiles, waiting, pods.get, evicts_first)
    groups = None
    if group_queue is not None:
        conditions = GroupConditions(writes, lambda group: _latest(group, state), settings.now)
        groups = GroupCycle(engine, group_queue, scheduling, profiles, pods.get, draws, conditions)
    unreserve, aliases = scheduling.reserving.unreserve, _aliases(profiles.values())
    return Scheduler(
        kinds=kinds,
        listeners=hooks,
        engine=engine,
        event_handlers=EventHandlers(state, queue, pods, waiting, engine.knows, aliases, settings.mode),
        scheduling=scheduling,
        binding=BindingCycle(state, queue, writes, profiles, unreserve, pre_binding, extenders),
        failures=FailureReporter(queue, pods.get, writes, classes if is_batched else None),
        groups=groups,
    )


def _latest(group: PodGroup, state: ClusterState) -> PodGroup | None:
    latest = state.objects.get(PodGroup, group.name, group.namespace)
    return latest if latest is not None and latest.identity == group.identity else None


def _aliases(profiles: Iterable[Profile]) -> Sequence[GroupAliasPlugin]:
    plugins = (plugin for profile in profiles for plugin in profile.plugins.values())
    return [plugin for plugin in plugins if isinstance(plugin, GroupAliasPlugin)][:1]


def _names_aliases(configuration: SchedulerConfiguration, plugins: Registry) -> bool:
    """Whether a profile enables a GroupAliasPlugin, by which pods belong to groups though no feature gate is on."""
    enabled = {name for profile in configuration.profiles for name in profile.plugins.enabled_names()}
    return any(issubclass(plugin, GroupAliasPlugin) for name, plugin in plugins.items() if name in enabled)
