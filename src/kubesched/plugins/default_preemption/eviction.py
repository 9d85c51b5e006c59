"""A preemption carried out: lesser pods lose their nomination, victims are evicted, and the preemptor always wakes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kubesched.api.pod import Pod, PodCondition
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.framework.client import Awaited, ClientError, SchedulerMode
from kubesched.framework.plugin import PluginContext
from kubesched.framework.status import Status, error
from kubesched.plugins.default_preemption.fuse import MOST_IN_VAIN, EvictionFuse, party_of
from kubesched.state.cluster import ClusterState

_REFUSED = "kubesched_preemptions_refused_total"
_DENIALS = ("Forbidden", "Invalid", "BadRequest")
"""What the API server says if a role, a policy or a webhook is against an eviction: it will say so again."""
_SHOWN_WITHIN = 30.0
"""Seconds that the watch has to show that a victim leaves, after the API server said so. Then it is not waited for."""


class EvictionsInProgress:
    """The pods whose victims are being evicted: there is no point in trying them before the last one is leaving."""

    def __init__(self) -> None:
        self._last_victims: dict[str, Pod | None] = {}
        """By identity of the preemptor, or the key of its group; None until it is the last victim's turn."""
        self._waiting: dict[str, dict[str, str]] = {}
        """By identity of the last victim: the names of the preemptors that wait for it to leave, by identity."""

    def begin(self, preemptor: str, name: str, last_victim: Pod | None) -> None:
        """The victims are about to be evicted, or only the last one is left."""
        self.end(preemptor)
        self._last_victims[preemptor] = last_victim
        if last_victim is not None:
            self._waiting.setdefault(last_victim.identity, {})[preemptor] = name

    def end(self, preemptor: str) -> None:
        """All evictions were sent, or one failed."""
        last_victim = self._last_victims.pop(preemptor, None)
        if last_victim is not None:
            waiting = self._waiting[last_victim.identity]
            del waiting[preemptor]
            if not waiting:
                del self._waiting[last_victim.identity]

    def waiting_for(self, victim: str) -> Collection[str]:
        """The names of the pods of which this is the last victim."""
        return self._waiting.get(victim, {}).values()

    def holds_back(self, preemptor: str, state: ClusterState) -> bool:
        if preemptor not in self._last_victims:
            return False
        last_victim = self._last_victims[preemptor]
        placed = None if last_victim is None else state.placed(last_victim)
        return last_victim is None or (placed is not None and not placed.pod.is_terminating)


