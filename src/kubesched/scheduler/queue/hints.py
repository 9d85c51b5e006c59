"""Who listens to which events, and whether one is worth another try of a pod that they rejected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent, Hint, Interest
from kubesched.scheduler.observer import QueueObserver
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import Group
from kubesched.state.cluster import ClusterState

_log = logging.getLogger(__name__)


class Worth(IntEnum):
    """What an event is worth to a pod."""

    NOTHING = 0
    A_TRY = 1
    """After its backoff, if that is still under way."""
    A_TRY_AT_ONCE = 2
    """A plugin that had only asked the pod to wait is ready for it."""


class Listeners:
    """The plugins of all profiles, as those who may know that an event helps."""

    def __init__(self, state: ClusterState, interests: Mapping[str, Mapping[str, Sequence[Interest]]]) -> None:
        """`interests` are by profile and plugin."""
        self._state = state
        self._interests = interests
        self._known: dict[tuple[str, ClusterEvent], dict[str, list[Interest]]] = {}
        self.on_hint: Callable[[str, str, str, str], None] | None = None
        self.observer: QueueObserver | None = None

    def hear(self, event: ClusterEvent) -> bool:
        """Whether anybody at all listens to such events."""
        return event.is_wildcard or any(self._of(profile, event) for profile in self._interests)

    def may_care(self, group: Group, event: ClusterEvent) -> bool:
        """Whether anybody who rejected these pods, or holds them back, listens to such events."""
        if event.is_wildcard:
            return True
        profile = group.facts.scheduler_name
        if profile not in self._interests:
            return not group.gating_plugin
        listeners = self._of(profile, event)
        if group.gating_plugin:
            return group.gating_plugin in listeners
        return not group.rejectors or not group.rejectors.isdisjoint(listeners)

    def worth(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Worth:
        """What the plugins that rejected the pod make of the event."""
        if not queued.rejectors:
            return Worth.A_TRY
        if event.is_wildcard:
            is_meant = new is None or (isinstance(new, Pod) and new.identity == queued.identity)
            return Worth.A_TRY if is_meant else Worth.NOTHING
        profile = queued.pod.spec.scheduler_name
        if profile not in self._interests:  # given to another scheduler: its turn is what makes it leave the queue
            return Worth.A_TRY
        listeners, found = self._of(profile, event), Worth.NOTHING
        for plugin in sorted(queued.rejectors):
            for interest in listeners.get(plugin, ()):
                if self._hint(queued, plugin, interest, event, old, new) is Hint.SKIP:
                    continue
                if plugin in queued.pending_plugins:
                    return Worth.A_TRY_AT_ONCE
                if not queued.pending_plugins:
                    return Worth.A_TRY
                found = Worth.A_TRY
        return found

    def _of(self, profile: str, event: ClusterEvent) -> dict[str, list[Interest]]:
        """Plugins that registered such an event, with what they registered. Worked out once per kind of event."""
        known = self._known.get((profile, event))
        if known is None:
            known = self._known[profile, event] = {}
            for plugin, interests in self._interests[profile].items():
                if heard := [interest for interest in interests if interest.event.covers(event)]:
                    known[plugin] = heard
        return known

    def _hint(
        self, queued: QueuedPod, plugin: str, interest: Interest, event: ClusterEvent, old: Any, new: Any
    ) -> Hint:
        before = 0.0 if self.observer is None else self.observer.now()
        try:
            hint = Hint.QUEUE if interest.hint is None else interest.hint(queued.pod, old, new, self._state)
            said = hint.value
        except Exception:  # nobody knows whether it helps, and a pod must not wait for ever because of that
            _log.exception("the hint of plugin %s about %s for pod %s broke", plugin, event.label, queued.key)
            hint, said = Hint.QUEUE, "Error"
        if self.observer is not None:
            self.observer.hinted(plugin, event.label, said, self.observer.now() - before)
        if self.on_hint is not None:
            self.on_hint(queued.key, plugin, event.label, said)
        return hint
