"""Queueing hints: the plugins that rejected a pod say whether an event is reason enough to try it again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent, Hint, Interest
from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.listener import Listeners
from kubesched.scheduler.queue.in_flight import InFlight
from kubesched.scheduler.queue.pending_classes import PendingClassIndex
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.cluster import ClusterState

log = logging.getLogger(__name__)


class QueueingStrategy(IntEnum):
    """What an event means to a pod that was rejected."""

    SKIP = 0
    """It does not help: the pod stays where it is."""
    AFTER_BACKOFF = 1
    """It may help: the pod is tried again after its backoff, if that is still under way."""
    IMMEDIATELY = 2
    """A plugin that had asked the pod to wait (PENDING) lets it be tried at once."""


class QueueingHints:
    """The hints of the plugins of all profiles: they say whether an event may help a pod that they rejected."""

    def __init__(
        self,
        state: ClusterState,
        interests: Mapping[str, Mapping[str, Sequence[Interest]]],
        index: PendingClassIndex,
        listeners: Listeners,
    ) -> None:
        """`interests` are by profile and plugin."""
        self._state = state
        self._interests = interests
        self._index = index
        self._awaited: dict[ClusterEvent, bool] = {}
        self._listeners = listeners
        self._stopwatch = listeners.stopwatch

    def is_awaited(self, event: ClusterEvent) -> bool:
        """Whether any plugin registered such events."""
        is_awaited = self._awaited.get(event)
        if is_awaited is None:
            registered = (self._index.registered(profile, event) for profile in self._interests)
            is_awaited = self._awaited[event] = event.is_wildcard or any(registered)
        return is_awaited

    def strategy(self, entity: QueuedEntity, event: ClusterEvent, change: Change[Any]) -> QueueingStrategy:
        """The strategy by the hints of the plugins that rejected the entity: of a group, those that gate a member."""
        for queued in entity.waiting_pods:
            strategy = self._pod_strategy(queued, event, change)
            if strategy:
                return strategy
        return QueueingStrategy.SKIP

    def after_flight(self, queued: QueuedPod, in_flight: InFlight) -> QueueingStrategy:
        """The strategy for a pod that failed, by the events while it was in flight."""
        if not queued.rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        missed = in_flight.since(queued.identity)
        if missed and self._listeners:
            events = [missed_event.event for missed_event in missed]
            self._listeners.caught_up(queued, events)
        best = QueueingStrategy.IMMEDIATELY if queued.pending_plugins else QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for missed_event in missed:
            strategy = max(strategy, self._pod_strategy(queued, *missed_event))
            if strategy is best:
                break
        return strategy

    def _pod_strategy(self, queued: QueuedPod, event: ClusterEvent, change: Change[Any]) -> QueueingStrategy:
        if not queued.rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        if event.is_wildcard:
            new = change.new
            is_subject = new is None or (isinstance(new, Pod) and new.identity == queued.identity)
            return QueueingStrategy.AFTER_BACKOFF if is_subject else QueueingStrategy.SKIP
        profile = queued.pod.spec.scheduler_name
        if profile not in self._interests:  # now of another scheduler: the next attempt takes it out of the queue
            return QueueingStrategy.AFTER_BACKOFF
        registered, strategy = self._index.registered(profile, event), QueueingStrategy.SKIP
        for plugin in sorted(queued.rejectors):
            for interest in registered.get(plugin, ()):
                if self._hint(queued, plugin, interest, event, change) is Hint.SKIP:
                    continue
                if plugin in queued.pending_plugins:
                    return QueueingStrategy.IMMEDIATELY
                if not queued.pending_plugins:
                    return QueueingStrategy.AFTER_BACKOFF
                strategy = QueueingStrategy.AFTER_BACKOFF
        return strategy

    def _hint(
        self, queued: QueuedPod, plugin: str, interest: Interest, event: ClusterEvent, change: Change[Any]
    ) -> Hint:
        before = self._stopwatch() if self._listeners else 0.0
        try:
            hint = Hint.QUEUE if interest.hint is None else interest.hint(queued.pod, *change, self._state)
            result = hint.value
        except Exception:  # it may help, and a pod must not wait for ever because a plugin is broken
            log.exception("the hint of plugin %s about %s for pod %s broke", plugin, event.label, queued.key)
            hint, result = Hint.QUEUE, "Error"
        if self._listeners:
            seconds = self._stopwatch() - before
            self._listeners.hinted(queued, plugin, event, result, seconds)
        return hint
