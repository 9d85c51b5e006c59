"""How long a decision may take: in a turn, after which other pods have theirs, and before the engine gives it up.

A plugin looks at the budget of its cycle from inside loops whose length depends on the pod, every so many steps. One
that keeps its partial results calls `end_turn`: the engine makes the decision again later and goes on from there. One
that would begin anew calls `check`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, TypeVar

from kubesched.framework.errors import NotDecidedError

TURN = 0.05
"""Seconds that a decision which can go on later may take before other pods have their turn."""
LIMIT = 1.0
"""Seconds after which a decision that cannot go on later is given up."""

T = TypeVar("T")

_BETWEEN_LOOKS = 63
_LOOK = 0.001
"""Seconds that a look counts in simulations: about the time of the work between two looks."""


class Expense(NamedTuple):
    """What a decision spends its time on: a plugin, and the part of the pod that makes it work so hard."""

    plugin: str
    part: str


class TurnOverError(NotDecidedError):
    """The decision has had its turn, and is made again after other pods had theirs."""

    def __init__(self, expense: Expense) -> None:
        super().__init__(f"{expense.plugin} needs another turn for {expense.part}")
        self.expense = expense


class BudgetExceededError(NotDecidedError):
    """The decision has taken too long: the engine gives it up."""

    def __init__(self, expense: Expense, limit: float) -> None:
        super().__init__(f"gave up after {limit:g}s: {expense.plugin} takes too long for {expense.part}")


class Budget:
    """The budget of decisions, one after another. It reads its clock first when a plugin first looks."""

    __slots__ = ("_clock", "_ends_turns", "_limit", "_parts", "_since", "_spent", "_turn", "_turn_since", "ran_out")

    def __init__(
        self, clock: Callable[[], float] = lambda: 0.0, *, turn: float = math.inf, limit: float = math.inf
    ) -> None:
        """`clock` gives the seconds that the thread has worked."""
        self._clock = clock
        self._turn = turn
        self._limit = limit
        self._spent = 0.0
        self._since: float | None = None
        self._turn_since: float | None = None
        self._parts = 0
        """How many decisions are made in one turn; 0 if each has its own."""
        self._ends_turns = False
        self.ran_out: Expense | None = None
        """Why the decision was given up."""

    def begin(self, spent: float | None) -> None:
        """Begin a decision for which earlier turns took `spent` seconds; None if it must be made in one turn.

        Infinity if it is known to take too long: then the first look gives it up.
        """
        if self._parts:
            self._since = None
            return
        self.ran_out = None
        if spent is None:
            self._spent, self._ends_turns, self._since, self._turn_since = 0.0, False, None, None
            return
        is_hopeless = spent == math.inf
        self._spent, self._ends_turns = spent, not is_hopeless
        self._since = self._turn_since = -math.inf if is_hopeless else None

    @contextmanager
    def together(self, spent: float, parts: int) -> Iterator[None]:
        """Decide `parts` pods, such as those of a group, within one turn; the limit of one decision holds for each."""
        self.begin(spent)
        self._parts = parts
        try:
            yield
        finally:
            self._parts = 0

    @property
    def spent(self) -> float:
        """Seconds in all turns of the decision, since a plugin first looked."""
        return self._spent + self._seconds_of_turn()

    @property
    def is_first_turn(self) -> bool:
        return not self._spent and self._ends_turns

    def end_turn(self, expense: Expense, *, at_once: bool = False) -> None:
        """TurnOverError if the turn is over. The caller keeps its partial results."""
        if self._ends_turns and (at_once or self._seconds_of_turn() > self._turn):
            raise TurnOverError(expense)

    def check(self, expense: Expense) -> None:
        """BudgetExceededError if this turn has taken longer than the limit of a decision that cannot go on later."""
        if self.is_exceeded(self._limit, expense, self._seconds()):
            raise BudgetExceededError(expense, self._limit)

    def watched(self, items: Iterable[T], expense: Expense) -> Iterator[T]:
        """The items, with a `check` every so many of them: for loops as long as the pod makes them."""
        for i, item in enumerate(items):
            if i & _BETWEEN_LOOKS == _BETWEEN_LOOKS:
                self.check(expense)
            yield item

    def is_exceeded(self, limit: float, expense: Expense, spent: float | None = None) -> bool:
        """Whether all turns together took longer than a plugin's own limit: then the plugin must give up."""
        if spent is None:
            spent, limit = self.spent, limit * max(self._parts, 1)
        if spent <= limit and spent < math.inf:
            return False
        self.ran_out = expense
        return True

    def _seconds(self) -> float:
        """Seconds of this decision, in this turn."""
        now = self._clock()
        if self._since is None:
            self._since = now
        return now - self._since

    def _seconds_of_turn(self) -> float:
        now = self._clock()
        if self._turn_since is None:
            self._turn_since = now
        return now - self._turn_since


UNLIMITED = Budget()


def counting_looks() -> Budget:
    """A budget for simulations: it limits the number of looks instead of the time, and ends no turn."""
    looks = count()
    return Budget(lambda: next(looks) * _LOOK)
