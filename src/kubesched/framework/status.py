"""What a plugin answers: a code of kube-scheduler, and reasons in words that users know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

MAX_NODE_SCORE = 100


class Code(IntEnum):
    """The codes of kube-scheduler, with its names."""

    SUCCESS = 0
    ERROR = 1
    """Something went wrong; the pod is tried again soon."""
    UNSCHEDULABLE = 2
    """The pod does not fit here now; preempting others might help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """The pod does not fit here, and preemption would not change that."""
    WAIT = 4
    SKIP = 5
    """The plugin has nothing to do for this pod."""
    PENDING = 6

    def __str__(self) -> str:
        return _NAMES[self]


_NAMES = ("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending")
"""In the order of the codes."""


@dataclass(frozen=True, slots=True)
class Status:
    """An answer that is not plain success."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def is_rejection(self) -> bool:
        """Whether it is a rejection, rather than an error."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    def by(self, plugin: str) -> Status:
        return Status(self.code, self.reasons, plugin)


SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """The pod does not fit now."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """The pod does not fit, and taking other pods away would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Something went wrong."""
    return Status(Code.ERROR, reasons)
