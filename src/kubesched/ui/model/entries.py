"""The last decisions about a cluster's pods, wherever they were made: what was decided, and why."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from kubesched.scheduler.attempt.words import Placing, why_placed

REMEMBERED = 2_000
_PREEMPTIONS = 500
_PODS = 20_000
_ATTEMPTS_OF_A_POD = 12


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """One attempt that is over."""

    number: int
    at: float
    """By the clock of the queue."""
    pod: str
    priority: int
    outcome: str
    node: str
    text: str
    attempt: int
    """Which attempt at the pod it was."""
    plugins: tuple[str, ...] = ()
    """Who rejected it."""
    reasons: tuple[tuple[str, int], ...] = ()
    """What was wrong with how many nodes, the most frequent first."""
    milliseconds: float | None = None
    cause: str = ""
    """Of the reasons the one by which pending pods are grouped (`main_reason`)."""


@dataclass(frozen=True, slots=True)
class PreemptionEntry:
    """Pods that had to go, and for whom."""

    at: float
    pod: str
    priority: int
    node: str
    victims: tuple[tuple[str, int], ...]
    """Their names and priorities."""
    why: str


@dataclass(frozen=True, slots=True)
class Latency:
    """How long attempts took, in milliseconds, from the turn in the queue to the end of the writing."""

    attempts: int
    p50: float
    p90: float
    p99: float
    slowest: float


Placement = tuple[int, float, str, int, str, tuple[str, int, int, int, int], int, float | None]
"""Of a pod that was bound: number, time, pod, priority, node, why there (`Placing`), attempt, seconds."""

Noted = DecisionEntry | Placement
"""An entry, or the facts of one: of all that a busy scheduler decides, people read little."""


def _told(noted: Noted) -> DecisionEntry:
    if isinstance(noted, DecisionEntry):
        return noted
    number, at, pod, priority, node, placing, attempt, seconds = noted
    text = why_placed(node, Placing(*placing))
    return DecisionEntry(number, at, pod, priority, "bound", node, text, attempt, milliseconds=in_milliseconds(seconds))


def in_milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)


class EntryLog:
    """What is remembered, all of it bounded. Whoever sees decisions derives from it and notes them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` is that of the entries."""
        self._clock = clock
        self._last: deque[Noted] = deque(maxlen=REMEMBERED)
        self.preemptions: deque[PreemptionEntry] = deque(maxlen=_PREEMPTIONS)
        self.outcomes: Counter[str] = Counter()
        self.number = 0
        """That of the last entry."""
        self.viewers = 0
        """How many pages are open."""
        self.points: dict[tuple[str, str], float] = {}
        """Seconds by plugin and extension point, of the attempts that were measured in detail."""
        self.in_detail = 0
        """How many those are."""
        self._of_pods: OrderedDict[str, tuple[Noted, ...]] = OrderedDict()

    @property
    def entries(self) -> list[DecisionEntry]:
        """The last ones, oldest first."""
        return [_told(entry) for entry in self._last]

    def note(self, pod: str, outcome: str, entry: Noted) -> None:
        """One more, whose number is the next."""
        self.number += 1
        self.outcomes[outcome] += 1
        self._last.append(entry)
        known = self._of_pods.pop(pod, None)
        self._of_pods[pod] = (entry,) if known is None else (*known[1 - _ATTEMPTS_OF_A_POD :], entry)
        if len(self._of_pods) > _PODS:
            self._of_pods.popitem(last=False)

    def forget(self, pod: str) -> None:
        """The pod is gone."""
        self._of_pods.pop(pod, None)

    def since(self, number: int, most: int) -> list[DecisionEntry]:
        """The entries after that number, oldest first; of very many, the last."""
        last = self._last
        new = min(self.number - number, most, len(last))
        return [_told(last[i]) for i in range(len(last) - new, len(last))] if new > 0 else []

    def of(self, pod: str) -> list[DecisionEntry]:
        """What became of the attempts at a pod, the latest last."""
        return [_told(entry) for entry in self._of_pods.get(pod, ())]

    def latest(self, pod: str) -> DecisionEntry | None:
        known = self._of_pods.get(pod)
        return _told(known[-1]) if known else None

    def latency(self) -> Latency | None:
        """How long attempts took; None if nothing was measured."""
        return None
