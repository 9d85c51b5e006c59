"""The binding cycle: what must be written before a pod runs where it was assumed to."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.framework.decision import Decision
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.framework.status import error
from kubesched.plugins.volume_binding.writes import RESERVED, VolumeWrites
from kubesched.scheduler.attempt import Attempt, Failure
from kubesched.scheduler.queue import SchedulingQueue
from kubesched.scheduler.writer import ClusterWriter, WriteError
from kubesched.state.cluster import ClusterState

ASSIGNED_POD_GONE = ClusterEvent(Kind.ASSIGNED_POD, Action.DELETE)


class BindingCycle:
    """Binds one pod; if that fails, the pod never was on its node."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        writer: ClusterWriter,
        unreserve: Callable[[Decision], None],
    ) -> None:
        self._state = state
        self._queue = queue
        self._writer = writer
        self._unreserve = unreserve

    async def run(self, attempt: Attempt) -> Failure | None:
        """None once the pod is bound."""
        pod, decision = attempt.queued.pod, attempt.decision
        assert decision is not None
        assert decision.cycle is not None
        try:
            writes: VolumeWrites | None = decision.cycle.notes.get(RESERVED)
            if writes is not None:
                if pod.status.nominated_node_name != attempt.node:
                    await self._writer.patch_status(pod, condition=None, nominated_node_name=attempt.node)
                await self._writer.write_volumes(pod, writes)
            await self._writer.bind(pod, attempt.node)
        except WriteError as problem:
            self._undo(decision)
            message = f'running Bind plugin "DefaultBinder": {problem}'
            return Failure(error(message), message)
        note = f"Successfully assigned {pod.key} to {attempt.node}"
        self._writer.record_event(pod, related=None, type="Normal", reason="Scheduled", action="Binding", note=note)
        return None

    def _undo(self, decision: Decision) -> None:
        """What the pod held is free again, which may help others; unless it was deleted and all that is known."""
        placed = self._state.placed(decision.pod)
        self._unreserve(decision)
        if placed is not None and placed.assumed:
            self._queue.happened(ASSIGNED_POD_GONE, placed.pod, None)
