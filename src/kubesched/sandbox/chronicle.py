"""What the scheduler did, in sentences: the last decisions with their reasons, and how many there were."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome
from kubesched.scheduler.listener import SchedulerListener

_REMEMBERED = 200


class Entry(NamedTuple):
    """One attempt that is over."""

    at: float
    pod: str
    outcome: str
    """bound, preempts, unschedulable, error, bind-error, ..."""
    text: str


class Chronicle(SchedulerListener):
    """Listens to a scheduler; `on_entry` is called with what was written down."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.entries: deque[Entry] = deque(maxlen=_REMEMBERED)
        self.outcomes: Counter[str] = Counter()
        self.victims = 0
        self.on_entry: Callable[[Entry], None] = lambda entry: None
        self._latest: OrderedDict[str, str] = OrderedDict()

    def finished(self, attempt: Attempt) -> None:
        outcome = attempt.outcome or ""
        self.outcomes[outcome] += 1
        self.victims += len(attempt.victims)
        outcome = "preempts" if attempt.victims else outcome
        entry = Entry(self._clock(), attempt.queued.key, outcome, _reason(attempt))
        if self._says_something_new(entry):
            self.entries.append(entry)
            self.on_entry(entry)

    @property
    def errors(self) -> int:
        """Attempts that ended because something broke, rather than because no node would do."""
        return self.outcomes[AttemptOutcome.ERROR] + self.outcomes[AttemptOutcome.BIND_ERROR]

    def _says_something_new(self, entry: Entry) -> bool:
        """A pod that is tried in vain again and again has nothing new to tell."""
        if self._latest.pop(entry.pod, None) == entry.text:
            self._latest[entry.pod] = entry.text
            return False
        self._latest[entry.pod] = entry.text
        if len(self._latest) > _REMEMBERED:
            self._latest.popitem(last=False)
        return True


def _reason(attempt: Attempt) -> str:
    """Why the pod went where it did, or nowhere."""
    decision, failure = attempt.decision, attempt.failure
    if attempt.victims and failure is not None:
        victims = ", ".join(sorted(victim.pod.key for victim in attempt.victims))
        return f"takes the place of {victims} on {failure.nominated}"
    if failure is not None:
        # The first sentence is about the nodes; what follows is about preemption, and seldom of interest.
        return failure.message.partition(". ")[0]
    assert decision is not None
    if attempt.node == decision.pod.status.nominated_node_name:
        return f"on {attempt.node}, which was kept for it"
    if decision.feasible <= 1:
        return f"on {attempt.node}: the only node of {decision.evaluated} that fits"
    among = "" if decision.draw.among == 1 else f", drawn from {decision.draw.among} equally good ones"
    return f"on {attempt.node}: best of {decision.feasible} that fit, score {decision.score}{among}"
