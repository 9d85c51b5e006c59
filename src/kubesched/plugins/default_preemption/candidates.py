"""Candidates for preemption, the five questions by which one is preferred, and the budgets that victims would break."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.api.release import Release
from kubesched.api.selectors import Selector, compile_selector
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Rows
from kubesched.state.facts import PodFacts
from kubesched.state.objects import ObjectStore
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
    """The best candidate, and those that are equal to it in all five questions."""
    costs = [(candidate.cost, candidate) for candidate in candidates]
    lowest = min((cost for cost, _ in costs), default=None)
    return [candidate for cost, candidate in costs if cost == lowest]


class EvictionBudgets:
    """All budgets, by the namespace of the pods they guard."""

    def __init__(self, objects: ObjectStore, release: Release) -> None:
        self._stops = release.first_exhausted_budget
        self._version = objects.version(PodDisruptionBudget)
        self._guards = [
            (budget, selector)
            for budget in objects.all(PodDisruptionBudget)
            if not (selector := compile_selector(budget.spec.selector)).is_empty and not selector.nothing
        ]

    def of(self, facts: PodFacts) -> list[PodDisruptionBudget]:
        """The budgets that guard pods with these facts; kept with the facts until a budget changes."""
        return facts.derived_at(self._version, _guarding, (self._guards, facts))

    def may_break_on(self, rows: Rows, state: ClusterState) -> Bool:
        """Rows with more guarded pods than a budget lets go: on all others no order of leaving can break one."""
        may_break = np.zeros(len(rows), dtype=np.bool_)
        for budget, selector in self._guards:
            counter = state.matches.counter(frozenset((budget.namespace,)), selector)
            may_break |= counter.counts[rows] > budget.status.disruptions_allowed
        return may_break

    def split(self, victims: Sequence[PlacedPod]) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """The pods whose eviction would break a budget, if all were evicted in this order; and the others."""
        remaining: dict[str, int] = {}
        breaking: list[PlacedPod] = []
        harmless: list[PlacedPod] = []
        for victim in victims:
            (breaking if self._breaks(victim, self.of(victim.facts), remaining) else harmless).append(victim)
        return breaking, harmless

    def _breaks(self, victim: PlacedPod, guards: Iterable[PodDisruptionBudget], remaining: dict[str, int]) -> bool:
        broken = False
        for budget in guards:
            if victim.pod.name in budget.status.disrupted_pods:
                continue  # the API server has already counted this one
            remaining[budget.key] = remaining.get(budget.key, budget.status.disruptions_allowed) - 1
            broken |= remaining[budget.key] < 0
            if broken and self._stops:
                break  # the budgets after it are not charged
        return broken


def _guarding(source: tuple[list[tuple[PodDisruptionBudget, Selector]], PodFacts]) -> list[PodDisruptionBudget]:
    guards, facts = source
    return [
        budget
        for budget, selector in guards
        if budget.namespace == facts.namespace and facts.labels and selector.matches(facts.labels)
    ]
