"""The scheduling queue where pod groups are entities: the pods of a group wait, are tried and back off together.

    added ──► incomplete ──(its PodGroup is seen)──► member of a group that is active, backs off, or is gated

A group is gated as long as one of its members is. After an attempt it comes back with the members that failed, and
those that were added meanwhile: it is active again at once if the others found nodes, and backs off if not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.framework.groups import group_of, group_priority
from kubesched.framework.status import Status
from kubesched.scheduler.cluster_events import ATTEMPT_FAILED, FORCED, pod_events
from kubesched.scheduler.groups.queued_group import QueuedPodGroup
from kubesched.scheduler.queue.hints import QueueingStrategy
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.scheduling_queue import UNSCHEDULABLE, SchedulingQueue


class GroupQueue(SchedulingQueue):
    """All pending pods, those of groups by their groups."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._groups: dict[str, QueuedPodGroup] = {}
        """All groups with pending pods, by the key of their PodGroup; also those in flight."""
        self._incomplete: dict[str, dict[str, QueuedPod]] = {}
        """Pods without a PodGroup in the state, by the key of the group and their own. No gate is asked about them."""

    def places(self) -> dict[str, tuple[Collection[QueuedPod], ...]]:
        """Pods, not groups, because metrics count pods."""
        by_name = {name: tuple(map(list, places)) for name, places in super().places().items()}
        return {**by_name, "unschedulable": (*by_name["unschedulable"], self.incomplete())}

    def incomplete(self) -> list[QueuedPod]:
        """Pods that wait for their PodGroup to be made."""
        return [waiting for members in self._incomplete.values() for waiting in members.values()]

    # -- pods come, change and go -------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        if group_key(pod):
            self._join(QueuedPod(pod, self._clock()), self._pending.added.label)
        else:
            super().add(pod)

    def update(self, old: Pod, new: Pod) -> None:
        key, is_in_flight = group_key(new), new.identity in self._in_flight
        if group_key(old) != key and not is_in_flight:  # an alias goes by a label, which may change
            self.delete(old)
            self.add(new)
            return
        if not key or is_in_flight:
            super().update(old, new)
            return
        waiting = self._incomplete.get(key, {}).get(new.key)
        if waiting is not None:
            waiting.pod = new
            self._update_nomination(old, new)
            return
        group = self._groups.get(key)
        member = None if group is None else group.members.get(new.key)
        if group is None or member is None:
            self._join(QueuedPod(new, self._clock()), self._pending.updated.label)
            return
        member.pod = new
        group.add(member)
        self._update_nomination(old, new)
        if not group.is_in_flight:
            self._member_updated(group, member, Change(old, new))

    def _member_updated(self, group: QueuedPodGroup, member: QueuedPod, change: Change[Pod]) -> None:
        """An update that opens the gate, or that a plugin waits for, wakes the whole group."""
        if group.key not in self._unschedulable:
            self._reorder(group)
            return
        self._unschedulable.put(group)
        assert change.old is not None
        assert change.new is not None
        for event in pod_events(change.old, change.new, self._state.features):
            if not member.is_gated:
                return
            strategy = self._hints.strategy(member, event, change)
            if self._requeue(group, event.label, strategy) != UNSCHEDULABLE:
                return

    def delete(self, pod: Pod) -> None:
        key = group_key(pod)
        if not key:
            super().delete(pod)
            return
        self._state.nominated.remove(pod)
        self._remove_incomplete(key, pod.key)
        group = self._groups.get(key)
        if group is None or group.remove(pod.key) is None or group.is_in_flight:
            return
        if not group.members:
            self._forget(group)
        elif group.key in self._unschedulable and not group.is_gated:  # its last gated member is gone
            self._requeue(group, self._pending.deleted.label, QueueingStrategy.AFTER_BACKOFF)
        else:
            self._reorder(group)

    def group_changed(self, change: Change[PodGroup]) -> None:
        """A PodGroup appeared, changed or went, and the state has the change."""
        key = change.obj.key
        group = self._groups.get(key)
        if change.new is None:
            if group is not None and not group.is_in_flight:
                self._take_apart(group)
        elif group is not None:
            group.group, group.priority = change.new, self._priority_of(change.new, group.members.values())
            if not group.is_in_flight:
                self._reorder(group)
        else:
            for member in self._incomplete.pop(key, {}).values():
                self._join(member, self._pending.added.label)

    # -- attempts -----------------------------------------------------------------------------------------------------

    def attempted(self, group: QueuedPodGroup, failed: Iterable[QueuedPod], status: Status | None) -> None:
        """The attempt at a group is over: `failed` members are still pending. Without a status it was a success."""
        group.is_in_flight = False
        came_meanwhile = bool(group.members)
        for member in failed:
            self.done(member.pod)
            latest = self._find(member.key)
            if latest is not None and latest.identity == member.identity and not latest.spec.node_name:
                member.pod, member.gating_plugin = latest, ""
                member.unschedulable_plugins, member.pending_plugins = set(), set()
                group.add(member)
        if not group.members:
            self._forget(group)
            return
        if group_of(next(iter(group.members.values())).pod, self._state) is None:
            self._take_apart(group)
            return
        self._note_outcome(group, status, keeps_place=status is None and not came_meanwhile)
        self._requeue(group, ATTEMPT_FAILED, QueueingStrategy.AFTER_BACKOFF)

    def _note_outcome(self, group: QueuedPodGroup, status: Status | None, *, keeps_place: bool) -> None:
        if status is None:
            group.error_count = group.unschedulable_count = 0
        elif status.is_rejection:
            group.unschedulable_count += 1
            group.error_count = 0
        else:
            group.error_count += 1
        if not keeps_place:
            group.timestamp = self._clock()
        group.backoff_until = None
        group.flushed, group.flushed_at = False, 0.0

    def backoff_until(self, queued: QueuedPod) -> float:
        """A member backs off with its group."""
        group = self._groups.get(group_key(queued.pod))
        return super().backoff_until(queued) if group is None else self._waits.until(group)

    def add_unschedulable(self, queued: QueuedPod) -> None:
        """Requeue a pod whose binding failed: it joins its group."""
        key = group_key(queued.pod)
        if not key:
            super().add_unschedulable(queued)
            return
        self.done(queued.pod)
        group = self._groups.get(key)
        if queued.key in self._incomplete.get(key, ()) or (group is not None and queued.key in group.members):
            return
        queued.error_count, queued.unschedulable_count = queued.error_count + 1, 0
        queued.timestamp, queued.gating_plugin = self._clock(), ""
        queued.unschedulable_plugins, queued.pending_plugins = set(), set()
        self._join(queued, ATTEMPT_FAILED)

    def activate(self, pod: Pod) -> None:
        group = self._groups.get(group_key(pod))
        if group is None:
            super().activate(pod)
        elif not group.is_in_flight:
            self._backoff.remove(group.key)
            self._errors.remove(group.key)
            self._to_active(group, FORCED.label)

    def open_gate(self, pod: Pod, plugin: str) -> bool:
        group = self._groups.get(group_key(pod))
        if group is None:
            return super().open_gate(pod, plugin)
        if group.key in self._unschedulable and group.gating_plugin == plugin:
            self._requeue(group, FORCED.label, QueueingStrategy.AFTER_BACKOFF)
        return False

    # -- inside -------------------------------------------------------------------------------------------------------

    def _join(self, member: QueuedPod, label: str) -> None:
        """Add a pod to its group, in whichever place of the queue that is; make the group if it had no pending pods."""
        pod_group = group_of(member.pod, self._state)
        if pod_group is None:
            self._incomplete.setdefault(group_key(member.pod), {})[member.key] = member
            self.nominate(member.pod, None)
            return
        group = self._groups.get(pod_group.key)
        if group is None:
            priority = self._priority_of(pod_group, (member,))
            group = self._groups[pod_group.key] = QueuedPodGroup(pod_group, priority, member, self._clock())
            self._requeue(group, label, QueueingStrategy.AFTER_BACKOFF)
        else:
            group.add(member)
            if not group.is_in_flight:
                self._on_join(group, member, label)
        self.nominate(member.pod, None)

    def _on_join(self, group: QueuedPodGroup, member: QueuedPod, label: str) -> None:
        """A gated new member gates the whole group; otherwise the group may have to move within its place."""
        if group.key in self._unschedulable:
            self._unschedulable.put(group)
            return
        if self._gates.hold_back(member):
            self._remove(group.key)
            self._to_unschedulable(group, label)
        else:
            self._reorder(group)

    def _reorder(self, group: QueuedPodGroup) -> None:
        """Sort the group among other entities again, after a member came or changed."""
        for place in (self._active, self._backoff, self._errors, self._unschedulable):
            if group.key in place:
                place.put(group)

    def _take_apart(self, group: QueuedPodGroup) -> None:
        """The PodGroup is gone: let its pods wait for another one."""
        if group.members:
            self._incomplete.setdefault(group.group.key, {}).update(group.members)
        self._forget(group)

    def _remove_incomplete(self, group: str, pod: str) -> None:
        """Remove a pod, by key, from those that wait for this PodGroup."""
        waiting = self._incomplete.get(group, {})
        if waiting.pop(pod, None) is not None and not waiting:
            del self._incomplete[group]

    def _forget(self, group: QueuedPodGroup) -> None:
        del self._groups[group.group.key]
        self._remove(group.key)

    def _priority_of(self, group: PodGroup, members: Iterable[QueuedPod]) -> int:
        return group_priority(group, (member.pod for member in members), self._state.features)
