"""The scheduling queue: who is next, who must wait, and what wakes them.

    added ──► active ──pop──► in flight ──► bound, gone
                ▲                │ failed
                │                ▼
                ├── backoff ◄── error, or an event meanwhile
                │      ▲
                └──────┴── unschedulable ◄── rejected     (gated pods wait there too)

Every pending pod is in exactly one of these places.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import Action, ClusterEvent, Interest, Kind
from kubesched.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from kubesched.scheduler.cluster_events import PENDING_POD_ADDED, PENDING_POD_UPDATED, pod_events
from kubesched.scheduler.listeners import Listeners
from kubesched.scheduler.queue.equal_pods import EqualPods
from kubesched.scheduler.queue.gates import Gates
from kubesched.scheduler.queue.hints import QueueingHints, QueueingStrategy
from kubesched.scheduler.queue.in_flight import InFlight, InFlightEvent
from kubesched.scheduler.queue.passed_over import passed_over
from kubesched.scheduler.queue.places import QueuePlaces
from kubesched.scheduler.queue.queued_pod import Backoff, OrderedPods, QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods, subjects
from kubesched.scheduler.queue.waiting_groups import OpenedBy, WaitingGroups
from kubesched.state.cluster import ClusterState

WAITED_TOO_LONG = ClusterEvent(Kind.ANY, Action.ALL, "UnschedulableTimeout")
FORCED = ClusterEvent(Kind.ANY, Action.ALL, "ForceActivate")
ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"

ACTIVE, BACKOFF, UNSCHEDULABLE = "Active", "Backoff", "Unschedulable"

LONGEST_WAIT = 300.0
"""Seconds after which an unschedulable pod is tried again even if nothing happened."""


class SchedulingQueue(QueuePlaces):
    """All pending pods of all profiles."""

    def __init__(
        self,
        state: ClusterState,
        sorter: QueueSortPlugin,
        gates: Mapping[str, Sequence[PreEnqueuePlugin]],
        interests: Mapping[str, Mapping[str, Sequence[Interest]]],
        *,
        clock: Callable[[], float],
        find: Callable[[str], Pod | None],
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        longest_wait: float = LONGEST_WAIT,
        spares_vain_attempts: bool = False,
        is_busy: Callable[[], bool] = lambda: False,
        listeners: Listeners,
        stopwatch: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`gates` and `interests` are by profile, interests also by plugin; `find` has the latest version of a pod.

        `spares_vain_attempts` lets pods wait, in backoff or after it, where an equal one has just been tried in vain.
        While the scheduler `is_busy`, none is tried before its backoff is over.
        `stopwatch` is for the durations that listeners get.

        If the state's features let backoff be cut short, it ends with whole seconds, and pods are held back on their
        way into it; if not, it ends to the moment, and they are held back on their way out.
        """
        self._state = state
        self._sorter = sorter
        self._gates = Gates(state, gates, listeners, stopwatch)
        self._clock = clock
        self._find = find
        self._may_cut_backoff_short = state.features.backoff_cut_short
        self._opened_by: OpenedBy = self._gates.opened_by if self._may_cut_backoff_short else lambda *_: None
        self._waits = Backoff(clock, initial_backoff, max_backoff, by_the_second=self._may_cut_backoff_short)
        self._longest_wait = longest_wait
        self._active = OrderedPods(self._order)
        self._is_busy = is_busy
        self._spares = spares_vain_attempts and self._may_cut_backoff_short
        self._backoff = EqualPods(
            lambda pod: (self.backoff_until(pod), *self._order(pod)), self._kind_of, self._in_vain
        )
        self._again = EqualPods(self._order, self._kind_of, self._in_vain)
        self._errors = OrderedPods(lambda pod: (self.backoff_until(pod), pod.key))
        groups = WaitingGroups(state, interests)
        self._unschedulable = UnschedulablePods(state, groups, self._hope)
        self._hints = QueueingHints(state, interests, groups, listeners, stopwatch)
        self._in_flight = InFlight()
        self._listeners = listeners
        self._stopwatch = stopwatch

    # -- pods come, change and go -------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A new pending pod."""
        self._to_active(QueuedPod(pod, self._clock()), PENDING_POD_ADDED.label)

    def update(self, old: Pod, new: Pod) -> None:
        """A pending pod changed; wherever it is, it stays one pod."""
        change, events = Change(old, new), pod_events(old, new, self._state.features)
        if new.identity in self._in_flight:
            for event in events:
                self._in_flight.record(InFlightEvent(event, change))
            return
        for place in self._woken:
            queued = place.get(new.key)
            if queued is not None:
                if queued.found_no_node and self._state.facts(queued.pod) is not self._state.facts(new):
                    queued.found_no_node = False  # what it is now was never tried
                queued.pod = new
                place.put(queued)
                self._update_nomination(old, new)
                return
        queued = self._unschedulable.get(new.key)
        if queued is None:
            self._to_active(QueuedPod(new, self._clock()), PENDING_POD_UPDATED.label)
            return
        queued.pod = new
        self._update_nomination(old, new)
        for event in events:
            strategy = self._hints.strategy(queued, event, change)
            if strategy:
                queued.found_no_node = False  # its own change is not one of its equals
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

    def gone(self, pod: Pod) -> None:
        """A pod that was being bound was deleted meanwhile: it is not pending again."""
        self._state.groups.gone(pod)

    # -- attempts -----------------------------------------------------------------------------------------------------

    def pop(self) -> tuple[QueuedPod, str] | None:
        """The next pod and where it was. With nothing else to do, a rejected pod need not sit out its backoff.

        Where vain attempts are spared, who would only fail as an equal one did is not tried: see `EqualPods`.
        """
        while True:
            queued, place = self._pop_active(), "active"
            if queued is None and self._may_try_early:
                queued, place = self._backoff.pop_worth_trying(), "backoff"
                if queued is not None:
                    self._moved(queued, POP_FROM_BACKOFF, ACTIVE)
            if queued is None:
                return None
            if queued.identity in self._in_flight:
                continue  # the same pod cannot be tried twice at once
            queued.attempts += 1
            self._in_flight.begin(queued)
            return queued, place

    def _pop_active(self) -> QueuedPod | None:
        """The first that is worth trying. Who is not keeps the place in line for when it is."""
        active, again = self._active.first(), self._again.first_worth_trying()
        if again is not None and (active is None or self._order(again) < self._order(active)):
            return self._again.remove(again.key)
        return None if active is None else self._active.remove(active.key)

    @property
    def has_next(self) -> bool:
        """Whether `pop` may have a pod."""
        if self._active or self._again.first_worth_trying() is not None:
            return True
        return self._may_try_early and self._backoff.first_worth_trying() is not None

    @property
    def _may_try_early(self) -> bool:
        return self._may_cut_backoff_short and not self._is_busy()

    def done(self, pod: Pod) -> None:
        """The attempt is over, or past the point where events matter to it."""
        self._in_flight.end(pod.identity)

    def add_unschedulable(self, queued: QueuedPod) -> None:
        """A pod comes back from a failed attempt. Who rejected it says whether what happened meanwhile may help."""
        if self._is_waiting(queued.key):  # it changed while it was being bound, and came back that way
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
        place = self._requeue(queued, ATTEMPT_FAILED, self._strategy_after_flight(queued))
        if place == UNSCHEDULABLE and self._spares and queued.found_no_node:
            self._unschedulable.tried_in_vain(queued)
        self.done(queued.pod)

    def activate(self, pod: Pod) -> None:
        """Try a waiting pod at once; one in flight will be tried again."""
        waiting = self._unschedulable.get(pod.key)
        if waiting is not None:
            waiting.found_no_node = False
            self._to_active(waiting, FORCED.label)
            return
        waiting = self._backoff.remove(pod.key) or self._errors.remove(pod.key) or self._again.remove(pod.key)
        if waiting is not None:
            waiting.found_no_node = False
            self._to_active(waiting, FORCED.label, gates_passed=self._may_cut_backoff_short)
        elif pod.identity in self._in_flight:
            self._in_flight.record(InFlightEvent(FORCED, Change(new=pod)))

    def open_gate(self, pod: Pod, plugin: str) -> bool:
        """The plugin holds the pod back no more: events may wake it again. Whether the pod waits for one."""
        waiting = self._unschedulable.get(pod.key)
        if waiting is not None and waiting.gating_plugin == plugin:
            self._unschedulable.remove(waiting.key)
            waiting.gating_plugin = ""
            self._unschedulable.put(waiting)
        return waiting is not None

    # -- events and time ----------------------------------------------------------------------------------------------

    def move_all_to_active_or_backoff(
        self, event: ClusterEvent, change: Change[Any], concerns: Callable[[Pod], bool] | None = None
    ) -> None:
        """An event in the cluster, and the change behind it: requeue the pods that it may help, if it concerns them."""
        if not self._hints.is_awaited(event):
            return
        waiting, passes_over = self._unschedulable.awaiting(event, change, self._opened_by)
        for members in waiting:
            concerned = members if concerns is None else {k: q for k, q in members.items() if concerns(q.pod)}
            itself = subjects(change, concerned)
            alike = {k: q for k, q in concerned.items() if k not in itself} if itself else concerned
            for pods in (alike, itself):  # one answer for the whole group, but for a pod that the change is about
                if pods and (strategy := self._hints.strategy(next(iter(pods.values())), event, change)):
                    self._requeue_all(pods, event, strategy, change)
        for listener in self._listeners if passes_over else ():
            found = passed_over(self._unschedulable, self._hints, self._opened_by, event, change, concerns)
            listener.passed_over(found, event.label)
        self._in_flight.record(InFlightEvent(event, change))

    def flush_backoff(self) -> None:
        """Pods whose backoff is over become active."""
        due: list[QueuedPod] = []
        for place in (self._backoff, self._errors):
            while (queued := self._pop_if_due(place)) is not None:
                due.append(queued)
        for queued in due:
            self._to_active(queued, BACKOFF_COMPLETE, gates_passed=self._may_cut_backoff_short)

    def flush_leftovers(self) -> None:
        """Pods that have waited too long are tried whether or not anything happened."""
        now = self._clock()
        late = [q for q in self.unschedulable() if now - max(q.timestamp, q.flushed_at) > self._longest_wait]
        for queued in late:
            queued.flushed, queued.flushed_at = True, now
            queued.found_no_node = False  # to be tried whoever was tried in vain
        if late:
            pods = {queued.key: queued for queued in late}
            self._requeue_all(pods, WAITED_TOO_LONG, QueueingStrategy.AFTER_BACKOFF)
            self._in_flight.record(InFlightEvent(WAITED_TOO_LONG, Change()))

    def backoff_until(self, queued: QueuedPod) -> float:
        """The moment until which the pod must wait; 0 if it need not."""
        return self._waits.until(queued)

    def nominate(self, pod: Pod, node_name: str | None) -> None:
        """Nominate the pod to a node; an empty name clears the nomination, None goes by the pod's status."""
        self._state.nominated.remove(pod)
        name = pod.status.nominated_node_name if node_name is None else node_name
        latest = self._find(pod.key)
        if name and latest is not None and not latest.spec.node_name:
            self._state.nominated.add(pod, name)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _kind_of(self, queued: QueuedPod) -> Hashable:
        """What is the same for pods of which one speaks for all: equal ones that no node was good enough for before."""
        speaks_for_itself = not queued.found_no_node or queued.stands_alone or self._state.nominated.node_of(queued.pod)
        return queued.key if speaks_for_itself else self._state.facts(queued.pod)

    def _in_vain(self, kind: Hashable) -> bool:
        return self._unschedulable.is_in_vain(kind)

    def _hope(self, kind: Hashable) -> None:
        self._backoff.hope(kind)
        self._again.hope(kind)

    def _order(self, queued: QueuedPod) -> tuple[Any, ...]:
        return self._sorter.sort_key(queued.pod, queued.timestamp)

    def _pop_if_due(self, place: OrderedPods) -> QueuedPod | None:
        first = place.first()
        return None if first is None or self._waits.is_under_way(first) else place.pop()

    def _requeue_all(
        self,
        waiting: Mapping[str, QueuedPod],
        event: ClusterEvent,
        strategy: QueueingStrategy,
        change: Change[Any] | None = None,
    ) -> None:
        """Pods by name. If a change is behind the event, all of them have the same gate."""
        passing = [*waiting.values()]
        if self._may_cut_backoff_short:
            passing = self._gates.passing(waiting, event, change)
        for queued in passing:
            self._unschedulable.remove(queued.key)
            self._requeue(queued, event.label, strategy)

    def _requeue(self, queued: QueuedPod, label: str, strategy: QueueingStrategy) -> str:
        """Put a pod where it belongs, and say where that is."""
        if strategy is QueueingStrategy.SKIP:
            self._to_unschedulable(queued, label)
            return UNSCHEDULABLE
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._waits.is_under_way(queued):
            return BACKOFF if self._to_backoff(queued, label) else UNSCHEDULABLE
        return ACTIVE if self._to_active(queued, label) else UNSCHEDULABLE

    def _to_active(self, queued: QueuedPod, label: str, *, gates_passed: bool = False) -> bool:
        if not gates_passed and self._is_gated(queued):
            if queued.key in self._unschedulable or not self._is_waiting(queued.key):
                self._to_unschedulable(queued, label)
            return False
        self._unschedulable.remove(queued.key)
        self._backoff.remove(queued.key)
        self._errors.remove(queued.key)
        self._again.remove(queued.key)
        (self._again if self._spares and queued.found_no_node else self._active).put(queued)
        self._moved(queued, label, ACTIVE)
        if label in (PENDING_POD_ADDED.label, PENDING_POD_UPDATED.label):
            self.nominate(queued.pod, None)
        return True

    def _to_backoff(self, queued: QueuedPod, label: str) -> bool:
        if self._may_cut_backoff_short and self._is_gated(queued):
            self._to_unschedulable(queued, label)
            return False
        self._unschedulable.remove(queued.key)
        (self._backoff if queued.rejectors else self._errors).put(queued)
        self._moved(queued, label, BACKOFF)
        return True

    def _to_unschedulable(self, queued: QueuedPod, label: str) -> None:
        if queued.is_gated:
            queued.flushed = False
        if queued.key not in self._unschedulable:
            self._moved(queued, label, UNSCHEDULABLE)
        self._unschedulable.put(queued)

    def _moved(self, queued: QueuedPod, label: str, place: str) -> None:
        self._listeners.moved(queued, label, place)

    def _is_gated(self, queued: QueuedPod) -> bool:
        return self._gates.hold_back(queued)

    def _strategy_after_flight(self, queued: QueuedPod) -> QueueingStrategy:
        """What the events of the time when it was in flight mean to a pod that failed."""
        if not queued.rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        missed = self._in_flight.since(queued.identity)
        if missed and self._listeners:
            events = [each.event for each in missed]
            self._listeners.caught_up(queued, events)
        best = QueueingStrategy.IMMEDIATELY if queued.pending_plugins else QueueingStrategy.AFTER_BACKOFF
        found = QueueingStrategy.SKIP
        for each in missed:
            found = max(found, self._hints.strategy(queued, *each))
            if found is best:
                break
        return found

    def _update_nomination(self, old: Pod, new: Pod) -> None:
        """A nomination that is not in the pod's status yet survives an update of the pod."""
        known = self._state.nominated.node_of(old)
        kept = known if not old.status.nominated_node_name and not new.status.nominated_node_name else None
        self._state.nominated.remove(old)
        self.nominate(new, kept or None)
