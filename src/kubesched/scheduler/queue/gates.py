"""The gates of the queue: PreEnqueue plugins, asked whether they hold a pod back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kubesched.api.change import Change
from kubesched.framework.events import ClusterEvent
from kubesched.framework.plugin import PreEnqueuePlugin
from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.listener import Listeners
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.cluster import ClusterState

_ERRORS = "kubesched_handler_errors_total"

log = logging.getLogger(__name__)


class Gates:
    """The PreEnqueue plugins of all profiles."""

    def __init__(
        self,
        state: ClusterState,
        gates: Mapping[str, Sequence[PreEnqueuePlugin]],
        listeners: Listeners,
    ) -> None:
        self._state = state
        self._of_profile = gates
        self._by_name = {(profile, gate.name): gate for profile, of_profile in gates.items() for gate in of_profile}
        self._listeners = listeners
        self._stopwatch = listeners.stopwatch

    def hold_back(self, entity: QueuedEntity, *, last_passed: bool = False) -> bool:
        """Whether plugins hold a pod of the entity back: asks about every pod, and notes the plugin on it.

        `last_passed` if the plugin that held a pod back last was just asked, and lets it pass.
        """
        held_back = [queued for queued in entity.queued_pods if self._hold_back(queued, last_passed)]
        return bool(held_back)

    def _hold_back(self, queued: QueuedPod, last_passed: bool) -> bool:
        before = self._stopwatch() if self._listeners else 0.0
        profile, last = queued.pod.spec.scheduler_name, queued.gating_plugin
        gates = self._of_profile.get(profile, ())
        if last:
            others = [gate for gate in gates if gate.name != last]
            gates = others if last_passed else [*(gate for gate in gates if gate.name == last), *others]
        closed = next((gate.name for gate in gates if self._is_closed(gate, queued)), "")
        queued.gating_plugin = closed
        if closed:
            queued.unschedulable_plugins.add(closed)
        if self._listeners:
            seconds = self._stopwatch() - before
            self._listeners.pre_enqueued(profile, seconds)
        return bool(closed)

    def passing(
        self, waiting: Mapping[str, QueuedEntity], event: ClusterEvent, recheck: Recheck | None
    ) -> list[QueuedEntity]:
        """The entities that the gate which held them back last now lets pass, or that had no such gate.

        The others stay where they are. With `recheck`, all have the same gate; if that names the pods to recheck, it is
        asked only about those.
        """
        before = self._stopwatch() if self._listeners else 0.0
        first = next(iter(waiting.values()))
        keys = None if recheck is None else recheck.pods(first.scheduler_name, first.gating_plugin)
        candidates = waiting if keys is None else {key: waiting[key] for key in keys if key in waiting}
        passing = {key: entity for key, entity in candidates.items() if not self._is_held(entity)}
        if len(passing) < len(waiting):
            held = [entity for key, entity in waiting.items() if key not in passing]
            for entity in held if keys is None else ():
                entity.flushed = False
            seconds = (self._stopwatch() - before) / len(waiting) if self._listeners else 0.0
            pods = [queued for entity in held for queued in entity.queued_pods]
            self._listeners.held_back(pods, event.label, seconds)
        return [*passing.values()]

    def gate(self, profile: str, plugin: str) -> PreEnqueuePlugin | None:
        return self._by_name.get((profile, plugin))

    def _is_held(self, entity: QueuedEntity) -> bool:
        return any(
            (gate := self.gate(queued.scheduler_name, queued.gating_plugin)) is not None
            and self._is_closed(gate, queued)
            for queued in entity.waiting_pods
        )

    def _is_closed(self, gate: PreEnqueuePlugin, queued: QueuedPod) -> bool:
        """Whether the gate holds the pod back. One that raises does, as one that returns an error in kube-scheduler."""
        try:
            return gate.pre_enqueue(queued.pod, self._state) is not None
        except Exception:  # of a plugin: its pod waits, and nobody else
            log.exception("PreEnqueue plugin %s broke for pod %s, which waits", gate.name, queued.key)
            self._listeners.counted(_ERRORS, ("Pod",))
            return True


class Recheck:
    """The pods that PreEnqueue plugins may let pass after one change of the cluster. Each plugin is asked once.

    Many preemptors wait while victims leave, and each victim that leaves would wake all of them. kube-scheduler asks
    about every pod, and so does the queue in PARITY mode: listeners are called for each.
    """

    def __init__(self, gates: Gates, change: Change[Any], *, asks: bool) -> None:
        """Without `asks`, `pods` is None for every plugin."""
        self._gates = gates
        self._change = change
        self._asks = asks
        self._keys: dict[tuple[str, str], Collection[str] | None] = {}

    def pods(self, profile: str, plugin: str) -> Collection[str] | None:
        """The keys of the pods that this plugin may let pass; None if it cannot tell."""
        gate = self._gates.gate(profile, plugin) if self._asks and plugin else None
        if gate is None:
            return None
        if (profile, plugin) not in self._keys:
            self._keys[profile, plugin] = gate.pods_to_recheck(self._change)
        return self._keys[profile, plugin]
