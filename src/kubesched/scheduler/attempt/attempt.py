"""One attempt to schedule one pod, from its turn in the queue to the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kubesched.framework.decision import Decision
from kubesched.framework.extender import ExtenderAnswers, Question
from kubesched.framework.status import Code, Status
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.pods import PlacedPod

EVICTION = "Eviction"
"""What the stopwatch of an attempt calls the time that the eviction of victims took."""


@dataclass(slots=True)
class Failure:
    """Why an attempt failed, and what is to be done about a nomination: None leaves it alone, "" clears it."""

    status: Status
    message: str
    nominated: str | None = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Attempt:
    """Phases: popped; asking, as long as extenders have not answered; then failed, assumed, or waiting for a Permit
    plugin (and then assumed or denied); then done.
    """

    queued: QueuedPod
    popped_from: str
    phase: str = "popped"
    outcome: str = ""
    node: str = ""
    decision: Decision | None = None
    failure: Failure | None = None
    victims: tuple[PlacedPod, ...] = ()
    watch: Stopwatch | None = None
    """Measures the attempt, if anybody cares."""
    answers: ExtenderAnswers | None = None
    """Of extenders; None if none has a say about the pod."""
    questions: Sequence[Question[Any, Any]] = ()
    """What they have to be asked before the attempt is decided."""
    evicted: bool = False
    """Whether all victims are on their way out."""

    @property
    def code(self) -> str:
        """The status code of a failure."""
        return "" if self.failure is None else str(self.failure.status.code)

    @property
    def is_rejected(self) -> bool:
        """Whether it failed because somebody said no, rather than because something broke."""
        return self.failure is not None and self.failure.status.code is not Code.ERROR
