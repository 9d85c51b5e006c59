"""Disruption budgets while time passes: how many of the pods they guard are up, and how many may go."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.pod import Pod
from kubesched.api.selectors import Selector, compile_selector
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.controllers.pod_templates import share_of


class BudgetTracker:
    """All budgets, and the pods that are up. Of those that were there at first, all are wanted."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], pods: Iterable[Pod]) -> None:
        """`pods` are all that should be there, those that wait included."""
        self._guards: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        for budget in budgets:
            selector = compile_selector(budget.spec.selector)
            if not selector.nothing:
                self._guards.setdefault(budget.namespace, []).append((budget, selector))
        wanted: dict[str, int] = {}
        self.up: dict[str, int] = {}
        """By budget: how many of its pods are up."""
        for pod in pods:
            for budget in self.guarding(pod):
                wanted[budget.key] = wanted.get(budget.key, 0) + 1
                if pod.spec.node_name:
                    self.up[budget.key] = self.up.get(budget.key, 0) + 1
        self.wanted = {
            budget.key: _needed(budget, wanted.get(budget.key, 0), self.up.get(budget.key, 0))
            for guards in self._guards.values()
            for budget, _ in guards
        }
        """By budget: how many of its pods have to be up."""

    def guarding(self, pod: Pod) -> list[PodDisruptionBudget]:
        guards = self._guards.get(pod.namespace, ())
        return [budget for budget, selector in guards if selector.matches(pod.metadata.labels)]

    def comes_up(self, pod: Pod) -> None:
        for budget in self.guarding(pod):
            self.up[budget.key] = self.up.get(budget.key, 0) + 1

    def goes_down(self, pod: Pod) -> None:
        for budget in self.guarding(pod):
            self.up[budget.key] = self.up.get(budget.key, 0) - 1

    def allowed(self, budget: str) -> int:
        """How many of its pods may go now."""
        return max(0, self.up.get(budget, 0) - self.wanted[budget])

    def forbid(self, pod: Pod) -> list[str]:
        """The budgets that the pod's going would break."""
        return [budget.key for budget in self.guarding(pod) if not self.allowed(budget.key)]


def _needed(budget: PodDisruptionBudget, pods: int, up: int) -> int:
    """What the definition says of so many pods; without one, what the status leaves."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, pods - share_of(spec.max_unavailable, pods, round_up=True))
    if spec.min_available is not None:
        return share_of(spec.min_available, pods, round_up=True)
    return max(0, up - budget.status.disruptions_allowed)
