"""The scheduling queue: which entity is next, which must wait, and what wakes them.

    added ──► active ──────────pop──► in flight ──► bound, gone
                ▲  retry queue ─pop──┘   │ failed
                │      ▲                 │
                │      │                 ├─► error backoff ─(time)─► active
                ├──────┴── backoff ◄─────┤ an event came meanwhile
                │      ▲      ▲          ▼
                └──────┴──────┴── unschedulable     (gated pods wait there too)

Every pending entity, a pod or a pod group, is in exactly one of these places. The retry queue has pods for which no
node fit: there, and in backoff, `pop` passes over a pod while its class is known to be unschedulable. Where a backoff
may be cut short, `pop` takes pods from backoff when nothing else is active.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.client import SchedulerMode
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.cluster_events import (
    ATTEMPT_FAILED,
    BACKOFF_COMPLETE,
    FORCED,
    POP_FROM_BACKOFF,
    WAITED_TOO_LONG,
    PendingPodEvents,
    pod_events,
)
from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.listener import Listeners
from kubesched.scheduler.queue.gates import Gates, Recheck
from kubesched.scheduler.queue.hints import QueueingHints, QueueingStrategy
from kubesched.scheduler.queue.in_flight import InFlight
from kubesched.scheduler.queue.ordered_queues import DedupedQueue, OrderedQueue
from kubesched.scheduler.queue.pending_classes import PendingClassIndex
from kubesched.scheduler.queue.places import QueuePlaces
from kubesched.scheduler.queue.queued_pod import Backoff, QueuedPod
from kubesched.scheduler.queue.settings import PluginIndex, QueueSettings
from kubesched.scheduler.queue.unschedulable_classes import UnschedulableClasses
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods, subjects
from kubesched.state.cluster import ClusterState

ACTIVE, BACKOFF, UNSCHEDULABLE = "Active", "Backoff", "Unschedulable"


class SchedulingQueue(QueuePlaces):
    """All pending entities of all profiles."""

    def __init__(
        self,
        state: ClusterState,
        plugins: PluginIndex,
        settings: QueueSettings,
        find: Callable[[str], Pod | None],
        listeners: Listeners,
        classes: UnschedulableClasses,
    ) -> None:
        """`find` looks up the latest version of a pod by its key.

        If the state's features let backoff be cut short, it ends with whole seconds, and gates hold pods back on their
        way into it; if not, it ends to the moment, and gates hold them back on their way out.
        """
        clock = settings.clock
        self._pending = pending = PendingPodEvents(state.features.release)
        self._nominates_first = state.features.release.nominated_when_added
        self._nominating = () if self._nominates_first else (pending.added.label, pending.updated.label)
        """The events after which a pod that becomes active is nominated to the node in its status."""
        self._state = state
        self._sorter = plugins.sorter
        self._gates = Gates(state, plugins.gates, listeners)
        self._clock = clock
        self._find = find
        self._may_cut_backoff_short = state.features.backoff_cut_short
        self._waits = Backoff(
            clock, settings.initial_backoff, settings.max_backoff, by_the_second=self._may_cut_backoff_short
        )
        self._longest_wait = settings.longest_wait
        self._active = OrderedQueue(self._order)
        self._is_busy = settings.is_busy
        self._skips_unschedulable = settings.mode is SchedulerMode.BATCHED and self._may_cut_backoff_short
        self._classes = classes
        classes.attach(self._mark_retryable)
        is_unschedulable = classes.is_known_unschedulable
        self._backoff = DedupedQueue(self._backoff_order, self._class_of, is_unschedulable)
        self._retry_queue = DedupedQueue(self._order, self._class_of, is_unschedulable)
        self._errors = OrderedQueue(lambda entity: (self._waits.until(entity), entity.key))
        index = PendingClassIndex(state, plugins.interests)
        self._unschedulable = UnschedulablePods(state, index, classes)
        self._hints = QueueingHints(state, plugins.interests, index, listeners)
        self._in_flight = InFlight()
        self._listeners = listeners

    # -- pods come, change and go -------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A new pending pod."""
        self._add(pod, self._pending.added.label)

    def _add(self, pod: Pod, label: str) -> None:
        if self._nominates_first:
            self.nominate(pod, None)
        self._to_active(QueuedPod(pod, self._clock()), label)

    def update(self, old: Pod, new: Pod) -> None:
        """A pending pod changed; wherever it is, it stays one pod."""
        change, events = Change(old, new), pod_events(old, new, self._state.features)
        if new.identity in self._in_flight:
            for event in events:
                self._in_flight.record(event, change)
            return
        for place in self._woken:
            if (queued := _pod(place.get(new.key))) is not None:
                if queued.was_unschedulable and self._state.facts(queued.pod) is not self._state.facts(new):
                    queued.was_unschedulable = False  # its new version was never tried
                queued.pod = new
                self._update_nomination(old, new)
                place.put(queued)
                return
        queued = _pod(self._unschedulable.get(new.key))
        if queued is None:
            self._add(new, (self._pending.added if self._nominates_first else self._pending.updated).label)
            return
        queued.pod = new
        self._update_nomination(old, new)
        for event in events:
            strategy = self._hints.strategy(queued, event, change)
            if strategy:
                queued.was_unschedulable = False  # its own update helps no equal pod
            if self._requeue(queued, event.label, strategy) != UNSCHEDULABLE:
                break

    def delete(self, pod: Pod) -> None:
        """A pod is gone, or has a node now."""
        self._state.nominated.remove(pod)
        key = pod.key
        for place in self._woken:
            if place.remove(key) is not None:
                return
        self._unschedulable.remove(key)

    def group_changed(self, change: Change[PodGroup]) -> None:
        """A PodGroup appeared, changed or went: see GroupQueue."""

    def gone(self, pod: Pod) -> None:
        """A pod whose attempt failed was deleted meanwhile: it is not pending again."""
        self._state.groups.gone(pod)

    # -- attempts -----------------------------------------------------------------------------------------------------

    def pop(self) -> tuple[QueuedEntity, Sequence[QueuedPod], str] | None:
        """The next entity, its pods, which are in flight now, and the place where it was; None if there is none.

        If nothing is active, a rejected pod need not sit out its backoff. A pod known to be unschedulable stays.
        """
        while True:
            entity, place = self._pop_active(), "active"
            if entity is None and self._may_try_early:
                entity, place = self._backoff.pop_retryable(), "backoff"
                if entity is not None:
                    self._moved(entity, POP_FROM_BACKOFF, ACTIVE)
            if entity is None:
                return None
            if entity.identity in self._in_flight:
                continue  # the same pod cannot be tried twice at once
            pods = entity.take_off()
            for queued in pods:
                queued.attempts += 1
                self._in_flight.begin(queued)
            return entity, pods, place

    def _pop_active(self) -> QueuedEntity | None:
        """Pop the first entity that may succeed. Pods known to fail stay in the queue."""
        active, retryable = self._active.first(), self._retry_queue.first_retryable()
        if retryable is not None and (active is None or self._order(retryable) < self._order(active)):
            return self._retry_queue.remove(retryable.key)
        return None if active is None else self._active.remove(active.key)

    @property
    def has_next(self) -> bool:
        """Whether `pop` may have a pod."""
        if self._active or self._retry_queue.first_retryable() is not None:
            return True
        return self._may_try_early and self._backoff.first_retryable() is not None

    @property
    def _may_try_early(self) -> bool:
        return self._may_cut_backoff_short and not self._is_busy()

    def done(self, pod: Pod) -> None:
        """The attempt is over, or events can no longer help it."""
        self._in_flight.end(pod.identity)

    def add_unschedulable(self, queued: QueuedPod) -> None:
        """Requeue a pod after a failed attempt. The hints of its rejectors judge the events since it was popped."""
        if self._is_waiting(queued.key):  # an update during its binding has requeued it
            self.done(queued.pod)
            return
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.error_count = 0
        else:
            queued.error_count += 1
        queued.timestamp = self._clock()
        queued.backoff_until = None
        queued.flushed = False
        queued.flushed_at = 0.0
        place = self._requeue(queued, ATTEMPT_FAILED, self._hints.after_flight(queued, self._in_flight))
        if place == UNSCHEDULABLE and self._skips_unschedulable and queued.was_unschedulable:
            self._unschedulable.mark_unschedulable(queued.key)
        self.done(queued.pod)

    def activate(self, pod: Pod) -> None:
        """Try a waiting pod at once; one in flight is tried again if it fails."""
        waiting = self._unschedulable.get(pod.key)
        if waiting is not None:
            waiting.was_unschedulable = False
            self._to_active(waiting, FORCED.label)
            return
        places = (self._backoff, self._errors, self._retry_queue)
        waiting = next((entity for place in places if (entity := place.remove(pod.key)) is not None), None)
        if waiting is not None:
            waiting.was_unschedulable = False
            self._to_active(waiting, FORCED.label, gates_passed=self._may_cut_backoff_short)
        elif pod.identity in self._in_flight:
            self._in_flight.record(FORCED, Change(new=pod))

    def open_gate(self, pod: Pod, plugin: str) -> bool:
        """Events may wake the pod again, since the plugin holds it back no more. Whether the pod waits for one.

        kube-scheduler asks the plugin again only after the next event that the plugin registered.
        """
        waiting = _pod(self._unschedulable.get(pod.key))
        if waiting is not None and waiting.gating_plugin == plugin and self._skips_unschedulable:
            self._unschedulable.remove(waiting.key)
            waiting.gating_plugin = ""
            self._unschedulable.put(waiting)
        return waiting is not None

    # -- events and time ----------------------------------------------------------------------------------------------

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, change: Change[Any], concerns: Callable[[QueuedEntity], bool] | None = None
    ) -> None:
        """Requeue entities that an event may help, of those that it `concerns`; it follows from `change`."""
        if not self._hints.is_awaited(event):
            return
        recheck = Recheck(self._gates, change, asks=self._skips_unschedulable)
        for members in self._unschedulable.awaiting(event, change, recheck.pods):
            if concerns is not None:
                members = {key: entity for key, entity in members.items() if concerns(entity)}
            changed = subjects(change, members)
            others = {key: entity for key, entity in members.items() if key not in changed} if changed else members
            for entities in (others, changed):  # one hint for the whole class, and one for a pod that changed itself
                if entities and (strategy := self._hints.strategy(next(iter(entities.values())), event, change)):
                    self._requeue_all(entities, event, strategy, recheck)
        self._in_flight.record(event, change)

    def flush_backoff(self) -> None:
        """Pods whose backoff is over become active."""
        due: list[QueuedEntity] = []
        for place in (self._backoff, self._errors):
            while (entity := self._pop_if_due(place)) is not None:
                due.append(entity)
        for entity in due:
            self._to_active(entity, BACKOFF_COMPLETE, gates_passed=self._may_cut_backoff_short)

    def flush_leftovers(self) -> None:
        """Requeue pods that have waited too long for an event."""
        now = self._clock()
        late = {
            entity.key: entity
            for entity in self._waiting_entities()
            if now - max(entity.timestamp, entity.flushed_at) > self._longest_wait
        }
        for entity in late.values():
            entity.flushed, entity.flushed_at = True, now
            entity.was_unschedulable = False  # to be tried even if its class is known to be unschedulable
        if late:
            self._requeue_all(late, WAITED_TOO_LONG, QueueingStrategy.AFTER_BACKOFF)
            self._in_flight.record(WAITED_TOO_LONG, Change())

    def backoff_until(self, queued: QueuedPod) -> float:
        """The moment until which the pod must wait; 0 if it need not."""
        return self._waits.until(queued)

    def nominate(self, pod: Pod, node_name: str | None) -> None:
        """Nominate the pod to a node; an empty name clears the nomination, None takes it from the pod's status."""
        self._state.nominated.remove(pod)
        name = pod.status.nominated_node_name if node_name is None else node_name
        latest = self._find(pod.key)
        if name and latest is not None and not latest.spec.node_name:
            self._state.nominated.add(pod, name)
        for place in (self._retry_queue, self._backoff) if self._skips_unschedulable else ():
            if (queued := place.get(pod.key)) is not None:
                place.put(queued)  # its class depends on the nomination

    # -- inside -------------------------------------------------------------------------------------------------------

    def _class_of(self, entity: QueuedEntity) -> Hashable:
        """The equivalence class of a pod that was unschedulable; the entity's own key otherwise."""
        pod = entity.lookup_pod
        if pod is None or not entity.was_unschedulable or self._classes.is_nominated(pod):
            return entity.key
        return self._classes.class_of(pod)

    def _mark_retryable(self, equivalence_class: Hashable) -> None:
        self._backoff.mark_retryable(equivalence_class)
        self._retry_queue.mark_retryable(equivalence_class)

    def _order(self, entity: QueuedEntity) -> tuple[Any, ...]:
        return self._sorter.sort_key(entity.sort_pod, entity.timestamp)

    def _backoff_order(self, entity: QueuedEntity) -> tuple[Any, ...]:
        return self._waits.until(entity), *self._order(entity)

    def _pop_if_due(self, place: OrderedQueue) -> QueuedEntity | None:
        first = place.first()
        return None if first is None or self._waits.is_under_way(first) else place.pop()

    def _requeue_all(
        self,
        waiting: Mapping[str, QueuedEntity],
        event: ClusterEvent,
        strategy: QueueingStrategy,
        recheck: Recheck | None = None,
    ) -> None:
        """Requeue entities, given by key, that their gates let pass. With `recheck` all have the same gate."""
        asks = self._may_cut_backoff_short
        for entity in self._gates.passing(waiting, event, recheck) if asks else [*waiting.values()]:
            self._unschedulable.remove(entity.key)
            self._requeue(entity, event.label, strategy, last_passed=asks)

    def _requeue(
        self, entity: QueuedEntity, label: str, strategy: QueueingStrategy, *, last_passed: bool = False
    ) -> str:
        """Put an entity into its place, and return the name of that. For `last_passed` see Gates."""
        if strategy is QueueingStrategy.SKIP:
            self._to_unschedulable(entity, label)
            return UNSCHEDULABLE
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._waits.is_under_way(entity):
            return BACKOFF if self._to_backoff(entity, label, last_passed=last_passed) else UNSCHEDULABLE
        return ACTIVE if self._to_active(entity, label, last_passed=last_passed) else UNSCHEDULABLE

    def _to_active(
        self, entity: QueuedEntity, label: str, *, gates_passed: bool = False, last_passed: bool = False
    ) -> bool:
        if not gates_passed and self._gates.hold_back(entity, last_passed=last_passed):
            if entity.key in self._unschedulable or not self._is_waiting(entity.key):
                self._to_unschedulable(entity, label)
            return False
        self._remove(entity.key)
        (self._retry_queue if self._skips_unschedulable and entity.was_unschedulable else self._active).put(entity)
        self._moved(entity, label, ACTIVE)
        if isinstance(entity, QueuedPod) and label in self._nominating:
            self.nominate(entity.pod, None)
        return True

    def _to_backoff(self, entity: QueuedEntity, label: str, *, last_passed: bool) -> bool:
        if self._may_cut_backoff_short and self._gates.hold_back(entity, last_passed=last_passed):
            self._to_unschedulable(entity, label)
            return False
        self._unschedulable.remove(entity.key)
        (self._backoff if entity.rejectors else self._errors).put(entity)
        self._moved(entity, label, BACKOFF)
        return True

    def _to_unschedulable(self, entity: QueuedEntity, label: str) -> None:
        if entity.is_gated:
            entity.flushed = False
        if entity.key not in self._unschedulable:
            self._moved(entity, label, UNSCHEDULABLE)
        self._unschedulable.put(entity)

    def _moved(self, entity: QueuedEntity, label: str, place: str) -> None:
        for queued in entity.queued_pods:
            self._listeners.moved(queued, label, place)

    def _update_nomination(self, old: Pod, new: Pod) -> None:
        """A nomination that is not in the pod's status yet survives an update of the pod."""
        in_status = old.status.nominated_node_name or new.status.nominated_node_name
        node_name = None if in_status else self._state.nominated.node_of(old)
        self._state.nominated.remove(old)
        self.nominate(new, node_name or None)


def _pod(entity: QueuedEntity | None) -> QueuedPod | None:
    return entity if isinstance(entity, QueuedPod) else None
