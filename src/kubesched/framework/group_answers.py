"""What extenders answer about a pod of a group, which the engine decides several times before the group is decided.

The engine decides it for each placement, with the pods before it on their nodes, and again whenever an answer was
missing. An extender knows none of that: so what it has said of a node holds for the whole attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.extender import (
    AnswersMissingError,
    Extender,
    ExtenderAnswers,
    ExtenderQuestion,
    Filtered,
    Point,
)
from kubesched.state.columns import Bool

Verb = Callable[[Pod, Sequence[Node]], Coroutine[Any, Any, Any]]


class GroupAnswers(ExtenderAnswers):
    """Nodes that extenders were asked about go before others: so asking ends, whatever happens meanwhile."""

    def __init__(self, interested: Sequence[Extender], node_of: Callable[[str], Node]) -> None:
        super().__init__(interested, node_of)
        self._by_extender: dict[tuple[Point, int], _Pieces] = {}

    def offered_rows(self, feasible: Bool, names: Sequence[str]) -> list[int] | None:
        return super().offered_rows(feasible, names) or None

    def offer(self, names: Sequence[str], evaluated: int, *, is_whole: bool) -> None:
        self.offered_names = names
        self.evaluated = evaluated
        self.offered = (self.offered or frozenset()).union(names)

    def found_none(self, *, others_fit: bool) -> None:
        """No node is left, and there are no others: all nodes that fit were offered."""

    def _question(
        self, point: Point, extender: Extender, verb: Verb, pod: Pod, names: Sequence[str]
    ) -> ExtenderQuestion[Sequence[Node], Any]:
        question = self._by_extender.setdefault((point, self._interested.index(extender)), _Pieces(verb, pod))
        question.cover(names, self._node_of)
        return question


class _Pieces(ExtenderQuestion[Sequence[Node], Any]):
    """One question, asked in pieces: each about nodes that no earlier one was about."""

    def __init__(self, verb: Verb, pod: Pod) -> None:
        super().__init__(verb, pod, ())
        self._pieces: list[ExtenderQuestion[Sequence[Node], Any]] = []
        self._covered: set[str] = set()

    def cover(self, names: Sequence[str], node_of: Callable[[str], Node]) -> None:
        new = [name for name in names if name not in self._covered]
        if new:
            self._covered.update(new)
            self._pieces.append(ExtenderQuestion(self._verb, self._pod, [node_of(name) for name in new]))
            self.is_open = True

    async def ask(self) -> None:
        for piece in self._pieces:
            if piece.is_open:
                await piece.ask()
        self.is_open = False

    @property
    def has_answer(self) -> bool:
        return all(piece.has_answer for piece in self._pieces)

    @property
    def answer(self) -> Any:
        """The answers to all pieces, merged."""
        if self.is_open:
            raise AnswersMissingError((self,))
        if self._failure is not None:
            raise self._failure
        answers = [piece.answer for piece in self._pieces]
        if not all(isinstance(answer, Filtered) for answer in answers):
            return {name: score for answer in answers for name, score in answer.items()}
        return Filtered(
            frozenset[str]().union(*(answer.passed for answer in answers)),
            {name: reason for answer in answers for name, reason in answer.failed.items()},
            {name: reason for answer in answers for name, reason in answer.unresolvable.items()},
        )
