"""Costs of operations, in upstream's units: an evaluation beyond the limit is stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kubesched.api.quantity import Quantity
from kubesched.cel.errors import TOO_EXPENSIVE, CostLimitError
from kubesched.cel.values import MAPS, Opaque, Value, size_of
from kubesched.cel.versions import Semver

COST_LIMIT = 1_000_000
"""What one evaluation of a selector may cost."""

_COST_BETWEEN_LOOKS = 5_000
"""A few milliseconds of work."""

ACCESS_COST = 1
LIST_COST = 10
MAP_COST = 30
_PER_CHARACTER = 0.1
_PER_PATTERN_CHARACTER = 0.25

Price = Callable[[Sequence[Value], Value], int]
"""What a call cost, given its arguments and what it returned."""


Interrupt = Callable[[], None]
"""Called now and then in the middle of an evaluation, which it may end by raising something of its own."""


class CostMeter:
    """Adds up what one evaluation costs."""

    __slots__ = ("_interrupt", "_next_look", "left")

    def __init__(self, interrupt: Interrupt | None = None) -> None:
        self.left = COST_LIMIT
        self._interrupt = interrupt
        self._next_look = 0 if interrupt is None else COST_LIMIT - _COST_BETWEEN_LOOKS
        """The meter looks up when less than this is left."""

    def spend(self, cost: int) -> None:
        """Pay, or stop the evaluation."""
        self.left -= cost
        if self.left < self._next_look:
            self._look()

    def _look(self) -> None:
        if self.left < 0:
            raise CostLimitError(TOO_EXPENSIVE)
        self._next_look = max(0, self.left - _COST_BETWEEN_LOOKS)
        assert self._interrupt is not None
        self._interrupt()


def _scan(size: int, times: int = 1) -> int:
    return math.ceil(size * times * _PER_CHARACTER)


def flat(args: Sequence[Value], result: Value) -> int:
    """One unit, whatever the arguments."""
    return 1


def _scanning(argument: int, times: int = 1) -> Price:
    return lambda args, result: _scan(size_of(args[argument]), times)


scan_first = _scanning(0)
"""The first argument is read once."""
scan_first_twice = _scanning(0, times=2)
"""The first argument is read and something like it is written."""
scan_second = _scanning(1)
"""The second argument is read once."""


def scan_result_twice(args: Sequence[Value], result: Value) -> int:
    """The result is put together and written."""
    return _scan(size_of(result), 2)


def scan_both(args: Sequence[Value], result: Value) -> int:
    """`+` of strings, bytes and lists; numbers are added at once."""
    if type(args[0]) is str or type(args[0]) is bytes:
        return _scan(size_of(args[0]) + size_of(args[1]))
    return 1


def scan_shorter(args: Sequence[Value], result: Value) -> int:
    """Comparing for equality stops at the end of the shorter one."""
    if isinstance(args[0], Quantity | Semver | Opaque):
        return 1
    return _scan(min(size_of(args[0]), size_of(args[1])))


def scan_shorter_text(args: Sequence[Value], result: Value) -> int:
    """Ordering does so for text only."""
    return scan_shorter(args, result) if type(args[0]) in (str, bytes) else 1


def search(args: Sequence[Value], result: Value) -> int:
    """One text is looked for at every place of the other."""
    return _scan(size_of(args[0])) * _scan(size_of(args[1]))


def pattern(args: Sequence[Value], result: Value) -> int:
    """A regular expression is tried on a text."""
    return _scan(1 + size_of(args[0])) * math.ceil(size_of(args[1]) * _PER_PATTERN_CHARACTER)


def traverse_first(args: Sequence[Value], result: Value) -> int:
    """Everything in the first argument is looked at."""
    return _traversal(args[0])


def _traversal(value: Value) -> int:
    kind = type(value)
    if kind is str or kind is bytes:
        return int(len(value) * _PER_CHARACTER)
    if kind is list:
        return sum(map(_traversal, value))
    if kind in MAPS:
        return sum(_traversal(k) + _traversal(v) for k, v in value.items())
    return 1


def contained(args: Sequence[Value], result: Value) -> int:
    """`in`: a list is gone through, a map is asked."""
    return len(args[1]) if type(args[1]) is list else 1


def write_list(args: Sequence[Value], result: Value) -> int:
    """A list is made."""
    return 1 + LIST_COST + size_of(result)


def every_pair(args: Sequence[Value], result: Value) -> int:
    """Each element of one list is compared with each of the other (or of the same)."""
    return 1 + size_of(args[0]) * size_of(args[-1])


def every_pair_twice(args: Sequence[Value], result: Value) -> int:
    """As `every_pair`, in both directions."""
    return 1 + 2 * size_of(args[0]) * size_of(args[-1])


def sorting(args: Sequence[Value], result: Value) -> int:
    """As `every_pair_twice`, although a sort is less work."""
    return every_pair_twice(args, result)


PAID_BEFORE = frozenset({every_pair, every_pair_twice})
"""Prices that are paid before the call, since a call beyond the limit would take very long."""
