"""One attempt at a pod group: an attempt for each of its pods, which GroupCycle decides together.

    Popped ──► Asking (extenders), Paused ──► GroupDecided ──► (its condition is written)

With GroupDecided, each attempt at a pod has a state of its own, and `Scheduler.finish` finishes it as any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import msgspec

from kubesched.api.pod_groups import PodGroup
from kubesched.framework.extender import ExtenderAnswers
from kubesched.framework.status import Status
from kubesched.scheduler.attempt.attempt import POPPED, Asking, Attempt, Paused, Popped
from kubesched.scheduler.groups.queued_group import QueuedPodGroup


class GroupResult(StrEnum):
    """How an attempt at a group ended, by the names of the metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


class GroupDecided(msgspec.Struct, frozen=True, gc=False):
    """All pods of the group have their decisions: they are assumed on their nodes, or back in the queue as one."""

    group: PodGroup | None = None
    """As it was when it was decided; None if there is no condition to write."""
    status: Status | None = None
    """Why the group is not scheduled; None if it is."""
    waits_for_preemption: bool = False

    @property
    def result(self) -> GroupResult:
        if self.status is None:
            return GroupResult.SCHEDULED
        if self.waits_for_preemption:
            return GroupResult.WAITING_ON_PREEMPTION
        return GroupResult.UNSCHEDULABLE if self.status.is_rejection else GroupResult.ERROR


@dataclass(slots=True, eq=False)
class GroupAttempt:
    """The group, and an attempt for each of its pending pods, in the order in which they are tried."""

    queued: QueuedPodGroup
    attempts: list[Attempt]
    state: Popped | Asking | Paused | GroupDecided = POPPED
    draws: list[int] = field(default_factory=list)
    """The draws among equally good nodes, in order."""
    spent: float = 0.0
    """Seconds that deciding has taken in earlier turns."""
    seconds: float = 0.0
    """How long deciding took, if it was measured."""
    left_out: list[Attempt] = field(default_factory=list, init=False)
    """Attempts at pods that are being deleted, or have a node by now."""

    @property
    def extender_answers(self) -> Sequence[ExtenderAnswers]:
        return [attempt.answers for attempt in self.attempts if attempt.answers is not None]

    def open_attempts(self) -> list[Attempt]:
        """The attempts to decide: all but those left out in this turn or an earlier one."""
        return [attempt for attempt in self.attempts if attempt not in self.left_out]


EntityAttempt: TypeAlias = Attempt | GroupAttempt
"""An attempt at an entity of the queue."""


class NotedDraws:
    """Draws, and notes the draws while a group is being decided, for recordings."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._noted: list[int] | None = None
        self._again: deque[int] = deque()

    def __call__(self, among: int) -> int:
        drawn = self._again.popleft() if self._again else among
        if drawn >= among:
            drawn = self._draw(among)
        if self._noted is not None:
            self._noted.append(drawn)
        return drawn

    def begin(self, again: Iterable[int] = ()) -> list[int]:
        """Note draws in the returned list from now on. Draws of an earlier turn are repeated, as far as they fit."""
        self._noted, self._again = [], deque(again)
        return self._noted

    def end(self) -> None:
        self._again.clear()
        self._noted = None
