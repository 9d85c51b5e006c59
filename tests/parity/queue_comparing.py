"""Compares a replayed life of the queue with its recording, step by step."""

from __future__ import annotations

from itertools import groupby
from typing import Any

Json = dict[str, Any]

_STRICT = ("popped", "from", "outcome", "host", "bound", "evicted", "error", "t")
_DETAILS = ("code", "patches", "events", "inFlightEventsChecked", "delivered")
_OF_A_MOVE = ("pod", "event", "queue", "t")


def differences(result: Json, recorded: Json) -> list[str]:
    """Where the result is not what was recorded: a line each."""
    found = _compare("at first", result["initial"], recorded["initial"], "state")
    found += _compare("at last", len(result["steps"]), len(recorded["steps"]), "number of steps")
    for ours, theirs in zip(result["steps"], recorded["steps"]):
        found += _step(ours, theirs)
    return found


def _step(ours: Json, theirs: Json) -> list[str]:
    where = f"step {theirs['i']} ({theirs['op']})"
    found: list[str] = []
    for field in _STRICT:
        found += _compare(where, ours.get(field), theirs.get(field), field)
    found += _compare(where, _moves(ours), _moves(theirs), "moves")
    found += _compare(where, ours["state"], theirs["state"], "state")
    for field in _DETAILS:
        found += _compare(where, ours.get(field), theirs.get(field), field)
    return found + _hints(where, ours, theirs)


def _moves(step: Json) -> list[tuple[Any, ...]]:
    """All moves in order; those that one event causes have none of their own, so they are sorted."""
    moves = [tuple(move[field] for field in _OF_A_MOVE) for move in step.get("moves", ())]
    return [move for _, caused in groupby(moves, key=lambda move: (move[1], move[3])) for move in sorted(caused)]


def _hints(where: str, ours: Json, theirs: Json) -> list[str]:
    """The recordings asked every plugin; a queue stops at the first that says Queue. What was asked must agree."""
    answers = theirs.get("hints", [])
    wrong = [hint for hint in ours.get("hints", ()) if hint not in answers]
    return [f"{where} hints: got {hint!r}, recorded {_alike(hint, answers)!r}" for hint in wrong]


def _alike(hint: Json, answers: list[Json]) -> list[Json]:
    return [answer for answer in answers if answer["pod"] == hint["pod"] and answer["event"] == hint["event"]]


def _compare(where: str, ours: Any, theirs: Any, field: str) -> list[str]:
    if ours == theirs:
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        return [line for key in keys for line in _compare(where, ours.get(key), theirs.get(key), f"{field}.{key}")]
    return [f"{where} {field}: got {ours!r}, recorded {theirs!r}"]
