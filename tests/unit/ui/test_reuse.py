"""Answers that took long are given again for a while."""

from __future__ import annotations

from kubesched.ui.views import CHEAP, LONGEST, TIMES, Reused


class Question:
    """Takes so many seconds of CPU each time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.used = 0.0
        self.asked = 0
        self.reused = Reused(self._work, clock=lambda: self.now, cpu=lambda: self.used)

    def _work(self) -> int:
        self.used += self.seconds
        self.asked += 1
        return self.asked


def test_a_cheap_question_is_answered_anew_each_time() -> None:
    question = Question(CHEAP)
    assert [question.reused(), question.reused()] == [1, 2]


def test_a_dear_one_is_answered_again_in_proportion_to_what_it_took() -> None:
    question = Question(0.01)
    assert question.reused() == 1
    question.now = 0.01 * TIMES - 0.001
    assert question.reused() == 1
    question.now = 0.01 * TIMES
    assert question.reused() == 2


def test_no_answer_is_older_than_the_longest_time() -> None:
    question = Question(60.0)
    question.reused()
    question.now = LONGEST
    assert question.reused() == 2
