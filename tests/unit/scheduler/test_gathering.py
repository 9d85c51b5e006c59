"""Events that come close upon each other are gathered, those that come alone are not."""

from __future__ import annotations

from kubesched.scheduler.gathering import Gathering


class Watched:
    """Something that gathers, with a clock that stands still between two calls. A rest takes 10 ms."""

    def __init__(self) -> None:
        self.now = 100.0
        self.may_rest = True
        self.rests = 0
        self._gathering = Gathering(self._rest, lambda: self.now, may_rest=lambda: self.may_rest)

    def _rest(self) -> None:
        self.rests += 1
        self.now += 0.01

    def comes(self, *, after: float) -> int:
        """How often it rested for something that comes so many seconds later."""
        self.now += after
        before = self.rests
        self._gathering()
        return self.rests - before


def test_what_comes_alone_does_not_wait() -> None:
    it = Watched()
    assert [it.comes(after=seconds) for seconds in (0, 1, 0.02, 0.013, 60)] == [0] * 5


def test_what_comes_close_upon_another_waits_for_more() -> None:
    it = Watched()
    assert [it.comes(after=seconds) for seconds in (0, 0.005, 0.011)] == [0, 1, 1]


def test_all_that_came_meanwhile_is_handled_without_a_second_rest() -> None:
    it = Watched()
    assert [it.comes(after=seconds) for seconds in (0, 0.005, 0, 0.0005, 0.0005)] == [0, 1, 0, 0, 0]


def test_nothing_rests_that_has_something_to_do() -> None:
    it = Watched()
    it.may_rest = False
    assert [it.comes(after=seconds) for seconds in (0, 0.005, 0.005)] == [0, 0, 0]
    it.may_rest = True
    assert it.comes(after=0.005) == 1
