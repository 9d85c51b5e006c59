"""A failed attempt: back to the queue with the reason, and tell everybody."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kubesched.api.pod import Pod, PodCondition
from kubesched.scheduler.attempt import Attempt, Failure
from kubesched.scheduler.queue import SchedulingQueue
from kubesched.scheduler.writer import ClusterWriter, WriteError
from kubesched.state.nominated import identity_of

_log = logging.getLogger(__name__)
_LONGEST_NOTE = 1024


class FailureReporter:
    """Requeues the pod, remembers or drops its nomination, records the event and patches the condition."""

    def __init__(self, queue: SchedulingQueue, find: Callable[[str], Pod | None], writer: ClusterWriter) -> None:
        self._queue = queue
        self._find = find
        self._writer = writer

    async def report(self, attempt: Attempt, failure: Failure) -> None:
        queued = attempt.queued
        queued.unschedulable_plugins = set(failure.unschedulable_plugins)
        queued.pending_plugins = set(failure.pending_plugins)
        queued.gating_plugin = ""
        latest = self._find(queued.key)
        try:
            if latest is not None and not latest.spec.node_name:
                if identity_of(latest) != queued.identity:
                    return  # deleted and made anew: another pod, with a life of its own
                queued.pod = latest
                self._queue.add_unschedulable(queued)
            self._queue.nominate(queued.pod, failure.nominated)
        finally:
            self._queue.done(queued.pod)
        await self._tell(queued.pod, attempt, failure)

    async def _tell(self, pod: Pod, attempt: Attempt, failure: Failure) -> None:
        note = _shortened(failure.message)
        self._writer.record_event(
            pod, related=None, type="Warning", reason="FailedScheduling", action="Scheduling", note=note
        )
        reason = "Unschedulable" if attempt.is_rejected else "SchedulerError"
        condition = PodCondition(type="PodScheduled", status="False", reason=reason, message=failure.message)
        nominated = failure.nominated if failure.nominated != pod.status.nominated_node_name else None
        known = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if known == condition and nominated is None:
            return
        try:
            await self._writer.patch_status(pod, condition=condition, nominated_node_name=nominated)
        except WriteError:
            return  # the next attempt will say it again
        except Exception:
            _log.exception("the status of pod %s could not be written", pod.key)


def _shortened(message: str) -> str:
    """What an event has room for, which the API server counts in bytes."""
    written = message.encode()
    if len(written) <= _LONGEST_NOTE:
        return message
    return written[: _LONGEST_NOTE - 4].decode(errors="ignore") + " ..."
