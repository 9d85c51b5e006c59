"""One attempt to schedule one pod: the states that it goes through, from its turn in the queue to the outcome.

    Popped ──► Asking (extenders), Paused ──► Popped's other ways
       ├─────► Failed ──────────────────────────► Done
       ├─────► Assumed ──► (bound) ─────────────► Done
       │          │  └───► Denied ──────────────► Done
       ├─────► WaitingOnPermit ──► Assumed, Denied
       └─────► Done (skipped)

Pods of a group are decided together: see `groups/group_attempt.py`.

`Scheduler.decide` leaves Popped, `Scheduler.permitted` leaves WaitingOnPermit, and `Scheduler.finish` leads to Done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

import msgspec

from kubesched.framework.budget import Expense
from kubesched.framework.decision import Decision
from kubesched.framework.extender import ExtenderAnswers, ExtenderQuestion
from kubesched.framework.status import Code, Status
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.facts import PodFacts
from kubesched.state.pods import PlacedPod

EVICTION = "Eviction"
"""The lap of a stopwatch for the eviction of victims."""


class Phase(StrEnum):
    """The names of the states in recordings."""

    POPPED = "popped"
    ASKING = "asking"
    PAUSED = "paused"
    FAILED = "failed"
    WAITING = "waiting"
    ASSUMED = "assumed"
    DENIED = "denied"
    DONE = "done"


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    BOUND = "bound"
    UNSCHEDULABLE = "unschedulable"
    """A plugin rejected the pod before its binding began."""
    ERROR = "error"
    """An error before its binding began."""
    BIND_UNSCHEDULABLE = "bind-unschedulable"
    """A Permit, PreBind or Bind plugin rejected the pod, which was assumed."""
    BIND_ERROR = "bind-error"
    """An error in one of these."""
    SKIPPED = "skipped"
    """There was nothing to do: the pod is being deleted, or is assumed already, or waits for another scheduler."""


@dataclass(slots=True)
class Failure:
    """Why an attempt failed, and the nomination to write: None leaves it alone, "" clears it."""

    status: Status
    message: str
    nominated: str | None = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    is_unschedulable_class: bool = False
    """Whether no node fits any pod that is equivalent to this one."""

    @property
    def is_rejection(self) -> bool:
        """Whether it is a rejection by a plugin, rather than an error."""
        return self.status.code is not Code.ERROR


class Popped(msgspec.Struct, frozen=True, gc=False):
    """Nothing is decided. The pod is in flight: InFlight keeps events for it."""

    phase: ClassVar[Phase] = Phase.POPPED


class Asking(msgspec.Struct, frozen=True, gc=False):
    """Extenders have to be asked before the pod, which is in flight, is decided anew."""

    phase: ClassVar[Phase] = Phase.ASKING
    questions: Sequence[ExtenderQuestion[Any, Any]]
    """Empty if all are answered, but other pods have their turn first."""


class Paused(msgspec.Struct, frozen=True, gc=False):
    """The decision takes long: other pods have their turn before it goes on. The pod is in flight."""

    phase: ClassVar[Phase] = Phase.PAUSED
    expense: Expense
    """What takes so long."""
    facts: PodFacts | None = None
    """The pod's facts, kept alive: plugins have their partial results on them."""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """No node was found, or Reserve or Permit refused the one that was: nothing is assumed. The pod is in flight until
    FailureReporter puts it back into the queue."""

    phase: ClassVar[Phase] = Phase.FAILED
    failure: Failure
    decision: Decision | None
    """None if deciding raised an error."""
    victims: tuple[PlacedPod, ...] = ()
    """The pods to evict."""
    is_requeued: bool = False
    """Whether the pod is back in the queue already, with all of its group."""


class WaitingOnPermit(msgspec.Struct, frozen=True, gc=False):
    """The pod is assumed on its node, and a Permit plugin asked to wait."""

    phase: ClassVar[Phase] = Phase.WAITING
    decision: Decision


class Assumed(msgspec.Struct, frozen=True, gc=False):
    """The pod is assumed on its node, and Reserve and Permit plugins have agreed: it is to be bound."""

    phase: ClassVar[Phase] = Phase.ASSUMED
    decision: Decision


class Denied(msgspec.Struct, frozen=True, gc=False):
    """The pod is assumed and will not be bound: Permit was denied, or binding failed. It is yet to be unreserved."""

    phase: ClassVar[Phase] = Phase.DENIED
    failure: Failure
    decision: Decision


class Done(msgspec.Struct, frozen=True, gc=False):
    """The attempt is over: the pod is bound, back in the queue, or left alone."""

    phase: ClassVar[Phase] = Phase.DONE
    outcome: AttemptOutcome
    decision: Decision | None = None
    failure: Failure | None = None
    victims: tuple[PlacedPod, ...] = ()
    evicted: bool = False
    """Whether the API server accepted all evictions."""


POPPED = Popped()

AttemptState: TypeAlias = Popped | Asking | Paused | Failed | WaitingOnPermit | Assumed | Denied | Done

# Tuples, because unions would be made anew each time that a listener reads a property.
_UNDECIDED = (Popped, Asking, Paused)
_ASSUMED = (WaitingOnPermit, Assumed, Denied)
_MAY_HAVE_FAILED = (Failed, Denied, Done)
_MAY_HAVE_VICTIMS = (Failed, Done)
_ON_A_NODE = (AttemptOutcome.BOUND, AttemptOutcome.BIND_UNSCHEDULABLE, AttemptOutcome.BIND_ERROR)


@dataclass(slots=True, eq=False)
class Attempt:
    """The pod, where it came from, and the state of the attempt. The properties are for listeners and reports."""

    queued: QueuedPod
    popped_from: str
    state: AttemptState = POPPED
    watch: Stopwatch | None = None
    """Measures the attempt, if a listener has given it one."""
    answers: ExtenderAnswers | None = None
    """What extenders answer; None if no extender is interested in the pod."""
    number: int = 0
    """Counts the attempts of a scheduler. The next attempt at a pod may begin while the last one still writes."""
    spent: float = 0.0
    """Seconds that deciding has taken in earlier turns."""
    ran_out: Expense | None = None
    """Why the engine gave up the decision, which took too long."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The attempts that `Scheduler.decide` decides at once: this one. See GroupAttempt."""
        return (self,)

    @property
    def extender_answers(self) -> Sequence[ExtenderAnswers]:
        """The answers of extenders, for each pod that an extender is interested in."""
        return () if self.answers is None else (self.answers,)

    @property
    def decision(self) -> Decision | None:
        return None if isinstance(self.state, _UNDECIDED) else self.state.decision

    @property
    def failure(self) -> Failure | None:
        return self.state.failure if isinstance(self.state, _MAY_HAVE_FAILED) else None

    @property
    def victims(self) -> tuple[PlacedPod, ...]:
        return self.state.victims if isinstance(self.state, _MAY_HAVE_VICTIMS) else ()

    @property
    def outcome(self) -> AttemptOutcome | None:
        """None until it is over."""
        return self.state.outcome if isinstance(self.state, Done) else None

    @property
    def node(self) -> str:
        """Where the pod is or was assumed; empty if no binding began."""
        state = self.state
        if isinstance(state, _ASSUMED):
            return state.decision.node
        if isinstance(state, Done) and state.outcome in _ON_A_NODE and state.decision is not None:
            return state.decision.node
        return ""
