"""Room for a pod group: lesser pods are taken away in a trial until it fits, and those not in its way are put back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.groups import GroupWhatIf, group_of, group_priority
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.plugins.default_preemption.candidates import EvictionBudgets
from kubesched.state.absence import Absence
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")
NEVER = unschedulable("not eligible due to preemptionPolicy=Never.")

Assignments = Sequence[tuple[Pod, int]]


@dataclass(frozen=True)
class GroupRoom:
    """Where the pods of the group will go, and the victims that leave first, the most important first."""

    assignments: Assignments
    victims: tuple[PlacedPod, ...]


def is_under_way(group: PodGroup, pods: Sequence[Pod], state: ClusterState) -> bool:
    """Whether victims of an earlier preemption are still leaving nodes that pods of the group are nominated to."""
    priority = group_priority(group, pods, state.features)
    rows = {state.nodes.row_of.get(pod.status.nominated_node_name) for pod in pods} - {None}
    pods_there = (placed.pod for row in rows if row is not None for placed in state.pods.pods_on(row))
    return any(pod.priority < priority and is_leaving_for_another(pod) for pod in pods_there)


def is_leaving_for_another(pod: Pod) -> bool:
    """Whether the pod is being deleted because the scheduler wants its place for another."""
    if not pod.is_terminating:
        return False
    disruption = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    return disruption is not None and disruption.status == "True" and disruption.reason == "PreemptionByScheduler"


def make_room(group: PodGroup, pods: Sequence[Pod], state: ClusterState, what_if: GroupWhatIf) -> GroupRoom | Status:
    """The room that preemption would make, or why it would not help. The state is as before afterwards."""
    by_group = state.features.group_preemption_policy
    if "Never" in ((group.spec.preemption_policy,) if by_group else (pod.spec.preemption_policy for pod in pods)):
        return NEVER
    units = units_below(group_priority(group, pods, state.features), group, state)
    if not units:
        return NO_VICTIMS
    units.sort(key=lambda unit: unit.importance)
    harmful, harmless = split_by_budgets(units, EvictionBudgets(state.objects, state.features.release))
    with state.absence() as absence:
        away = _enough_away([*harmful, *harmless], 2 * len(pods), what_if, absence)
        if isinstance(away, Status):
            return away
        try:
            reprieve = _Reprieve(state, what_if, absence)
            victims = [unit for unit in away if not reprieve.grant(unit)]
            assignments = what_if.assignments
        finally:
            what_if.leave()
    victims.sort(key=lambda unit: unit.importance)
    return GroupRoom(assignments, tuple(pod for unit in victims for pod in unit.pods))


def _enough_away(
    units: Sequence[VictimUnit], initial_count: int, what_if: GroupWhatIf, absence: Absence
) -> list[VictimUnit] | Status:
    """Take away the last of these units, more and more, until the group has room; then it is placed there.

    Those before them would all be let back in: so it comes to the same as if all had been away.
    """
    count = min(initial_count, len(units))
    start = len(units)
    while True:
        for unit in units[len(units) - count : start]:
            absence.take(unit.pods)
        start = len(units) - count
        status = what_if.place()
        if status is None:
            return list(units[start:])
        if not start:
            return status
        count = min(4 * count, len(units))


class _Reprieve:
    """Lets units stay as long as all pods of the group fit, where they are or elsewhere."""

    def __init__(self, state: ClusterState, what_if: GroupWhatIf, absence: Absence) -> None:
        self._what_if = what_if
        self._absence = absence
        self._is_local = all(_looks_at_its_node_only(pod, state) for pod, _ in what_if.assignments)
        self._rows = {row for _, row in what_if.assignments}

    def grant(self, unit: VictimUnit) -> bool:
        """Whether the unit may stay; then it is back."""
        come, go = partial(self._absence.bring_back, unit.pods), partial(self._absence.take, unit.pods)
        concerned: set[int] | None = None
        if self._is_local and not any(pod.facts.terms for pod in unit.pods):
            concerned = self._rows.intersection(pod.row for pod in unit.pods)
            if not concerned:
                come()
                return True  # nobody of the group is anywhere near
        is_granted = self._what_if.resettle(concerned, come, go)
        if is_granted:
            self._rows = {row for _, row in self._what_if.assignments}
        return is_granted


def _looks_at_its_node_only(pod: Pod, state: ClusterState) -> bool:
    """Whether all that matters to the pod about a node is the node itself, and the pods on it."""
    spec = pod.spec
    wide = spec.topology_spread_constraints or spec.resource_claims or spec.volumes or state.facts(pod).terms
    return not wide


@dataclass(frozen=True, eq=False, slots=True)
class VictimUnit:
    """Pods that leave together, or not at all."""

    pods: tuple[PlacedPod, ...]
    priority: int
    is_of_group: bool

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """Sorts the most important first: priority; groups before pods; more pods; longer running."""
        return -self.priority, not self.is_of_group, -len(self.pods), min(pod.start for pod in self.pods)


def units_below(priority: int, preemptor: PodGroup, state: ClusterState) -> list[VictimUnit]:
    """All pods of lower priority, on whichever node, those of groups that are disrupted as one together.

    Members of the preemptor are none of them, whatever their own priority: one would be evicted for another for ever.
    """
    single: list[VictimUnit] = []
    together: dict[str, list[PlacedPod]] = {}
    for placed in state.pods.at:
        if placed is None or not state.nodes.live[placed.row]:
            continue
        group = group_of(placed.pod, state) if placed.pod.spec.scheduling_group is not None else None
        if group is not None and group.key == preemptor.key:
            continue
        if group is None:
            if placed.pod.priority < priority:
                single.append(VictimUnit((placed,), placed.pod.priority, placed.pod.spec.scheduling_group is not None))
        elif group.is_disrupted_as_one:
            together.setdefault(group.key, []).append(placed)
        else:
            own = placed.pod.priority if group.is_alpha else group_priority(group, (placed.pod,), state.features)
            if own < priority:
                single.append(VictimUnit((placed,), own, True))
    for pods in together.values():
        group = group_of(pods[0].pod, state)
        assert group is not None
        unit = VictimUnit(tuple(pods), group_priority(group, (pod.pod for pod in pods), state.features), True)
        if unit.priority < priority:
            single.append(unit)
    return single


def split_by_budgets(
    units: Sequence[VictimUnit], budgets: EvictionBudgets
) -> tuple[list[VictimUnit], list[VictimUnit]]:
    """The units whose eviction would break a disruption budget, if all were evicted in this order; and the others."""
    breaking_pods, _ = budgets.split([pod for unit in units for pod in unit.pods])
    breaking = {pod.pod.identity for pod in breaking_pods}
    harmful = [unit for unit in units if any(pod.pod.identity in breaking for pod in unit.pods)]
    return harmful, [unit for unit in units if unit not in harmful] if harmful else list(units)


def whole_units(victims: Iterable[PlacedPod], state: ClusterState) -> tuple[PlacedPod, ...]:
    """The victims of a single pod, with the rest of each group that is disrupted as one.

    The API of v1.36 had the field, and its scheduler did not heed it for single preemptors.
    """
    leaving = {victim.pod.identity: victim for victim in victims}
    for victim in list(leaving.values()):
        group = group_of(victim.pod, state)
        if group is None or group.is_alpha or not group.is_disrupted_as_one:
            continue
        for pod in state.groups.placed(group.key):
            member = state.placed(pod)
            if member is not None:
                leaving.setdefault(pod.identity, member)
    return tuple(leaving.values())
