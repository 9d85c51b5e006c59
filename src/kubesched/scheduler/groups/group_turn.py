"""One attempt at a pod group: the attempts at its pods, which are decided together, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kubesched.api.pod_groups import PodGroup
from kubesched.framework.status import Status
from kubesched.scheduler.attempt.attempt import Attempt, Done, WaitingOnPermit
from kubesched.scheduler.queue.queued_group import QueuedGroup


class GroupResult(StrEnum):
    """How an attempt at a group ended, by the names of the metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


@dataclass(slots=True, eq=False)
class GroupTurn:
    """The group, and an attempt for each of its pending pods, in the order in which they are tried."""

    queued: QueuedGroup
    attempts: list[Attempt]
    group: PodGroup | None = None
    """As it was when it was decided; None if nobody is to be told about it."""
    status: Status | None = None
    """Why the group is not scheduled; None if it is."""
    waits_for_preemption: bool = False
    draws: list[int] = field(default_factory=list)
    """What was drawn among equals, in order."""
    spent: float = 0.0
    """Seconds that deciding has taken in earlier turns, if it has taken long."""
    seconds: float = 0.0
    """How long deciding took, if it was measured."""
    left_out: list[Attempt] = field(default_factory=list, init=False)
    """Attempts at pods that are being deleted, or have a node by now."""
    reporter: Attempt | None = field(default=None, init=False)
    """The attempt with which the condition of the group is written."""

    @property
    def result(self) -> GroupResult:
        if self.status is None:
            return GroupResult.SCHEDULED
        if self.waits_for_preemption:
            return GroupResult.WAITING_ON_PREEMPTION
        return GroupResult.UNSCHEDULABLE if self.status.is_rejection else GroupResult.ERROR

    def open_attempts(self) -> list[Attempt]:
        """Those that are to be decided: all but the ones that were left out, in this turn or an earlier one."""
        return [attempt for attempt in self.attempts if attempt not in self.left_out]

    def choose_reporter(self) -> None:
        """One that is to be finished, and does not wait for a Permit plugin if there is another."""
        unfinished = [attempt for attempt in self.attempts if not isinstance(attempt.state, Done)]
        self.reporter = min(unfinished, key=lambda each: isinstance(each.state, WaitingOnPermit), default=None)
