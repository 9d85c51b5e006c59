"""The binding cycle: PreBind, Bind and PostBind plugins for a pod on the node where it is assumed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.client import ClientError, ClusterClient
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.errors import describe
from kubesched.framework.extender import Extender, ExtenderError, ask_to_bind
from kubesched.framework.plugin import BindPlugin, Plugin, PostBindPlugin, PreBindPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import SKIP, Code, Status, error
from kubesched.scheduler.attempt.attempt import Failure
from kubesched.scheduler.cluster_events import ASSIGNED_POD_DELETED
from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.state.cluster import ClusterState

log = logging.getLogger(__name__)


class BindingCycle:
    """PreBind, Bind, PostBind for one pod, and undoing its assumption if that fails."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        client: ClusterClient,
        profiles: dict[str, Profile],
        give_back: Callable[[Decision], None],
        pre_binding: PreBinding,
        extenders: Sequence[Extender],
    ) -> None:
        self.extenders = extenders
        self._state = state
        self._queue = queue
        self._client = client
        self._pre_bind_plugins = {name: profile.at("pre_bind", PreBindPlugin) for name, profile in profiles.items()}
        self._bind_plugins = {name: profile.at("bind", BindPlugin) for name, profile in profiles.items()}
        self._post_bind_plugins = {name: profile.at("post_bind", PostBindPlugin) for name, profile in profiles.items()}
        self._give_back = give_back
        self._binders = [extender for extender in extenders if extender.binds]
        self._nominates_expected_node = state.features.expected_node_nominated
        self.pre_binding = pre_binding

    async def run(self, pod: Pod, decision: Decision) -> Failure | None:
        """None once the pod is bound. After a failure call `take_back`."""
        cycle = decision.cycle
        cycle.start_lap()
        try:
            plugins, status = self._pre_flight(decision)
            if plugins:  # most pods have nothing to be done before they are bound
                status = await self._pre_bind_unless_stopped(plugins, decision)
            cycle.lap("PreBind", status)
            if status is None:
                status = await self._bind(decision)
                cycle.lap("Bind", status)
        except Exception as failure:  # of a plugin, or of a client that raises other errors than its own
            log.exception("binding pod %s broke", pod.key)
            status = error(describe(failure))
        if status is not None:
            return Failure(status, status.message)
        note = f"Successfully assigned {pod.key} to {decision.node}"
        self._client.record_event(pod, related=None, type="Normal", reason="Scheduled", action="Binding", note=note)
        for plugin in self._post_bind_plugins[decision.profile]:
            try:
                await cycle.wait_for(plugin.name, "PostBind", plugin.post_bind, cycle, pod, decision.node)
            except Exception:  # it is bound all the same
                log.exception("PostBind plugin %s broke for pod %s", plugin.name, pod.key)
        cycle.lap("PostBind")
        return None

    async def take_back(self, decision: Decision) -> Pod | None:
        """Unreserve and forget. The pod as it was assumed; None if it was bound meanwhile.

        Deferred writes of plugins come before the pod is forgotten: until then it is not tried again.
        """
        self._give_back(decision)
        await self.run_deferred(decision)
        placed = self._state.placed(decision.pod)
        if placed is None:  # deleted meanwhile, but its reservations are free only now
            return replace(decision.pod, spec=replace(decision.pod.spec, node_name=decision.node))
        self._state.forget(decision.pod)
        return placed.pod if placed.assumed else None

    def announce(self, pod: Pod | None, concerns: Callable[[QueuedEntity], bool] | None = None) -> None:
        """Wake pods that the room of this one may help."""
        if pod is not None:
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETED, Change(old=pod), concerns)

    def _pre_flight(self, decision: Decision) -> tuple[list[PreBindPlugin], Status | None]:
        """The plugins that have something to do for the pod, in the configured order; or the error of one."""
        pod, cycle, node_name = decision.pod, decision.cycle, decision.node
        plugins = []
        failure = None
        for plugin in self._pre_bind_plugins[decision.profile]:
            status = cycle.ask(plugin.name, "PreBindPreFlight", plugin.pre_bind_pre_flight, cycle, pod, node_name)
            if status is None:
                plugins.append(plugin)
            elif status is not SKIP and status.code is not Code.SKIP:
                failure = error(f'running PreBindPreFlight "{plugin.name}": {status.message}').by(plugin.name)
                plugins = []
                break
        if self._nominates_expected_node:
            cycle.lap("PreBindPreFlight", failure or (None if plugins else SKIP))
        return plugins, failure

    async def _pre_bind_unless_stopped(self, plugins: list[PreBindPlugin], decision: Decision) -> Status | None:
        """Run PreBind plugins. A preemptor may stop them: then the pod fails as if a plugin had rejected it."""
        try:
            status = await self._pre_bind(plugins, decision)
        except asyncio.CancelledError:
            stopped = self.pre_binding.end(decision.pod)
            if stopped is None:
                raise
            return error(f'running PreBind plugin "{stopped.plugin}": {stopped.stopped}').by(stopped.plugin)
        finally:
            stopped = self.pre_binding.end(decision.pod)
        return status if stopped is None else error(stopped.stopped)

    async def _pre_bind(self, plugins: list[PreBindPlugin], decision: Decision) -> Status | None:
        pod, cycle = decision.pod, decision.cycle
        if any(plugin.takes_long(cycle, pod, decision.node) for plugin in plugins):
            await self.nominate_expected_node(pod, decision.node)
        for plugin in plugins:
            status = await cycle.wait_for(plugin.name, "PreBind", self._pre_bind_by, plugin, cycle, decision)
            if status is not None:
                return _refusal("PreBind", plugin, status)
        return None

    async def _pre_bind_by(self, plugin: PreBindPlugin, cycle: Cycle, decision: Decision) -> Status | None:
        answer = plugin.pre_bind(cycle, decision.pod, decision.node)
        if isawaitable(answer):
            self.pre_binding.begin(decision.pod, plugin.name)
            answer = await answer
        status: Status | None = answer
        return status

    async def run_deferred(self, decision: Decision) -> None:
        """Carry out the writes that plugins deferred until the attempt failed."""
        deferred, decision.cycle.deferred = decision.cycle.deferred, ()
        for work in deferred:
            try:
                status = await work()
            except Exception:  # of a plugin; the pod must go back to the queue all the same
                log.exception("deferred cleanup of a plugin failed for pod %s", decision.pod.key)
                continue
            if status is not None:
                log.warning("not all could be undone for pod %s: %s", decision.pod.key, status.message)

    async def nominate_expected_node(self, pod: Pod, node_name: str) -> None:
        """Write the node to the pod's status, since PreBind and Bind may take a while."""
        if not self._nominates_expected_node or pod.status.nominated_node_name == node_name:
            return
        try:
            await self._client.patch_pod_status(pod, condition=None, nominated_node_name=node_name)
        except ClientError as failure:
            log.warning("the status of pod %s does not name node %s beforehand: %s", pod.key, node_name, failure)

    async def _bind(self, decision: Decision) -> Status | None:
        """An extender binds the pod if one does so; else the first plugin that does not skip."""
        pod, cycle = decision.pod, decision.cycle
        if self._binders:
            try:
                if await ask_to_bind(self._binders, pod, decision.node):
                    return None
            except ExtenderError as failure:
                return error(str(failure))
        for plugin in self._bind_plugins[decision.profile]:
            status = await cycle.wait_for(plugin.name, "Bind", plugin.bind, cycle, pod, decision.node)
            if status is not SKIP:
                return None if status is None else _refusal("Bind", plugin, status)
        return error("no plugin bound the pod")


