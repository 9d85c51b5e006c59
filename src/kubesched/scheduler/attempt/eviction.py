"""Preemption carried out: promises to lesser pods are taken back, victims evicted, and the preemptor always wakes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.waiting import WaitingPods
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.writer import ClusterWriter, WriteError
from kubesched.state.cluster import ClusterState

_log = logging.getLogger(__name__)


class Evictions:
    """Evicts the victims of one pod at a time, in the background of everything else."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        writer: ClusterWriter,
        waiting: WaitingPods,
        stop_binding: Callable[[Pod, str], bool],
    ) -> None:
        """`stop_binding` keeps a pod from being bound, for a reason, and tells whether it was in time for that."""
        self._state = state
        self._queue = queue
        self._writer = writer
        self._waiting = waiting
        self._stop_binding = stop_binding

    async def run(self, attempt: Attempt, preemption: DefaultPreemption | None) -> None:
        """All victims but the last go first; when the last is on its way, the preemptor may be woken by events."""
        preemptor = attempt.queued.pod
        assert attempt.failure is not None
        node_name = attempt.failure.nominated or ""
        *others, last = [victim.pod for victim in attempt.victims]
        left_by_itself = False
        failed = not await self._take_back_promises(preemptor, node_name)
        try:
            for victim in others:
                await self._evict(victim, preemptor, node_name)
            if preemption is not None:
                preemption.await_last(preemptor, last)
            left_by_itself = self._state.placed(last) is None
            await self._evict(last, preemptor, node_name)
            attempt.evicted = True
        except WriteError:
            failed = True
        except Exception:
            _log.exception("the preemption for pod %s broke", preemptor.key)
            failed = True
        finally:
            if preemption is not None:
                preemption.end(preemptor)
        is_waiting = self._queue.open_gate(preemptor, DefaultPreemption.name)
        # The departure of a pod that left by itself was told while the preemptor was held back. That of others is yet
        # to come, or was told then too.
        is_stuck = left_by_itself and is_waiting and not any(self._state.placed(victim) for victim in others)
        if failed or is_stuck:
            self._queue.activate(preemptor)

    async def run_first(self, attempt: Attempt) -> None:
        """Before the preemptor goes back to the queue: if a victim cannot be evicted, no node is promised."""
        preemptor, failure, decision = attempt.queued.pod, attempt.failure, attempt.decision
        assert failure is not None
        assert decision is not None
        node_name = failure.nominated or ""
        try:
            for victim in attempt.victims:
                await self._evict(victim.pod, preemptor, node_name)
            attempt.evicted = True
        except WriteError as problem:
            said = decision.diagnosis.message() if decision.diagnosis is not None else ""
            failure.message, failure.nominated = f"{said} preemption: {problem}", None
            return
        await self._take_back_promises(preemptor, node_name)

    async def _take_back_promises(self, preemptor: Pod, node_name: str) -> bool:
        """Whether all could be taken back. If not, the victims go all the same."""
        done = True
        for pod in self._state.nominated.on_node(node_name):
            if pod.priority < preemptor.priority and pod.status.nominated_node_name:
                try:
                    await self._writer.patch_status(pod, condition=None, nominated_node_name="")
                except WriteError as problem:
                    _log.warning("pod %s is still promised node %s: %s", pod.key, node_name, problem)
                    done = False
        return done

    async def _evict(self, victim: Pod, preemptor: Pod, node_name: str) -> None:
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        if self._is_stopped(victim):  # never got as far as the API server
            self._record(victim, preemptor, f"{note} (in kube-scheduler memory).")
            return
        message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
        condition = PodCondition(
            type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=message
        )
        try:
            await self._writer.evict(victim, condition)
        except WriteError as problem:
            if problem.reason == "NotFound":
                return  # gone already, which is all that was wanted
            raise
        self._record(victim, preemptor, note)

    def _is_stopped(self, victim: Pod) -> bool:
        """Whether a pod that is not bound yet could be kept from it, so that it need not be deleted."""
        waiting = self._waiting.get(victim)
        if waiting is not None:
            return waiting.preempt(DefaultPreemption.name, "preempted")
        return self._stop_binding(victim, f"preempted by {DefaultPreemption.name}")

    def _record(self, victim: Pod, preemptor: Pod, note: str) -> None:
        self._writer.record_event(
            victim, related=preemptor, type="Normal", reason="Preempted", action="Preempting", note=note
        )
