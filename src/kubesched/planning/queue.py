"""`plan queue`: which of the pending pods run, and where, if the queue is placed as a whole.

The highest priority first, then the greatest value, then the oldest. Every placement is decided by the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import group_key
from kubesched.api.requests import CPU, PODS, is_extended
from kubesched.ask.output import counted
from kubesched.planning.bounds import UpperBound, upper_bound
from kubesched.planning.checking import Draft, check_plan
from kubesched.planning.covers import Covered, pods_of
from kubesched.planning.drain import COUPLING, WHOLE_PODS
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.gangs import gang_of, gang_of_kind, running_of, within_domains
from kubesched.planning.kinds import Problem, free_of, problem_of
from kubesched.planning.levels import Apart, LevelPacker
from kubesched.planning.movable import Movable
from kubesched.planning.oracle import Oracle
from kubesched.planning.plan import Plan, PlanBound, PlanOutcome
from kubesched.planning.scarcity import scarce_of, why_waiting
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Bool, Float, Int64
from kubesched.state.facts import PodFacts

RELAXED = (WHOLE_PODS, COUPLING, "priorities and gangs")
PROOF = "linear program over kinds of pods and classes of nodes, bounded by its dual prices"


@dataclass(frozen=True, slots=True)
class _Queue:
    """Pending pods that may run, and those that cannot before something else happens."""

    pods: list[Pod]
    extras: list[Pod]
    """Pods of gangs beyond those that must run together."""
    gated: list[Pod]


def plan_queue(cluster: ClusterModel, search: PlanSearch) -> Plan:
    """A place for as many of the pending pods as was found."""
    queue = _read(cluster)
    plan = Plan("place the queue", PlanOutcome.UNCHANGED)
    if not queue.pods:
        gated = f"; {counted(len(queue.gated), 'pod')} held back by gates" if queue.gated else ""
        return replace(plan, reason=f"no pod waits for a node{gated}", waiting=tuple(p.key for p in queue.gated))
    problem = problem_of(cluster, queue.pods, apart=partial(_apart, cluster))
    resource = _resource(problem)
    amounts: Float = problem.requests[:, problem.resources.index(resource)] / (1000.0 if resource == CPU else 1.0)
    most = upper_bound(problem, amounts)
    search.bound = f"at most {most.value:,.10g} {resource}"
    limited = within_domains(cluster, problem)
    packer = LevelPacker(limited, _values(problem, amounts), search)
    covered = packer.pack()
    search.report(f"{float(covered.placed @ amounts):,.10g} {resource} found, asking the engine")
    with Oracle(cluster) as oracle:
        placement = _Placing(oracle, limited, search)
        placement.carry_out(covered)
        placement.fill(_others(queue, limited, placement.placed))
        nodes = {key: oracle.name(row) for key, row in placement.placed.items()}
    placements = [(cluster.pods[key], node) for key, node in nodes.items()]
    draft = Draft([], [], placements, asked=oracle.asked, refused=oracle.refused)
    value = most.value if limited is not problem else min(most.value, packer.most_value)
    whole = value if resource == CPU else float(np.floor(value + 1e-6))
    bound = PlanBound(whole, resource, RELAXED, PROOF, scarce_of(cluster, problem, most))
    plan = check_plan(cluster, Movable(cluster), replace(plan, bound=bound), draft, search)
    placed = {planned.pod for planned in plan.placements}
    waiting = [pod.key for pod in (*queue.pods, *queue.extras) if pod.key not in placed]
    waiting += [pod.key for pod in queue.gated]
    unplaced = np.array([sum(pod.key not in placed for pod in kind.pods) for kind in problem.kinds], dtype=np.int64)
    plan = replace(plan, waiting=tuple(waiting), value=float((problem.demand - unplaced) @ amounts))
    return _conclude(plan, queue, problem, most, unplaced, search)


def _read(cluster: ClusterModel) -> _Queue:
    """The pending pods that pass their gates, in the order of the queue."""
    queue, gangs = _Queue([], [], []), dict[str, int]()
    for pod in cluster.pending():
        if not cluster.engine.knows(pod.spec.scheduler_name) or pod.is_terminating:
            continue
        if cluster.engine.pre_enqueue(pod) is not None:
            queue.gated.append(pod)
            continue
        gang = gang_of(cluster, pod)
        if gang is None:
            queue.pods.append(pod)
            continue
        lacking = gangs.setdefault(gang.key, max(1, gang.min_count - running_of(cluster, gang.key)))
        (queue.pods if lacking > 0 else queue.extras).append(pod)
        gangs[gang.key] = lacking - 1
    incomplete = {key for key, lacking in gangs.items() if lacking > 0}
    queue.gated.extend(pod for pod in queue.pods if group_key(pod) in incomplete)
    queue.pods[:] = [pod for pod in queue.pods if group_key(pod) not in incomplete]
    return queue


def _apart(cluster: ClusterModel, pod: Pod) -> Apart:
    gang = gang_of(cluster, pod)
    return Apart(pod.priority, "" if gang is None else gang.key)


def _resource(problem: Problem) -> str:
    """By which pods are valued: the extended resource that is asked for most, or cpu if there is none."""
    demand = problem.demand @ problem.requests
    extended = [i for i, name in enumerate(problem.resources) if is_extended(name) and problem.free[:, i].any()]
    if extended:
        return problem.resources[max(extended, key=lambda i: int(demand[i]))]
    return CPU if CPU in problem.resources else PODS


def _values(problem: Problem, amounts: Float) -> Float:
    """The amount and, a thousandth of it, what else a pod asks for: pods without any of the resource run as well."""
    whole = np.maximum((problem.free * problem.nodes[:, None]).sum(axis=0), 1)
    others = (problem.requests / whole).sum(axis=1)
    values: Float = amounts + others * max(1.0, float(amounts @ problem.demand)) * 1e-3
    return values


def _others(queue: _Queue, problem: Problem, placed: Mapping[str, int]) -> list[Pod]:
    """Pods that no load has: those by themselves, and those of a gang that runs beyond what it must have."""
    of_gangs = {pod.key for kind in problem.kinds if gang_of_kind(kind) for pod in kind.pods}
    running = {group_key(pod) for pod in queue.pods if pod.key in placed and pod.key in of_gangs}
    extras = [pod for pod in queue.extras if group_key(pod) in running]
    return [*(pod for pod in queue.pods if pod.key not in of_gangs), *extras]


def _conclude(
    plan: Plan, queue: _Queue, problem: Problem, most: UpperBound, unplaced: Int64, search: PlanSearch
) -> Plan:
    """The plan with its outcome, and the reasons of pods that are left waiting."""
    reasons = why_waiting(problem, most, unplaced)
    if queue.gated:
        reasons.append(f"{counted(len(queue.gated), 'pod')}: held back by gates or an incomplete group")
    assert plan.bound is not None
    is_best = not unplaced.any() or plan.value >= plan.bound.value - 1e-6
    outcome = PlanOutcome.FOUND if is_best else PlanOutcome.PARTIAL
    if not plan.placements:
        hopeless = not problem.most[unplaced > 0].any()
        outcome = PlanOutcome.IMPOSSIBLE if hopeless else PlanOutcome.UNCHANGED
    if search.was_cut:
        reasons.insert(0, "the search was interrupted")
    return replace(plan, outcome=outcome, reason="; ".join(reasons))


class _Placing:
    """Pods on the nodes that were found for them, one after another, as the engine agrees."""

    def __init__(self, oracle: Oracle, problem: Problem, search: PlanSearch) -> None:
        self._oracle = oracle
        self._problem = problem
        self._search = search
        self._weights = 1.0 / np.maximum(problem.free.max(axis=0, initial=1), 1)
        self.placed: dict[str, int] = {}
        """Rows by the key of the pod, in the order in which they are placed."""

    def carry_out(self, covered: Covered) -> None:
        """All pods of the loads, in the order of the queue; a gang is placed when the first of it is due."""
        problem, targets, due = self._problem, dict[str, int](), list[tuple[Pod, str]]()
        rows = [iter(node_class.rows.tolist()) for node_class in problem.classes]
        for load, mine in zip(covered.loads, pods_of(covered, problem.kinds)):
            targets |= dict.fromkeys((pod.key for _, pod in mine), next(rows[load.node_class]))
            due += [(pod, gang_of_kind(problem.kinds[k])) for k, pod in mine]
        together: dict[str, list[Pod]] = {}
        for pod, gang in sorted(due, key=lambda member: -member[0].priority):
            together.setdefault(gang or pod.key, []).append(pod)
        again = [pods for pods in together.values() if not self._place(pods, targets)]
        for pods in again:
            self._place(pods, {})

    def _place(self, pods: Sequence[Pod], targets: Mapping[str, int]) -> bool:
        """All of the pods on their rows, or on any; if one finds none, all of it is undone."""
        rows: dict[str, int] = {}
        with self._oracle.trying() as keep:
            for pod in pods:
                target = targets.get(pod.key)
                if target is not None:
                    row = target if self._oracle.place(pod, target) else None
                else:
                    row = self._oracle.place_anywhere(pod, choose=self._tightest)
                if row is None:
                    return False
                rows[pod.key] = row
            keep()
        self.placed |= rows
        return True

    def _tightest(self, feasible: Bool) -> int:
        """The row with least left, of those that fit."""
        rows = np.flatnonzero(feasible)
        free = free_of(self._oracle.cluster, self._problem.resources)[rows]
        return int(rows[(free @ self._weights).argmin()])

    def fill(self, pods: Iterable[Pod]) -> None:
        """Further pods wherever the engine finds room, in this order; once one of a kind finds none, no other does."""
        state, hopeless = self._oracle.cluster.state, set[tuple[PodFacts, int]]()
        for pod in pods:
            kind = (state.facts(pod), pod.priority)
            if pod.key in self.placed or kind in hopeless:
                continue
            if not self._search.goes_on():
                return
            if not self._place([pod], {}):
                hopeless.add(kind)
