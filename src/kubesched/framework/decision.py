"""The outcome of one attempt, and the trace from which it can be explained."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import Diagnosis, FilterOutcome
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.pre_filtering import PreFilterOutcome
from kubesched.framework.scores import Scores
from kubesched.framework.status import Status


class Outcome(Enum):
    """How an attempt ended."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    RESERVE_FAILED = "reserve-failed"
    ERROR = "error"


class Draw(NamedTuple):
    """The random choice among equally good nodes: how many there were, and which one was drawn."""

    among: int = 1
    drawn: int = 0


ONLY_ONE = Draw()


PostFilterAnswer = tuple[PostFilterResult | None, Status | None]


@dataclass(slots=True)
class Trace:
    """Everything that plugins answered on the way. Valid until the cluster state changes."""

    pre_filter: PreFilterOutcome | None = None
    filter_outcome: FilterOutcome | None = None
    scores: Scores | None = None
    post_filter_answers: dict[str, PostFilterAnswer] | None = None
    """By plugin; None if none was asked."""


@dataclass(slots=True)
class Decision:
    """What to do with a pod."""

    pod: Pod
    profile: str
    outcome: Outcome
    cycle: Cycle
    node: str = ""
    score: int = 0
    draw: Draw = ONLY_ONE
    evaluated: int = 0
    feasible: int = 0
    status: Status | None = None
    """Why a pod is gated, or what broke."""
    diagnosis: Diagnosis | None = None
    post_filter: PostFilterResult | None = None
    post_filter_status: Status | None = None
    trace: Trace = field(default_factory=Trace)

    def forget_columns(self) -> None:
        """Drop the trace, which has columns of all nodes: thousands of pods that have a node may wait for writes."""
        self.trace = Trace()
        self.cycle.forget_what_decided()

    @property
    def found_no_nodes(self) -> bool:
        """Whether there were no nodes to look at."""
        return self.outcome is Outcome.UNSCHEDULABLE and self.diagnosis is None

    @property
    def message(self) -> str:
        """The text users see in the pod's condition and event; nothing for a pod that was scheduled."""
        if self.diagnosis is None:
            return self.status.message if self.status else ""
        text = self.diagnosis.message()
        status, result = self.post_filter_status, self.post_filter
        addition = status.message if status is not None else result.said if result is not None else ""
        return f"{text} {addition}" if addition else text