def _refusal(point: str, plugin: Plugin, status: Status) -> Status:
    """The status of a plugin that ended the binding: a rejection as it is, an error with the plugin's name."""
    if status.is_rejection:
        return status.by(plugin.name)
    return error(f'running {point} plugin "{plugin.name}": {status.message}').by(plugin.name)


@dataclass(slots=True)
class PreBindWork:
    """The PreBind of one pod: its task, the plugin at work, and why it was stopped, if it was."""

    task: asyncio.Task[None]
    plugin: str
    stopped: str = ""


class PreBinding:
    """The PreBind plugins at work, by pod. Without an event loop there are none, for nothing takes time then."""

    def __init__(self) -> None:
        self._under_way: dict[str, PreBindWork] = {}

    def begin(self, pod: Pod, plugin: str) -> None:
        """A plugin is about to do something that may take a while, in the current task."""
        task, work = _current_task(), self._under_way.get(pod.identity)
        if work is not None:
            work.plugin = plugin
        elif task is not None:
            self._under_way[pod.identity] = PreBindWork(task, plugin)

    def stop(self, pod: Pod, reason: str) -> bool:
        """Cancel the work for a pod; whether there is any."""
        work = self._under_way.get(pod.identity)
        if work is None:
            return False
        if not work.stopped:
            work.stopped = reason
            work.task.cancel()
        return True

    def end(self, pod: Pod) -> PreBindWork | None:
        """The work is over, in the same task. It is returned if it was stopped."""
        work = self._under_way.pop(pod.identity, None)
        if work is None or not work.stopped:
            return None
        work.task.uncancel()
        return work


def _current_task() -> asyncio.Task[None] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
