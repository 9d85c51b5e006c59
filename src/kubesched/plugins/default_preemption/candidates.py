"""Candidates for preemption, and the five questions by which one is preferred."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.state.pods import PlacedPod

PRIORITY_OFFSET = 2**31
"""Makes all priorities positive, so that fewer victims of negative priority are better than many."""

Cost = tuple[int, int, int, int, float]
"""The answers to the five questions, in order; the smallest is preferred."""


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """A row that would have room, and the pods that must leave it, most important first."""

    row: int
    victims: tuple[PlacedPod, ...]
    violations: int = 0
    """How many of the victims break a disruption budget."""

    @property
    def cost(self) -> Cost:
        """Budgets broken; priority of the most important victim; sum of priorities; number of victims; work lost.

        Work lost is by the one, of the most important victims, that started first: the later it did, the better.
        """
        priorities = [victim.pod.priority for victim in self.victims]
        highest = max(priorities)
        started = min(victim.start for victim in self.victims if victim.pod.priority == highest)
        return (
            self.violations,
            highest,
            sum(priority + PRIORITY_OFFSET for priority in priorities),
            len(self.victims),
            -started,
        )


def best_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that no question tells apart from the best."""
    costs = [(candidate.cost, candidate) for candidate in candidates]
    lowest = min((cost for cost, _ in costs), default=None)
    return [candidate for cost, candidate in costs if cost == lowest]