@dataclass(frozen=True, eq=False)
class Eviction:
    """The `Preemption` of one pod. Without AsyncPreemption it is over before the pod goes back to the queue."""

    plugin: str
    preemptor: Pod
    state: ClusterState
    node_name: str
    victims: list[Pod]
    evicting: EvictionsInProgress
    context: PluginContext

    def refusal(self) -> str:
        """The fuse, which kube-scheduler does not have."""
        if self.context.handle.mode is SchedulerMode.PARITY:
            return ""
        fuse = self.state.companion(EvictionFuse)
        if not fuse.is_blown(self._party(), self._identities(), self.context.now()):
            return ""
        self.context.handle.count(_REFUSED, "in vain")
        return f"preemption: refused after {MOST_IN_VAIN} in vain for the same pod, owner or group"

    def hold_back(self) -> None:
        self._hold_back_for(self.victims[0] if len(self.victims) == 1 else None)

    def _hold_back_for(self, last_victim: Pod | None) -> None:
        self.evicting.begin(self._key(), self.preemptor.key, last_victim)

    async def carry_out(self) -> Status | None:
        try:
            await (self._evict_in_background() if self.context.features.async_preemption else self._evict_all())
        except ClientError as failure:
            if failure.reason in _DENIALS:
                self._note()
            return error(f"preemption: {failure}")
        self._note()
        return None

    def _note(self) -> None:
        """Let the fuse know. It also ends tries at evictions that are denied: each would follow the last at once."""
        fuse = self.state.companion(EvictionFuse)
        fuse.note(self._party(), self._identities(), self.victims, self.context.now())

    async def _evict_all(self) -> None:
        await self.context.handle.for_each(self.victims, self._evict)
        await self._clear_nominations()

    async def _evict_in_background(self) -> None:
        """All victims but the last go first; when the last is on its way, events may wake the preemptor."""
        *others, last = self.victims
        left_by_itself, failed = False, True
        try:
            not_cleared = await self._clear_nominations()
            await self.context.handle.for_each(others, self._evict)
            self._hold_back_for(last)
            left_by_itself = self.state.placed(last) is None
            await self._evict(last)
            failed = not await self._is_leaving_soon(last) or bool(not_cleared)
        finally:
            self.evicting.end(self._key())
            is_waiting = self.context.handle.open_gate(self.preemptor, self.plugin)
            is_stuck = is_waiting and self._is_stuck(others, left_by_itself)
            if failed or is_stuck:
                self.context.handle.activate(self.preemptor)
        if not_cleared:
            raise not_cleared[0]

    def _is_stuck(self, others: Sequence[Pod], last_left_by_itself: bool) -> bool:
        """Whether no departure is to come that wakes the preemptor, which was held back when the watch showed others.

        A victim that is not any longer what was chosen may be no help when it leaves: its change was, and the preemptor
        was held back then as well. kube-scheduler overlooks that.
        """
        if self.context.handle.mode is SchedulerMode.PARITY:
            return last_left_by_itself and not any(self.state.placed(victim) for victim in others)
        now = [placed.pod for victim in self.victims if (placed := self.state.placed(victim)) is not None]
        chosen = {victim.identity: victim for victim in self.victims}
        return not now or any(_differs(pod, chosen[pod.identity]) for pod in now)

    async def _is_leaving_soon(self, victim: Pod) -> bool:
        """Wait until the watch shows the victim leaving: before, the cache has it, and an attempt would fail."""

        def is_met() -> bool:
            placed = self.state.placed(victim)
            return placed is None or placed.assumed or placed.pod.is_terminating

        awaited: Awaited = (Pod, victim.key)
        return await self.context.client.wait(self.preemptor, is_met, objects=lambda: (awaited,), within=_SHOWN_WITHIN)

    async def _clear_nominations(self) -> list[ClientError]:
        """Take the node from lesser pods that are nominated for it. What failed; the victims go all the same."""
        failures = []
        for pod in self._nominated():
            if pod.priority < self.preemptor.priority and pod.status.nominated_node_name:
                try:
                    await self.context.client.patch_pod_status(pod, condition=None, nominated_node_name="")
                except ClientError as failure:
                    failures.append(failure)
        return failures

    def _nominated(self) -> list[Pod]:
        return self.state.nominated.on_node(self.node_name)

    def _party(self) -> str:
        return party_of(self.preemptor)

    def _identities(self) -> Collection[str]:
        return (self.preemptor.identity,)

    def _key(self) -> str:
        return self.preemptor.identity

    def _kind_and_uid(self) -> tuple[str, str]:
        """What the preemptor is, and its uid."""
        return "pod", self.preemptor.uid

    async def _evict(self, victim: Pod) -> None:
        kind, uid = self._kind_and_uid()
        note = f"Preempted by {kind} {uid} on node {self.node_name}"
        if self._is_stopped(victim):  # never got as far as the API server
            self._record(victim, f"{note} (in kube-scheduler memory).")
            return
        message = f"{self.preemptor.spec.scheduler_name}: preempting to accommodate a higher priority {kind}"
        condition = PodCondition(
            type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=message
        )
        try:
            await self.context.client.evict(victim, condition)
        except ClientError as failure:
            if failure.is_not_found or (failure.is_conflict and await self._is_made_anew(victim)):
                return  # gone already, which is all that was wanted
            raise
        self._record(victim, note)

    async def _is_made_anew(self, victim: Pod) -> bool:
        """Whether another pod has the name of the victim, which is gone then."""
        stored = await self.context.client.get("Pod", victim.name, victim.namespace)
        return bool(stored["metadata"]["uid"] != victim.uid)

    def _is_stopped(self, victim: Pod) -> bool:
        """Whether a pod that is not bound yet could be kept from it, so that it need not be deleted."""
        waiting = self.context.waiting.get(victim)
        if waiting is not None:
            return waiting.preempt(self.plugin, "preempted")
        return self.context.handle.stop_binding(victim, f"preempted by {self.plugin}")

    def _record(self, victim: Pod, note: str) -> None:
        self.context.client.record_event(
            victim, related=self.preemptor, type="Normal", reason="Preempted", action="Preempting", note=note
        )


@dataclass(frozen=True, eq=False)
class GroupEviction(Eviction):
    """The `Preemption` of a whole group, on as many nodes as it takes. The first of its pods stands for the group."""

    group: PodGroup
    preemptors: Sequence[Pod]
    node_names: frozenset[str]

    def _nominated(self) -> list[Pod]:
        own = group_key(self.preemptor)
        on_nodes = (pod for name in sorted(self.node_names) for pod in self.state.nominated.on_node(name))
        return [pod for pod in on_nodes if group_key(pod) != own]

    def _party(self) -> str:
        return self._key()

    def _identities(self) -> Collection[str]:
        return [pod.identity for pod in self.preemptors]

    def _key(self) -> str:
        return f"podgroup/{self.group.key}"

    def _kind_and_uid(self) -> tuple[str, str]:
        return "podgroup", self.group.metadata.uid


def _differs(pod: Pod, chosen: Pod) -> bool:
    return pod.metadata.labels != chosen.metadata.labels or pod.spec != chosen.spec
