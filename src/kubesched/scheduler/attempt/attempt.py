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
"""What the stopwatch of an attempt calls the time that the eviction of victims took."""


class Phase(StrEnum):
    """What recordings call the states."""

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
    """A plugin said no, before the pod was assumed anywhere for good."""
    ERROR = "error"
    """Something broke before that."""
    BIND_UNSCHEDULABLE = "bind-unschedulable"
    """A Permit, PreBind or Bind plugin said no to a pod that was assumed."""
    BIND_ERROR = "bind-error"
    """The same, but something broke."""
    SKIPPED = "skipped"
    """There was nothing to do: the pod is being deleted, or is assumed already, or waits for another scheduler."""


@dataclass(slots=True)
class Failure:
    """Why an attempt failed, and what is to be done about a nomination: None leaves it alone, "" clears it."""

    status: Status
    message: str
    nominated: str | None = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    is_unschedulable_class: bool = False
    """Whether all nodes were looked at, and none fits any pod that is equivalent to this one."""

    @property
    def is_rejection(self) -> bool:
        """Whether a plugin said no, rather than that something broke."""
        return self.status.code is not Code.ERROR


class Popped(msgspec.Struct, frozen=True, gc=False):
    """It is the pod's turn, and nothing is decided. The pod is in flight: events of this time are kept for it."""

    phase: ClassVar[Phase] = Phase.POPPED


class Asking(msgspec.Struct, frozen=True, gc=False):
    """Extenders have to be asked before the attempt can be decided. The pod is in flight, and decided anew then."""

    phase: ClassVar[Phase] = Phase.ASKING
    questions: Sequence[ExtenderQuestion[Any, Any]]
    """Empty if all is asked, but other pods have their turn first."""


class Paused(msgspec.Struct, frozen=True, gc=False):
    """The decision takes long, and has had its turn: others have theirs before it goes on. The pod is in flight."""

    phase: ClassVar[Phase] = Phase.PAUSED
    expense: Expense
    """What takes so long."""
    facts: PodFacts | None = None
    """The pod's facts: plugins keep on them what the next turn goes on from."""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """No node was found, or Reserve or Permit refused the one that was: nothing is assumed. In flight until it is
    reported, and back in the queue then."""

    phase: ClassVar[Phase] = Phase.FAILED
    failure: Failure
    decision: Decision | None
    """None if there was not even a decision, because something broke."""
    victims: tuple[PlacedPod, ...] = ()
    """The pods that are to be evicted so that there will be a node."""
    is_requeued: bool = False
    """Whether the pod is back in the queue already, with all of its group."""


class WaitingOnPermit(msgspec.Struct, frozen=True, gc=False):
    """The pod is assumed on its node, and a Permit plugin asked to wait."""

    phase: ClassVar[Phase] = Phase.WAITING
    decision: Decision


class Assumed(msgspec.Struct, frozen=True, gc=False):
    """The pod is assumed on its node, all is reserved, and all plugins permit it: it is to be bound."""

    phase: ClassVar[Phase] = Phase.ASSUMED
    decision: Decision


class Denied(msgspec.Struct, frozen=True, gc=False):
    """The pod is assumed and will not be bound: Permit was denied, or binding failed. What was reserved is yet to be
    given back."""

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
    """Whether all victims are on their way out."""


POPPED = Popped()

AttemptState: TypeAlias = Popped | Asking | Paused | Failed | WaitingOnPermit | Assumed | Denied | Done

# Tuples, not unions: those would be made anew each time that a listener asks.
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
    """Counts the attempts of a scheduler. A pod may get its next one while the last is still being written."""
    spent: float = 0.0
    """Seconds that deciding has taken, if it has taken long."""
    ran_out: Expense | None = None
    """What the decision was given up for, since it took too long."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The attempts at pods that are decided at once: this one. See GroupAttempt."""
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
        """Where the pod is or was assumed; empty if it was not, or not for good."""
        state = self.state
        if isinstance(state, _ASSUMED):
            return state.decision.node
        if isinstance(state, Done) and state.outcome in _ON_A_NODE and state.decision is not None:
            return state.decision.node
        return ""
