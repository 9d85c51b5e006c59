"""Regular expressions as programs that run along all alternatives at once: linear in the text, whatever the pattern."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import msgspec

_MOST_INSTRUCTIONS = 20_000


class PatternError(ValueError):
    """The pattern is not a regular expression of RE2."""


class Place(Enum):
    """What can be asserted of a place between characters."""

    TEXT_START = "text start"
    TEXT_END = "text end"
    LINE_START = "line start"
    LINE_END = "line end"
    BOUNDARY = "word boundary"
    NO_BOUNDARY = "no word boundary"


class Part(msgspec.Struct, frozen=True):
    """A part of a regular expression; by itself it matches the empty text."""


class Characters(Part, frozen=True):
    """Any one character that the test accepts."""

    accepts: Callable[[str], bool]


class Assertion(Part, frozen=True):
    """No character, but a certain kind of place."""

    place: Place


class Chain(Part, frozen=True):
    """One part after the other."""

    parts: tuple[Part, ...]


class Choice(Part, frozen=True):
    """One of the parts, the first that works being preferred."""

    parts: tuple[Part, ...]


class Repeat(Part, frozen=True):
    """The part so many times: as often as possible if greedy, else as rarely."""

    part: Part
    least: int
    most: int | None
    greedy: bool


class _Step(NamedTuple):
    """An instruction: read a character, check the place, go on at one of several others (in order), or accept."""

    accepts: Callable[[str], bool] | None
    place: Place | None
    ways: tuple[int, ...]
    done: bool = False


class Pattern:
    """A compiled regular expression."""

    def __init__(self, part: Part) -> None:
        self._steps: list[_Step] = []
        self._start = self._emit(part, self._add(_Step(None, None, (), done=True)))

    def search(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the pattern matches first: among all matches there, the one preferred."""
        threads: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            if best is None:
                threads.append((self._start, at))
            elif not threads:
                break
            following: list[tuple[int, int]] = []
            for step, began in self._reach(threads, text, at):
                if step.done:
                    best = began, at
                    break
                if step.accepts is not None and at < len(text) and step.accepts(text[at]):
                    following.append((step.ways[0], began))
            threads = following
        return best

    def _reach(self, threads: list[tuple[int, int]], text: str, at: int) -> list[tuple[_Step, int]]:
        """The steps that read a character or accept, from where the threads are; the preferred ones first."""
        reached: list[tuple[_Step, int]] = []
        seen: set[int] = set()
        stack = threads[::-1]
        while stack:
            number, began = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            step = self._steps[number]
            if step.accepts is not None or step.done:
                reached.append((step, began))
            elif step.place is None or _is_at(step.place, text, at):
                stack.extend((way, began) for way in reversed(step.ways))
        return reached

    def _add(self, step: _Step) -> int:
        if len(self._steps) >= _MOST_INSTRUCTIONS:
            raise PatternError("expression too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def _emit(self, part: Part, then: int) -> int:
        """Add the instructions for a part that goes on at `then`; gives where it begins."""
        match part:
            case Characters():
                return self._add(_Step(part.accepts, None, (then,)))
            case Assertion():
                return self._add(_Step(None, part.place, (then,)))
            case Chain():
                for each in reversed(part.parts):
                    then = self._emit(each, then)
                return then
            case Choice():
                return self._add(_Step(None, None, tuple(self._emit(each, then) for each in part.parts)))
            case Repeat():
                return self._emit_repeat(part, then)
            case _:
                return then

    def _emit_repeat(self, repeat: Repeat, then: int) -> int:
        if repeat.most is None:
            loop = self._add(_Step(None, None, ()))
            body = self._emit(repeat.part, loop)
            self._steps[loop] = _Step(None, None, (body, then) if repeat.greedy else (then, body))
            then = loop
        else:
            leave = then
            for _ in range(repeat.most - repeat.least):
                body = self._emit(repeat.part, then)
                then = self._add(_Step(None, None, (body, leave) if repeat.greedy else (leave, body)))
        for _ in range(repeat.least):
            then = self._emit(repeat.part, then)
        return then


def _is_at(place: Place, text: str, at: int) -> bool:
    match place:
        case Place.TEXT_START:
            return at == 0
        case Place.TEXT_END:
            return at == len(text)
        case Place.LINE_START:
            return at == 0 or text[at - 1] == "\n"
        case Place.LINE_END:
            return at == len(text) or text[at] == "\n"
        case _:
            before, after = at > 0 and _is_word(text[at - 1]), at < len(text) and _is_word(text[at])
            return (before != after) is (place is Place.BOUNDARY)


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())
