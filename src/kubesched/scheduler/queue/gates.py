"""The gates of the queue: PreEnqueue plugins, asked whether they hold a pod back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kubesched.api.change import Change
from kubesched.framework.events import ClusterEvent
from kubesched.framework.plugin import PreEnqueuePlugin
from kubesched.scheduler.listeners import Listeners
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.cluster import ClusterState

_ERRORS = "kubesched_handler_errors_total"

log = logging.getLogger(__name__)


class Gates:
    """Those of all profiles."""

    def __init__(
        self,
        state: ClusterState,
        gates: Mapping[str, Sequence[PreEnqueuePlugin]],
        listeners: Listeners,
        stopwatch: Callable[[], float],
    ) -> None:
        self._state = state
        self._of_profile = gates
        self._named = {(profile, gate.name): gate for profile, named in gates.items() for gate in named}
        self._listeners = listeners
        self._stopwatch = stopwatch

    def hold_back(self, queued: QueuedPod) -> bool:
        """Ask the gates, the one that held the pod back last first, and note on the pod which one does."""
        before = self._stopwatch() if self._listeners else 0.0
        profile, last = queued.pod.spec.scheduler_name, queued.gating_plugin
        gates = self._of_profile.get(profile, ())
        if last:
            gates = sorted(gates, key=lambda gate: gate.name != last)
        held_by = ""
        for gate in gates:
            if self._is_closed(gate, queued):
                held_by = gate.name
                break
        queued.gating_plugin = held_by
        if held_by:
            queued.unschedulable_plugins.add(held_by)
        if self._listeners:
            seconds = self._stopwatch() - before
            self._listeners.pre_enqueued(profile, seconds)
        return bool(held_by)

    def passing(
        self, waiting: Mapping[str, QueuedPod], event: ClusterEvent, change: Change[Any] | None
    ) -> list[QueuedPod]:
        """Those of the pods that the gate which held them back last lets pass, if one did.

        The others stay where they are. If there is a change, of all who have the same gate only those are asked for
        whom it may open.
        """
        before = self._stopwatch() if self._listeners else 0.0
        gate = self._gate_of(next(iter(waiting.values())))
        opened = None if change is None or gate is None else gate.pods_to_recheck(change)
        asked = waiting if opened is None else {key: waiting[key] for key in opened if key in waiting}
        passing = {key: queued for key, queued in asked.items() if not self._is_held(queued)}
        if len(passing) < len(waiting):
            held = [queued for key, queued in waiting.items() if key not in passing]
            for queued in held if opened is None else ():
                queued.flushed = False
            seconds = (self._stopwatch() - before) / len(waiting) if self._listeners else 0.0
            self._listeners.held_back(held, event.label, seconds)
        return [*passing.values()]

    def opened_by(self, profile: str, plugin: str, change: Change[Any]) -> Collection[str] | None:
        """The pods by name that this gate may let pass because of the change; None if it cannot tell.

        Many preemptors wait while victims leave, and each that leaves would wake all of them.
        """
        gate = self._named.get((profile, plugin))
        return None if gate is None else gate.pods_to_recheck(change)

    def _gate_of(self, queued: QueuedPod) -> PreEnqueuePlugin | None:
        return self._named.get((queued.pod.spec.scheduler_name, queued.gating_plugin))

    def _is_held(self, queued: QueuedPod) -> bool:
        gate = self._gate_of(queued)
        return gate is not None and self._is_closed(gate, queued)

    def _is_closed(self, gate: PreEnqueuePlugin, queued: QueuedPod) -> bool:
        """Whether it is for the pod. One that breaks is, as in kube-scheduler one that answers an error."""
        try:
            return gate.pre_enqueue(queued.pod, self._state) is not None
        except Exception:  # of a plugin: its pod waits, and nobody else
            log.exception("PreEnqueue plugin %s broke for pod %s, which waits", gate.name, queued.key)
            self._listeners.counted(_ERRORS, ("Pod",))
            return True
