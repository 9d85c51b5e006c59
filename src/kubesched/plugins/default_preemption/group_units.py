"""Whom a preemption may evict: single pods, and groups that leave only as a whole; which of them matter more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubesched.framework.groups import group_of, group_priority
from kubesched.plugins.default_preemption.candidates import EvictionBudgets
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """Pods that leave together, or not at all."""

    pods: tuple[PlacedPod, ...]
    priority: int
    is_of_group: bool

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """Sorts the most important first: priority; groups before pods; more pods; longer running."""
        return -self.priority, not self.is_of_group, -len(self.pods), min(pod.start for pod in self.pods)


def units_below(priority: int, state: ClusterState) -> list[Unit]:
    """All pods of lower priority, on whichever node, those of groups that are disrupted as one together."""
    single: list[Unit] = []
    together: dict[str, list[PlacedPod]] = {}
    for placed in state.pods.at:
        if placed is None or not state.nodes.live[placed.row]:
            continue
        group = group_of(placed.pod, state) if placed.pod.spec.scheduling_group is not None else None
        if group is None:
            if placed.pod.priority < priority:
                single.append(Unit((placed,), placed.pod.priority, placed.pod.spec.scheduling_group is not None))
        elif group.is_disrupted_as_one:
            together.setdefault(group.key, []).append(placed)
        else:
            own = placed.pod.priority if group.is_alpha else group_priority(group, (placed.pod,), state.features)
            if own < priority:
                single.append(Unit((placed,), own, True))
    for pods in together.values():
        group = group_of(pods[0].pod, state)
        assert group is not None
        unit = Unit(tuple(pods), group_priority(group, (pod.pod for pod in pods), state.features), True)
        if unit.priority < priority:
            single.append(unit)
    return single


def split_by_budgets(units: Sequence[Unit], budgets: EvictionBudgets) -> tuple[list[Unit], list[Unit]]:
    """Those whose going would break a disruption budget, if all went in this order; and the others."""
    breaking_pods, _ = budgets.split([pod for unit in units for pod in unit.pods])
    breaking = {pod.pod.identity for pod in breaking_pods}
    harmful = [unit for unit in units if any(pod.pod.identity in breaking for pod in unit.pods)]
    return harmful, [unit for unit in units if unit not in harmful] if harmful else list(units)


def whole_units(victims: Iterable[PlacedPod], state: ClusterState) -> tuple[PlacedPod, ...]:
    """The victims of a single pod, and whoever must leave with them: the rest of groups that are disrupted as one.

    The API of v1.36 had the field, and its scheduler did not heed it for single preemptors.
    """
    found = {victim.pod.identity: victim for victim in victims}
    for victim in list(found.values()):
        group = group_of(victim.pod, state)
        if group is None or group.is_alpha or not group.is_disrupted_as_one:
            continue
        for pod in state.groups.placed(group.key):
            other = state.placed(pod)
            if other is not None:
                found.setdefault(pod.identity, other)
    return tuple(found.values())
