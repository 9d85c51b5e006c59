"""Queueing hints: whether an event is reason enough to try a pod again, as the plugins that rejected it see it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent, Hint, Interest
from kubesched.scheduler.listeners import Listeners
from kubesched.scheduler.queue.queued_group import QueuedGroup
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.waiting_groups import WaitingGroups
from kubesched.state.cluster import ClusterState

log = logging.getLogger(__name__)


class QueueingStrategy(IntEnum):
    """What an event means to a pod that was rejected."""

    SKIP = 0
    """It does not help: the pod stays where it is."""
    AFTER_BACKOFF = 1
    """It may help: the pod is tried again after its backoff, if that is still under way."""
    IMMEDIATELY = 2
    """A plugin that had only asked the pod to wait is ready for it."""


class QueueingHints:
    """The hints of the plugins of all profiles: they say whether an event may help a pod that they rejected."""

    def __init__(
        self,
        state: ClusterState,
        interests: Mapping[str, Mapping[str, Sequence[Interest]]],
        groups: WaitingGroups,
        listeners: Listeners,
        stopwatch: Callable[[], float],
    ) -> None:
        """`interests` are by profile and plugin."""
        self._state = state
        self._interests = interests
        self._groups = groups
        self._awaited: dict[ClusterEvent, bool] = {}
        self._listeners = listeners
        self._stopwatch = stopwatch

    def is_awaited(self, event: ClusterEvent) -> bool:
        """Whether any plugin registered such events."""
        known = self._awaited.get(event)
        if known is None:
            registered = (self._groups.registered(profile, event) for profile in self._interests)
            known = self._awaited[event] = event.is_wildcard or any(registered)
        return known

    def strategy(self, queued: QueuedPod, event: ClusterEvent, change: Change[Any]) -> QueueingStrategy:
        """What the plugins that rejected the pod make of the event."""
        if isinstance(queued, QueuedGroup):
            return self._group_strategy(queued, event, change)
        if not queued.rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        if event.is_wildcard:
            new = change.new
            is_meant = new is None or (isinstance(new, Pod) and new.identity == queued.identity)
            return QueueingStrategy.AFTER_BACKOFF if is_meant else QueueingStrategy.SKIP
        profile = queued.pod.spec.scheduler_name
        if profile not in self._interests:  # given to another scheduler: its turn is what makes it leave the queue
            return QueueingStrategy.AFTER_BACKOFF
        registered, found = self._groups.registered(profile, event), QueueingStrategy.SKIP
        for plugin in sorted(queued.rejectors):
            for interest in registered.get(plugin, ()):
                if self._hint(queued, plugin, interest, event, change) is Hint.SKIP:
                    continue
                if plugin in queued.pending_plugins:
                    return QueueingStrategy.IMMEDIATELY
                if not queued.pending_plugins:
                    return QueueingStrategy.AFTER_BACKOFF
                found = QueueingStrategy.AFTER_BACKOFF
        return found

    def _group_strategy(self, group: QueuedGroup, event: ClusterEvent, change: Change[Any]) -> QueueingStrategy:
        """An event wakes a group if it helps a member that holds it back."""
        gated = (member for member in group.members.values() if member.is_gated)
        strategies = (self.strategy(member, event, change) for member in gated)
        return next((strategy for strategy in strategies if strategy), QueueingStrategy.SKIP)

    def _hint(
        self, queued: QueuedPod, plugin: str, interest: Interest, event: ClusterEvent, change: Change[Any]
    ) -> Hint:
        before = self._stopwatch() if self._listeners else 0.0
        try:
            hint = Hint.QUEUE if interest.hint is None else interest.hint(queued.pod, *change, self._state)
            said = hint.value
        except Exception:  # it may help, and a pod must not wait for ever because a plugin is broken
            log.exception("the hint of plugin %s about %s for pod %s broke", plugin, event.label, queued.key)
            hint, said = Hint.QUEUE, "Error"
        if self._listeners:
            seconds = self._stopwatch() - before
            self._listeners.hinted(queued, plugin, event, said, seconds)
        return hint
