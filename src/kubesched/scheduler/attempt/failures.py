"""Failed attempts: the reporter requeues the pod, and writes its condition and an Event."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Set

from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.client import ClientError, ClusterClient
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.diagnosis import histogram
from kubesched.framework.extender import EXTENDER
from kubesched.framework.status import Code, Status, error, unresolvable
from kubesched.scheduler.attempt.attempt import Failure
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.queue.unschedulable_classes import UnschedulableClasses

log = logging.getLogger(__name__)
_LONGEST_NOTE = 1024


class FailureReporter:
    """Requeues the pod, remembers or drops its nomination, records the event and patches the condition."""

    def __init__(
        self,
        queue: SchedulingQueue,
        find: Callable[[str], Pod | None],
        client: ClusterClient,
        classes: UnschedulableClasses | None,
    ) -> None:
        """With `classes`, only one of equal pods that fail again is reported each second."""
        self._queue = queue
        self._find = find
        self._client = client
        self._classes = classes

    async def report(self, queued: QueuedPod, failure: Failure) -> None:
        """Requeue the pod, and write Event and condition, unless those of an equal pod were just written."""
        if self._requeue(queued, failure) and not self._is_redundant(queued.pod, failure):
            await self.tell(queued.pod, failure)

    def _is_redundant(self, pod: Pod, failure: Failure) -> bool:
        if self._classes is None or not failure.is_unschedulable_class:
            return False
        return not failure.nominated and not pod.status.nominated_node_name and self._classes.is_redundant(pod)

    def _requeue(self, queued: QueuedPod, failure: Failure) -> bool:
        """False if the pod was deleted and recreated."""
        queued.unschedulable_plugins = set(failure.unschedulable_plugins)
        queued.pending_plugins = set(failure.pending_plugins)
        queued.was_unschedulable = failure.is_unschedulable_class
        queued.gating_plugin = ""
        latest = self._find(queued.key)
        if latest is None or latest.identity != queued.identity:
            self._queue.gone(queued.pod)
        try:
            if latest is not None and not latest.spec.node_name:
                if latest.identity != queued.identity:
                    self._queue.nominate(queued.pod, "")
                    return False  # deleted and recreated: another pod, with attempts of its own
                queued.pod = latest
                self._queue.add_unschedulable(queued)
            self._queue.nominate(queued.pod, failure.nominated)
        finally:
            self._queue.done(queued.pod)
        return True

    async def tell(self, pod: Pod, failure: Failure) -> None:
        """Write the Event and the condition of a pod that is back in the queue."""
        note = _shorten(failure.message)
        self._client.record_event(
            pod, related=None, type="Warning", reason="FailedScheduling", action="Scheduling", note=note
        )
        reason = "Unschedulable" if failure.is_rejection else "SchedulerError"
        condition = PodCondition(type="PodScheduled", status="False", reason=reason, message=failure.message)
        nominated = failure.nominated if failure.nominated != pod.status.nominated_node_name else None
        earlier = next((known for known in pod.status.conditions if known.type == "PodScheduled"), None)
        if earlier == condition and nominated is None:
            return
        try:
            await self._client.patch_pod_status(pod, condition=condition, nominated_node_name=nominated)
        except ClientError:
            return  # the next attempt writes it again
        except Exception:
            log.exception("the status of pod %s could not be written", pod.key)


def _shorten(message: str) -> str:
    """The part of a message that fits into the note of an Event, which the API server measures in bytes."""
    encoded = message.encode()
    if len(encoded) <= _LONGEST_NOTE:
        return message
    return encoded[: _LONGEST_NOTE - 4].decode(errors="ignore") + " ..."


def failure_of(decision: Decision, *, rejects_alike: Callable[[Set[str]], bool] = lambda rejectors: False) -> Failure:
    """Why no node was found; for `rejects_alike` see Profile."""
    diagnosis = decision.diagnosis
    if decision.outcome is Outcome.ERROR:
        assert decision.status is not None
        return Failure(error(decision.status.message), decision.status.message)
    if diagnosis is None:
        return Failure(unresolvable(decision.message), decision.message)  # there are no nodes at all
    result = decision.post_filter
    nominated = result.nominated if result is not None else None if decision.post_filter_status is not None else ""
    rejectors = diagnosis.unschedulable_plugins | (frozenset() if result is None else result.rejectors)
    return Failure(
        Status(Code.UNSCHEDULABLE),
        decision.message,
        nominated,
        set(rejectors),
        set(diagnosis.pending_plugins),
        is_unschedulable_class=EXTENDER not in rejectors and rejects_alike(rejectors),
    )


def rejection(status: Status) -> Failure:
    """The failure of a pod whose node a Reserve or Permit plugin refused."""
    if not status.is_rejection:
        return Failure(status, status.message)
    reasons = histogram(Counter(status.reasons))
    message = f"0/1 nodes are available: {reasons}." if reasons else "0/1 nodes are available:"
    pending = {status.plugin} if status.code is Code.PENDING else set()
    return Failure(status, message, "", {status.plugin}, pending)


def denial(status: Status) -> Failure:
    """The failure of a pod that waited for a Permit plugin, which then denied it."""
    return rejection(status if status.is_rejection else error(f"waiting on permit for pod: {status.message}"))
