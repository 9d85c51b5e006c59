"""`plan fit`: the fewest moves after which pending pods, such as a gang, find nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.ask.output import counted
from kubesched.planning.checking import Draft, check_plan
from kubesched.planning.drain import RELAXED, fewest_exchanges, most_worth
from kubesched.planning.emptying import Emptying, PlanSearch
from kubesched.planning.free import PROOF
from kubesched.planning.gangs import domains_of
from kubesched.planning.movable import Movable, MovingRules
from kubesched.planning.oracle import Oracle
from kubesched.planning.packing import Packing
from kubesched.planning.plan import Plan, PlanBound, PlanError, PlanOutcome, in_words
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Bool

_MOST_ROWS = 60
"""Nodes on which room is made for one pod, at most, before it is given up."""


def plan_fit(cluster: ClusterModel, pods: Sequence[Pod], title: str, rules: MovingRules, search: PlanSearch) -> Plan:
    """Where the pods go, and who has to move for them, checked. Raises PlanError."""
    if not pods:
        raise PlanError(f"{title}: no pod of it is pending")
    movable = Movable(cluster, rules)
    packing = Packing(cluster, movable, more=pods)
    plan = Plan(f"fit {title}: {counted(len(pods), 'pod')}", PlanOutcome.IMPOSSIBLE)
    domains = list(_domains(cluster, pods))
    bounds = [fewest_exchanges(packing, pods, rows) for _, rows in domains]
    possible = [(value, *domain) for value, domain in zip(bounds, domains) if value is not None]
    if not possible:
        shares = most_worth(packing, pods=pods, rows=np.logical_or.reduce([rows for _, rows in domains]))
        where = f" in one {domains[0][0].partition('=')[0]}" if len(domains) > 1 else ""
        most = PlanBound(math.floor(shares.value + 1e-6), "pods", RELAXED, PROOF, shares.scarce)
        why = f"scarce: {in_words(shares.scarce)}" if shares.scarce else "no more nodes may take them"
        reason = f"whatever is moved, at most {most.value:g} of them find room{where}; {why}"
        return replace(plan, reason=reason, bound=most)
    bound = PlanBound(math.ceil(min(option[0] for option in possible) - 1e-4), "moves", RELAXED, PROOF)
    search.bound = f"at least {bound.value:g} moves"
    best: Draft | None = None
    for value, _, rows in sorted(possible, key=lambda option: option[0]):
        if best is not None and (len(best.moves) <= math.ceil(value - 1e-4) or not search.goes_on()):
            break
        draft = _Fitting(cluster, movable, pods, rows).run()
        if draft is not None and (best is None or len(draft.moves) < len(best.moves)):
            best = draft
            search.report(f"{len(best.moves)} moves")
    if best is None:
        reason = "no way was found; whether there is one is open"
        return replace(plan, outcome=PlanOutcome.UNCHANGED, reason=reason, bound=bound)
    plan = check_plan(cluster, movable, replace(plan, bound=bound), best, search)
    if len(plan.placements) < len(pods):
        reason = "the pods do not run in the simulation of what was found; whether there is another way is open"
        return replace(plan, moves=(), placements=(), outcome=PlanOutcome.UNCHANGED, reason=reason, check=None)
    return replace(plan, value=float(len(plan.moves)), outcome=PlanOutcome.FOUND)


def _domains(cluster: ClusterModel, pods: Sequence[Pod]) -> Iterator[tuple[str, Bool]]:
    """The nodes among which all pods have to go: those of one rack or zone, if their group asks for that."""
    nodes = cluster.state.nodes
    group = next((group for group in cluster.all(PodGroup) if group.key == group_key(pods[0])), None)
    constraints = group.spec.scheduling_constraints if group is not None else None
    if constraints is None or not constraints.topology:
        yield "", nodes.live[: nodes.size].copy()
        return
    key = constraints.topology[0].key
    yield from ((f"{key}={value}", rows) for value, rows in domains_of(cluster, key).items())


class _Fitting:
    """One try to place the pods on some of the rows."""

    def __init__(self, cluster: ClusterModel, movable: Movable, pods: Sequence[Pod], rows: Bool) -> None:
        self._cluster = cluster
        self._movable = movable
        self._pods = pods
        self._rows = rows
        self._packing = Packing(cluster, movable, more=pods)
        self._placed: dict[str, int] = {}

    def run(self) -> Draft | None:
        """The moves and places; None if a pod finds no node."""
        with Oracle(self._cluster) as oracle:
            self._emptying = emptying = Emptying(oracle, self._packing, self._movable)
            for pod in self._packing.by_size(self._pods):
                row = emptying.settle(pod, self._rows.copy())
                if row is None:
                    row = self._make_room(pod)
                if row is None:
                    return None
                self._placed[pod.uid] = row
                self._packing.move(self._packing.kind_of[pod.uid], -1, row)
            moves = [(pod, oracle.name(emptying.at[pod.uid])) for pod in emptying.moved]
            placements = [(pod, oracle.name(self._placed[pod.uid])) for pod in self._pods]
            return Draft(moves, [], placements, asked=oracle.asked, refused=oracle.refused)

    def _make_room(self, pod: Pod) -> int | None:
        """Move as few pods as possible off one node, and put the pod there; its row."""
        emptying, oracle = self._emptying, self._emptying.oracle
        for victims, row in self._options(pod)[:_MOST_ROWS]:
            others = self._packing.live & ~oracle.only([row])
            if emptying.relocate_all(victims, others, None, partial(oracle.place, pod, row)):
                return row
        return None

    def _options(self, pod: Pod) -> list[tuple[list[Pod], int]]:
        """By node: the pods that would have to go, the fewest first."""
        packing, emptying = self._packing, self._emptying
        kind = packing.kind_of[pod.uid]
        options = []
        for row in np.flatnonzero(self._rows & packing.fits[kind] & (packing.taking()[kind] > 0)).tolist():
            missing, victims = packing.requests[kind] - packing.free[row], list[Pod]()
            if packing.per_node[kind] == 1 and packing.counts[kind, row]:
                victims = [other for uid, other in emptying.on[row].items() if packing.kind_of[uid] == kind]
                missing = missing - sum(packing.requests[packing.kind_of[other.uid]] for other in victims)
            for other in packing.by_size(emptying.on[row].values()):
                if (missing <= 0).all():
                    break
                request = packing.requests[packing.kind_of[other.uid]]
                if other not in victims and emptying.may_move(other) and (np.minimum(request, missing) > 0).any():
                    victims.append(other)
                    missing = missing - request
            if (missing <= 0).all():
                options.append((victims or packing.by_size(emptying.on[row].values())[-1:], row))
        sizes = packing.requests / packing.scale

        def size(option: tuple[list[Pod], int]) -> tuple[int, float]:
            victims, _ = option
            return len(victims), sum(sizes[packing.kind_of[victim.uid]].sum() for victim in victims)

        return sorted(options, key=size)
