"""Carries out a plan in virtual time, with the real scheduler: wave by wave, as disruption budgets allow.

cordon ──► evict a wave, each pod if its budgets allow it ──► owners make pods anew ──► all are up ──► the next wave
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.planning.plan import NodeFate, Plan, PlannedMove, by_wave
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.rolling_upgrade import RETRY, BudgetTracker
from kubesched.simulate.simulation import Simulation

POD_STARTUP = 10.0
"""Seconds from being placed until a pod counts as available to its budgets."""
PATIENCE = 3600.0
"""Seconds after which a wave that a budget holds up has failed."""


@dataclass
class Execution:
    """How it went."""

    astray: dict[str, str] = field(default_factory=dict)
    """By pod that moved to another node than planned: that node."""
    stuck: dict[str, str] = field(default_factory=dict)
    """By pod that ran and does not run any more, or was never evicted: why."""
    unplaced: dict[str, str] = field(default_factory=dict)
    """By pending pod that was to be placed, and was not: why."""
    violations: list[str] = field(default_factory=list)
    """Budgets that were broken."""
    seconds: float = 0.0
    waves: int = 0
    """How many were carried out."""
    objects: tuple[KubeObject, ...] = ()
    """The cluster at the end."""

    @property
    def is_as_planned(self) -> bool:
        return not (self.astray or self.stuck or self.unplaced or self.violations)


class WaveOperation:
    """What a simulation does to carry out a plan, to be used once."""

    def __init__(self, moves: Sequence[PlannedMove], freed: Iterable[str], *, nominate: bool) -> None:
        self.violations: list[str] = []
        self.waves = 0
        self.seconds = 0.0
        self._waves = by_wave(moves)
        self._freed = set(freed)
        self._nominate = nominate
        self._running: dict[str, Pod] = {}
        """By key, as they are at first."""
        self._starting: set[str] = set()
        self._awaited: set[str] = set()
        """The uids of pods that are to be up before the next wave."""

    def begin(self, simulation: Simulation) -> None:
        self._simulation = simulation
        simulation.plan(0.0, self._start)

    def bound(self, pod: Pod) -> None:
        self._starting.add(pod.uid)
        self._simulation.plan(self._simulation.now + POD_STARTUP, partial(self._comes_up, pod))

    def gone(self, pod: Pod) -> None:
        if pod.uid in self._starting:
            self._starting.remove(pod.uid)
            return
        self._budgets.goes_down(pod)
        for budget in self._budgets.guarding(pod):
            if self._budgets.up[budget.key] < self._budgets.wanted[budget.key]:
                self.violations.append(budget.key)

    def _comes_up(self, pod: Pod) -> None:
        if pod.uid not in self._starting:
            return
        self._starting.remove(pod.uid)
        self._budgets.comes_up(pod)
        if pod.uid in self._awaited:
            self._awaited.remove(pod.uid)
            self._go_on()

    def _start(self) -> None:
        pods = self._simulation.objects(Pod)
        self._budgets = BudgetTracker(self._simulation.objects(PodDisruptionBudget), pods)
        self._running = {pod.key: pod for pod in pods if pod.spec.node_name}
        for node in self._simulation.objects(Node):
            if node.name in self._freed:
                self._simulation.put(replace(node, spec=replace(node.spec, unschedulable=True)))
        self._next()

    def _next(self) -> None:
        if self.waves == len(self._waves):
            return
        self._remaining = list(self._waves[self.waves])
        self._evict(self._simulation.now)

    def _evict(self, began: float) -> None:
        forbidden = []
        for move in self._remaining:
            pod = self._running[move.pod]
            if self._budgets.forbid(pod):
                forbidden.append(move)
                continue
            again = self._simulation.evict(pod, move.to_node if self._nominate else "")
            if again is not None:
                self._awaited.add(again.uid)
        self._remaining = forbidden
        if forbidden and self._simulation.now - began < PATIENCE:
            self._simulation.plan(self._simulation.now + RETRY, partial(self._evict, began))

    def _go_on(self) -> None:
        if not self._awaited and not self._remaining:
            self.waves += 1
            self.seconds = self._simulation.now
            self._next()


def execute(
    cluster: ClusterModel, plan: Plan, *, nominate: bool, new: Iterable[KubeObject] = (), seed: int = 0
) -> Execution:
    """Carry the plan out on a copy of the cluster. `new` are nodes that it adds, with what belongs to them."""
    freed = [node.name for node in plan.nodes if node.fate is not NodeFate.ADDED]
    operation = WaveOperation(plan.moves, freed, nominate=nominate)
    targets = {placement.pod: placement.node for placement in plan.placements} if nominate else {}
    objects = [_with_nomination(obj, targets) for obj in (*new, *_objects(cluster))]
    simulation = Simulation(objects, cluster.configuration, seed=seed, plugins=cluster.plugins, operation=operation)
    simulation.run()
    execution = Execution(violations=operation.violations, seconds=operation.seconds, waves=operation.waves)
    execution.objects = simulation.objects_at_the_end()
    at_the_end = simulation.pods_at_the_end()
    ran = {pod.key for pod in cluster.pods.values() if pod.spec.node_name and not pod.is_finished}
    if not all(key in at_the_end and at_the_end[key][0].spec.node_name for key in ran):
        ran &= _running_anyway(cluster, seed)
    _compare(execution, plan, ran, at_the_end)
    return execution


def _running_anyway(cluster: ClusterModel, seed: int) -> set[str]:
    """Pods that run in the end if nothing is done: others finish, or make room for pods that wait."""
    simulation = Simulation(cluster.objects(), cluster.configuration, seed=seed, plugins=cluster.plugins)
    simulation.run()
    return {key for key, (pod, _) in simulation.pods_at_the_end().items() if pod.spec.node_name}


def _objects(cluster: ClusterModel) -> list[KubeObject]:
    """All objects, and the pods that controllers would make: as pods, so that they can be nominated."""
    objects = list(cluster.objects())
    keys = {obj.key for obj in objects if isinstance(obj, Pod)}
    return objects + [pod for key, pod in cluster.pods.items() if key not in keys]


def _with_nomination(obj: KubeObject, targets: Mapping[str, str]) -> KubeObject:
    """Pending pods that are to be placed are nominated to their nodes, like those that are made anew."""
    if not isinstance(obj, Pod) or obj.spec.node_name:
        return obj
    node = targets.get(obj.key, "")
    return replace(obj, status=replace(obj.status, nominated_node_name=node)) if node else obj


def _compare(execution: Execution, plan: Plan, ran: set[str], at_the_end: Mapping[str, tuple[Pod, str]]) -> None:
    targets = {move.pod: move.to_node for move in plan.moves}
    for key in ran:
        pod, why = at_the_end.get(key, (None, "it is gone"))
        if pod is None or not pod.spec.node_name:
            execution.stuck[key] = why or "not tried"
        elif key in targets and pod.spec.node_name != targets[key]:
            origin = next(move.from_node for move in plan.moves if move.pod == key)
            if pod.spec.node_name == origin:
                execution.stuck[key] = "its disruption budgets did not allow it to leave"
            else:
                execution.astray[key] = pod.spec.node_name
    for placement in plan.placements:
        pod, why = at_the_end.get(placement.pod, (None, "it is gone"))
        if pod is None or not pod.spec.node_name:
            execution.unplaced[placement.pod] = why or "not tried"
        elif pod.spec.node_name != placement.node:
            execution.astray[placement.pod] = pod.spec.node_name
