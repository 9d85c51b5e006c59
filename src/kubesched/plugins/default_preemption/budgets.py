"""PodDisruptionBudgets: which victims would break one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.api.selectors import compile_selector
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.state.facts import PodFacts, StateKey
from kubesched.state.objects import ObjectStore
from kubesched.state.pods import PlacedPod

_GUARDS = StateKey[tuple[int, list[PodDisruptionBudget]]]("PodDisruptionBudgets")


class Budgets:
    """All budgets, by the namespace of the pods they guard."""

    def __init__(self, objects: ObjectStore) -> None:
        self._version = objects.version(PodDisruptionBudget)
        self._guards = [
            (budget, selector)
            for budget in objects.all(PodDisruptionBudget)
            if not (selector := compile_selector(budget.spec.selector)).is_empty and not selector.nothing
        ]

    def of(self, facts: PodFacts) -> list[PodDisruptionBudget]:
        """The budgets that guard pods with these facts; kept with the facts until a budget changes."""
        known = facts.find(_GUARDS)
        if known is None or known[0] != self._version:
            found = [
                budget
                for budget, selector in self._guards
                if budget.namespace == facts.namespace and facts.labels and selector.matches(facts.labels)
            ]
            known = self._version, found
            facts.keep(_GUARDS, known)
        return known[1]

    def split(self, victims: Sequence[PlacedPod]) -> tuple[list[PlacedPod], list[PlacedPod]]:
        """Those whose going would break a budget, if all went in this order; and the others."""
        left: dict[str, int] = {}
        breaking: list[PlacedPod] = []
        harmless: list[PlacedPod] = []
        for victim in victims:
            (breaking if self._breaks(victim, self.of(victim.facts), left) else harmless).append(victim)
        return breaking, harmless

    def _breaks(self, victim: PlacedPod, guards: Iterable[PodDisruptionBudget], left: dict[str, int]) -> bool:
        broken = False
        for budget in guards:
            if victim.pod.name in budget.status.disrupted_pods:
                continue  # the API server has already counted this one
            left[budget.key] = left.get(budget.key, budget.status.disruptions_allowed) - 1
            broken |= left[budget.key] < 0
        return broken
