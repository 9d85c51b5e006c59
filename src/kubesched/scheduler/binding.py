"""The binding cycle: what must be done and written before a pod runs where it was assumed to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from kubesched.api.pod import Pod
from kubesched.framework.blame import told
from kubesched.framework.decision import Decision
from kubesched.framework.events import Action, ClusterEvent, Kind
from kubesched.framework.extender import Extender, ExtenderError, ask_to_bind
from kubesched.framework.plugin import BindPlugin, PostBindPlugin, PreBindPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import BIND_IT, SKIP, Status, error
from kubesched.plugins.volume_binding.writes import RESERVED, VolumeWrites
from kubesched.scheduler.attempt import Attempt, Failure
from kubesched.scheduler.claims import ClaimBinding
from kubesched.scheduler.queue import SchedulingQueue
from kubesched.scheduler.writer import ClusterWriter, WriteError
from kubesched.state.cluster import ClusterState

_log = logging.getLogger(__name__)

ASSIGNED_POD_GONE = ClusterEvent(Kind.ASSIGNED_POD, Action.DELETE)


class BindingCycle:
    """PreBind, Bind, PostBind for one pod. If that fails, the pod never was on its node."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        writer: ClusterWriter,
        profiles: dict[str, Profile],
        give_back: Callable[[Decision], None],
        claims: ClaimBinding,
        extenders: Sequence[Extender] = (),
    ) -> None:
        self._state = state
        self._queue = queue
        self._writer = writer
        self._profiles = profiles
        self._give_back = give_back
        self._claims = claims
        self._binders = [extender for extender in extenders if extender.binds]
        self._tells_expected_node = state.features.expected_node_told

    async def run(self, attempt: Attempt) -> Failure | None:
        """None once the pod is bound."""
        pod, decision = attempt.queued.pod, attempt.decision
        assert decision is not None
        profile, watch = self._profiles[decision.profile], attempt.watch
        if watch is not None:
            watch.start()
        try:
            status = await self._pre_bind(profile, decision)
            if watch is not None:
                watch.lap("PreBind", status)
            if status is None:
                status = await self._bind(profile, decision)
                if watch is not None:
                    watch.lap("Bind", status)
        except Exception as problem:  # of a plugin, or of a writer that does not keep its word
            _log.exception("binding pod %s broke", pod.key)
            status = error(told(problem))
        if status is not None:
            self.announce(await self.take_back(decision))
            return Failure(status, status.message)
        note = f"Successfully assigned {pod.key} to {attempt.node}"
        self._writer.record_event(pod, related=None, type="Normal", reason="Scheduled", action="Binding", note=note)
        for plugin in profile.at("post_bind", PostBindPlugin):
            try:
                await _finished(plugin.post_bind(decision.cycle, pod, attempt.node))  # type: ignore[arg-type]
            except Exception:  # it is bound all the same
                _log.exception("PostBind plugin %s broke for pod %s", plugin.name, pod.key)
        if watch is not None:
            watch.lap("PostBind")
        return None

    async def take_back(self, decision: Decision) -> Pod | None:
        """Unreserve and forget. The pod as it was assumed; None if that had ended already, because it was deleted.

        What was written is taken back before the pod is forgotten: until then nobody tries it again.
        """
        self._give_back(decision)
        await self._claims.carry_out(decision.cycle)
        placed = self._state.placed(decision.pod)
        self._state.forget(decision.pod)
        return placed.pod if placed is not None and placed.assumed else None

    def announce(self, pod: Pod | None, concerns: Callable[[Pod], bool] | None = None) -> None:
        """What the pod held is free again, which may help others."""
        if pod is not None:
            self._queue.happened(ASSIGNED_POD_GONE, pod, None, concerns)

    async def _pre_bind(self, profile: Profile, decision: Decision) -> Status | None:
        pod, cycle = decision.pod, decision.cycle
        assert cycle is not None
        volumes: VolumeWrites | None = cycle.notes.get(RESERVED)
        has_claims = self._claims.concerns(profile, cycle)
        if volumes is not None or has_claims:
            await self.tell_expected_node(pod, decision.node)
        try:
            if volumes is not None:
                await self._writer.write_volumes(pod, volumes)
        except WriteError as problem:
            return error(f'running PreBind plugin "VolumeBinding": {problem}')
        if has_claims:
            broken = await self._claims.bind(profile, cycle, decision.node)
            if broken is not None:
                return error(f'running PreBind plugin "DynamicResources": {broken.message}')
        for plugin in profile.at("pre_bind", PreBindPlugin):
            given = plugin.pre_bind(cycle, pod, decision.node)
            if given is not None and isawaitable(given):
                await self.tell_expected_node(pod, decision.node)
            answer = _finished(given)
            watch = cycle.watch_of_plugins
            status = await (answer if watch is None else watch.timed_wait(plugin.name, "PreBind", answer))
            if status is not None:
                return error(f'running PreBind plugin "{plugin.name}": {status.message}')
        return None

    async def tell_expected_node(self, pod: Pod, node_name: str) -> None:
        """What comes next may take a while, so everybody may see already where the pod is going."""
        if not self._tells_expected_node or pod.status.nominated_node_name == node_name:
            return
        try:
            await self._writer.patch_status(pod, condition=None, nominated_node_name=node_name)
        except WriteError as problem:
            _log.warning("pod %s could not be told to expect node %s: %s", pod.key, node_name, problem)

    async def _bind(self, profile: Profile, decision: Decision) -> Status | None:
        """An extender binds the pod if one does so; else the first plugin that does not skip."""
        pod, cycle = decision.pod, decision.cycle
        assert cycle is not None
        if self._binders:
            try:
                if await asyncio.to_thread(ask_to_bind, self._binders, pod, decision.node):
                    return None
            except ExtenderError as problem:
                return error(str(problem))
        for plugin in profile.at("bind", BindPlugin):
            answer, watch = self._bind_by(plugin, decision), cycle.watch_of_plugins
            status = await (answer if watch is None else watch.timed_wait(plugin.name, "Bind", answer))
            if status is not SKIP:
                return status
        return error("no plugin bound the pod")

    async def _bind_by(self, plugin: BindPlugin, decision: Decision) -> Status | None:
        """What became of the pod in the hands of one plugin; SKIP if it leaves the pod to others."""
        assert decision.cycle is not None
        status: Status | None = await _finished(plugin.bind(decision.cycle, decision.pod, decision.node))
        if status is None or status is SKIP:
            return status
        if status is not BIND_IT:
            return error(f'running Bind plugin "{plugin.name}": {status.message}')
        try:
            await self._writer.bind(decision.pod, decision.node)
        except WriteError as problem:
            return error(f'running Bind plugin "{plugin.name}": {problem}')
        return None


async def _finished(answer: Any) -> Status | None:
    """The answer of a plugin that may or may not be a coroutine."""
    if answer is None or isinstance(answer, Status):  # nearly always, and `isawaitable` takes its time
        return answer
    status: Status | None = await answer if isawaitable(answer) else answer
    return status
