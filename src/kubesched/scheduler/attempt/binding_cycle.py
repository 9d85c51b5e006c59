"""The binding cycle: what must be done and written before a pod runs where it was assumed to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.decision import Decision
from kubesched.framework.errors import blaming, describe
from kubesched.framework.extender import Extender, ExtenderError, ask_to_bind
from kubesched.framework.plugin import BindPlugin, Plugin, PostBindPlugin, PreBindPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import BIND_IT, SKIP, Status, error
from kubesched.plugins.volume_binding.writes import RESERVED, VolumeWrites
from kubesched.scheduler.attempt.attempt import Attempt, Failure
from kubesched.scheduler.attempt.pre_binding import PreBinding
from kubesched.scheduler.claims import ClaimBinding
from kubesched.scheduler.cluster_events import ASSIGNED_POD_DELETED
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.writer import ClusterWriter, WriteError
from kubesched.state.cluster import ClusterState

_log = logging.getLogger(__name__)


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
        self.pre_binding = PreBinding()

    async def run(self, attempt: Attempt) -> Failure | None:
        """None once the pod is bound. If that fails, it is still to be taken back."""
        pod, decision = attempt.queued.pod, attempt.decision
        assert decision is not None
        profile, watch = self._profiles[decision.profile], attempt.watch
        if watch is not None:
            watch.start()
        try:
            status = await self._pre_bind_unless_stopped(profile, decision)
            if watch is not None:
                watch.lap("PreBind", status)
            if status is None:
                status = await self._bind(profile, decision)
                if watch is not None:
                    watch.lap("Bind", status)
        except Exception as problem:  # of a plugin, or of a writer that does not keep its word
            _log.exception("binding pod %s broke", pod.key)
            status = error(describe(problem))
        if status is not None:
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
        """Unreserve and forget. The pod as it was assumed; None if it was bound by somebody meanwhile.

        What was written is taken back before the pod is forgotten: until then nobody tries it again.
        """
        self._give_back(decision)
        await self._claims.carry_out(decision.cycle)
        placed = self._state.placed(decision.pod)
        if placed is None:  # deleted meanwhile, but what plugins had set aside for it is free only now
            return replace(decision.pod, spec=replace(decision.pod.spec, node_name=decision.node))
        self._state.forget(decision.pod)
        return placed.pod if placed.assumed else None

    def announce(self, pod: Pod | None, concerns: Callable[[Pod], bool] | None = None) -> None:
        """What the pod held is free again, which may help others."""
        if pod is not None:
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETED, Change(old=pod), concerns)

    async def _pre_bind_unless_stopped(self, profile: Profile, decision: Decision) -> Status | None:
        """A pod that must give way to another before it is bound fails as if a plugin had."""
        try:
            status = await self._pre_bind(profile, decision)
        except asyncio.CancelledError:
            stopped = self.pre_binding.end(decision.pod)
            if stopped is None:
                raise
            return error(f'running PreBind plugin "{stopped.plugin}": {stopped.stopped}')
        finally:
            stopped = self.pre_binding.end(decision.pod)
        return status if stopped is None else error(stopped.stopped)

    async def _pre_bind(self, profile: Profile, decision: Decision) -> Status | None:
        pod, cycle = decision.pod, decision.cycle
        assert cycle is not None
        volumes: VolumeWrites | None = cycle.notes.get(RESERVED)
        has_claims = self._claims.concerns(profile, cycle)
        takes_a_while = volumes is not None or has_claims
        if self._tells_expected_node:
            cycle.lap("PreBindPreFlight", None if takes_a_while else SKIP)
        if takes_a_while:
            await self.tell_expected_node(pod, decision.node)
        try:
            if volumes is not None:
                self.pre_binding.begin(pod, "VolumeBinding")
                await self._writer.write_volumes(pod, volumes)
        except WriteError as problem:
            return error(f'running PreBind plugin "VolumeBinding": {problem}')
        if has_claims:
            self.pre_binding.begin(pod, "DynamicResources")
            broken = await self._claims.bind(profile, cycle, decision.node)
            if broken is not None:
                return error(f'running PreBind plugin "DynamicResources": {broken.message}')
        for plugin in profile.at("pre_bind", PreBindPlugin):
            with blaming(plugin.name):
                given = plugin.pre_bind(cycle, pod, decision.node)
            if given is not None and isawaitable(given):
                await self.tell_expected_node(pod, decision.node)
                self.pre_binding.begin(pod, plugin.name)
            status = await cycle.wait_for(plugin.name, "PreBind", _finished(given))
            if status is not None:
                return _refusal("PreBind", plugin, status)
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
            status = await cycle.wait_for(plugin.name, "Bind", self._bind_by(plugin, decision))
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
            return _refusal("Bind", plugin, status)
        try:
            await self._writer.bind(decision.pod, decision.node)
        except WriteError as problem:
            return error(f'running Bind plugin "{plugin.name}": {problem}')
        return None


def _refusal(point: str, plugin: Plugin, status: Status) -> Status:
    """What a plugin said when it would not go on: a rejection as it is, an error with the plugin's name."""
    if status.is_rejection:
        return status.by(plugin.name)
    return error(f'running {point} plugin "{plugin.name}": {status.message}')


async def _finished(answer: Any) -> Status | None:
    """The answer of a plugin that may or may not be a coroutine."""
    if answer is None or isinstance(answer, Status):  # nearly always, and `isawaitable` takes its time
        return answer
    status: Status | None = await answer if isawaitable(answer) else answer
    return status
