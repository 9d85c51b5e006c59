"""Candidates for preemption, and the five questions by which one is preferred."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubesched.state.pods import PlacedPod

_PRIORITY_OFFSET = 2**31
"""Makes all priorities positive, so that fewer victims of negative priority are better than many."""


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """A row that would have room, and the pods that must leave it, most important first."""

    row: int
    victims: tuple[PlacedPod, ...]
    violations: int = 0
    """How many of the victims break a disruption budget."""


def best_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no question tells apart from the best."""
    remaining = list(candidates)
    for cost in _COSTS:
        costs = [cost(candidate) for candidate in remaining]
        lowest = min(costs)
        remaining = [candidate for candidate, own in zip(remaining, costs) if own == lowest]
        if len(remaining) == 1:
            break
    return remaining


def _violations(candidate: Candidate) -> float:
    return candidate.violations


def _highest_priority(candidate: Candidate) -> float:
    return candidate.victims[0].pod.priority


def _sum_of_priorities(candidate: Candidate) -> float:
    return sum(victim.pod.priority + _PRIORITY_OFFSET for victim in candidate.victims)


def _number_of_victims(candidate: Candidate) -> float:
    return len(candidate.victims)


def _least_work_lost(candidate: Candidate) -> float:
    """Of the most important victims the one that started first: the later that was, the better."""
    highest = max(victim.pod.priority for victim in candidate.victims)
    return -min(victim.start for victim in candidate.victims if victim.pod.priority == highest)


_COSTS: tuple[Callable[[Candidate], float], ...] = (
    _violations,
    _highest_priority,
    _sum_of_priorities,
    _number_of_victims,
    _least_work_lost,
)
