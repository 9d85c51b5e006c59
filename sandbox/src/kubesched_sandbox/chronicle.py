"""A chronicle of a sandbox: what became of attempts to schedule pods, and which pods had to leave their nodes."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from kubesched.api.kinds import Object
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome
from kubesched.scheduler.attempt.words import reason
from kubesched.scheduler.listener import SchedulerListener
from kubesched_sandbox.api import ApiEvent

_REMEMBERED = 200
_PODS = 10_000
"""Of how many pods the last outcome is known."""

EVICTED = "evicted"
_ALWAYS_NEW = (AttemptOutcome.BOUND, EVICTED)
_PREEMPTED = "PreemptionByScheduler"
_WHY = {
    "DeletionByTaintManager": ("by taint", "a taint there is not tolerated any longer"),
    "DeletionByPodGC": ("with its node", "the node is gone"),
    "EvictionByEvictionAPI": ("by request", "through the eviction API, as kubectl drain does"),
}
"""Reasons of the condition DisruptionTarget, in a word and in a sentence."""


class Entry(NamedTuple):
    """One thing that happened."""

    at: float
    pod: str
    outcome: str
    """bound, preempts, unschedulable, error, bind-error, ..., or evicted"""
    text: str


class Chronicle(SchedulerListener):
    """Listens to a scheduler and to pods; `on_entry` is called with what was written down."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        """Seconds since the sandbox began."""
        self.entries: deque[Entry] = deque(maxlen=_REMEMBERED)
        self.outcomes: Counter[str] = Counter()
        """How often each happened. A pod that is tried again counts again."""
        self.told: Counter[str] = Counter()
        """How many of those were written down: all but failed attempts with the same reason as the pod's last one."""
        self.victims = 0
        self.evictions: Counter[str] = Counter()
        """Pods that had to leave their nodes, by what made them: by taint, with its node, by request."""
        self.on_entry: Callable[[Entry], None] = lambda entry: None
        self._latest: OrderedDict[str, Entry] = OrderedDict()

    def finished(self, attempt: Attempt) -> None:
        self.victims += len(attempt.victims)
        outcome = "preempts" if attempt.victims else attempt.outcome or ""
        self._write(Entry(self.now(), attempt.queued.key, outcome, reason(attempt)))

    def observe(self, event: ApiEvent) -> None:
        """Notice pods that are told to leave. Victims of preemption are counted with the attempt that chose them."""
        cause = _disruption(event.object)
        if event.type != "MODIFIED" or not cause or cause == _disruption(event.old) or cause == _PREEMPTED:
            return
        word, sentence = _WHY.get(cause, (cause, cause))
        self.evictions[word] += 1
        pod = event.object
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._write(Entry(self.now(), key, EVICTED, f"from {pod['spec'].get('nodeName', 'nowhere')}: {sentence}"))

    @property
    def errors(self) -> int:
        """Attempts that ended because something broke, rather than because no node would do."""
        return self.outcomes[AttemptOutcome.ERROR] + self.outcomes[AttemptOutcome.BIND_ERROR]

    def why_waiting(self, pod: str) -> str:
        """What its last attempt ended with; empty if it has had none, or found a node."""
        last = self._latest.get(pod)
        return "" if last is None or last.outcome in _ALWAYS_NEW else last.text

    def _write(self, entry: Entry) -> None:
        self.outcomes[entry.outcome] += 1
        if self._says_something_new(entry):
            self.told[entry.outcome] += 1
            self.entries.append(entry)
            self.on_entry(entry)

    def _says_something_new(self, entry: Entry) -> bool:
        """False for a failed attempt with the same reason as the pod's last one."""
        before = self._latest.pop(entry.pod, None)
        self._latest[entry.pod] = entry
        if len(self._latest) > _PODS:
            self._latest.popitem(last=False)
        return before is None or before.text != entry.text or entry.outcome in _ALWAYS_NEW


def _disruption(pod: Object | None) -> str:
    """Why a pod is evicted, by its condition DisruptionTarget; empty without one."""
    conditions = ((pod or {}).get("status") or {}).get("conditions") or ()
    return next(
        (str(condition.get("reason")) for condition in conditions if condition.get("type") == "DisruptionTarget"), ""
    )
