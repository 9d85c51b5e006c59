"""The settings of a scheduling queue, and the plugins that it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubesched.framework.client import SchedulerMode
from kubesched.framework.events import Interest
from kubesched.framework.extender import EXTENDER
from kubesched.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from kubesched.framework.profile import ANY_EVENT, Profile, interests_of

LONGEST_WAIT = 300.0
"""Seconds after which an unschedulable pod is tried again even if nothing happened."""


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """All durations are in seconds."""

    clock: Callable[[], float]
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    longest_wait: float = LONGEST_WAIT
    mode: SchedulerMode = SchedulerMode.PARITY
    """In BATCHED mode, pods whose class is known to be unschedulable wait, in backoff or after it."""
    is_busy: Callable[[], bool] = lambda: False
    """While it returns True, no pod is tried before its backoff is over."""


@dataclass(frozen=True)
class PluginIndex:
    """The plugins that the queue asks."""

    sorter: QueueSortPlugin
    gates: Mapping[str, Sequence[PreEnqueuePlugin]]
    """By profile."""
    interests: Mapping[str, Mapping[str, Sequence[Interest]]]
    """The events that may help pods, by profile and by the plugin that rejected the pod."""

    @classmethod
    def of(cls, profiles: Iterable[Profile], *, has_extenders: bool) -> PluginIndex:
        profiles = list(profiles)
        of_extenders = {EXTENDER: ANY_EVENT} if has_extenders else {}
        return cls(
            profiles[0].at("queue_sort", QueueSortPlugin)[0],
            {profile.name: profile.at("pre_enqueue", PreEnqueuePlugin) for profile in profiles},
            {
                profile.name: of_extenders | {plugin.name: interests_of(plugin) for plugin in profile.plugins.values()}
                for profile in profiles
            },
        )
