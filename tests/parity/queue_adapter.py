"""Replays a recorded life of the queue through the scheduler, and writes the result in the format of the recordings."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from tests.parity.adapter import as_stored, features_of, record_of
from tests.parity.fake_api import FINISHED, FakeApi, Journal, RefusedError, WatchEvent
from tests.parity.queue_state import describe, present
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.framework.events import ClusterEvent
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Assumed, Attempt, Done, Popped
from kubesched.scheduler.cluster_events import POP_FROM_BACKOFF
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.run_now import run_now

Json = dict[str, Any]

_SECOND = 1000
_LEFTOVERS_EVERY = 30 * _SECOND


def run(case: Json, release: str = "1.36") -> Json:
    """What the scheduler makes of a case under a release, as a RESULT of the recordings."""
    return _Replay(case, features_of(release, case)).result()


class _Replay(SchedulerListener):
    def __init__(self, case: Json, features: config.Features) -> None:
        self.case = case
        self.milliseconds = 0
        self.api = FakeApi(graceful=case.get("graceful", False))
        self.api.after_other_write = self._deliver
        if case.get("evictionDelivery") == "immediate":
            self.api.after_preemption_write = self._deliver
        given = case.get("config")
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: self.now, draw=lambda _: 0, choose=min),
            config.default(features) if given is None else config.from_plain(given, features=features),
            self.api,
            in_tree(),
        )
        self.scheduler.listeners.append(self)
        self.known: dict[tuple[str, str], KubeObject] = {}
        self.open: list[Attempt] = []
        self.held: dict[str, Coroutine[Any, Any, None]] = {}
        """Binding cycles that have come to the call of the API server, by the pod's identity."""
        self._forget_step()

    @property
    def now(self) -> float:
        return self.milliseconds / _SECOND

    def result(self) -> Json:
        for obj in self.case["objects"]:
            self._pass_time(1)
            self.api.make(as_stored(obj))
            self._deliver()
        initial = self._state()
        return {
            "id": self.case["id"],
            "initial": initial,
            "steps": [self._step(number, step) for number, step in enumerate(self.case["steps"])],
        }

    # -- one step -----------------------------------------------------------------------------------------------------

    def _step(self, number: int, step: Json) -> Json:
        self._forget_step()
        self._pass_time(1)
        entry: Json = {}
        try:
            entry = self._carry_out(step)
        except RefusedError as refused:
            entry["error"] = str(refused)
        self._deliver()
        journal = self.api.journal
        entry.update(
            moves=self.moves,
            hints=self.hints,
            inFlightEventsChecked=self.replayed,
            bound=journal.bound,
            evicted=journal.evicted,
            patches=journal.patches,
            events=journal.events,
            delivered=self.delivered,
        )
        always = {"i": number, "op": step["op"], "t": self.now}
        return {**always, **present(entry), "state": self._state()}

    def _carry_out(self, step: Json) -> Json:
        api = self.api
        match step["op"]:
            case "create":
                api.make(as_stored(step["object"]))
            case "update":
                api.update((step["kind"], step["name"]), step["patch"])
            case "delete":
                api.remove((step["kind"], step["name"]))
            case "terminate":
                api.terminate(step["name"])
            case "advance":
                self._pass_time(round(step["seconds"] * _SECOND))
            case "bind-fails":
                api.fail_binds(step["pod"], step["code"], step.get("count", 1))
            case "delete-fails":
                api.fail_deletes(step["pod"], step["code"], step.get("count", 1))
            case "schedule":
                return self._begin(until="done")
            case "schedule-begin":
                return self._begin(until=step.get("at", "pop"))
            case "schedule-end":
                return self._end(step.get("pod"))
            case other:
                raise AssertionError(f"unknown step {other!r}")
        return {}

    def _begin(self, *, until: str) -> Json:
        if any(not isinstance(attempt.state, Assumed) for attempt in self.open):
            return {"outcome": "busy"}
        attempt = pop_pod(self.scheduler)
        if attempt is None:
            return {"outcome": "nothing to pop"}
        entry: Json = {"popped": attempt.queued.pod.key, "from": attempt.popped_from}
        if until == "pop":
            self.open.append(attempt)
            return {**entry, "outcome": "popped"}
        self.scheduler.decide(attempt)
        if until == "decision" and isinstance(attempt.state, Assumed):
            self._bind_until_call(attempt)
        if until == "decision" and not isinstance(attempt.state, Done):
            self.open.append(attempt)
            return {**entry, "outcome": attempt.state.phase, "code": _code(attempt), "host": attempt.node}
        return {**entry, **self._finish(attempt)}

    def _end(self, pod: str | None) -> Json:
        attempt = next((a for a in self.open if pod in (None, a.queued.pod.key)), None)
        if attempt is None:
            return {"outcome": "no open attempt"}
        self.open.remove(attempt)
        popped = attempt.queued.pod.key
        if isinstance(attempt.state, Popped):
            self.scheduler.decide(attempt)
        return {"popped": popped, **self._finish(attempt)}

    def _finish(self, attempt: Attempt) -> Json:
        if not isinstance(attempt.state, Done):
            identity = attempt.queued.identity
            run_now(self.held.pop(identity) if identity in self.held else self.scheduler.finish(attempt))
        return {"outcome": attempt.outcome, "code": _code(attempt), "host": attempt.node}

    def _bind_until_call(self, attempt: Attempt) -> None:
        """PreBind is done, and the binding has not been sent."""
        self.api.holds_next_binding = True
        binding = self.scheduler.finish(attempt)
        try:
            binding.send(None)
        except StopIteration:
            self.api.holds_next_binding = False
        else:
            self.held[attempt.queued.identity] = binding

    # -- time ---------------------------------------------------------------------------------------------------------

    def _pass_time(self, milliseconds: int) -> None:
        end = self.milliseconds + milliseconds
        first = self.milliseconds // _SECOND + 1
        for tick in range(first * _SECOND, end + 1, _SECOND):
            self.milliseconds = tick
            self.scheduler.flush_backoff()
            if tick % _LEFTOVERS_EVERY == 0:
                self.scheduler.flush_leftovers()
        self.milliseconds = end

    # -- the watch ----------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        while self.api.unseen:
            self._tell(self.api.unseen.popleft())

    def _tell(self, event: WatchEvent) -> None:
        """As an informer that does not select finished pods: to it they are deleted."""
        kind, name = event.key
        record = record_of(event.obj)
        finished = kind == "Pod" and event.obj.get("status", {}).get("phase") in FINISHED
        selected = event.type != "DELETED" and not finished
        old = self.known.pop(event.key, None)
        if selected:
            self.known[event.key] = record or KubeObject()
        elif old is None:
            return
        type_ = "DELETED" if not selected else "ADDED" if old is None else "MODIFIED"
        self.delivered.append(f"{type_} {kind} {name}")
        if record is not None:
            self.scheduler.handle(Change(old, record if selected else None))

    # -- what is recorded ---------------------------------------------------------------------------------------------

    def _forget_step(self) -> None:
        self.moves: list[Json] = []
        self.hints: list[Json] = []
        self.replayed: list[str] = []
        self.delivered: list[str] = []
        self.api.journal = Journal()

    def _state(self) -> Json:
        waiting = [attempt for attempt in self.open if isinstance(attempt.state, Assumed)]
        return describe(self.scheduler, self.now, waiting)

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        if event != POP_FROM_BACKOFF:  # which the recordings tell of as `from`
            self.moves.append({"pod": queued.key, "event": event, "queue": place, "t": self.now})

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        self.hints.append({"pod": queued.key, "plugin": plugin, "event": event.label, "hint": hint})

    def caught_up(self, queued: QueuedPod, events: Sequence[ClusterEvent]) -> None:
        self.replayed += [event.label for event in events]


def _code(attempt: Attempt) -> str:
    """The status code of a failure."""
    return "" if attempt.failure is None else str(attempt.failure.status.code)
